//! Who is there under which name. Host names are not unique, but a worker's name is: the second connection of
//! the same host and address gets a number. The lowest free one, so that whoever comes back is known again,
//! and with it what the hub remembers of it and what it still ran when its connection was lost. Whoever comes back
//! before that was noticed has another number; so what was lent to one runner of a host any of them may hand in.

use bytes::Bytes;
use laboro_core::{LeaseNo, LeaseRef, Name, TaskId, TaskRef, Time};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What a runner was given, by the names that it knows.
type Lent = HashMap<Bytes, Loan>;

#[derive(Clone, Debug)]
pub(super) struct Loan {
    pub(super) task: TaskId,
    /// `None`: known only from what the hub remembers.
    pub(super) lease: Option<LeaseNo>,
    pub(super) attempt: u16,
    /// When it was handed out, as far as that is known.
    pub(super) lent_at: Option<Time>,
    /// The worker that the hub gave it to.
    pub(super) holder: Name,
    /// Given out by a manager that is gone and left no word of it.
    pub(super) is_from_before: bool,
    /// Its exit status tells, whatever the rule is for runexp's own scripts.
    pub(super) by_exit_status: bool,
}

impl Loan {
    pub(super) fn lease_ref(&self) -> LeaseRef {
        match self.lease {
            Some(lease) => LeaseRef::Number { task: self.task, lease },
            None if self.is_from_before => LeaseRef::HeldOrFree(TaskRef::Id(self.task)),
            None => LeaseRef::Held(TaskRef::Id(self.task)),
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Roll {
    hosts: Mutex<HashMap<Host, Entry>>,
}

type Host = (String, Option<IpAddr>);

#[derive(Debug, Default)]
struct Entry {
    taken: BTreeMap<u32, Lent>,
    /// Of those.
    ejected: BTreeSet<u32>,
    /// How often one of them was given work again.
    pardons: u64,
    left: BTreeMap<u32, (Time, Lent)>,
}

/// How long a result is waited for after its connection was lost.
const LEFT_MS: u64 = 3_600_000;

/// Hosts whose running jobs are remembered. Beyond it late results are not known any more.
const LEFT_MAX: usize = 10_000;

impl Roll {
    /// A name of its own for as long as the seat is kept.
    pub(super) fn seat(self: &Arc<Roll>, host: &str, peer: Option<IpAddr>) -> Seat {
        let key = (host.to_owned(), peer);
        let mut hosts = self.lock();
        let entry = hosts.entry(key.clone()).or_default();
        let mut numbers = (1..).filter(|number| !entry.taken.contains_key(number));
        let number = numbers.next().expect("numbers do not run out");
        let address = peer.map(|peer| format!("@{peer}")).unwrap_or_default();
        let name = match number {
            1 => format!("{host}{address}"),
            _ => format!("{host}{address}#{number}"),
        };
        let came_ejected = (!entry.ejected.is_empty()).then_some(entry.pardons);
        entry.taken.insert(number, Lent::new());
        drop(hosts);
        let roll = Arc::clone(self);
        Seat { name: Name::from(name), came_ejected, is_noted: false, host: key, number, roll }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Host, Entry>> {
        self.hosts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Given back when dropped.
#[derive(Debug)]
pub(super) struct Seat {
    pub(super) name: Name,
    /// When it came an ejected runner of this host was still connected, so this one is no news. The pardons then.
    came_ejected: Option<u64>,
    /// That it is ejected itself.
    is_noted: bool,
    host: Host,
    number: u32,
    roll: Arc<Roll>,
}

impl Seat {
    pub(super) fn note_ejected(&mut self) {
        self.is_noted = true;
        if let Some(entry) = self.roll.lock().get_mut(&self.host) {
            entry.ejected.insert(self.number);
        }
    }

    /// It was given something.
    pub(super) fn note_pardoned(&mut self) {
        if std::mem::take(&mut self.is_noted)
            && let Some(entry) = self.roll.lock().get_mut(&self.host)
        {
            entry.ejected.remove(&self.number);
            entry.pardons += 1;
        }
    }

    pub(super) fn is_ejected(&self) -> bool {
        self.came_ejected.is_some_and(|then| {
            self.roll.lock().get(&self.host).is_none_or(|entry| entry.pardons == then)
        })
    }

    /// What ran here when the last connection under this name was lost is this one's now.
    pub(super) fn take_up_left(&self, now: Time) {
        let mut hosts = self.roll.lock();
        if let Some(entry) = hosts.get_mut(&self.host)
            && let Some((at, lent)) = entry.left.remove(&self.number)
            && now.since_ms(at) < LEFT_MS
        {
            entry.taken.insert(self.number, lent);
        }
    }

    pub(super) fn lend(&self, name: Bytes, loan: Loan) {
        self.with_lent(|lent| lent.insert(name, loan));
    }

    pub(super) fn lent_count(&self) -> usize {
        self.with_lent(|lent| lent.len())
    }

    /// What was given under this name to this runner, else to another one of its host: it may be the same one, whose
    /// old connection is not known to be lost, or was only found to be after it came back.
    pub(super) fn find(&self, name: &[u8], now: Time) -> Option<Loan> {
        let hosts = self.roll.lock();
        let entry = hosts.get(&self.host)?;
        let own = entry.taken.get(&self.number).and_then(|lent| lent.get(name));
        let left = entry.left.values().filter(|(at, _)| now.since_ms(*at) < LEFT_MS);
        let others = || entry.taken.values().chain(left.map(|(_, lent)| lent));
        own.or_else(|| others().find_map(|lent| lent.get(name))).cloned()
    }

    /// Its result is in, whoever of this host it was lent to.
    pub(super) fn end_loan(&self, name: &[u8], loan: &Loan) {
        let mut hosts = self.roll.lock();
        let Some(entry) = hosts.get_mut(&self.host) else { return };
        let is_it = |lent: &Lent| {
            lent.get(name).is_some_and(|it| (it.task, it.lease) == (loan.task, loan.lease))
        };
        if let Some(own) = entry.taken.get_mut(&self.number).filter(|lent| is_it(lent)) {
            own.remove(name);
            return;
        }
        let left = entry.left.values_mut().map(|(_, lent)| lent);
        for lent in entry.taken.values_mut().chain(left).filter(|lent| is_it(lent)) {
            lent.remove(name);
        }
        entry.left.retain(|_, (_, lent)| !lent.is_empty());
    }

    /// It goes for good, and will not hand in anything.
    pub(super) fn forget_lent(&self) {
        self.with_lent(Lent::clear);
    }

    fn with_lent<T>(&self, act: impl FnOnce(&mut Lent) -> T) -> T {
        let mut hosts = self.roll.lock();
        let entry = hosts.get_mut(&self.host);
        act(entry
            .and_then(|entry| entry.taken.get_mut(&self.number))
            .expect("a seat is taken until it is dropped"))
    }

    /// The connection is lost; what runs there may still be handed in.
    pub(super) fn leave(&self, now: Time) {
        let lent = self.with_lent(std::mem::take);
        let mut hosts = self.roll.lock();
        if hosts.len() > LEFT_MAX {
            hosts.retain(|_, entry| {
                entry.left.retain(|_, (at, _)| now.since_ms(*at) < LEFT_MS);
                !entry.taken.is_empty() || !entry.left.is_empty()
            });
        }
        let has_room = hosts.len() <= LEFT_MAX;
        if let Some(entry) = hosts.get_mut(&self.host)
            && has_room
            && !lent.is_empty()
        {
            entry.left.insert(self.number, (now, lent));
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut hosts = self.roll.lock();
        if let Some(entry) = hosts.get_mut(&self.host) {
            entry.taken.remove(&self.number);
            entry.ejected.remove(&self.number);
            if entry.taken.is_empty() && entry.left.is_empty() {
                hosts.remove(&self.host);
            }
        }
    }
}

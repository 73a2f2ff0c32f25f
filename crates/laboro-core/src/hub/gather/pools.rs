//! Which workers could be one of several for a task, for each class that chose some lately: idle ones first, then those
//! whose last task began longest ago. A pool looks at a worker when it is new, and again when that worker has changed
//! since, so that choosing costs O(log workers) for each change, and nothing for workers to which nothing happened. A
//! pool that would have more changes to read than workers to look at is dropped, and made anew when it is needed. It
//! does not decide who is chosen.

use crate::hub::policy;
use crate::id::{Time, WorkerId};
use crate::ledger::{Class, ClassHandle, Ledger, WorkerHandle};
use crate::presence::Presence;
use hashbrown::HashMap;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound::{Excluded, Unbounded};

/// Those of classes that chose workers lately.
#[derive(Debug, Default)]
pub(super) struct Pools {
    by_class: BTreeMap<ClassHandle, Pool>,
    changes: Changes,
}

/// Which workers changed while there were pools, each at its last change.
#[derive(Debug, Default)]
struct Changes {
    count: u64,
    by_count: BTreeMap<u64, WorkerHandle>,
    last: HashMap<WorkerHandle, u64, foldhash::fast::FixedState>,
}

#[derive(Debug)]
pub(super) struct Pool {
    serial: u64,
    /// So many changes are in it.
    seen: u64,
    /// All that could be one of several, also those that are gathered now.
    members: HashMap<WorkerHandle, Seat, foldhash::fast::FixedState>,
    free: BTreeSet<(Option<Time>, WorkerHandle)>,
    /// Up to when each has time for the task, where that is limited.
    leaving: BTreeSet<(Time, WorkerHandle)>,
}

/// How a worker stands in a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Seat {
    /// When its last task began. Not later than it really did: a lease is no change, an end is one.
    busy_since: Option<Time>,
    is_gathered: bool,
    latest: Option<Time>,
}

/// More pools than this are not kept, nor are small ones dropped before so many changes.
const POOLS_MAX: usize = 32;
const CHANGES_MIN: u64 = 64;

impl Pools {
    pub(super) fn is_empty(&self) -> bool {
        self.by_class.is_empty()
    }

    /// The worker came, went, could take more or less, is gathered or not any more, or has ended something.
    pub(super) fn note(&mut self, worker: WorkerHandle) {
        if self.is_empty() {
            return;
        }
        let count = self.changes.note(worker);
        if count.is_multiple_of(CHANGES_MIN) {
            let is_worth_it =
                |pool: &Pool| count - pool.seen <= CHANGES_MIN.max(pool.members.len() as u64);
            self.by_class.retain(|_, pool| is_worth_it(pool));
            if self.is_empty() {
                self.changes = Changes::default();
            }
        }
    }

    /// The pool of a class, as things are now.
    pub(super) fn look(
        &mut self,
        handle: ClassHandle,
        ledger: &Ledger,
        presence: &Presence,
        now: Time,
    ) -> &mut Pool {
        let class = ledger.lanes().class(handle);
        let Pools { by_class: pools, changes } = self;
        let is_known = pools.get(&handle).is_some_and(|pool| pool.serial == class.serial);
        if !is_known && pools.len() >= POOLS_MAX {
            let oldest = pools.iter().min_by_key(|(_, pool)| pool.seen).map(|(&class, _)| class);
            oldest.and_then(|class| pools.remove(&class));
        }
        if !is_known {
            pools.insert(handle, Pool::new(class.serial));
        }
        let pool = pools.get_mut(&handle).expect("put there if it was not");
        let seat = |worker| Seat::of(worker, class, ledger, presence, now);
        if is_known {
            for (_, &worker) in changes.by_count.range(pool.seen + 1..) {
                pool.put(worker, seat(worker));
            }
        } else {
            for worker in ledger.workers().from(WorkerId::default()) {
                pool.put(worker, seat(worker));
            }
        }
        pool.seen = changes.count;
        while let Some(&(latest, worker)) = pool.leaving.first()
            && latest < now
        {
            pool.put(worker, None);
        }
        debug_assert!(pool.is_complete(ledger, seat), "every change of a worker is noted");
        pool
    }
}

impl Changes {
    fn note(&mut self, worker: WorkerHandle) -> u64 {
        self.count += 1;
        if let Some(before) = self.last.insert(worker, self.count) {
            self.by_count.remove(&before);
        }
        self.by_count.insert(self.count, worker);
        self.count
    }
}

impl Pool {
    fn new(serial: u64) -> Pool {
        Pool {
            serial,
            seen: 0,
            members: HashMap::default(),
            free: BTreeSet::new(),
            leaving: BTreeSet::new(),
        }
    }

    fn put(&mut self, worker: WorkerHandle, seat: Option<Seat>) {
        if let Some(before) = self.members.remove(&worker) {
            self.free.remove(&(before.busy_since, worker));
            before.latest.map(|latest| self.leaving.remove(&(latest, worker)));
        }
        let Some(seat) = seat else { return };
        self.members.insert(worker, seat);
        if !seat.is_gathered {
            self.free.insert((seat.busy_since, worker));
        }
        if let Some(latest) = seat.latest {
            self.leaving.insert((latest, worker));
        }
    }

    /// How many could be chosen now, and how many if no other class had any.
    pub(super) fn counts(&self) -> (usize, usize) {
        (self.free.len(), self.members.len())
    }

    /// So many of those that could be chosen, idle ones first.
    pub(super) fn best(&mut self, wanted: usize, ledger: &Ledger) -> Vec<WorkerHandle> {
        let mut best: Vec<(Option<Time>, WorkerHandle)> = Vec::with_capacity(wanted);
        let mut after = None;
        while best.len() < wanted {
            let next = match after {
                None => self.free.first(),
                Some(after) => self.free.range((Excluded(after), Unbounded)).next(),
            };
            let Some(&(known, worker)) = next else { break };
            let since = busy_since(ledger, worker);
            if since <= known {
                best.push((since, worker));
                after = Some((known, worker));
                continue;
            }
            // It was given something since.
            let seat = self.members[&worker];
            self.put(worker, Some(Seat { busy_since: since, ..seat }));
        }
        // Some may have ended what they ran, and it was not noted yet.
        best.sort_unstable();
        best.into_iter().map(|(_, worker)| worker).collect()
    }

    /// Is it what a look at all workers would give? Walks over all of them.
    fn is_complete(&self, ledger: &Ledger, seat: impl Fn(WorkerHandle) -> Option<Seat>) -> bool {
        let all = ledger.workers().from(WorkerId::default());
        let is_same = |one: Option<Seat>, other: Option<Seat>| {
            one.map(|seat| (seat.is_gathered, seat.latest))
                == other.map(|seat| (seat.is_gathered, seat.latest))
        };
        all.into_iter().all(|worker| is_same(self.members.get(&worker).copied(), seat(worker)))
    }
}

impl Seat {
    fn of(
        worker: WorkerHandle,
        class: &Class,
        ledger: &Ledger,
        presence: &Presence,
        now: Time,
    ) -> Option<Seat> {
        let member = presence.member(worker)?;
        let this = ledger.workers().get(worker);
        let can = this.group == class.group && policy::can_be_node(member, this, class, now);
        let latest = member.until.zip(class.limit_ms);
        can.then(|| Seat {
            busy_since: busy_since(ledger, worker),
            is_gathered: member.gathered.is_some(),
            latest: latest.map(|(until, limit)| Time(until.0.saturating_sub(limit))),
        })
    }
}

/// When its last task began, if it has any.
fn busy_since(ledger: &Ledger, worker: WorkerHandle) -> Option<Time> {
    let workers = ledger.workers();
    workers.last_lease_of(worker).map(|lease| workers.lease(lease).started)
}

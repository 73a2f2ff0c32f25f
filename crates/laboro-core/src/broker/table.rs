//! The workers and whose turn it is. Taking the first, putting those without a free slot to the end and then
//! the chosen one is the same as a mark that goes round a ring: nobody moves, and a search skips whole words
//! of workers without free slots.

mod rate;
mod worker;

pub use rate::Rate;
pub use worker::WorkerRow;

use super::{BrokerConfig, PeerId};
use crate::id::{Name, Time};
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use std::collections::BTreeSet;
use worker::BrokerWorker;

#[derive(Debug)]
pub(super) struct Table {
    config: BrokerConfig,
    /// By handle. A handle is used again once its worker is gone.
    workers: Vec<Option<BrokerWorker>>,
    unused: Vec<u32>,
    by_identity: HashMap<Name, u32, FixedState>,
    /// Handles in their order, beginning at `next` and going round.
    ring: Vec<u32>,
    next: usize,
    /// A bit for each place in the ring: this worker can take a request now.
    open: Vec<u64>,
    timers: BTreeSet<(Time, u32)>,
}

/// What time has brought.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum BrokerDue {
    SlotBack,
    Probe(PeerId),
    /// It did not answer, and is away from now on.
    Silent(PeerId),
    /// It stayed away too long and is out of the table.
    Lost,
}

impl Table {
    pub fn new(config: BrokerConfig, hasher: FixedState) -> Table {
        Table {
            config,
            workers: Vec::new(),
            unused: Vec::new(),
            by_identity: HashMap::with_hasher(hasher),
            ring: Vec::new(),
            next: 0,
            open: Vec::new(),
            timers: BTreeSet::new(),
        }
    }

    pub fn find(&self, identity: &Name) -> Option<u32> {
        self.by_identity.get(identity).copied()
    }

    /// At the end of the order. `None` when the table is full.
    pub fn add(&mut self, identity: Name, peer: PeerId, slots: u32, now: Time) -> Option<u32> {
        if self.ring.len() >= self.config.workers_max {
            return None;
        }
        let worker = BrokerWorker::new(identity.clone(), peer, slots, now);
        let handle = match self.unused.pop() {
            Some(handle) => handle,
            None => {
                self.workers.push(None);
                u32::try_from(self.workers.len() - 1).expect("fewer than 2^32 workers")
            }
        };
        self.workers[handle as usize] = Some(worker);
        self.by_identity.insert(identity, handle);
        // The end of the order is the place before the next one.
        let place = if self.next == 0 { self.ring.len() } else { self.next };
        self.ring.insert(place, handle);
        if self.next > 0 {
            self.next += 1;
        }
        self.renumber(place);
        self.schedule(handle);
        Some(handle)
    }

    pub fn overwrite(&mut self, handle: u32, slots: u32, now: Time) {
        self.worker(handle).overwrite(slots, now);
        self.update(handle);
    }

    pub fn remove(&mut self, handle: u32) {
        let worker = self.workers[handle as usize].take().expect("handles are of live workers");
        self.unused.push(handle);
        self.by_identity.remove(&worker.identity);
        if let Some(at) = worker.timer {
            self.timers.remove(&(at, handle));
        }
        self.ring.remove(worker.place);
        if worker.place < self.next {
            self.next -= 1;
        }
        if self.next == self.ring.len() {
            self.next = 0;
        }
        self.renumber(worker.place);
    }

    /// The next worker with a free slot, which it has no longer.
    pub fn take(&mut self, now: Time) -> Option<PeerId> {
        let place = self.next_open()?;
        let handle = self.ring[place];
        self.next = if place + 1 == self.ring.len() { 0 } else { place + 1 };
        let until = self.config.slot_ms.map(|ms| now.after_ms(ms));
        let worker = self.worker(handle);
        let peer = worker.take(now, until);
        if !worker.is_open() || until.is_some() {
            self.update(handle);
        }
        Some(peer)
    }

    /// `false` when no slot was taken.
    pub fn give_back(&mut self, handle: u32) -> bool {
        let given = self.worker(handle).give_back();
        self.update(handle);
        given
    }

    pub fn hear(&mut self, handle: u32, now: Time) {
        // The timer stays where it is: when it fires, it sees that there was a word.
        self.worker(handle).hear(now);
    }

    pub fn come_back(&mut self, handle: u32, peer: PeerId, now: Time) {
        self.worker(handle).come_back(peer, now);
        self.update(handle);
    }

    pub fn go_away(&mut self, handle: u32, now: Time) {
        let until = now.after_ms(self.config.grace_ms);
        self.worker(handle).go_away(until);
        self.update(handle);
    }

    pub fn deadline(&self) -> Option<Time> {
        self.timers.first().map(|&(at, _)| at)
    }

    /// The next thing that is due by now, if anything is.
    pub fn due(&mut self, now: Time) -> Option<BrokerDue> {
        while let Some(&(_, handle)) = self.timers.first().filter(|(at, _)| *at <= now) {
            let config = self.config;
            let due = self.worker(handle).due(now, &config);
            match due {
                Some(BrokerDue::Lost) => self.remove(handle),
                Some(BrokerDue::Silent(_)) => self.go_away(handle, now),
                _ => self.update(handle),
            }
            if due.is_some() {
                return due;
            }
        }
        None
    }

    pub fn rows(&self) -> impl Iterator<Item = WorkerRow<'_>> {
        let (later, first) = self.ring.split_at(self.next);
        let in_order = first.iter().chain(later);
        in_order.filter_map(|&handle| self.workers[handle as usize].as_ref()).map(BrokerWorker::row)
    }

    fn worker(&mut self, handle: u32) -> &mut BrokerWorker {
        self.workers[handle as usize].as_mut().expect("handles are of live workers")
    }

    /// Whatever changed about this worker: its bit and its timer follow.
    fn update(&mut self, handle: u32) {
        let worker = self.worker(handle);
        let (place, is_open) = (worker.place, worker.is_open());
        self.mark(place, is_open);
        self.schedule(handle);
    }

    fn schedule(&mut self, handle: u32) {
        let config = self.config;
        let worker = self.worker(handle);
        let (old, new) = (worker.timer, worker.next_due(&config));
        if old != new {
            worker.timer = new;
            if let Some(at) = old {
                self.timers.remove(&(at, handle));
            }
            if let Some(at) = new {
                self.timers.insert((at, handle));
            }
        }
    }

    /// Workers come and go far more seldom than requests, so their places may be counted anew.
    fn renumber(&mut self, from: usize) {
        self.open.resize(self.ring.len().div_ceil(64), 0);
        for place in from..self.ring.len() {
            let handle = self.ring[place];
            let worker = self.worker(handle);
            worker.place = place;
            let is_open = worker.is_open();
            self.mark(place, is_open);
        }
        // Bits behind the last place are never set.
        if let Some(last) = self.open.last_mut() {
            let used = self.ring.len() % 64;
            *last &= if used == 0 { u64::MAX } else { (1 << used) - 1 };
        }
    }

    fn mark(&mut self, place: usize, is_open: bool) {
        let bit = 1 << (place % 64);
        let word = &mut self.open[place / 64];
        *word = if is_open { *word | bit } else { *word & !bit };
    }

    /// The first open place from `next` on, going round.
    fn next_open(&self) -> Option<usize> {
        let (start, count) = (self.next / 64, self.open.len());
        let first = self.open.get(start)? & (u64::MAX << (self.next % 64));
        if first != 0 {
            return Some(start * 64 + first.trailing_zeros() as usize);
        }
        // The word of `next` comes again at the end, for the places before it.
        (start + 1..=start + count).map(|word| word % count).find_map(|word| {
            let bits = self.open[word];
            (bits != 0).then(|| word * 64 + bits.trailing_zeros() as usize)
        })
    }
}

#[cfg(test)]
impl Table {
    /// Everything that is said twice says the same.
    pub fn check(&self) {
        assert_eq!(self.by_identity.len(), self.ring.len());
        assert!(self.next < self.ring.len().max(1));
        for (place, &handle) in self.ring.iter().enumerate() {
            let worker = self.workers[handle as usize].as_ref().expect("the ring has live ones");
            assert_eq!(worker.place, place);
            assert_eq!(self.open[place / 64] >> (place % 64) & 1 == 1, worker.is_open());
            assert!(worker.timer.is_none_or(|at| self.timers.contains(&(at, handle))));
            assert!(worker.row().free <= worker.row().slots);
        }
        assert!(self.timers.len() <= self.ring.len());
        let bits: u32 = self.open.iter().map(|word| word.count_ones()).sum();
        assert!(bits as usize <= self.ring.len());
    }
}

//! The request broker: requests go to the worker that was least recently served and has a free slot, or wait
//! until there is one. Pure like the hub, and as little remembered: nothing is journaled, a restart forgets
//! it. What a message says is not known here, and neither is the wire.

mod counters;
mod queue;
mod table;

#[cfg(test)]
mod tests;

pub use counters::{Counters, Dropped};
pub use table::{Rate, WorkerRow};

use crate::id::{Name, Time};
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use queue::RequestQueue;
use table::{BrokerDue, Table};

/// One connection of a peer. Chosen by the transports and never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PeerId(pub u64);

/// What the outside must do.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Act<M> {
    Send {
        to: PeerId,
        message: M,
    },
    /// Ask this worker whether it is there. Any word of it is an answer.
    Probe {
        to: PeerId,
    },
    /// This connection is of no use any more.
    Close {
        peer: PeerId,
    },
}

/// How the broker treats its peers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct BrokerConfig {
    pub workers_max: usize,
    /// Of one worker.
    pub slots_max: u32,
    pub queue_messages_max: usize,
    pub queue_bytes_max: usize,
    /// How long a request may wait for a worker.
    pub queue_ms: u64,
    /// How long a worker that is away keeps its place: it comes back under its name and does not register
    /// again.
    pub grace_ms: u64,
    /// A worker is probed after so long without a word. 0: never.
    pub probe_ms: u64,
    /// How long it may take to answer.
    pub answer_ms: u64,
    /// After so long a slot is free again though its worker did not say so. `None`: never.
    pub slot_ms: Option<u64>,
}

impl Default for BrokerConfig {
    fn default() -> BrokerConfig {
        BrokerConfig {
            workers_max: 10_000,
            slots_max: 100_000,
            queue_messages_max: 1_000_000,
            queue_bytes_max: 256 << 20,
            queue_ms: 120_000,
            grace_ms: 60_000,
            probe_ms: 30_000,
            answer_ms: 10_000,
            slot_ms: None,
        }
    }
}

/// The request broker of rrmq: requests in, requests to workers and replies to clients out.
#[derive(Debug)]
pub struct Broker<M> {
    config: BrokerConfig,
    peers: HashMap<PeerId, Peer, FixedState>,
    addresses: HashMap<Name, PeerId, FixedState>,
    table: Table,
    /// Not empty only while no worker has a free slot.
    queue: RequestQueue<M>,
    counters: Counters,
}

#[derive(Debug)]
struct Peer {
    identity: Name,
    /// Its handle in the table, if it is a worker.
    worker: Option<u32>,
}

impl<M> Broker<M> {
    /// Names come from peers: the seed keeps them from choosing colliding ones.
    pub fn new(config: BrokerConfig, seed: u64) -> Broker<M> {
        let hasher = FixedState::with_seed(seed);
        Broker {
            config,
            peers: HashMap::with_hasher(hasher.clone()),
            addresses: HashMap::with_hasher(hasher.clone()),
            table: Table::new(config, hasher),
            queue: RequestQueue::new(&config),
            counters: Counters::default(),
        }
    }

    /// A connection stands. A peer that comes again under its name takes the place of its old connection,
    /// which may be long dead without anybody having noticed.
    pub fn open(&mut self, now: Time, peer: PeerId, identity: Name, acts: &mut Vec<Act<M>>) {
        if let Some(old) = self.addresses.insert(identity.clone(), peer) {
            self.peers.remove(&old);
            self.counters.taken_over += 1;
            acts.push(Act::Close { peer: old });
        }
        let worker = self.table.find(&identity);
        self.peers.insert(peer, Peer { identity, worker });
        if let Some(worker) = worker {
            self.table.come_back(worker, peer, now);
            self.drain(now, acts);
        }
    }

    /// A connection is gone. Its worker, if it was one, is away from now on.
    pub fn close(&mut self, now: Time, peer: PeerId) {
        if let Some(worker) = self.forget(peer) {
            self.table.go_away(worker, now);
        }
    }

    /// A word of this peer, whatever it says.
    pub fn hear(&mut self, now: Time, peer: PeerId) {
        if let Some(worker) = self.worker(peer) {
            self.table.hear(worker, now);
        }
    }

    /// From now on this peer takes so many requests at once. A worker that registers again keeps its place.
    pub fn register(
        &mut self,
        now: Time,
        peer: PeerId,
        slots: u32,
        acts: &mut Vec<Act<M>>,
    ) -> Result<(), Dropped> {
        let registered = self.add_worker(now, peer, slots);
        match registered {
            Ok(()) => self.counters.registered += 1,
            Err(why) => self.count(why),
        }
        self.drain(now, acts);
        registered
    }

    fn add_worker(&mut self, now: Time, peer: PeerId, slots: u32) -> Result<(), Dropped> {
        if slots > self.config.slots_max {
            return Err(Dropped::BadSlots);
        }
        let known = self.peers.get_mut(&peer).ok_or(Dropped::UnknownPeer)?;
        match known.worker {
            Some(worker) => self.table.overwrite(worker, slots, now),
            None => {
                let worker = self.table.add(known.identity.clone(), peer, slots, now);
                known.worker = Some(worker.ok_or(Dropped::TableFull)?);
            }
        }
        Ok(())
    }

    /// A worker says that it takes no more requests.
    pub fn deregister(&mut self, peer: PeerId) {
        match self.peers.get_mut(&peer).and_then(|peer| peer.worker.take()) {
            Some(worker) => {
                self.table.remove(worker);
                self.counters.deregistered += 1;
            }
            None => self.count(Dropped::NotRegistered),
        }
    }

    /// This worker is done with one request.
    pub fn increment(&mut self, now: Time, peer: PeerId, acts: &mut Vec<Act<M>>) {
        match self.worker(peer) {
            None => self.count(Dropped::NotRegistered),
            Some(worker) if self.table.give_back(worker) => self.drain(now, acts),
            Some(_) => self.count(Dropped::NoSlotTaken),
        }
    }

    /// A request for any worker, of so many bytes. `keep` makes what is kept when it has to wait.
    pub fn request(
        &mut self,
        now: Time,
        message: M,
        bytes: usize,
        keep: impl FnOnce(M) -> M,
        acts: &mut Vec<Act<M>>,
    ) -> Result<(), Dropped> {
        self.counters.requests += 1;
        // What waits has priority: a slot is only free here when nothing waits.
        if let Some(to) = self.table.take(now) {
            self.counters.dispatched += 1;
            acts.push(Act::Send { to, message });
            return Ok(());
        }
        let queued = self.queue.check(bytes);
        match queued {
            Ok(()) => {
                self.queue.push(now, keep(message), bytes);
                self.counters.queued += 1;
            }
            Err(why) => self.count(why),
        }
        queued
    }

    /// A message for the peer of this name, worker or not. It takes no slot and never waits.
    pub fn pass(&mut self, to: &Name, message: M, acts: &mut Vec<Act<M>>) -> Result<(), Dropped> {
        match self.addresses.get(to) {
            Some(&to) => {
                self.counters.passed += 1;
                acts.push(Act::Send { to, message });
                Ok(())
            }
            None => {
                self.count(Dropped::NoRoute);
                Err(Dropped::NoRoute)
            }
        }
    }

    /// Something was not even understood, or is not for anybody.
    pub fn count(&mut self, why: Dropped) {
        self.counters.count(why, 1);
    }

    /// When `tick` is to be called at the latest.
    pub fn deadline(&self) -> Option<Time> {
        [self.queue.deadline(), self.table.deadline()].into_iter().flatten().min()
    }

    /// What happens because time has passed.
    pub fn tick(&mut self, now: Time, acts: &mut Vec<Act<M>>) {
        self.counters.count(Dropped::Expired, self.queue.expire(now));
        while let Some(due) = self.table.due(now) {
            match due {
                BrokerDue::SlotBack => self.counters.slots_lapsed += 1,
                BrokerDue::Probe(to) => acts.push(Act::Probe { to }),
                BrokerDue::Silent(peer) => {
                    self.forget(peer);
                    self.counters.silent += 1;
                    acts.push(Act::Close { peer });
                }
                BrokerDue::Lost => self.counters.lost += 1,
            }
        }
        self.drain(now, acts);
    }

    /// The table in its order: who comes next is first.
    pub fn workers(&self) -> impl Iterator<Item = WorkerRow<'_>> {
        self.table.rows()
    }

    /// How many requests wait, and their bytes.
    pub fn waiting(&self) -> (usize, usize) {
        (self.queue.len(), self.queue.bytes())
    }

    /// What was counted since it began.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// What a peer calls itself.
    pub fn identity(&self, peer: PeerId) -> Option<&Name> {
        self.peers.get(&peer).map(|peer| &peer.identity)
    }

    /// Has the peer registered as a worker?
    pub fn is_worker(&self, peer: PeerId) -> bool {
        self.worker(peer).is_some()
    }

    fn worker(&self, peer: PeerId) -> Option<u32> {
        self.peers.get(&peer)?.worker
    }

    /// Takes a connection out; gives its worker.
    fn forget(&mut self, peer: PeerId) -> Option<u32> {
        let gone = self.peers.remove(&peer)?;
        self.addresses.remove(&gone.identity);
        gone.worker
    }

    /// Sends what waits while there are free slots.
    fn drain(&mut self, now: Time, acts: &mut Vec<Act<M>>) {
        self.counters.count(Dropped::Expired, self.queue.expire(now));
        while !self.queue.is_empty()
            && let Some(to) = self.table.take(now)
        {
            let message = self.queue.pop().expect("the queue was not empty");
            self.counters.dispatched += 1;
            acts.push(Act::Send { to, message });
        }
    }
}

#[cfg(test)]
impl<M> Broker<M> {
    fn check(&self) {
        self.table.check();
        assert_eq!(self.peers.len(), self.addresses.len());
        let is_any_open = self.workers().any(|row| row.free > 0 && !row.is_away);
        assert!(self.queue.is_empty() || !is_any_open, "nothing waits while a slot is free");
    }
}

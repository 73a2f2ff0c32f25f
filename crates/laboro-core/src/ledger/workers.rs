//! Workers as the ledger knows them: what they hold and how they have done. Whether one is connected
//! is no matter of the ledger.

use super::handle::{LeaseHandle, TaskHandle, WorkerHandle};
use super::slab::Slab;
use crate::event::Share;
use crate::id::{GroupId, JobId, LeaseNo, Name, Time, WorkerId};
use crate::resources::{NOTHING_USED, Usage};
use crate::task::Needs;
use crate::view::Standing;
use hashbrown::HashMap;
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::sync::Arc;

#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) id: WorkerId,
    pub(crate) group: GroupId,
    pub(crate) name: Name,
    pub(crate) dialect: Name,
    pub(crate) seen: Time,
    /// How long its leases live without a sign of life. `None`: for ever.
    pub(crate) period_ms: Option<u64>,
    first_lease: LeaseHandle,
    last_lease: LeaseHandle,
    pub(crate) leases: u32,
    pub(crate) used: Used,
    pub(crate) record: TrackRecord,
}

/// What its leases take of a worker.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Used {
    /// Wider than what one task may need: who pulls may hold more than it has room for.
    pub(crate) slots: u64,
    pub(crate) memory: u128,
    pub(crate) resources: Vec<(Name, Usage)>,
    /// Leases of tasks that run alone. One at most, except in journals from before there were any.
    pub(crate) alone: u32,
}

/// How a worker has done, and what was made of it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TrackRecord {
    pub(crate) good: u64,
    pub(crate) bad: u64,
    /// Results since the present standing began.
    pub(crate) since: u32,
    /// The last ten results: the job, and whether it went well. The newest is last.
    pub(crate) recent: SmallVec<[(JobId, bool); RECENT]>,
    /// Its own share in the jobs it worked on last, to be taken off when it is compared with others.
    pub(crate) tallies: SmallVec<[Tally; 2]>,
    pub(crate) standing: Standing,
    pub(crate) reason: Option<Box<str>>,
    pub(crate) until: Option<Time>,
    /// Holds in a row without a good result.
    pub(crate) holds: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) job: JobId,
    pub(crate) good: u32,
    pub(crate) bad: u32,
}

pub(crate) const RECENT: usize = 10;
const TALLIES: usize = 8;

/// Kept small on purpose, as records are: one line of a processor's cache.
#[derive(Debug)]
pub(crate) struct Lease {
    pub(crate) no: LeaseNo,
    pub(crate) task: TaskHandle,
    pub(crate) worker: WorkerHandle,
    pub(crate) started: Time,
    pub(crate) term: Option<Term>,
    pub(crate) share: Option<Arc<Share>>,
    prev: LeaseHandle,
    next: LeaseHandle,
    /// The next of those by which other workers are kept for its task.
    pub(crate) next_node: LeaseHandle,
    is_alone: bool,
    /// It keeps its worker for a task that runs on another.
    pub(crate) is_node: bool,
}

/// What a lease has that ends by itself.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Term {
    pub(crate) until: Time,
    period_ms: NonZeroU64,
}

impl Term {
    pub(crate) fn new(until: Time, period_ms: u64) -> Term {
        Term { until, period_ms: NonZeroU64::new(period_ms).unwrap_or(NonZeroU64::MIN) }
    }

    /// How long it was given for, which a restart gives it once more.
    pub(crate) fn period_ms(self) -> u64 {
        self.period_ms.get()
    }
}

#[derive(Debug, Default)]
pub(crate) struct Workers {
    workers: Slab<WorkerHandle, Worker>,
    by_id: BTreeMap<WorkerId, WorkerHandle>,
    by_name: HashMap<(GroupId, Name), WorkerHandle, foldhash::fast::FixedState>,
    leases: Slab<LeaseHandle, Lease>,
    pub(crate) next: u32,
}

impl Workers {
    pub(crate) fn len(&self) -> usize {
        self.workers.len()
    }

    /// Only before the first worker.
    pub(crate) fn seed(&mut self, seed: u64) {
        debug_assert!(self.by_name.is_empty(), "the seed is set once");
        self.by_name = HashMap::with_hasher(foldhash::fast::FixedState::with_seed(seed));
    }

    pub(crate) fn get(&self, handle: WorkerHandle) -> &Worker {
        &self.workers[handle]
    }

    pub(crate) fn get_mut(&mut self, handle: WorkerHandle) -> &mut Worker {
        &mut self.workers[handle]
    }

    /// Is there a worker at this handle?
    pub(crate) fn is_used(&self, handle: WorkerHandle) -> bool {
        self.by_id.get(&self.workers[handle].id) == Some(&handle)
    }

    pub(crate) fn find(&self, id: WorkerId) -> Option<WorkerHandle> {
        self.by_id.get(&id).copied()
    }

    pub(crate) fn find_name(&self, group: GroupId, name: &Name) -> Option<WorkerHandle> {
        self.by_name.get(&(group, name.clone())).copied()
    }

    pub(crate) fn from(&self, id: WorkerId) -> impl Iterator<Item = WorkerHandle> + '_ {
        self.by_id.range(id..).map(|(_, &handle)| handle)
    }

    pub(crate) fn add(
        &mut self,
        id: WorkerId,
        group: GroupId,
        name: Name,
        seen: Time,
    ) -> WorkerHandle {
        self.next = self.next.max(id.0 + 1);
        let handle = self.workers.insert(Worker {
            id,
            group,
            name: name.clone(),
            dialect: Name::default(),
            seen,
            period_ms: None,
            first_lease: LeaseHandle::NONE,
            last_lease: LeaseHandle::NONE,
            leases: 0,
            used: Used::default(),
            record: TrackRecord::default(),
        });
        self.by_id.insert(id, handle);
        self.by_name.insert((group, name), handle);
        handle
    }

    pub(crate) fn forget(&mut self, handle: WorkerHandle) {
        let vacant = Worker {
            id: WorkerId(u32::MAX),
            group: GroupId::default(),
            name: Name::default(),
            dialect: Name::default(),
            seen: Time(0),
            period_ms: None,
            first_lease: LeaseHandle::NONE,
            last_lease: LeaseHandle::NONE,
            leases: 0,
            used: Used::default(),
            record: TrackRecord::default(),
        };
        let gone = self.workers.remove(handle, vacant);
        debug_assert_eq!(gone.leases, 0, "a worker that holds something is not forgotten");
        self.by_id.remove(&gone.id);
        self.by_name.remove(&(gone.group, gone.name));
    }

    pub(crate) fn lease(&self, handle: LeaseHandle) -> &Lease {
        &self.leases[handle]
    }

    pub(crate) fn lease_mut(&mut self, handle: LeaseHandle) -> &mut Lease {
        &mut self.leases[handle]
    }

    /// The worker's leases, oldest first.
    pub(crate) fn leases_of(&self, worker: WorkerHandle) -> impl Iterator<Item = LeaseHandle> + '_ {
        let mut next = self.workers[worker].first_lease;
        std::iter::from_fn(move || {
            let here = next;
            (here != LeaseHandle::NONE).then(|| {
                next = self.leases[here].next;
                here
            })
        })
    }

    pub(crate) fn last_lease_of(&self, worker: WorkerHandle) -> Option<LeaseHandle> {
        self.workers[worker].last_lease.some()
    }

    /// The leases that keep other workers for the task of this one.
    pub(crate) fn nodes_of(&self, lease: LeaseHandle) -> impl Iterator<Item = LeaseHandle> + '_ {
        let mut next = self.leases[lease].next_node;
        std::iter::from_fn(move || {
            let here = next.some()?;
            next = self.leases[here].next_node;
            Some(here)
        })
    }

    #[inline]
    fn grant_one(&mut self, grant: NewLease, needs: &Needs) -> LeaseHandle {
        let NewLease { no, task, worker, started, term, share, is_alone, is_node } = grant;
        let needs = needs.way(variant(share.as_deref()));
        let holder = &mut self.workers[worker];
        let prev = holder.last_lease;
        holder.leases += 1;
        holder.used.slots += u64::from(needs.slots);
        holder.used.memory += u128::from(needs.memory);
        holder.used.alone += u32::from(is_alone);
        for (name, portion) in share.iter().flat_map(|share| &share.portions) {
            let known = holder.used.resources.iter().position(|(n, _)| n == name);
            let at = known.unwrap_or_else(|| {
                holder.used.resources.push((name.clone(), Usage::default()));
                holder.used.resources.len() - 1
            });
            holder.used.resources[at].1.add(portion);
        }
        let handle = self.leases.insert(Lease {
            no,
            task,
            worker,
            started,
            term,
            share,
            prev,
            next: LeaseHandle::NONE,
            next_node: LeaseHandle::NONE,
            is_alone,
            is_node,
        });
        let holder = &mut self.workers[worker];
        holder.last_lease = handle;
        if prev == LeaseHandle::NONE {
            holder.first_lease = handle;
        } else {
            self.leases[prev].next = handle;
        }
        handle
    }

    /// With the other workers that its share names.
    pub(crate) fn grant(&mut self, grant: NewLease, needs: &Needs) -> LeaseHandle {
        let several = grant.share.as_ref().filter(|share| !share.nodes.is_empty()).cloned();
        let handle = self.grant_one(grant, needs);
        if let Some(share) = several {
            self.grant_nodes(handle, &share.nodes, needs);
        }
        handle
    }

    #[cold]
    fn grant_nodes(&mut self, first: LeaseHandle, nodes: &[WorkerId], needs: &Needs) {
        let Lease { no, task, started, .. } = self.leases[first];
        let mut last = first;
        for &node in nodes {
            let worker = self.find(node).expect("events name only workers that are there");
            let (term, share, is_alone, is_node) = (None, None, true, true);
            let grant = NewLease { no, task, worker, started, term, share, is_alone, is_node };
            let handle = self.grant_one(grant, needs);
            self.leases[last].next_node = handle;
            last = handle;
        }
    }

    pub(crate) fn end(&mut self, handle: LeaseHandle, needs: &Needs) -> Lease {
        let vacant = Lease {
            no: LeaseNo(0),
            task: TaskHandle::NONE,
            worker: WorkerHandle::NONE,
            started: Time(0),
            term: None,
            share: None,
            prev: LeaseHandle::NONE,
            next: LeaseHandle::NONE,
            next_node: LeaseHandle::NONE,
            is_alone: false,
            is_node: false,
        };
        let lease = self.leases.release(handle, vacant);
        let needs = needs.way(lease.variant());
        if lease.prev != LeaseHandle::NONE {
            self.leases[lease.prev].next = lease.next;
        }
        if lease.next != LeaseHandle::NONE {
            self.leases[lease.next].prev = lease.prev;
        }
        let holder = &mut self.workers[lease.worker];
        if lease.prev == LeaseHandle::NONE {
            holder.first_lease = lease.next;
        }
        if lease.next == LeaseHandle::NONE {
            holder.last_lease = lease.prev;
        }
        holder.leases -= 1;
        holder.used.slots -= u64::from(needs.slots);
        holder.used.memory -= u128::from(needs.memory);
        holder.used.alone -= u32::from(lease.is_alone);
        for (name, portion) in lease.share.iter().flat_map(|share| &share.portions) {
            let used = holder.used.resources.iter_mut().find(|(n, _)| n == name);
            used.expect("what is given back was taken").1.remove(portion);
        }
        lease
    }
}

impl Lease {
    /// Which of the ways to run its task it goes.
    pub(crate) fn variant(&self) -> u8 {
        variant(self.share.as_deref())
    }
}

fn variant(share: Option<&Share>) -> u8 {
    share.map_or(0, |share| share.variant)
}

impl Used {
    pub(crate) fn resource(&self, name: &Name) -> &Usage {
        let found = self.resources.iter().find(|(known, _)| known == name);
        found.map_or(&NOTHING_USED, |(_, usage)| usage)
    }
}

pub(crate) struct NewLease {
    pub(crate) no: LeaseNo,
    pub(crate) task: TaskHandle,
    pub(crate) worker: WorkerHandle,
    pub(crate) started: Time,
    pub(crate) term: Option<Term>,
    pub(crate) share: Option<Arc<Share>>,
    pub(crate) is_alone: bool,
    pub(crate) is_node: bool,
}

impl Default for TrackRecord {
    fn default() -> TrackRecord {
        TrackRecord {
            good: 0,
            bad: 0,
            since: 0,
            recent: SmallVec::new(),
            tallies: SmallVec::new(),
            standing: Standing::Good,
            reason: None,
            until: None,
            holds: 0,
        }
    }
}

impl TrackRecord {
    pub(crate) fn note(&mut self, job: JobId, good: bool) {
        if good {
            self.good += 1;
            self.holds = 0;
        } else {
            self.bad += 1;
        }
        self.since = self.since.saturating_add(1);
        if self.recent.len() == RECENT {
            self.recent.remove(0);
        }
        self.recent.push((job, good));
        let at = match self.tallies.iter().position(|tally| tally.job == job) {
            Some(at) => at,
            None => {
                if self.tallies.len() == TALLIES {
                    self.tallies.remove(0);
                }
                self.tallies.push(Tally { job, good: 0, bad: 0 });
                self.tallies.len() - 1
            }
        };
        let tally = &mut self.tallies[at];
        let count = if good { &mut tally.good } else { &mut tally.bad };
        *count = count.saturating_add(1);
    }

    pub(crate) fn judge(&mut self, standing: Standing, reason: Box<str>, until: Option<Time>) {
        if standing == Standing::OnHold {
            self.holds = self.holds.saturating_add(1);
        }
        match (self.standing, standing) {
            // What led to the hold is not held against it twice; but all of it counts in its share of good ones.
            (Standing::OnHold | Standing::Probation, Standing::Good) => {
                self.recent.retain(|&mut (_, good)| good);
            }
            // A fresh start.
            (Standing::Ejected | Standing::Good, Standing::Good) => self.recent.clear(),
            (_, Standing::OnHold | Standing::Probation | Standing::Ejected) => {}
        }
        self.standing = standing;
        self.since = 0;
        self.reason = (!reason.is_empty()).then_some(reason);
        self.until = until;
    }

    /// Whether one of the last results came after the standing changed, and was bad.
    pub(crate) fn failed_since(&self) -> bool {
        let since = usize::try_from(self.since).unwrap_or(usize::MAX);
        self.recent.iter().rev().take(since).any(|&(_, good)| !good)
    }

    pub(crate) fn tally(&self, job: JobId) -> Tally {
        let found = self.tallies.iter().find(|tally| tally.job == job);
        found.copied().unwrap_or(Tally { job, good: 0, bad: 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_fits_in_64_bytes() {
        assert!(size_of::<Lease>() <= 64, "a lease takes {} bytes", size_of::<Lease>());
    }
}

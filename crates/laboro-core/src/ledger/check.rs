//! Does the state agree with itself? For tests and for `laboro journal check`: walks over everything.

use super::handle::{AccountHandle, JobHandle, LaneHandle, TaskHandle, WorkerHandle};
use super::reading::Ledger;
use super::record::Phase;
use crate::id::{JobId, WorkerId};
use crate::task::State;
use std::collections::BTreeMap;

impl Ledger {
    /// The first thing that does not fit, in words.
    pub fn check(&self) -> Result<(), String> {
        let mut leased = 0;
        for handle in self.jobs_from(JobId(0)) {
            leased += self.check_job(handle)?;
        }
        let mut held = 0;
        for handle in self.workers.from(WorkerId(0)) {
            held += self.check_worker(handle)?;
        }
        if leased != held {
            return Err(format!("{leased} tasks are leased, but workers hold {held}"));
        }
        self.documents.check()?;
        self.check_loads()?;
        self.check_accounts()?;
        for group in self.groups() {
            for state in State::ALL {
                let jobs = self.jobs_from(JobId(0)).map(|handle| self.job(handle));
                let sum: u64 = jobs
                    .filter(|job| job.group == group.id)
                    .map(|job| u64::from(job.counts.of(state)))
                    .sum();
                if sum != u64::from(group.counts.of(state)) {
                    return Err(format!("group {} miscounts {}", group.name, state.word()));
                }
            }
            let own = |handle: &WorkerHandle| self.workers.get(*handle).group == group.id;
            if self.workers.from(WorkerId(0)).filter(own).count() != group.workers as usize {
                return Err(format!("group {} miscounts its workers", group.name));
            }
        }
        Ok(())
    }

    /// What an owner has in use in a group is what its jobs have with workers.
    fn check_accounts(&self) -> Result<(), String> {
        let mut used: BTreeMap<AccountHandle, u64> = BTreeMap::new();
        for worker in self.workers.from(WorkerId(0)) {
            for lease in self.workers.leases_of(worker).map(|lease| self.workers.lease(lease)) {
                let record = &self.tasks[lease.task];
                let needs = self.profiles.get(record.profile).needs.way(lease.variant());
                *used.entry(self.job(record.job).account).or_default() += u64::from(needs.slots);
            }
        }
        for job in self.jobs_from(JobId(0)).map(|handle| self.job(handle)) {
            let expected = used.get(&job.account).copied().unwrap_or(0);
            if self.lanes.account(job.account).slots != expected {
                return Err(format!("the owner of job {} miscounts its slots in use", job.id));
            }
        }
        self.lanes.check_order()
    }

    fn check_job(&self, handle: JobHandle) -> Result<u32, String> {
        let job = self.job(handle);
        let fail = |what: String| Err(format!("job {}: {what}", job.id));
        for state in State::ALL {
            if job.set(state).len() != job.counts.of(state) {
                return fail(format!("counts of {} differ from the set", state.word()));
            }
        }
        let mut in_lanes = 0;
        for &lane in &job.lanes {
            let this = self.lanes.lane(lane);
            let (mut next, mut prev) = (this.head, TaskHandle::NONE);
            while next != TaskHandle::NONE {
                let (Phase::Ready(link) | Phase::Gate(link)) = self.tasks[next].phase else {
                    return fail(format!("{} stands in a lane", self.id_of(next)));
                };
                if link.prev != prev || link.lane != lane {
                    return fail(format!("{} is wrongly linked", self.id_of(next)));
                }
                in_lanes += u32::from(!self.tasks[next].is_gate());
                (prev, next) = (next, link.next);
            }
            if this.listed != (this.head != TaskHandle::NONE && !job.is_parked()) {
                return fail(
                    "a lane is open that should be shut, or shut that should be open".into(),
                );
            }
        }
        let mut leased = 0;
        for (index, handle) in job.pages.range(1, u32::MAX) {
            let record = &self.tasks[handle];
            let Some(state) = record.state() else {
                return fail(format!("{index} has a record without a state"));
            };
            if !job.set(state).contains(index) {
                return fail(format!("{index} is {} but not counted so", state.word()));
            }
            self.check_preds(handle)?;
            leased += u32::from(state == State::Leased);
            if state == State::Ready {
                in_lanes = in_lanes.checked_sub(1).ok_or("a ready task stands in no lane")?;
            }
        }
        if in_lanes != 0 {
            return fail("more tasks stand in lanes than are ready".into());
        }
        let is_over = !job.options.open && job.counts.not_over() == 0;
        if !self.has_old_counts && job.counts.total() > 0 && job.ended.is_some() != is_over {
            return fail("whether it has ended is not what its tasks say".into());
        }
        if leased != job.counts.of(State::Leased) {
            return fail("leased tasks without a record".into());
        }
        for array in &job.arrays {
            self.check_preds(array.gate)?;
            let Phase::Gate(link) = self.tasks[array.gate].phase else {
                return fail(format!("array {} has no gate", array.name));
            };
            if (link.lane == LaneHandle::NONE) != array.fresh.is_empty() {
                return fail(format!("the gate of array {} is not where it belongs", array.name));
            }
            let elements = |state: State| -> u32 {
                job.set(state).runs(array.first, array.last()).map(|(a, b)| b - a + 1).sum()
            };
            let bad = elements(State::Failed) + elements(State::Cancelled);
            let unfinished = array.count - bad - elements(State::Done);
            let blocked = elements(State::Blocked);
            if (array.unfinished, array.bad, array.blocked) != (unfinished, bad, blocked) {
                return fail(format!("array {} miscounts its elements", array.name));
            }
        }
        Ok(leased)
    }

    /// What a task waits for is what its predecessors say.
    fn check_preds(&self, handle: TaskHandle) -> Result<(), String> {
        let record = &self.tasks[handle];
        let mut waiting = 0;
        let level = self.level(self.node_of(handle));
        for pred in self.graph.preds_of(record.preds) {
            let is_over = self.is_done_node(pred) || self.is_done_node(handle);
            if !is_over && self.level(self.node_of(pred)) > level {
                let (pred, succ) = (self.id_of(pred), self.id_of(handle));
                return Err(format!("{pred} has a higher level than {succ} after it"));
            }
            waiting += u32::from(self.verdict(pred).is_none());
        }
        if waiting != record.waiting && !self.has_old_counts {
            let id = self.id_of(handle);
            return Err(format!("{id} waits for {} but {waiting} are not over", record.waiting));
        }
        // Who runs anyway may be running already when a predecessor is run again.
        let early = match record.phase {
            Phase::Ready(_) => waiting > 0,
            Phase::Leased { .. } => waiting > 0 && !self.profiles.get(record.profile).runs_anyway,
            _ => false,
        };
        if early {
            return Err(format!("{} goes before its predecessors", self.id_of(handle)));
        }
        Ok(())
    }

    fn check_worker(&self, handle: WorkerHandle) -> Result<u32, String> {
        let worker = self.workers.get(handle);
        let (mut count, mut own, mut slots, mut alone) = (0, 0, 0u64, 0);
        for lease in self.workers.leases_of(handle) {
            let this = self.workers.lease(lease);
            let (task, variant) = (this.task, this.variant());
            let is_its_own = match self.tasks[task].phase {
                Phase::Leased { lease: first } if this.is_node => {
                    self.workers.nodes_of(first).any(|node| node == lease)
                }
                phase => phase == Phase::Leased { lease },
            };
            if !is_its_own {
                return Err(format!("worker {} holds {} twice", worker.name, self.id_of(task)));
            }
            count += 1;
            own += u32::from(!this.is_node);
            let profile = self.profiles.get(self.tasks[task].profile);
            slots += u64::from(profile.needs.way(variant).slots);
            alone += u32::from(profile.needs.nodes > 0 || self.tasks[task].is_suspect(profile));
        }
        if (count, slots, alone) != (worker.leases, worker.used.slots, worker.used.alone) {
            return Err(format!("worker {} miscounts its leases", worker.name));
        }
        Ok(own)
    }
}

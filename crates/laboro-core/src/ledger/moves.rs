//! The few moves that all events are made of: count a task in another state, put it into its lane or take
//! it out, tell its successors. Keeps sets, counts, lanes and timers in step.

use super::lanes::{End, LaneKey};
use super::record::Phase;
use super::slab::NONE;
use super::state::{State, Timer};
use super::workers::Lease;
use crate::effect::Change;
use crate::id::{TaskId, Time};
use crate::task::{Demand, State as TaskState};

/// Lanes without tasks that a job keeps.
const LANES_KEPT: usize = 16;
/// Classes of a group that ended jobs may keep: who waits need not be looked through again for the next job.
const CLASSES_KEPT: usize = 64;

/// What the successors of a task or an array are told.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::ledger) enum News {
    Done,
    Failed,
    /// It had failed and runs again.
    Reopened,
}

impl State {
    /// Counts a task as `to` instead of `from`, in its job and its group.
    pub(in crate::ledger) fn count(
        &mut self,
        job: u32,
        index: u32,
        from: Option<TaskState>,
        to: Option<TaskState>,
    ) {
        self.weigh(job, 1, from, to);
        let this = self.jobs[job].as_mut().expect("a job in use is there");
        let group_at = this.group;
        let group = self.groups[group_at as usize].as_mut().expect("a job's group is there");
        if let Some(from) = from {
            let was_there = this.sets[from as usize].remove(index);
            debug_assert!(was_there, "{}/{index} was not {}", this.id, from.word());
            this.counts.take(from, 1);
            group.counts.take(from, 1);
            this.forgive_no_more_than_failed();
        }
        if let Some(to) = to {
            let is_new = this.sets[to as usize].insert(index);
            debug_assert!(is_new, "{}/{index} is {} already", this.id, to.word());
            this.counts.add(to, 1);
            group.counts.add(to, 1);
            let id = this.id;
            let leased = this.counts.of(TaskState::Leased);
            // Only the task that fills the job, or makes room in a full one, changes anything.
            let crosses = this.options.max_running.is_some_and(|most| {
                (to == TaskState::Leased && leased == most)
                    || (from == Some(TaskState::Leased) && leased + 1 == most)
            });
            self.note_change(id, index, index, to);
            if crosses {
                self.refresh_lanes(job);
            }
            if to.is_finished() {
                self.end_if_finished(job);
            }
        }
        self.note_if_idle(group_at);
    }

    /// The same for elements of an array that have no record: a range costs as much as one.
    pub(in crate::ledger) fn count_range(
        &mut self,
        job: u32,
        (first, last): (u32, u32),
        from: Option<TaskState>,
        to: TaskState,
    ) {
        let count = last - first + 1;
        self.weigh(job, count, from, Some(to));
        let this = self.jobs[job].as_mut().expect("a job in use is there");
        let group_at = this.group;
        let group = self.groups[group_at as usize].as_mut().expect("a job's group is there");
        if let Some(from) = from {
            this.counts.take(from, count);
            group.counts.take(from, count);
            this.forgive_no_more_than_failed();
        }
        this.sets[to as usize].insert_range(first, last);
        this.counts.add(to, count);
        group.counts.add(to, count);
        let id = this.id;
        self.note_change(id, first, last, to);
        if to.is_finished() {
            self.end_if_finished(job);
        }
        self.note_if_idle(group_at);
    }

    /// Who waits for its end is told when the command is done, if it is still so then.
    fn note_if_idle(&mut self, group: u32) {
        if self.group(group).counts.active() == 0 {
            self.idle_groups.insert(group);
        }
    }

    fn note_change(&mut self, job: crate::id::JobId, first: u32, last: u32, state: TaskState) {
        if self.collects_changes {
            // Who did what goes with the first change; what follows from it is nobody's doing.
            let (worker, outcome) = std::mem::take(&mut self.actor);
            self.changes.push(Change::Tasks { job, first, last, state, worker, outcome });
        }
    }

    /// A closed job whose tasks are all finished has ended.
    pub(in crate::ledger) fn end_if_finished(&mut self, job: u32) {
        let at = self.at;
        let this = self.job_mut(job);
        if this.ended.is_none() && !this.options.open && this.counts.unfinished() == 0 {
            this.ended = Some(at);
            let id = this.id;
            self.ended.insert((at, id));
            self.just_ended.push(id);
            if self.collects_changes {
                self.changes.push(Change::Job { job: id });
            }
        }
    }

    pub(in crate::ledger) fn unend(&mut self, job: u32) {
        let this = self.job_mut(job);
        if let Some(ended) = this.ended.take() {
            let id = this.id;
            self.ended.remove(&(ended, id));
        }
    }

    /// Opens or shuts the job's lanes after something about it changed.
    pub(in crate::ledger) fn refresh_lanes(&mut self, job: u32) {
        let this = self.jobs[job].as_ref().expect("a job in use is there");
        let open = !this.is_parked();
        for &lane in &this.lanes {
            self.lanes.open(lane, open);
        }
    }

    fn lane_of(&mut self, slot: u32) -> u32 {
        let record = &self.tasks[slot];
        let (job, profile) = (record.job, record.profile);
        let kind = record.work.as_ref().map_or(Demand::NAMED, |work| work.demand());
        let is_alone = record.is_suspect(self.profiles.get(profile));
        self.lane_for(job, profile, kind, is_alone)
    }

    pub(in crate::ledger) fn lane_for(
        &mut self,
        job: u32,
        profile: u32,
        kind: Demand,
        is_alone: bool,
    ) -> u32 {
        let settings = self.profiles.get(profile);
        let this = self.jobs[job].as_mut().expect("a job in use is there");
        let (lane, is_new) = self.lanes.lane_for(LaneKey {
            job,
            group: this.group,
            profile,
            kind,
            priority: settings.priority,
            needs: &settings.needs,
            limit_ms: settings.time_limit_ms,
            is_alone,
        });
        if is_new {
            self.lanes.set_at(lane, this.lanes.len());
            this.lanes.push(lane);
            self.profiles.retain(profile);
        }
        lane
    }

    /// Lanes in which nothing stands make room for others. A job keeps a few, so that the next task finds its own; one
    /// that has ended keeps none where its group has many classes.
    pub(in crate::ledger) fn tidy_lanes(&mut self) {
        while let Some(lane) = self.lanes.next_emptied() {
            let job = self.lanes.lane(lane).job;
            if self.job(job).lanes.len() > LANES_KEPT {
                self.drop_lane(job, lane);
            }
        }
        while let Some(id) = self.just_ended.pop() {
            let Some(job) = self.find_job(id) else { continue };
            let this = self.job(job);
            if this.ended.is_some() && self.lanes.class_count(this.group) > CLASSES_KEPT {
                while let Some(&lane) = self.job(job).lanes.last() {
                    self.drop_lane(job, lane);
                }
            }
        }
    }

    pub(in crate::ledger) fn drop_lane(&mut self, job: u32, lane: u32) {
        let (at, profile) = (self.lanes.lane(lane).at as usize, self.lanes.lane(lane).profile);
        let lanes = &mut self.job_mut(job).lanes;
        debug_assert_eq!(lanes[at], lane, "a lane knows where it stands");
        lanes.swap_remove(at);
        if let Some(&moved) = lanes.get(at) {
            self.lanes.set_at(moved, at);
        }
        self.lanes.drop_lane(lane);
        self.profiles.release(profile);
    }

    pub(in crate::ledger) fn enqueue(&mut self, slot: u32, end: End) {
        let lane = self.lane_of(slot);
        let open = !self.job(self.tasks[slot].job).is_parked();
        self.lanes.push(&mut self.tasks, lane, slot, end, open);
    }

    /// Takes a task that is not leased out of wherever it stands; its phase is the caller's to set.
    pub(in crate::ledger) fn pull_out(&mut self, slot: u32) -> TaskState {
        let record = &self.tasks[slot];
        let state = record.state().expect("a task has a state");
        match record.phase {
            Phase::Ready(_) => self.lanes.unlink(&mut self.tasks, slot),
            Phase::Delayed { until } => {
                self.timers.remove(&(until, Timer::Delay(self.id_of(slot))));
            }
            Phase::Leased { .. } => unreachable!("a lease ends before its task moves"),
            _ => {}
        }
        state
    }

    /// Ends the lease of a leased task. The worker has room again.
    pub(in crate::ledger) fn end_lease(&mut self, slot: u32) -> Option<Lease> {
        let Phase::Leased { lease } = self.tasks[slot].phase else { return None };
        let profile = self.profiles.get(self.tasks[slot].profile);
        let ended = self.workers.end(lease, &profile.needs);
        if let Some(until) = ended.until {
            self.timers.remove(&(until, Timer::Lease(ended.no, lease)));
        }
        if self.loosened.last() != Some(&ended.worker) {
            self.loosened.push(ended.worker);
        }
        Some(ended)
    }

    /// Puts a task where its predecessors let it be: blocked, waiting, or ready at one end of its lane.
    pub(in crate::ledger) fn place(&mut self, slot: u32, from: Option<TaskState>, end: End) {
        let to = self.fate(slot);
        self.put(slot, from, to, end);
    }

    fn put(&mut self, slot: u32, from: Option<TaskState>, to: TaskState, end: End) {
        let record = &self.tasks[slot];
        let (job, index) = (record.job, record.index);
        match to {
            TaskState::Ready => self.enqueue(slot, end),
            TaskState::Blocked => self.tasks[slot].phase = Phase::Blocked,
            _ => self.tasks[slot].phase = Phase::Waiting,
        }
        if from != Some(to) {
            self.count(job, index, from, Some(to));
        }
    }

    /// What its predecessors allow a task: its own, those of its array, those of its element.
    fn fate(&self, slot: u32) -> TaskState {
        let record = &self.tasks[slot];
        let (job, index) = (record.job, record.index);
        let own = self.own_fate(slot);
        match self.job(job).array_at(index) {
            Some(at) if own == TaskState::Ready => {
                match self.gate_fate(self.job(job).arrays[at].gate) {
                    TaskState::Ready => self.element_fate(job, at, index),
                    other => other,
                }
            }
            _ => own,
        }
    }

    /// Makes `succ` come after `pred` and counts what that means for it.
    pub(in crate::ledger) fn link(&mut self, pred: u32, succ: u32) {
        self.graph.link(&mut self.tasks, pred, succ);
        self.keep_order(pred, succ);
        match self.verdict(pred) {
            None => self.tasks[succ].waiting += 1,
            Some(News::Failed) => self.tasks[succ].failed += 1,
            Some(_) => {}
        }
    }

    /// How a task or an array ended, if it has.
    fn verdict(&self, slot: u32) -> Option<News> {
        let record = &self.tasks[slot];
        if record.is_gate() {
            let (job, at) = self.array_of(slot);
            let array = &self.job(job).arrays[at];
            return match (array.unfinished, array.bad) {
                (0, 0) => Some(News::Done),
                (0, _) => Some(News::Failed),
                _ => None,
            };
        }
        match record.state()? {
            TaskState::Done => Some(News::Done),
            TaskState::Failed | TaskState::Cancelled => Some(News::Failed),
            _ => None,
        }
    }

    pub(in crate::ledger) fn tell_succs(&mut self, slot: u32, news: News) {
        let tail = self.tasks[slot].succs;
        let mut edge = self.graph.first_succ(tail);
        while let Some(here) = edge {
            let (succ, next) = self.graph.step_succ(here, tail);
            edge = next;
            if succ == NONE {
                continue;
            }
            let record = &mut self.tasks[succ];
            match news {
                News::Done => record.waiting -= 1,
                News::Failed => {
                    record.waiting -= 1;
                    record.failed += 1;
                }
                News::Reopened => {
                    record.waiting += 1;
                    record.failed -= 1;
                }
            }
            if record.is_gate() {
                self.settle_array(succ, End::Front);
            } else {
                self.settle_record(succ, End::Front);
            }
        }
    }

    /// Puts a task that has not started where it may be now. Who is ready and may not start any more, as
    /// its predecessor runs again, waits again.
    pub(in crate::ledger) fn settle_record(&mut self, slot: u32, end: End) {
        let state = self.tasks[slot].state();
        let Some(from @ (TaskState::Waiting | TaskState::Blocked | TaskState::Ready)) = state
        else {
            return;
        };
        let to = self.fate(slot);
        if from != to {
            self.pull_out(slot);
            self.put(slot, Some(from), to, end);
        }
    }

    /// What the predecessors of the whole array allow its elements.
    pub(crate) fn gate_fate(&self, gate: u32) -> TaskState {
        self.own_fate(gate)
    }

    /// What the predecessors of a record itself allow it.
    fn own_fate(&self, slot: u32) -> TaskState {
        let record = &self.tasks[slot];
        if record.failed > 0 && !self.profiles.get(record.profile).runs_anyway {
            TaskState::Blocked
        } else if record.waiting > 0 {
            TaskState::Waiting
        } else {
            TaskState::Ready
        }
    }

    pub(in crate::ledger) fn slot_for(&self, id: TaskId) -> Option<u32> {
        self.record_of(id)
    }

    /// Delays a task until a time that has not come.
    pub(in crate::ledger) fn delay(&mut self, slot: u32, until: Time) {
        self.tasks[slot].phase = Phase::Delayed { until };
        self.timers.insert((until, Timer::Delay(self.id_of(slot))));
    }
}

//! The few moves that all events are made of: count a task in another state, put it into its lane or take
//! it out, tell its successors, open an array's gate. Keeps sets, counts, lanes and timers in step.

use super::lanes::{End, LaneKey};
use super::record::{Phase, Record};
use super::slab::NONE;
use super::state::{State, Timer};
use super::workers::Lease;
use crate::effect::Change;
use crate::id::{Name, TaskId, Time};
use crate::task::{State as TaskState, WorkKind};
use smallvec::SmallVec;

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
        let this = self.jobs[job].as_mut().expect("a job in use is there");
        let group = &mut self.groups[this.group as usize];
        if let Some(from) = from {
            let was_there = this.sets[from as usize].remove(index);
            debug_assert!(was_there, "{}/{index} was not {}", this.id, from.word());
            this.counts.take(from, 1);
            group.counts.take(from, 1);
        }
        if let Some(to) = to {
            let is_new = this.sets[to as usize].insert(index);
            debug_assert!(is_new, "{}/{index} is {} already", this.id, to.word());
            this.counts.add(to, 1);
            group.counts.add(to, 1);
            let id = this.id;
            let limited = this.options.max_running.is_some();
            self.note_change(id, index, index, to);
            self.after_count(job, from, Some(to), limited);
        }
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
        let this = self.jobs[job].as_mut().expect("a job in use is there");
        let group = &mut self.groups[this.group as usize];
        if let Some(from) = from {
            this.counts.take(from, count);
            group.counts.take(from, count);
        }
        this.sets[to as usize].insert_range(first, last);
        this.counts.add(to, count);
        group.counts.add(to, count);
        let id = this.id;
        self.note_change(id, first, last, to);
        self.after_count(job, from, Some(to), false);
    }

    fn after_count(
        &mut self,
        job: u32,
        from: Option<TaskState>,
        to: Option<TaskState>,
        limited: bool,
    ) {
        if limited && (from == Some(TaskState::Leased) || to == Some(TaskState::Leased)) {
            self.refresh_lanes(job);
        }
        if to.is_some_and(TaskState::is_finished) {
            self.end_if_finished(job);
        }
    }

    fn note_change(&mut self, job: crate::id::JobId, first: u32, last: u32, state: TaskState) {
        if self.collects_changes {
            let (worker, outcome) = self.actor;
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
        let kind = record.work.as_ref().map_or(WorkKind::Named, |work| work.kind());
        self.lane_for(job, profile, kind)
    }

    pub(in crate::ledger) fn lane_for(&mut self, job: u32, profile: u32, kind: WorkKind) -> u32 {
        let settings = self.profiles.get(profile);
        let this = self.jobs[job].as_mut().expect("a job in use is there");
        let (lane, is_new) = self.lanes.lane_for(LaneKey {
            job,
            group: this.group,
            profile,
            kind,
            priority: settings.priority,
            needs: &settings.needs,
        });
        if is_new {
            this.lanes.push(lane);
            self.profiles.retain(profile);
        }
        lane
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
                self.timers.remove(&(until, Timer::Delay(slot)));
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
            self.timers.remove(&(until, Timer::Lease(lease)));
        }
        if self.loosened.last() != Some(&ended.worker) {
            self.loosened.push(ended.worker);
        }
        Some(ended)
    }

    /// Puts a task where its predecessors let it be: blocked, waiting, or ready at one end of its lane.
    pub(in crate::ledger) fn place(&mut self, slot: u32, from: Option<TaskState>, end: End) {
        let record = &self.tasks[slot];
        let (job, index) = (record.job, record.index);
        let mut to = self.own_fate(slot);
        if to == TaskState::Ready
            && let Some(at) = self.job(job).array_at(index)
        {
            to = self.gate_fate(self.job(job).arrays[at].gate);
            if to == TaskState::Ready {
                to = self.element_fate(job, at, index);
            }
        }
        match to {
            TaskState::Ready => self.enqueue(slot, end),
            TaskState::Blocked => self.tasks[slot].phase = Phase::Blocked,
            _ => self.tasks[slot].phase = Phase::Waiting,
        }
        if from != Some(to) {
            self.count(job, index, from, Some(to));
        }
    }

    /// Makes `succ` come after `pred` and counts what that means for it.
    pub(in crate::ledger) fn link(&mut self, pred: u32, succ: u32) {
        self.graph.link(&mut self.tasks, pred, succ);
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

    /// Moves elements without a record that wait: all of them as the gate's predecessors say, or each
    /// as its own do.
    pub(in crate::ledger) fn settle_array(&mut self, gate: u32, end: End) {
        let (job, at) = self.array_of(gate);
        let array = &self.job(job).arrays[at];
        let range = (array.first, array.last());
        let by_element = !array.each.is_empty();
        match self.gate_fate(gate) {
            TaskState::Ready if by_element => {
                let this = self.job(job);
                let mut waiting: Vec<(u32, u32)> =
                    this.set(TaskState::Waiting).runs(range.0, range.1).collect();
                waiting.extend(this.set(TaskState::Blocked).runs(range.0, range.1));
                for (first, last) in waiting {
                    self.settle_elements(job, at, first, last, end);
                }
            }
            fate => {
                for from in [TaskState::Waiting, TaskState::Blocked] {
                    if from != fate {
                        self.move_fresh(job, at, range, from, fate, end);
                    }
                }
                let records: Vec<u32> =
                    self.job(job).pages.range(range.0, range.1).map(|(_, slot)| slot).collect();
                for slot in records {
                    self.settle_record(slot, end);
                }
            }
        }
    }

    /// Puts a task that waits where it may be now.
    fn settle_record(&mut self, slot: u32, end: End) {
        match self.tasks[slot].phase {
            Phase::Waiting => self.place(slot, Some(TaskState::Waiting), end),
            Phase::Blocked => self.place(slot, Some(TaskState::Blocked), end),
            _ => {}
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

    /// What the elements of other arrays allow this one.
    pub(crate) fn element_fate(&self, job: u32, at: usize, index: u32) -> TaskState {
        let array = &self.job(job).arrays[at];
        let runs_anyway = self.profiles.get(array.profile).runs_anyway;
        let mut fate = TaskState::Ready;
        for &pred in &array.each {
            // An array that is forgotten was finished.
            let Some((pred_job, pred_array)) = self.array(pred) else { continue };
            let pred_index = pred_array.first + (index - array.first);
            let pred_job = self.job(pred_job);
            if pred_job.set(TaskState::Done).contains(pred_index) {
                continue;
            }
            let ended = pred_job.set(TaskState::Failed).contains(pred_index)
                || pred_job.set(TaskState::Cancelled).contains(pred_index);
            match (ended, runs_anyway) {
                (true, true) => {}
                (true, false) => return TaskState::Blocked,
                (false, _) => fate = TaskState::Waiting,
            }
        }
        fate
    }

    fn settle_elements(&mut self, job: u32, at: usize, first: u32, last: u32, end: End) {
        for index in first..=last {
            let this = self.job(job);
            if let Some(slot) = this.pages.find(index) {
                self.settle_record(slot, end);
                continue;
            }
            let from = [TaskState::Waiting, TaskState::Blocked]
                .into_iter()
                .find(|&state| this.set(state).contains(index));
            let Some(from) = from else { continue };
            let to = self.element_fate(job, at, index);
            if from != to {
                self.move_fresh(job, at, (index, index), from, to, end);
            }
        }
    }

    /// Moves elements without a record from one state to another, and in or out of the lane.
    pub(in crate::ledger) fn move_fresh(
        &mut self,
        job: u32,
        at: usize,
        (first, last): (u32, u32),
        from: TaskState,
        to: TaskState,
        end: End,
    ) -> Vec<(u32, u32)> {
        let this = self.jobs[job].as_mut().expect("a job in use is there");
        let runs = if from == TaskState::Ready {
            // Ready elements with a record stand in the lane by themselves.
            let runs = this.arrays[at].fresh.extract_range(first, last);
            for &(first, last) in &runs {
                this.sets[from as usize].extract_range(first, last);
            }
            runs
        } else {
            // Elements with a record are moved one by one, by whoever knows their phase.
            let recorded: SmallVec<[u32; 8]> = (this.pages.range(first, last))
                .map(|(index, _)| index)
                .filter(|&index| this.sets[from as usize].contains(index))
                .collect();
            for &index in &recorded {
                this.sets[from as usize].remove(index);
            }
            let runs = this.sets[from as usize].extract_range(first, last);
            for &index in &recorded {
                this.sets[from as usize].insert(index);
            }
            runs
        };
        for &run in &runs {
            if to == TaskState::Ready {
                self.job_mut(job).arrays[at].fresh.insert_range(run.0, run.1);
            }
            self.count_range(job, run, Some(from), to);
        }
        self.settle_gate(job, at, end);
        runs
    }

    /// The gate stands in its lane exactly while there are fresh elements.
    pub(in crate::ledger) fn settle_gate(&mut self, job: u32, at: usize, end: End) {
        let array = &self.job(job).arrays[at];
        let (gate, wanted) = (array.gate, !array.fresh.is_empty());
        let Phase::Gate(link) = self.tasks[gate].phase else { unreachable!("a gate stays one") };
        if wanted && link.lane == NONE {
            self.enqueue(gate, end);
        } else if !wanted && link.lane != NONE {
            self.lanes.unlink(&mut self.tasks, gate);
        }
    }

    /// Gives an element of an array a record of its own, because something happens to it.
    pub(in crate::ledger) fn touch(
        &mut self,
        job: u32,
        at: usize,
        index: u32,
        phase: Phase,
    ) -> u32 {
        let array = &self.job(job).arrays[at];
        let (profile, work) = (array.profile, array.work.clone());
        let mut record = Record::new(Name::default(), job, index, profile, phase);
        record.work = Some(work);
        self.profiles.retain(profile);
        let slot = self.tasks.insert(record);
        self.job_mut(job).pages.put(index, slot);
        slot
    }

    /// An element of an array has ended, and its record with it.
    pub(in crate::ledger) fn fold(&mut self, slot: u32) {
        let record = self.tasks.remove(slot, Record::vacant());
        self.profiles.release(record.profile);
        self.job_mut(record.job).pages.take(record.index);
    }

    /// Elements of an array have ended, well or not.
    pub(in crate::ledger) fn elements_ended(
        &mut self,
        job: u32,
        at: usize,
        (first, last): (u32, u32),
        good: bool,
    ) {
        let count = last - first + 1;
        let array = &mut self.job_mut(job).arrays[at];
        array.unfinished -= count;
        if !good {
            array.bad += count;
        }
        let (gate, all_ended, bad) = (array.gate, array.unfinished == 0, array.bad > 0);
        self.tell_followers(job, at, (first, last), good);
        if all_ended {
            self.tell_succs(gate, if bad { News::Failed } else { News::Done });
        }
    }

    /// Elements of an array that had failed or were cancelled run again.
    pub(in crate::ledger) fn elements_reopened(
        &mut self,
        job: u32,
        at: usize,
        (first, last): (u32, u32),
    ) {
        let count = last - first + 1;
        let array = &mut self.job_mut(job).arrays[at];
        let (gate, all_had_ended) = (array.gate, array.unfinished == 0);
        array.unfinished += count;
        array.bad -= count;
        if all_had_ended {
            self.tell_succs(gate, News::Reopened);
        }
        self.tell_followers(job, at, (first, last), true);
    }

    fn tell_followers(&mut self, job: u32, at: usize, (first, last): (u32, u32), good: bool) {
        if self.job(job).arrays[at].followers.is_empty() {
            return;
        }
        let followers = self.job(job).arrays[at].followers.clone();
        let start = self.job(job).arrays[at].first;
        for follower in followers {
            let Some(gate) = self.record_of(follower) else { continue };
            if self.gate_fate(gate) != TaskState::Ready {
                continue; // All its elements wait anyway, and are settled when the gate opens.
            }
            let (their_job, their_at) = self.array_of(gate);
            let offset = follower.number() - start;
            let range = (first + offset, last + offset);
            let runs_anyway = self.profiles.get(self.tasks[gate].profile).runs_anyway;
            if !good && !runs_anyway {
                let (waiting, blocked) = (TaskState::Waiting, TaskState::Blocked);
                self.move_fresh(their_job, their_at, range, waiting, blocked, End::Front);
            } else {
                self.settle_elements(their_job, their_at, range.0, range.1, End::Front);
            }
        }
    }

    pub(in crate::ledger) fn slot_for(&self, id: TaskId) -> Option<u32> {
        self.record_of(id)
    }

    /// Delays a task until a time that has not come.
    pub(in crate::ledger) fn delay(&mut self, slot: u32, until: Time) {
        self.tasks[slot].phase = Phase::Delayed { until };
        self.timers.insert((until, Timer::Delay(slot)));
    }
}

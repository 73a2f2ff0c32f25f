//! The few moves that all events are made of: count a task in another state, put it into its lane or take
//! it out, tell its successors. Keeps sets, counts, lanes and timers in step.

use super::handle::{JobHandle, LaneHandle, ProfileHandle, TaskHandle};
use super::lanes::{End, LaneKey};
use super::reading::{Ledger, Timer};
use super::record::{Phase, Record};
use super::workers::Lease;
use crate::effect::Change;
use crate::id::{GroupId, Time};
use crate::task::{Demand, State};

/// Lanes without tasks that a job keeps.
const LANES_KEPT: usize = 16;
/// Classes of a group that ended jobs may keep: who waits need not be looked through again for the next job.
const CLASSES_KEPT: usize = 64;

/// What the successors of a task or an array are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::ledger) enum News {
    Done,
    /// Or cancelled, or blocked.
    Failed,
    /// It had failed and runs again, or is not blocked any more.
    Reopened,
}

/// Who is to be told something.
#[derive(Clone, Copy, Debug)]
pub(in crate::ledger) enum Word {
    Succs(TaskHandle, News),
    /// Those that come element by element after these of an array.
    Followers(JobHandle, usize, (u32, u32)),
}

/// What two that both have a say allow a task: nothing is decided while one of them waits.
pub(in crate::ledger) fn stricter(one: State, other: State) -> State {
    [State::Waiting, State::Blocked]
        .into_iter()
        .find(|&state| one == state || other == state)
        .unwrap_or(State::Ready)
}

impl Ledger {
    /// Counts a task as `to` instead of `from`, in its job and its group.
    pub(in crate::ledger) fn count(
        &mut self,
        job: JobHandle,
        index: u32,
        from: Option<State>,
        to: Option<State>,
    ) {
        self.weigh(job, 1, from, to);
        let this = self.jobs[job].as_mut().expect("a job in use is there");
        let group_at = this.group;
        let group = self.groups[group_at.at()].as_mut().expect("a job's group is there");
        if let Some(from) = from {
            let was_there = this.sets[from as usize].remove(index);
            debug_assert!(was_there, "{}/{index} was not {}", this.id, from.word());
            this.counts.subtract(from, 1);
            group.counts.subtract(from, 1);
            this.forgive_no_more_than_failed();
        }
        if let Some(to) = to {
            let is_new = this.sets[to as usize].insert(index);
            debug_assert!(is_new, "{}/{index} is {} already", this.id, to.word());
            this.counts.add(to, 1);
            group.counts.add(to, 1);
            let id = this.id;
            let leased = this.counts.of(State::Leased);
            // Only the task that fills the job, or makes room in a full one, changes anything.
            let crosses = this.options.max_running.is_some_and(|most| {
                (to == State::Leased && leased == most)
                    || (from == Some(State::Leased) && leased + 1 == most)
            });
            self.push_task_change(id, index, index, to);
            if crosses {
                self.refresh_lanes(job);
            }
            self.end_or_unend(job, to);
        }
        self.note_if_idle(group_at);
    }

    /// The same for elements of an array that have no record: a range costs as much as one.
    pub(in crate::ledger) fn count_range(
        &mut self,
        job: JobHandle,
        (first, last): (u32, u32),
        from: Option<State>,
        to: State,
    ) {
        let count = last - first + 1;
        self.weigh(job, count, from, Some(to));
        let this = self.jobs[job].as_mut().expect("a job in use is there");
        let group_at = this.group;
        let group = self.groups[group_at.at()].as_mut().expect("a job's group is there");
        if let Some(from) = from {
            this.counts.subtract(from, count);
            group.counts.subtract(from, count);
            this.forgive_no_more_than_failed();
        }
        this.sets[to as usize].insert_range(first, last);
        this.counts.add(to, count);
        group.counts.add(to, count);
        let id = this.id;
        self.push_task_change(id, first, last, to);
        self.end_or_unend(job, to);
        self.note_if_idle(group_at);
    }

    /// One of its tasks is in this state now.
    #[inline]
    fn end_or_unend(&mut self, job: JobHandle, to: State) {
        if to.is_over() {
            self.end_if_over(job);
        } else {
            self.unend(job);
        }
    }

    /// Who waits for its end is told when the command is done, if it is still so then.
    #[inline]
    fn note_if_idle(&mut self, group: GroupId) {
        if self.group(group).counts.active() == 0 {
            self.idle_groups.insert(group);
        }
    }

    fn push_task_change(&mut self, job: crate::id::JobId, first: u32, last: u32, state: State) {
        if self.collects_changes {
            // Who did what goes with the first change; what follows from it is nobody's doing.
            let (worker, outcome) = std::mem::take(&mut self.actor);
            self.changes.push(Change::Tasks { job, first, last, state, worker, outcome });
        }
    }

    /// A closed job has ended when all its tasks are over. One with blocked tasks may go on some day.
    pub(in crate::ledger) fn end_if_over(&mut self, job: JobHandle) {
        let at = self.at;
        let this = self.job_mut(job);
        if this.ended.is_none() && !this.options.open && this.counts.not_over() == 0 {
            this.ended = Some(at);
            let id = this.id;
            self.ended.insert((at, id));
            self.just_ended.push(id);
            if self.collects_changes {
                self.changes.push(Change::Job { job: id });
            }
        }
    }

    pub(in crate::ledger) fn unend(&mut self, job: JobHandle) {
        let this = self.job_mut(job);
        if let Some(ended) = this.ended.take() {
            let id = this.id;
            self.ended.remove(&(ended, id));
        }
    }

    /// Opens or shuts the job's lanes after something about it changed.
    pub(in crate::ledger) fn refresh_lanes(&mut self, job: JobHandle) {
        let this = self.jobs[job].as_ref().expect("a job in use is there");
        let open = !this.is_parked();
        for &lane in &this.lanes {
            self.lanes.open(lane, open);
        }
    }

    fn lane_of(&mut self, handle: TaskHandle) -> LaneHandle {
        let record = &self.tasks[handle];
        let (job, profile) = (record.job, record.profile);
        let kind = record.work.as_ref().map_or(Demand::NAMED, |work| work.demand());
        let is_alone = record.is_suspect(self.profiles.get(profile));
        self.lane_for(job, profile, kind, is_alone)
    }

    pub(in crate::ledger) fn lane_for(
        &mut self,
        job: JobHandle,
        profile: ProfileHandle,
        kind: Demand,
        is_alone: bool,
    ) -> LaneHandle {
        let settings = self.profiles.get(profile);
        let this = self.jobs[job].as_mut().expect("a job in use is there");
        let (lane, is_new) = self.lanes.lane_for(LaneKey {
            job,
            group: this.group,
            account: this.account,
            profile,
            kind,
            priority: settings.priority,
            needs: &settings.needs,
            limit_ms: settings.time_request_ms.or(settings.time_limit_ms),
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

    pub(in crate::ledger) fn drop_lane(&mut self, job: JobHandle, lane: LaneHandle) {
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

    pub(in crate::ledger) fn enqueue(&mut self, handle: TaskHandle, end: End) {
        let lane = self.lane_of(handle);
        let open = !self.job(self.tasks[handle].job).is_parked();
        self.lanes.push(&mut self.tasks, lane, handle, end, open);
    }

    /// Takes a task that is not leased out of wherever it stands; its phase is the caller's to set.
    pub(in crate::ledger) fn pull_out(&mut self, handle: TaskHandle) -> State {
        let record = &self.tasks[handle];
        let state = record.state().expect("a task has a state");
        match record.phase {
            Phase::Ready(_) => self.lanes.unlink(&mut self.tasks, handle),
            Phase::Delayed { until } => {
                self.timers.remove(&(until, Timer::Delay(self.id_of(handle))));
            }
            Phase::Leased { .. } => unreachable!("a lease ends before its task moves"),
            _ => {}
        }
        state
    }

    /// Ends the lease of a leased task. The worker has room again.
    pub(in crate::ledger) fn end_lease(&mut self, handle: TaskHandle) -> Option<Lease> {
        let Phase::Leased { lease } = self.tasks[handle].phase else { return None };
        let Record { job, profile, .. } = self.tasks[handle];
        let needs = &self.profiles.get(profile).needs;
        let ended = self.workers.end(lease, needs);
        let slots = needs.way(ended.variant()).slots_in_all();
        let mut next = ended.next_node;
        while let Some(node) = next.some() {
            let kept = self.workers.end(node, needs);
            next = kept.next_node;
            self.loosened.push(kept.worker);
            self.freed_nodes.push((kept.worker, self.id_of(handle), kept.no));
        }
        let account = self.jobs[job].as_ref().expect("a job in use is there").account;
        self.lanes.free_slots(account, slots);
        if let Some(term) = ended.term {
            self.timers.remove(&(term.until, Timer::Lease(ended.no, lease)));
        }
        if self.loosened.last() != Some(&ended.worker) {
            self.loosened.push(ended.worker);
        }
        Some(ended)
    }

    /// Puts a task where its predecessors let it be: blocked, waiting, or ready at one end of its lane.
    pub(in crate::ledger) fn place(&mut self, handle: TaskHandle, from: Option<State>, end: End) {
        let to = self.fate(handle);
        self.put(handle, from, to, end);
    }

    fn put(&mut self, handle: TaskHandle, from: Option<State>, to: State, end: End) {
        let record = &self.tasks[handle];
        let (job, index) = (record.job, record.index);
        match to {
            State::Ready => self.enqueue(handle, end),
            State::Blocked => self.tasks[handle].phase = Phase::Blocked,
            _ => self.tasks[handle].phase = Phase::Waiting,
        }
        if from != Some(to) {
            self.count(job, index, from, Some(to));
            self.tell_change(handle, from, to);
            if let Some(at) = self.job(job).array_at(index) {
                self.elements_moved(job, at, (index, index), from, to);
            }
        }
    }

    /// What its predecessors allow a task: its own, those of its array, those of its element.
    fn fate(&self, handle: TaskHandle) -> State {
        let record = &self.tasks[handle];
        let (job, index) = (record.job, record.index);
        let own = self.own_fate(handle);
        match self.job(job).array_at(index) {
            Some(at) => stricter(own, self.element_fate(job, at, index)),
            None => own,
        }
    }

    /// Makes `succ` come after `pred` and counts what that means for it.
    pub(in crate::ledger) fn link(&mut self, pred: TaskHandle, succ: TaskHandle) {
        self.graph.link(&mut self.tasks, pred, succ);
        self.keep_order(pred, succ);
        match self.verdict(pred) {
            None => self.tasks[succ].waiting += 1,
            Some(false) => self.tasks[succ].failed += 1,
            Some(true) => {}
        }
    }

    /// Whether a task or an array is over, and well.
    pub(in crate::ledger) fn verdict(&self, handle: TaskHandle) -> Option<bool> {
        let record = &self.tasks[handle];
        match record.state() {
            Some(state) => state.verdict(),
            None => {
                let (job, at) = self.array_of(handle);
                self.job(job).arrays[at].verdict()
            }
        }
    }

    /// Tells its successors what has become of a task or an array, if that is news.
    pub(in crate::ledger) fn tell_change(
        &mut self,
        handle: TaskHandle,
        from: Option<State>,
        to: State,
    ) {
        self.tell_verdict(handle, from.and_then(State::verdict), to.verdict());
    }

    pub(in crate::ledger) fn tell_verdict(
        &mut self,
        handle: TaskHandle,
        before: Option<bool>,
        after: Option<bool>,
    ) {
        match (before, after) {
            (None, Some(true)) => self.spread(Word::Succs(handle, News::Done)),
            (None, Some(false)) => self.spread(Word::Succs(handle, News::Failed)),
            (Some(false), None) => self.spread(Word::Succs(handle, News::Reopened)),
            // A late result of a task that is blocked by now.
            (Some(false), Some(true)) => {
                self.spread(Word::Succs(handle, News::Reopened));
                self.spread(Word::Succs(handle, News::Done));
            }
            _ => {}
        }
    }

    /// A word may block tasks, or set them free, and so lead to more words: they wait for their turn here, because a
    /// chain of tasks may be longer than the stack is deep.
    pub(in crate::ledger) fn spread(&mut self, word: Word) {
        self.words.push_back(word);
        if !self.is_spreading {
            self.spread_all();
        }
    }

    pub(in crate::ledger) fn spread_all(&mut self) {
        self.is_spreading = true;
        while let Some(word) = self.words.pop_front() {
            match word {
                Word::Succs(handle, news) => self.tell_succs(handle, news),
                Word::Followers(job, at, range) => self.tell_followers(job, at, range),
            }
        }
        self.is_spreading = false;
    }

    fn tell_succs(&mut self, handle: TaskHandle, news: News) {
        let tail = self.tasks[handle].succs;
        let mut edge = self.graph.first_succ(tail);
        while let Some(here) = edge {
            let (succ, next) = self.graph.step_succ(here, tail);
            edge = next;
            if succ == TaskHandle::NONE {
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
                self.update_array(succ, End::Front);
            } else {
                self.update_idle_record(succ, End::Front);
            }
        }
    }

    /// Puts a task that has not started where it may be now. Who is ready and may not start any more, as
    /// its predecessor runs again, waits again.
    pub(in crate::ledger) fn update_idle_record(&mut self, handle: TaskHandle, end: End) {
        let state = self.tasks[handle].state();
        let Some(from @ (State::Waiting | State::Blocked | State::Ready)) = state else {
            return;
        };
        let to = self.fate(handle);
        if from != to {
            self.pull_out(handle);
            self.put(handle, Some(from), to, end);
        }
    }

    /// What the predecessors of the whole array allow its elements.
    pub(crate) fn gate_fate(&self, gate: TaskHandle) -> State {
        self.own_fate(gate)
    }

    /// What the predecessors of a record itself allow it.
    fn own_fate(&self, handle: TaskHandle) -> State {
        let record = &self.tasks[handle];
        if record.waiting > 0 {
            State::Waiting
        } else if record.failed > 0 && !self.profiles.get(record.profile).runs_anyway {
            State::Blocked
        } else {
            State::Ready
        }
    }

    /// Delays a task until a time that has not come.
    pub(in crate::ledger) fn delay(&mut self, handle: TaskHandle, until: Time) {
        self.tasks[handle].phase = Phase::Delayed { until };
        self.timers.insert((until, Timer::Delay(self.id_of(handle))));
    }
}

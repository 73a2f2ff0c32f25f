//! New tasks and arrays, and new predecessors of old ones.

use crate::event::Added;
use crate::id::{GroupId, TaskId, WorkerId};
use crate::ledger::handle::{JobHandle, ProfileHandle, TaskHandle};
use crate::ledger::jobs::Array;
use crate::ledger::lanes::End;
use crate::ledger::reading::Ledger;
use crate::ledger::record::{Link, Phase, Record};
use crate::task::{NewArray, NewTask, State};
use smallvec::SmallVec;
use std::sync::Arc;

impl Ledger {
    /// First every task and array is there, then the edges between them, then each is put in its place:
    /// so they may name each other in any order.
    pub(super) fn added(&mut self, added: &Added) {
        let job = self.live_job(added.job);
        self.load_added(job, added);
        let group = self.job(job).group;
        let profiles = self.intern_profiles(group, added);
        let arrays: SmallVec<[usize; 1]> = (added.arrays.iter())
            .map(|array| self.add_array(job, array, profiles[array.profile as usize]))
            .collect();
        let mut handles: SmallVec<[TaskHandle; 8]> = SmallVec::with_capacity(added.tasks.len());
        for task in &added.tasks {
            handles.push(self.add_task(job, task, profiles[task.profile as usize]));
        }

        // Counted before they are linked: a task may come after one of the elements.
        for &at in &arrays {
            let array = &self.job(job).arrays[at];
            let range = (array.first, array.last());
            self.count_range(job, range, None, State::Waiting);
        }
        for (&at, array) in arrays.iter().zip(&added.arrays) {
            self.link_array(job, at, array);
        }
        for (&handle, task) in handles.iter().zip(&added.tasks) {
            self.link_all(handle, &task.preds);
        }

        // A job does not end, and nobody is told of others, before the last of them is counted.
        self.is_spreading = true;
        let is_open = std::mem::replace(&mut self.job_mut(job).options.open, true);
        for at in arrays {
            let gate = self.job(job).arrays[at].gate;
            self.update_array(gate, End::Back);
        }
        for handle in handles {
            self.place(handle, None, End::Back);
        }
        self.spread_all();
        self.job_mut(job).options.open = is_open;
        self.end_if_over(job);
    }

    /// One look-up for each profile of the event, however many tasks share it.
    fn intern_profiles(&mut self, group: GroupId, added: &Added) -> SmallVec<[ProfileHandle; 4]> {
        let mut users: SmallVec<[u32; 4]> = SmallVec::from_elem(0, added.profiles.len());
        for task in &added.tasks {
            users[task.profile as usize] += 1;
        }
        for array in &added.arrays {
            users[array.profile as usize] += 1;
        }
        (added.profiles.iter().zip(users))
            .map(|(profile, users)| self.profiles.intern(group, profile, users))
            .collect()
    }

    fn add_task(&mut self, job: JobHandle, task: &NewTask, profile: ProfileHandle) -> TaskHandle {
        let this = self.job_mut(job);
        let index = this.next_index;
        this.next_index += 1;
        let mut record = Record::new(task.name.clone(), job, index, profile, Phase::Waiting);
        record.work.clone_from(&task.work);
        record.extra = task.memo.as_ref().map(|memo| self.extra_of(memo));
        let handle = self.insert_record(record);
        self.job_mut(job).pages.put(index, handle);
        self.register_name(handle);
        handle
    }

    pub(in crate::ledger) fn register_name(&mut self, handle: TaskHandle) {
        if self.tasks[handle].name.is_empty() {
            return;
        }
        let scope = self.scope_of(self.tasks[handle].job);
        self.names.insert(&self.tasks, scope, handle);
    }

    fn add_array(&mut self, job: JobHandle, array: &NewArray, profile: ProfileHandle) -> usize {
        let this = self.job_mut(job);
        let first = this.next_index;
        this.next_index += array.count;
        self.put_array(job, first, array, profile)
    }

    /// The array with its gate, its elements in no state yet.
    pub(in crate::ledger) fn put_array(
        &mut self,
        job: JobHandle,
        first: u32,
        array: &NewArray,
        profile: ProfileHandle,
    ) -> usize {
        let mut record =
            Record::new(array.name.clone(), job, first, profile, Phase::Gate(Link::OUT));
        record.work = Some(array.work.clone());
        let gate = self.insert_record(record);
        self.has_arrays = true;
        let this = self.job_mut(job);
        this.arrays.push(Array {
            first,
            count: array.count,
            gate,
            name: array.name.clone(),
            work: array.work.clone(),
            values: array.values.clone(),
            profile,
            fresh: Default::default(),
            unfinished: array.count,
            bad: 0,
            blocked: 0,
            each: array.each.clone(),
            followers: Vec::new(),
        });
        let at = this.arrays.len() - 1;
        self.register_name(gate);
        at
    }

    fn link_array(&mut self, job: JobHandle, at: usize, array: &NewArray) {
        let gate = self.job(job).arrays[at].gate;
        self.link_all(gate, &array.preds);
        let this_id = self.id_of(gate);
        for &pred in &array.each {
            self.add_follower(pred, this_id);
        }
    }

    pub(in crate::ledger) fn add_follower(&mut self, pred: TaskId, follower: TaskId) {
        if let Some(gate) = self.record_of(pred) {
            let (job, at) = self.array_of(gate);
            self.job_mut(job).arrays[at].followers.push(follower);
            if let Some(follower) = self.record_of(follower) {
                self.keep_order(gate, follower);
            }
        }
    }

    pub(super) fn link_all(&mut self, succ: TaskHandle, preds: &[TaskId]) {
        for &pred in preds {
            match self.record_of(pred) {
                Some(pred) => self.link(pred, succ),
                None => self.link_element(pred, succ),
            }
        }
    }

    /// An element of an array that has no record: it gets one unless it is done, because its successor
    /// hangs on it.
    fn link_element(&mut self, pred: TaskId, succ: TaskHandle) {
        let Some(job) = self.find_job(pred.job) else { return };
        let this = self.job(job);
        let Some(at) = this.array_at(pred.index) else { return };
        let handle = match this.state_of(pred.index) {
            Some(State::Done) | None => return,
            Some(State::Failed) => {
                let why = this.why_failed(pred.index).map(Box::from);
                let phase = self.unfold_failure(job, pred.index);
                let handle = self.make_record(job, at, pred.index, phase);
                if why.is_some() {
                    self.job_mut(job).forget_why(pred.index, pred.index);
                    self.tasks[handle].extra_mut().message = why;
                }
                handle
            }
            Some(State::Cancelled) => self.make_record(job, at, pred.index, Phase::Cancelled),
            Some(state) => self.materialise(job, at, pred.index, state),
        };
        self.link(handle, succ);
    }

    /// How an element failed; who ran it is not known any more.
    fn unfold_failure(&mut self, job: JobHandle, index: u32) -> Phase {
        let started = self.at;
        let failed = &mut self.job_mut(job).failed_elements;
        let found = failed.iter_mut().find(|(_, set)| set.contains(index));
        let (&outcome, set) = found.expect("an element that failed is known by how");
        set.remove(index);
        failed.retain(|_, set| !set.is_empty());
        Phase::Finished { outcome, worker: WorkerId::UNKNOWN, took_ms: 0, started }
    }

    /// A record for an element in whatever unfinished state it is; a ready one stands with
    /// the rest of its array.
    pub(in crate::ledger) fn materialise(
        &mut self,
        job: JobHandle,
        at: usize,
        index: u32,
        state: State,
    ) -> TaskHandle {
        let phase = match state {
            State::Blocked => Phase::Blocked,
            State::Held => Phase::Held,
            _ => Phase::Waiting,
        };
        let handle = self.make_record(job, at, index, phase);
        if state == State::Ready {
            let gate = self.job(job).arrays[at].gate;
            self.lanes.push_before(&mut self.tasks, gate, handle);
            self.job_mut(job).arrays[at].fresh.remove(index);
            self.update_gate(job, at, End::Back);
        }
        handle
    }

    pub(super) fn preds_added(&mut self, task: TaskId, preds: &[TaskId]) {
        let Some(handle) = self.record_of(task) else { return };
        self.link_all(handle, preds);
        self.update_idle_record(handle, End::Back);
    }

    pub(super) fn renewed(&mut self, task: TaskId, preds: &[TaskId], memo: Option<&Arc<[u8]>>) {
        let Some(handle) = self.record_of(task) else { return };
        let from = self.pull_out(handle);
        self.uncount_failure(handle);
        self.remember_attempt(handle);
        if from == State::Done {
            // What waited for the run before has been told; this run is nobody's predecessor yet.
            self.graph.detach(&mut self.tasks, handle);
        } else {
            self.graph.detach_preds(&mut self.tasks, handle);
        }
        let record = &mut self.tasks[handle];
        (record.waiting, record.failed, record.fails, record.lost) = (0, 0, 0, 0);
        if let Some(memo) = memo {
            record.extra_mut().memo = Some(Arc::clone(memo));
        }
        self.link_all(handle, preds);
        self.place(handle, Some(from), End::Back);
    }
}

//! Elements of arrays that have no record of their own: they move as ranges, and their gate stands in a
//! lane for those that are ready. Also when they get a record and when they lose it again.

use super::lanes::End;
use super::moves::News;
use super::record::{Phase, Record};
use super::slab::NONE;
use super::state::State;
use crate::id::Name;
use crate::task::State as TaskState;
use smallvec::SmallVec;

impl State {
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
}

//! Elements of arrays that have no record of their own: they move as ranges, and their gate stands in a
//! lane for those that are ready. Also when they get a record and when they lose it again.

use super::handle::{JobHandle, LaneHandle, TaskHandle};
use super::lanes::End;
use super::moves::News;
use super::reading::Ledger;
use super::record::{Phase, Record};
use crate::id::Name;
use crate::task::State;
use smallvec::SmallVec;

impl Ledger {
    /// Moves elements that have not started: all of them as the gate's predecessors say, or each as its
    /// own do.
    pub(in crate::ledger) fn update_array(&mut self, gate: TaskHandle, end: End) {
        let (job, at) = self.array_of(gate);
        let array = &self.job(job).arrays[at];
        let range = (array.first, array.last());
        match self.gate_fate(gate) {
            State::Ready => self.update_elements(job, at, range, end),
            fate => {
                self.move_idle(job, at, range, fate, end);
                self.update_idle_records(job, range, end);
            }
        }
    }

    /// Puts elements where the elements they wait for let them be: those without a record as runs.
    fn update_elements(&mut self, job: JobHandle, at: usize, range: (u32, u32), end: End) {
        for (first, last, fate) in self.element_fates(job, at, range) {
            self.move_idle(job, at, (first, last), fate, end);
        }
        self.update_idle_records(job, range, end);
    }

    fn move_idle(&mut self, job: JobHandle, at: usize, range: (u32, u32), to: State, end: End) {
        for from in [State::Waiting, State::Blocked, State::Ready] {
            let is_there = self.job(job).set(from).runs(range.0, range.1).next().is_some();
            if from != to && is_there {
                self.move_fresh(job, at, range, from, to, end);
            }
        }
    }

    fn update_idle_records(&mut self, job: JobHandle, (first, last): (u32, u32), end: End) {
        let records: SmallVec<[TaskHandle; 8]> =
            self.job(job).pages.range(first, last).map(|(_, handle)| handle).collect();
        for handle in records {
            self.update_idle_record(handle, end);
        }
    }

    /// What the elements of other arrays allow these, as runs: an array of millions is a few of them.
    fn element_fates(
        &self,
        job: JobHandle,
        at: usize,
        (first, last): (u32, u32),
    ) -> SmallVec<[(u32, u32, State); 2]> {
        let array = &self.job(job).arrays[at];
        let runs_anyway = self.profiles.get(array.profile).runs_anyway;
        let mut runs: SmallVec<[(u32, u32, State); 2]> = SmallVec::new();
        runs.push((first, last, State::Ready));
        for &pred in &array.each {
            // An array that is forgotten was finished.
            let Some((pred_job, pred_array)) = self.array(pred) else { continue };
            let (pred_job, pred_first) = (self.job(pred_job), pred_array.first);
            let mut split = SmallVec::new();
            for (first, last, fate) in runs {
                let mut from = first;
                while from <= last {
                    let here = pred_first + (from - array.first);
                    let (allowed, length) = pred_job.ended_run(here, last - from + 1);
                    let to = match allowed {
                        Some(true) => fate,
                        Some(false) if runs_anyway => fate,
                        Some(false) => State::Blocked,
                        None if fate == State::Blocked => fate,
                        None => State::Waiting,
                    };
                    split.push((from, from + (length - 1), to));
                    from += length;
                }
            }
            runs = split;
        }
        runs
    }

    /// What the elements of other arrays allow this one.
    pub(crate) fn element_fate(&self, job: JobHandle, at: usize, index: u32) -> State {
        let array = &self.job(job).arrays[at];
        let runs_anyway = self.profiles.get(array.profile).runs_anyway;
        let mut fate = State::Ready;
        for &pred in &array.each {
            // An array that is forgotten was finished.
            let Some((pred_job, pred_array)) = self.array(pred) else { continue };
            let pred_index = pred_array.first + (index - array.first);
            let pred_job = self.job(pred_job);
            if pred_job.set(State::Done).contains(pred_index) {
                continue;
            }
            let ended = pred_job.set(State::Failed).contains(pred_index)
                || pred_job.set(State::Cancelled).contains(pred_index);
            match (ended, runs_anyway) {
                (true, true) => {}
                (true, false) => return State::Blocked,
                (false, _) => fate = State::Waiting,
            }
        }
        fate
    }

    /// Moves elements without a record from one state to another, and in or out of the lane.
    pub(in crate::ledger) fn move_fresh(
        &mut self,
        job: JobHandle,
        at: usize,
        (first, last): (u32, u32),
        from: State,
        to: State,
        end: End,
    ) -> Vec<(u32, u32)> {
        let this = self.jobs[job].as_mut().expect("a job in use is there");
        let runs = if from == State::Ready {
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
            if to == State::Ready {
                self.job_mut(job).arrays[at].fresh.insert_range(run.0, run.1);
            }
            self.count_range(job, run, Some(from), to);
        }
        self.update_gate(job, at, end);
        runs
    }

    /// The gate stands in its lane exactly while there are fresh elements.
    pub(in crate::ledger) fn update_gate(&mut self, job: JobHandle, at: usize, end: End) {
        let array = &self.job(job).arrays[at];
        let (gate, wanted) = (array.gate, !array.fresh.is_empty());
        let Phase::Gate(link) = self.tasks[gate].phase else { unreachable!("a gate stays one") };
        if wanted && link.lane == LaneHandle::NONE {
            self.enqueue(gate, end);
        } else if !wanted && link.lane != LaneHandle::NONE {
            self.lanes.unlink(&mut self.tasks, gate);
        }
    }

    /// Gives an element of an array a record of its own, because something happens to it.
    pub(in crate::ledger) fn make_record(
        &mut self,
        job: JobHandle,
        at: usize,
        index: u32,
        phase: Phase,
    ) -> TaskHandle {
        let array = &self.job(job).arrays[at];
        let (profile, work) = (array.profile, array.work.clone());
        let mut record = Record::new(Name::default(), job, index, profile, phase);
        record.work = Some(work);
        self.profiles.retain(profile);
        let handle = self.insert_record(record);
        self.job_mut(job).pages.put(index, handle);
        handle
    }

    /// An element that came back as it went is a number in a range again, if there it stands where it
    /// should: behind all others, or in front of them. Elements of an array go in the order of their numbers.
    pub(in crate::ledger) fn rejoin(&mut self, handle: TaskHandle, end: End) -> bool {
        let record = &self.tasks[handle];
        let (job, index) = (record.job, record.index);
        let Some(at) = self.job(job).array_at(index) else { return false };
        let array = &self.job(job).arrays[at];
        if !record.is_untouched() || record.profile != array.profile {
            return false;
        }
        let Phase::Gate(link) = self.tasks[array.gate].phase else {
            unreachable!("a gate stays one")
        };
        let stands_right = link.lane == LaneHandle::NONE
            || match end {
                End::Front => link.prev == TaskHandle::NONE,
                End::Back => link.next == TaskHandle::NONE && array.fresh.next(index).is_none(),
            };
        let fate = match self.gate_fate(array.gate) {
            State::Ready => self.element_fate(job, at, index),
            other => other,
        };
        if fate == State::Ready && !stands_right {
            return false;
        }
        self.fold(handle);
        if fate == State::Ready {
            self.job_mut(job).arrays[at].fresh.insert(index);
        }
        self.count(job, index, Some(State::Leased), Some(fate));
        self.update_gate(job, at, end);
        true
    }

    /// An element of an array has ended, and its record with it.
    pub(in crate::ledger) fn fold(&mut self, handle: TaskHandle) {
        let record = self.tasks.release(handle, Record::vacant());
        self.profiles.release(record.profile);
        self.job_mut(record.job).pages.remove(record.index);
    }

    /// Elements of an array have ended, well or not.
    pub(in crate::ledger) fn elements_ended(
        &mut self,
        job: JobHandle,
        at: usize,
        (first, last): (u32, u32),
        good: bool,
    ) {
        let count = last - first + 1;
        let this = self.job_mut(job);
        if good {
            this.done_elements += count;
        }
        let array = &mut this.arrays[at];
        array.unfinished -= count;
        if !good {
            array.bad += count;
        }
        let (gate, all_ended, bad) = (array.gate, array.unfinished == 0, array.bad > 0);
        self.tell_followers(job, at, (first, last));
        if all_ended {
            self.tell_succs(gate, if bad { News::Failed } else { News::Done });
        }
    }

    /// Elements of an array that had failed or were cancelled run again.
    pub(in crate::ledger) fn elements_reopened(
        &mut self,
        job: JobHandle,
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
        self.tell_followers(job, at, (first, last));
    }

    fn tell_followers(&mut self, job: JobHandle, at: usize, (first, last): (u32, u32)) {
        if self.job(job).arrays[at].followers.is_empty() {
            return;
        }
        let followers = self.job(job).arrays[at].followers.clone();
        let start = self.job(job).arrays[at].first;
        for follower in followers {
            let Some(gate) = self.record_of(follower) else { continue };
            if self.gate_fate(gate) != State::Ready {
                continue; // All its elements wait anyway, and are settled when the gate opens.
            }
            let (their_job, their_at) = self.array_of(gate);
            let their = |index: u32| follower.number() + (index - start);
            let range = (their(first), their(last));
            self.update_elements(their_job, their_at, range, End::Front);
        }
    }
}

#[cfg(test)]
mod tests;

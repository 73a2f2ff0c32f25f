//! Elements of arrays that have no record of their own: they move as ranges, and their gate stands in a
//! lane for those that are ready. Also when they get a record and when they lose it again.

use super::handle::{JobHandle, LaneHandle, TaskHandle};
use super::lanes::End;
use super::moves::{Word, stricter};
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
        self.update_elements(job, at, (array.first, array.last()), end);
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
                for run in self.move_fresh(job, at, range, from, to, end) {
                    self.elements_moved(job, at, run, Some(from), to);
                }
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

    /// What the predecessors of the array and the elements of other arrays allow these, as runs: an array of millions
    /// is a few of them.
    fn element_fates(
        &self,
        job: JobHandle,
        at: usize,
        (first, last): (u32, u32),
    ) -> SmallVec<[(u32, u32, State); 2]> {
        let array = &self.job(job).arrays[at];
        let runs_anyway = self.profiles.get(array.profile).runs_anyway;
        let mut runs: SmallVec<[(u32, u32, State); 2]> = SmallVec::new();
        let all = self.gate_fate(array.gate);
        runs.push((first, last, all));
        if all == State::Waiting {
            return runs;
        }
        for &pred in &array.each {
            // An array that is forgotten was finished.
            let Some((pred_job, pred_array)) = self.array(pred) else { continue };
            let (pred_job, pred_first) = (self.job(pred_job), pred_array.first);
            let mut split = SmallVec::new();
            for (first, last, fate) in runs {
                let mut from = first;
                while from <= last {
                    let here = pred_first + (from - array.first);
                    let (verdict, length) = pred_job.verdict_run(here, last - from + 1);
                    let to = allowed(verdict, runs_anyway);
                    split.push((from, from + (length - 1), stricter(fate, to)));
                    from += length;
                }
            }
            runs = split;
        }
        runs
    }

    /// What the predecessors of its array and the elements of other arrays allow this one.
    pub(crate) fn element_fate(&self, job: JobHandle, at: usize, index: u32) -> State {
        let array = &self.job(job).arrays[at];
        let runs_anyway = self.profiles.get(array.profile).runs_anyway;
        let mut fate = self.gate_fate(array.gate);
        for &pred in &array.each {
            // An array that is forgotten was finished.
            let Some((pred_job, pred_array)) = self.array(pred) else { continue };
            let pred_index = pred_array.first + (index - array.first);
            let (verdict, _) = self.job(pred_job).verdict_run(pred_index, 1);
            fate = stricter(fate, allowed(verdict, runs_anyway));
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
        let fate = self.element_fate(job, at, index);
        if fate == State::Blocked || (fate == State::Ready && !stands_right) {
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

    /// Elements of an array went from one state to another: counts it in the array, and tells who comes after them.
    pub(in crate::ledger) fn elements_moved(
        &mut self,
        job: JobHandle,
        at: usize,
        (first, last): (u32, u32),
        from: Option<State>,
        to: State,
    ) {
        let count = last - first + 1;
        let this = self.job_mut(job);
        let array = &mut this.arrays[at];
        let (gate, before) = (array.gate, array.verdict());
        match from {
            Some(State::Failed | State::Cancelled) => {
                array.unfinished += count;
                array.bad -= count;
            }
            Some(State::Blocked) => array.blocked -= count,
            _ => {}
        }
        match to {
            State::Done => {
                array.unfinished -= count;
                this.done_elements += count;
            }
            State::Failed | State::Cancelled => {
                array.unfinished -= count;
                array.bad += count;
            }
            State::Blocked => array.blocked += count,
            _ => {}
        }
        let after = this.arrays[at].verdict();
        let has_followers = !this.arrays[at].followers.is_empty();
        if has_followers && from.and_then(State::verdict) != to.verdict() {
            self.spread(Word::Followers(job, at, (first, last)));
        }
        self.tell_verdict(gate, before, after);
    }

    /// Elements that come after these, one by one, are put where they may be now.
    pub(in crate::ledger) fn tell_followers(
        &mut self,
        job: JobHandle,
        at: usize,
        range: (u32, u32),
    ) {
        let followers = self.job(job).arrays[at].followers.clone();
        let start = self.job(job).arrays[at].first;
        for follower in followers {
            let Some(gate) = self.record_of(follower) else { continue };
            if self.gate_fate(gate) == State::Waiting {
                continue; // All its elements wait anyway, and are settled when the gate opens.
            }
            let (their_job, their_at) = self.array_of(gate);
            let their = |index: u32| follower.number() + (index - start);
            let range = (their(range.0), their(range.1));
            self.update_elements(their_job, their_at, range, End::Front);
        }
    }
}

/// What one predecessor allows.
fn allowed(verdict: Option<bool>, runs_anyway: bool) -> State {
    match verdict {
        None => State::Waiting,
        Some(false) if !runs_anyway => State::Blocked,
        Some(_) => State::Ready,
    }
}

#[cfg(test)]
mod tests;

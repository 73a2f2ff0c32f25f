//! What people do to tasks: cancel, hold, release, retry, another priority. Each takes ranges; elements
//! of arrays without a record move as ranges, everything else one by one.

use crate::event::Ranges;
use crate::id::{JobId, WorkerId};
use crate::ledger::handle::{JobHandle, LaneHandle, ProfileHandle, TaskHandle};
use crate::ledger::lanes::End;
use crate::ledger::reading::Ledger;
use crate::ledger::record::Phase;
use crate::task::{Outcome, Profile, State};

/// Where a task can be before it starts.
const IDLE: [State; 5] =
    [State::Waiting, State::Blocked, State::Ready, State::Delayed, State::Held];

impl Ledger {
    pub(super) fn cancelled(&mut self, job: JobId, ranges: &Ranges) {
        let job = self.live_job(job);
        for handle in self.records_in(job, ranges) {
            let from = match self.end_lease(handle) {
                Some(_) => State::Leased,
                None => match self.tasks[handle].state() {
                    Some(state) if !state.is_finished() => self.pull_out(handle),
                    _ => continue,
                },
            };
            let index = self.tasks[handle].index;
            self.tasks[handle].phase = Phase::Cancelled;
            self.count(job, index, Some(from), Some(State::Cancelled));
            self.ended_for_good(handle, from, State::Cancelled);
        }
        self.each_array_part(job, ranges, |state, at, range| {
            for from in IDLE {
                let to = State::Cancelled;
                for run in state.move_fresh(job, at, range, from, to, End::Back) {
                    state.elements_moved(job, at, run, Some(from), to);
                }
            }
        });
    }

    pub(super) fn marked_done(&mut self, job: JobId, ranges: &Ranges) {
        let job = self.live_job(job);
        let started = self.at;
        for handle in self.records_in(job, ranges) {
            let is_idle = |state: &State| IDLE.contains(state);
            let Some(from) = self.tasks[handle].state().filter(is_idle) else { continue };
            self.pull_out(handle);
            let record = &mut self.tasks[handle];
            let index = record.index;
            record.forget_lapsed();
            let (outcome, worker) = (Outcome::Success, WorkerId::UNKNOWN);
            record.phase = Phase::Finished { outcome, worker, took_ms: 0, started };
            self.count(job, index, Some(from), Some(State::Done));
            self.ended_for_good(handle, from, State::Done);
        }
        self.each_array_part(job, ranges, |state, at, range| {
            for from in IDLE {
                let to = State::Done;
                for run in state.move_fresh(job, at, range, from, to, End::Back) {
                    state.elements_moved(job, at, run, Some(from), to);
                }
            }
        });
    }

    pub(super) fn held(&mut self, job: JobId, ranges: &Ranges) {
        let job = self.live_job(job);
        for handle in self.records_in(job, ranges) {
            let Some(from) = self.tasks[handle].state().filter(|state| {
                matches!(state, State::Waiting | State::Blocked | State::Ready | State::Delayed)
            }) else {
                continue;
            };
            self.pull_out(handle);
            let index = self.tasks[handle].index;
            self.tasks[handle].phase = Phase::Held;
            self.count(job, index, Some(from), Some(State::Held));
            self.tell_change(handle, Some(from), State::Held);
            if let Some(at) = self.job(job).array_at(index) {
                self.elements_moved(job, at, (index, index), Some(from), State::Held);
            }
        }
        self.each_array_part(job, ranges, |state, at, range| {
            let to = State::Held;
            for from in [State::Waiting, State::Blocked, State::Ready] {
                for run in state.move_fresh(job, at, range, from, to, End::Back) {
                    state.elements_moved(job, at, run, Some(from), to);
                }
            }
        });
    }

    pub(super) fn released(&mut self, job: JobId, ranges: &Ranges) {
        let job = self.live_job(job);
        for handle in self.records_in(job, ranges) {
            if self.tasks[handle].state() == Some(State::Held) {
                self.place(handle, Some(State::Held), End::Back);
            }
        }
        self.each_array_part(job, ranges, |state, at, range| {
            let (held, waiting) = (State::Held, State::Waiting);
            let runs = state.move_fresh(job, at, range, held, waiting, End::Back);
            if !runs.is_empty() {
                let gate = state.job(job).arrays[at].gate;
                state.update_array(gate, End::Back);
            }
        });
    }

    pub(super) fn retried(&mut self, job: JobId, ranges: &Ranges) {
        let job = self.live_job(job);
        for handle in self.records_in(job, ranges) {
            let state = self.tasks[handle].state();
            let Some(from @ (State::Failed | State::Cancelled)) = state else { continue };
            self.uncount_failure(handle);
            self.remember_attempt(handle);
            let record = &mut self.tasks[handle];
            (record.fails, record.lost) = (0, 0);
            self.place(handle, Some(from), End::Back);
        }
        self.each_array_part(job, ranges, |state, at, range| {
            state.forget_failures(job, range);
            for from in [State::Failed, State::Cancelled] {
                let to = State::Waiting;
                for run in state.move_fresh(job, at, range, from, to, End::Back) {
                    state.elements_moved(job, at, run, Some(from), to);
                }
            }
            let gate = state.job(job).arrays[at].gate;
            state.update_array(gate, End::Back);
        });
    }

    /// Elements of arrays that failed are not counted as failed any more.
    fn forget_failures(&mut self, job: JobHandle, (first, last): (u32, u32)) {
        let this = self.job_mut(job);
        for (outcome, set) in &mut this.failed_elements {
            let count: u32 = set.extract_range(first, last).iter().map(|(a, b)| b - a + 1).sum();
            uncount(&mut this.failures, *outcome, count);
        }
        this.failed_elements.retain(|_, set| !set.is_empty());
        this.forget_why(first, last);
    }

    pub(super) fn uncount_failure(&mut self, handle: TaskHandle) {
        let record = &self.tasks[handle];
        if let Phase::Finished { outcome, .. } = record.phase
            && !outcome.is_success()
        {
            let job = record.job;
            uncount(&mut self.job_mut(job).failures, outcome, 1);
        }
    }

    pub(super) fn prioritised(&mut self, job: JobId, ranges: &Ranges, priority: i32) {
        let job = self.live_job(job);
        for at in 0..self.job(job).arrays.len() {
            let part = self.job(job).unfinished_in(at, ranges);
            let count: u32 = part.iter().map(|(_, (first, last))| last - first + 1).sum();
            if count == self.job(job).arrays[at].unfinished {
                self.reprofile_array(job, at, priority);
                continue;
            }
            // A part of an array that differs from the rest: these get records.
            for (state, (first, last)) in part {
                for index in first..=last {
                    if self.job(job).pages.find(index).is_none() {
                        self.materialise(job, at, index, state);
                    }
                }
            }
        }
        for handle in self.records_in(job, ranges) {
            if self.tasks[handle].state().is_none_or(State::is_finished) {
                continue;
            }
            let ready = matches!(self.tasks[handle].phase, Phase::Ready(_));
            if ready {
                self.pull_out(handle);
            }
            let profile = self.with_priority(job, self.tasks[handle].profile, priority);
            self.profiles.release(self.tasks[handle].profile);
            self.tasks[handle].profile = profile;
            if ready {
                self.enqueue(handle, End::Back);
            }
        }
    }

    fn reprofile_array(&mut self, job: JobHandle, at: usize, priority: i32) {
        let array = &self.job(job).arrays[at];
        let (gate, old) = (array.gate, array.profile);
        let Phase::Gate(link) = self.tasks[gate].phase else { unreachable!("a gate stays one") };
        let queued = link.lane != LaneHandle::NONE;
        if queued {
            self.lanes.unlink(&mut self.tasks, gate);
        }
        let profile = self.with_priority(job, old, priority);
        self.profiles.release(old);
        self.tasks[gate].profile = profile;
        self.job_mut(job).arrays[at].profile = profile;
        if queued {
            self.enqueue(gate, End::Back);
        }
    }

    fn with_priority(
        &mut self,
        job: JobHandle,
        profile: ProfileHandle,
        priority: i32,
    ) -> ProfileHandle {
        let changed = Profile { priority, ..Profile::clone(self.profiles.get(profile)) };
        self.profiles.intern(self.job(job).group, &changed, 1)
    }

    /// Handles of the records in the ranges, collected first because they may go meanwhile.
    pub(super) fn records_in(&self, job: JobHandle, ranges: &Ranges) -> Vec<TaskHandle> {
        let pages = &self.job(job).pages;
        ranges.iter().flat_map(|&(a, b)| pages.range(a, b)).map(|(_, handle)| handle).collect()
    }

    /// Calls for every part of an array that lies in the ranges.
    fn each_array_part(
        &mut self,
        job: JobHandle,
        ranges: &Ranges,
        mut visit: impl FnMut(&mut Ledger, usize, (u32, u32)),
    ) {
        for at in 0..self.job(job).arrays.len() {
            let array = &self.job(job).arrays[at];
            let (first, last) = (array.first, array.last());
            for &(from, to) in ranges {
                let part = (from.max(first), to.min(last));
                if part.0 <= part.1 {
                    visit(self, at, part);
                }
            }
        }
    }
}

fn uncount(failures: &mut std::collections::BTreeMap<Outcome, u32>, outcome: Outcome, count: u32) {
    if let Some(left) = failures.get_mut(&outcome) {
        *left = left.saturating_sub(count);
        if *left == 0 {
            failures.remove(&outcome);
        }
    }
}

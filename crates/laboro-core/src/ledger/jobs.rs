//! A job as the ledger knows it: the sets of its tasks by state, its arrays, its tallies.

use super::handle::{AccountHandle, LaneHandle, OwnerHandle, ProfileHandle, TaskHandle};
use super::index_set::IndexSet;
use super::pages::Pages;
use crate::event::Ranges;
use crate::id::{GroupId, JobId, Name, TaskId, Time};
use crate::job::{Counts, JobOptions};
use crate::task::{Outcome, State, Values, Work};
use std::collections::BTreeMap;
use std::sync::Arc;

/// So many different reasons why elements of arrays failed are kept with a job.
const REASONS_MAX: usize = 64;

#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) id: JobId,
    pub(crate) group: GroupId,
    pub(crate) options: Box<JobOptions>,
    /// Too many of its tasks failed.
    pub(crate) stopped: bool,
    /// Failures that a person has forgiven since.
    pub(crate) forgiven: u32,
    pub(crate) submitted: Time,
    pub(crate) ended: Option<Time>,
    /// The number that the next task gets.
    pub(crate) next_index: u32,
    pub(crate) counts: Counts,
    pub(crate) sets: [IndexSet; State::COUNT],
    pub(crate) pages: Pages,
    /// In the order of their first numbers.
    pub(crate) arrays: Vec<Array>,
    pub(crate) lanes: Vec<LaneHandle>,
    /// Failed elements of arrays, which keep no record, by how they failed.
    pub(crate) failed_elements: BTreeMap<Outcome, IndexSet>,
    /// Those of them of which more is known: why they could not be started, say. Mostly the same for all.
    pub(crate) failed_because: BTreeMap<Box<str>, IndexSet>,
    /// How many tasks failed which way and have not been retried.
    pub(crate) failures: BTreeMap<Outcome, u32>,
    /// Elements of arrays that are done.
    pub(crate) done_elements: u32,
    /// Results of attempts, for comparing workers.
    pub(crate) good: u32,
    pub(crate) bad: u32,
    /// Handle of its owner.
    pub(crate) owner: Option<OwnerHandle>,
    /// What that owner has in its group.
    pub(crate) account: AccountHandle,
    /// What its tasks that have not ended were submitted with, and what all of them were.
    pub(crate) queued_bytes: u64,
    pub(crate) bytes_ever: u64,
}

/// A run of tasks that differ in a number or a value only.
#[derive(Debug)]
pub(crate) struct Array {
    pub(crate) first: u32,
    pub(crate) count: u32,
    /// Handle of the record that stands for the whole.
    pub(crate) gate: TaskHandle,
    pub(crate) name: Name,
    pub(crate) work: Arc<Work>,
    pub(crate) values: Values,
    pub(crate) profile: ProfileHandle,
    /// Elements that wait for a worker and have no record.
    pub(crate) fresh: IndexSet,
    pub(crate) unfinished: u32,
    pub(crate) bad: u32,
    pub(crate) blocked: u32,
    /// Element i of this waits for element i of these.
    pub(crate) each: Vec<TaskId>,
    /// Element i of these waits for element i of this.
    pub(crate) followers: Vec<TaskId>,
}

impl Array {
    pub(crate) fn last(&self) -> u32 {
        self.first + (self.count - 1)
    }

    /// What comes after all of it goes by this: whether all elements are over, and well.
    pub(crate) fn verdict(&self) -> Option<bool> {
        (self.unfinished == self.blocked).then_some(self.bad + self.blocked == 0)
    }
}

impl Job {
    pub(crate) fn new(id: JobId, group: GroupId, options: Box<JobOptions>, submitted: Time) -> Job {
        Job {
            id,
            group,
            options,
            stopped: false,
            forgiven: 0,
            submitted,
            ended: None,
            next_index: 1,
            counts: Counts::default(),
            sets: Default::default(),
            pages: Pages::default(),
            arrays: Vec::new(),
            lanes: Vec::new(),
            failed_elements: BTreeMap::new(),
            failed_because: BTreeMap::new(),
            failures: BTreeMap::new(),
            done_elements: 0,
            good: 0,
            bad: 0,
            owner: None,
            account: AccountHandle::NONE,
            queued_bytes: 0,
            bytes_ever: 0,
        }
    }

    pub(crate) fn set(&self, state: State) -> &IndexSet {
        &self.sets[state as usize]
    }

    /// Position of the array that this number belongs to.
    pub(crate) fn array_at(&self, index: u32) -> Option<usize> {
        let at = self.arrays.partition_point(|array| array.first <= index).checked_sub(1)?;
        (index <= self.arrays[at].last()).then_some(at)
    }

    pub(crate) fn state_of(&self, index: u32) -> Option<State> {
        State::ALL.into_iter().find(|&state| self.set(state).contains(index))
    }

    /// How many of these are in each state, both ends inclusive.
    pub(crate) fn counts_in(&self, first: u32, last: u32) -> Counts {
        let mut counts = Counts::default();
        for state in State::ALL {
            counts.add(state, self.set(state).count(first, last));
        }
        counts
    }

    /// The first tasks that are done, at most so many, elements of arrays left out.
    pub(crate) fn first_done(&self, most: u32) -> Ranges {
        let (mut ranges, mut left, mut from) = (Vec::new(), most, 1);
        while let Some(first) = self.set(State::Done).next(from).filter(|_| left > 0) {
            if let Some(at) = self.array_at(first) {
                from = self.arrays[at].last() + 1;
                continue;
            }
            let next_array = self.arrays.partition_point(|array| array.first <= first);
            let border = self.arrays.get(next_array).map_or(u32::MAX, |array| array.first);
            let end = self.set(State::Done).next_gap(first).min(border).min(first + left);
            ranges.push((first, end - 1));
            left -= end - first;
            from = end;
        }
        ranges
    }

    /// Elements of an array inside the ranges that have not ended, as runs by state.
    pub(crate) fn unfinished_in(&self, at: usize, ranges: &Ranges) -> Vec<(State, (u32, u32))> {
        let array = &self.arrays[at];
        let mut runs = Vec::new();
        for &(first, last) in ranges {
            let (first, last) = (first.max(array.first), last.min(array.last()));
            for state in State::ALL.into_iter().filter(|state| !state.is_finished()) {
                runs.extend(self.set(state).runs(first, last).map(|run| (state, run)));
            }
        }
        runs
    }

    /// How many elements would need a record to differ from the rest of their array.
    pub(crate) fn odd_elements(&self, ranges: &Ranges) -> u64 {
        let count = |at: usize| {
            let runs = self.unfinished_in(at, ranges);
            let count: u64 = runs.iter().map(|(_, (a, b))| u64::from(b - a) + 1).sum();
            if count == u64::from(self.arrays[at].unfinished) { 0 } else { count }
        };
        (0..self.arrays.len()).map(count).sum()
    }

    /// Whether the task is over, and well; and for how many of the next `most` tasks that is so.
    pub(crate) fn verdict_run(&self, index: u32, most: u32) -> (Option<bool>, u32) {
        let over = State::ALL.into_iter().filter(|state| state.is_over());
        for state in over.clone() {
            if self.set(state).contains(index) {
                return (state.verdict(), (self.set(state).next_gap(index) - index).min(most));
            }
        }
        let next = over.filter_map(|state| self.set(state).next(index)).min();
        (None, next.map_or(most, |next| (next - index).min(most)))
    }

    /// An element that failed loses its record. Why it did is kept, for as many reasons as there is room.
    pub(crate) fn remember_why(&mut self, index: u32, why: &str) {
        if let Some(set) = self.failed_because.get_mut(why) {
            set.insert(index);
        } else if self.failed_because.len() < REASONS_MAX {
            self.failed_because.entry(why.into()).or_default().insert(index);
        }
    }

    /// Why an element without a record failed.
    pub(crate) fn why_failed(&self, index: u32) -> Option<&str> {
        let mut reasons = self.failed_because.iter();
        reasons.find(|(_, set)| set.contains(index)).map(|(why, _)| &**why)
    }

    /// These elements are run again, or have a record that knows.
    pub(crate) fn forget_why(&mut self, first: u32, last: u32) {
        for set in self.failed_because.values_mut() {
            set.extract_range(first, last);
        }
        self.failed_because.retain(|_, set| !set.is_empty());
    }

    /// Nothing of it may start: a person or too many failures say so, its time has not come, or enough of it runs.
    pub(crate) fn is_parked(&self) -> bool {
        self.options.held
            || self.stopped
            || self.options.begin.is_some()
            || self.options.max_running.is_some_and(|most| self.counts.of(State::Leased) >= most)
    }

    pub(crate) fn failed_now(&self) -> u32 {
        self.counts.of(State::Failed)
    }

    /// What is run again is not forgiven in advance.
    pub(crate) fn forgive_no_more_than_failed(&mut self) {
        self.forgiven = self.forgiven.min(self.failed_now());
    }

    /// Everything that the job has or had.
    pub(crate) fn all(&self) -> Ranges {
        if self.next_index == 1 { Vec::new() } else { vec![(1, self.next_index - 1)] }
    }
}

//! A set of job numbers as sorted ranges. Jobs are numbered in order, so a set stays a few ranges
//! however many jobs are in it.

use std::ops::RangeInclusive;

/// Disjoint, ascending, and never adjacent, so that a covered range lies inside a single one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Jobs(Vec<RangeInclusive<u32>>);

impl Jobs {
    pub fn insert(&mut self, jobs: RangeInclusive<u32>) {
        let (mut first, mut last) = jobs.into_inner();
        if first > last {
            return;
        }
        let from = self.0.partition_point(|r| u64::from(*r.end()) + 1 < u64::from(first));
        let to = self.0.partition_point(|r| u64::from(*r.start()) <= u64::from(last) + 1);
        if from < to {
            first = first.min(*self.0[from].start());
            last = last.max(*self.0[to - 1].end());
        }
        self.0.splice(from..to, [first..=last]);
    }

    pub fn contains(&self, job: u32) -> bool {
        self.covers_range(&(job..=job))
    }

    pub fn covers(&self, other: &Jobs) -> bool {
        other.0.iter().all(|range| self.covers_range(range))
    }

    fn covers_range(&self, range: &RangeInclusive<u32>) -> bool {
        let at = self.0.partition_point(|r| r.end() < range.start());
        self.0.get(at).is_some_and(|r| r.start() <= range.start() && range.end() <= r.end())
    }

    pub fn ranges(&self) -> &[RangeInclusive<u32>] {
        &self.0
    }
}

impl FromIterator<u32> for Jobs {
    /// Quick when the numbers come in order, as they do from an index.
    fn from_iter<I: IntoIterator<Item = u32>>(numbers: I) -> Jobs {
        let mut jobs = Jobs::default();
        let mut newest = None;
        for job in numbers {
            if newest != Some(job) {
                jobs.insert(job..=job);
                newest = Some(job);
            }
        }
        jobs
    }
}

//! Forgets finished jobs by number and age, a slice a step, and groups in which nothing is left.

use super::Hub;
use crate::event::Event;
use crate::id::{JobId, Time};
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::view::Retention;

/// More jobs that are soon forgotten are not counted.
const SOON_MAX: usize = 1000;

impl Hub {
    pub(super) fn sweep_due(&self) -> Option<Time> {
        if self.is_searching() {
            return None;
        }
        let (ended, _) = self.ledger().first_ended()?;
        if self.ledger().ended_count() > self.config.keep.jobs {
            return Some(self.ledger.now());
        }
        Some(ended.after_ms(self.config.keep.age_ms))
    }

    pub(super) fn sweep(&mut self) {
        if self.sweep_due().is_some_and(|due| due <= self.ledger.now())
            && let Some((_, job)) = self.ledger().first_ended()
        {
            self.forget_slice(job);
        }
    }

    /// How near the limits is what is remembered?
    pub(super) fn retention(&self, within_ms: u64) -> Retention {
        let (ledger, keep) = (self.ledger(), &self.config.keep);
        let by = self.ledger.now().after_ms(within_ms);
        let is_soon = |(ended, _): &(Time, JobId)| ended.after_ms(keep.age_ms) <= by;
        Retention {
            finished: ledger.ended_count() as u64,
            most: keep.jobs as u64,
            soon: ledger.all_ended().take_while(is_soon).take(SOON_MAX).count() as u64,
            first: ledger.first_ended().map(|(_, job)| job),
        }
    }

    /// Groups without jobs, workers and settings make room for others.
    pub(super) fn forget_unused_groups(&mut self) {
        for group in self.ledger.take_unused_groups() {
            if self.ledger().is_unused_group(group) {
                self.ledger.post(Event::GroupForgotten { group });
            }
        }
    }

    /// A big job goes in slices, so that no step takes long.
    fn forget_slice(&mut self, job: JobId) {
        let handle = self.ledger().find_job(job).expect("a job that ended is there");
        let slice = self.config.keep.slice as usize;
        // One more than a slice tells whether anything is left behind it.
        let pages = &self.ledger().job(handle).pages;
        let some: Vec<u32> =
            pages.range(1, u32::MAX).map(|(index, _)| index).take(slice + 1).collect();
        let event = if some.len() > slice {
            Event::TasksForgotten { job, ranges: vec![(some[0], some[slice - 1])] }
        } else {
            Event::JobForgotten { job }
        };
        self.ledger.post(event);
    }

    pub(super) fn forget(&mut self, job: JobId) -> Result<Reply, Refusal> {
        let handle = self.find_job(job)?;
        if self.ledger().job(handle).ended.is_none() {
            return Err(Refusal::JobNotFinished(job));
        }
        self.ledger.post(Event::JobForgotten { job });
        Ok(Reply::Ok)
    }
}

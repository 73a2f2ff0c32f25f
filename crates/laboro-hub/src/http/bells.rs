//! A bell for whoever waits for jobs: it rings at once when something happens to a job itself, such as its end,
//! where events for viewers are gathered for a while first. What happens to tasks does not ring.

use laboro_core::{Change, JobId};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

#[derive(Default)]
pub(super) struct Bells {
    by_job: Mutex<HashMap<JobId, Vec<Arc<Notify>>>>,
}

/// Rings until it is dropped.
pub(super) struct JobBell<'a> {
    bells: &'a Bells,
    jobs: Vec<JobId>,
    rings: Arc<Notify>,
}

impl Bells {
    pub(super) fn hang(&self, jobs: &[u32]) -> JobBell<'_> {
        let jobs: Vec<JobId> = jobs.iter().map(|&job| JobId(job)).collect();
        let rings = Arc::new(Notify::new());
        let mut by_job = self.lock();
        for &job in &jobs {
            by_job.entry(job).or_default().push(rings.clone());
        }
        drop(by_job);
        JobBell { bells: self, jobs, rings }
    }

    pub(super) fn ring(&self, changes: &[Change]) {
        let by_job = self.lock();
        if by_job.is_empty() {
            return;
        }
        for change in changes {
            let Change::Job { job } = change else { continue };
            for rings in by_job.get(job).into_iter().flatten() {
                rings.notify_one();
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<JobId, Vec<Arc<Notify>>>> {
        self.by_job.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl JobBell<'_> {
    /// A ring from before the call counts too.
    pub(super) async fn rung(&self) {
        self.rings.notified().await;
    }
}

impl Drop for JobBell<'_> {
    fn drop(&mut self) {
        let mut by_job = self.bells.lock();
        for job in &self.jobs {
            let Some(bells) = by_job.get_mut(job) else { continue };
            bells.retain(|rings| !Arc::ptr_eq(rings, &self.rings));
            if bells.is_empty() {
                by_job.remove(job);
            }
        }
    }
}

#[cfg(test)]
mod tests;

//! Who wants to know at once which tasks of a job have ended. What one listener has not fetched is bounded: beyond that
//! it is told to look at everything again.

use laboro_core::{Change, JobId, State};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

#[derive(Default)]
pub(super) struct Finishes {
    by_job: Mutex<HashMap<JobId, Vec<Arc<Ear>>>>,
}

#[derive(Default)]
struct Ear {
    news: Mutex<FinishNews>,
    wakes: Notify,
}

/// What happened since the last time.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct FinishNews {
    /// Tasks that ended, in the order in which they did.
    pub(super) ended: Vec<EndedRange>,
    /// Something may be missing.
    pub(super) has_gap: bool,
    /// Something about the job itself.
    pub(super) job: bool,
}

/// First and last number of tasks that ended the same way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EndedRange {
    pub(super) first: u32,
    pub(super) last: u32,
    pub(super) state: State,
}

/// Ranges that wait for one listener.
const RANGES_MAX: usize = 100_000;

/// Listens until it is dropped.
pub(super) struct Listener {
    finishes: Arc<Finishes>,
    job: JobId,
    ear: Arc<Ear>,
}

impl Finishes {
    pub(super) fn listen(self: &Arc<Finishes>, job: JobId) -> Listener {
        let ear = Arc::new(Ear::default());
        self.lock().entry(job).or_default().push(ear.clone());
        Listener { finishes: self.clone(), job, ear }
    }

    pub(super) fn tell(&self, changes: &[Change]) {
        let by_job = self.lock();
        if by_job.is_empty() {
            return;
        }
        for change in changes {
            let (job, range) = match change {
                Change::Tasks { job, first, last, state, .. } if state.is_finished() => {
                    (job, Some(EndedRange { first: *first, last: *last, state: *state }))
                }
                Change::Job { job } => (job, None),
                _ => continue,
            };
            for ear in by_job.get(job).into_iter().flatten() {
                ear.hear(range);
            }
        }
    }

    /// Changes may have been missed.
    pub(super) fn tell_gap(&self) {
        for ear in self.lock().values().flatten() {
            ear.lock().has_gap = true;
            ear.wakes.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<JobId, Vec<Arc<Ear>>>> {
        self.by_job.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ear {
    fn hear(&self, range: Option<EndedRange>) {
        let mut news = self.lock();
        match range {
            None => news.job = true,
            Some(_) if news.ended.len() >= RANGES_MAX => {
                *news = FinishNews { has_gap: true, job: news.job, ended: Vec::new() };
            }
            Some(range) => match news.ended.last_mut() {
                Some(before)
                    if before.state == range.state
                        && before.last.checked_add(1) == Some(range.first) =>
                {
                    before.last = range.last;
                }
                _ => news.ended.push(range),
            },
        }
        drop(news);
        self.wakes.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, FinishNews> {
        self.news.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Listener {
    /// Waits for news.
    pub(super) async fn next(&self) -> FinishNews {
        loop {
            let news = std::mem::take(&mut *self.ear.lock());
            if news != FinishNews::default() {
                return news;
            }
            self.ear.wakes.notified().await;
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let mut by_job = self.finishes.lock();
        if let Some(ears) = by_job.get_mut(&self.job) {
            ears.retain(|ear| !Arc::ptr_eq(ear, &self.ear));
            if ears.is_empty() {
                by_job.remove(&self.job);
            }
        }
    }
}

//! What happened lately, for people who look: throughput over time, and of each job how long its tasks took,
//! where they ran and when. Everything is bounded, nothing is journaled: a restart begins anew.
//!
//! `Observed` stands between the engine and its journal and notes what was made durable; the recorder, on
//! another thread, makes sums of the notes. The engine never waits for it.

mod durations;
mod job;
mod observe;
mod recorder;
mod series;

#[cfg(test)]
mod tests;

pub use observe::Observed;

use crate::{Clock, Handle, api};
use laboro_core::{GroupId, JobId};
use observe::{Note, Notes};
use recorder::Past;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::mpsc;

/// What is remembered. Cheap to clone.
#[derive(Clone, Debug)]
pub struct History {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    past: Mutex<Past>,
    /// Notes on their way to the recorder.
    coming: AtomicUsize,
    /// Notes that were left out because the recorder did not keep up.
    missed: AtomicU64,
}

/// The end of the line that the recorder holds.
#[derive(Debug)]
pub struct Recorder {
    history: History,
    notes: mpsc::UnboundedReceiver<Notes>,
}

/// Notes that may wait for the recorder; what comes beyond them is left out and counted.
const COMING_MAX: usize = 1_000_000;

impl History {
    /// The history, who listens to the engine for it, and who must be run for it to grow.
    pub fn new<J>(journal: J) -> (History, Observed<J>, Recorder) {
        let (to, notes) = mpsc::unbounded_channel();
        let shared = Shared {
            past: Mutex::default(),
            coming: AtomicUsize::new(0),
            missed: AtomicU64::new(0),
        };
        let history = History { shared: Arc::new(shared) };
        let observed = Observed::new(journal, history.clone(), to);
        (history.clone(), observed, Recorder { history, notes })
    }

    /// Notes that were left out since the start, because more happened than could be followed.
    pub fn missed(&self) -> u64 {
        self.shared.missed.load(Ordering::Relaxed)
    }

    /// Throughput and queues over time, of one group or of all.
    pub(crate) fn series(&self, group: Option<GroupId>) -> api::History {
        self.lock().series(group)
    }

    /// `None`: nothing of this job has happened since the start, or too long ago.
    pub(crate) fn job(&self, job: JobId) -> Option<api::JobHistory> {
        self.lock().job(job)
    }

    /// The newest failures, newest first, of one group or of all.
    pub(crate) fn failures(&self, group: Option<GroupId>) -> Vec<api::Ended> {
        self.lock().failures(group)
    }

    /// How many attempts ended since the start: well, finally badly, to be tried again, and lost.
    pub(crate) fn totals(&self) -> recorder::Totals {
        self.lock().totals()
    }

    fn lock(&self) -> MutexGuard<'_, Past> {
        self.shared.past.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn has_room(&self) -> bool {
        self.shared.coming.load(Ordering::Relaxed) < COMING_MAX
    }
}

impl Recorder {
    /// Runs until the engine has ended.
    pub async fn run(self, handle: Handle, clock: Clock) {
        recorder::run(self, handle, clock).await;
    }

    fn took(&self, notes: &Notes) {
        self.history.shared.coming.fetch_sub(notes.list.len(), Ordering::Relaxed);
    }
}

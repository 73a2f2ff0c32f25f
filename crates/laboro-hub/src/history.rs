//! What happened lately, for people who look: throughput over time, and of each job how long its tasks took,
//! where they ran and when. Everything is bounded and nothing is journaled: only the charts outlive a restart.
//!
//! `Observed` stands between the engine and its journal and notes what was made durable; the recorder, on
//! another thread, makes sums of the notes. The engine does not wait for it, and wakes it only from the sleep of a
//! hub where nothing happens.

mod durations;
mod history_file;
mod job;
mod log_line;
mod note_queue;
mod observe;
mod recorder;
mod series;

#[cfg(test)]
mod tests;

pub use observe::Observed;

use crate::Handle;
use crate::measures::Measures;
use history_file::HistoryFile;
use laboro_api as api;
use laboro_core::{GroupId, JobId, Time};
use laboro_dialects::session::Ends;
use laboro_net::Clock;
use note_queue::NoteQueue;
use observe::{Note, Notes};
use recorder::Past;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What is remembered. Cheap to clone.
#[derive(Clone, Debug)]
pub struct History {
    shared: Arc<SharedHistory>,
}

#[derive(Debug)]
struct SharedHistory {
    past: Mutex<Past>,
    notes: NoteQueue,
    measures: Measures,
}

/// Whoever takes the notes from the queue. Dropped: nobody does any more.
#[derive(Debug)]
pub struct Recorder {
    history: History,
    file: Option<HistoryFile>,
}

impl History {
    /// The history, who listens to the engine for it, and who must be run for it to grow.
    pub fn new<J>(journal: J) -> (History, Observed<J>, Recorder) {
        let measures = Measures::default();
        let past = Mutex::new(Past::new(measures.clone()));
        let shared = SharedHistory { past, notes: NoteQueue::default(), measures };
        let history = History { shared: Arc::new(shared) };
        let observed = Observed::new(journal, history.clone());
        (history.clone(), observed, Recorder { history, file: None })
    }

    /// Notes that were left out since the start, because more happened than could be followed.
    pub fn missed(&self) -> u64 {
        self.shared.notes.missed()
    }

    /// What workers measured of attempts whose ends are about to be passed on.
    pub(crate) fn note_times(&self, ends: &[Ends]) {
        if self.shared.notes.is_deserted() {
            return;
        }
        let ends = ends.iter().flat_map(|ends| &ends.ends);
        // No process runs without any time: such a worker's dialect has no words for it.
        let told = ends.filter(|end| end.used.wall_us > 0);
        let list: Vec<Note> = told
            .map(|end| Note::Measured {
                task: end.task,
                ended: end.ended,
                wall_us: end.used.wall_us,
            })
            .collect();
        if let Some(Note::Measured { ended, .. }) = list.first() {
            self.shared.notes.put(Notes { at: *ended, list });
        }
    }

    /// Throughput and queues over time, of one group or of all.
    pub(crate) fn series(&self, group: Option<GroupId>) -> api::History {
        // Where nothing happens, the samples of the last seconds are taken now.
        self.shared.notes.ring();
        self.lock().series(group)
    }

    /// `None`: nothing of this job has happened since the start, or too long ago.
    pub(crate) fn job(&self, job: JobId) -> Option<api::JobHistory> {
        self.lock().job(job)
    }

    /// The newest failures, newest first, of one group or of all.
    pub(crate) fn failures(&self, group: Option<GroupId>) -> Vec<api::EndedAttempt> {
        self.lock().failures(group)
    }

    /// How many attempts ended since the start: well, finally badly, to be tried again, and lost.
    pub(crate) fn totals(&self) -> recorder::Totals {
        self.lock().totals()
    }

    pub(crate) fn measures(&self) -> &Measures {
        &self.shared.measures
    }

    fn lock(&self) -> MutexGuard<'_, Past> {
        self.shared.past.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Recorder {
    /// Goes on with the charts of a file, and keeps them there. Where that cannot be, it is said and done without.
    pub fn keeping(mut self, path: PathBuf, now: Time) -> Recorder {
        let shown = path.display().to_string();
        match HistoryFile::open(path, &mut self.history.lock(), now) {
            Ok(file) => self.file = Some(file),
            Err(error) => tracing::warn!("{shown}: the charts are not kept: {error}"),
        }
        self
    }

    /// Runs until the engine has ended.
    pub async fn run(self, handle: Handle, clock: Clock) {
        recorder::run(self, handle, clock).await;
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.history.shared.notes.desert();
        if let Some(file) = &mut self.file
            && let Err(error) = file.finish(&self.history.lock())
        {
            tracing::warn!("the charts of the last minutes are not kept: {error}");
        }
    }
}

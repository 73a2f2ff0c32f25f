//! What the engine's journal passes on to hooks: that something happened, and the few events that no question shows later.
//! Never waits: what does not fit is left out.

use laboro_core::{Event, JobId, ReturnReason, Standing, TaskId, WorkerId};
use std::sync::Arc;
use tokio::sync::{Notify, mpsc};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Note {
    /// A worker held it and is gone.
    Lost(TaskId),
    Ejected {
        worker: WorkerId,
        reason: String,
    },
    /// Too many of its tasks failed.
    Stopped(JobId),
}

#[derive(Clone, Debug)]
pub(crate) struct HookNotes {
    changed: Arc<Notify>,
    notes: mpsc::Sender<Note>,
}

/// Notes of one batch: a worker that is lost may have held thousands.
const NOTES_A_BATCH: usize = 64;
const NOTES_MAX: usize = 1024;

impl HookNotes {
    pub(crate) fn new() -> (HookNotes, Arc<Notify>, mpsc::Receiver<Note>) {
        let changed = Arc::new(Notify::new());
        let (notes, heard) = mpsc::channel(NOTES_MAX);
        (HookNotes { changed: changed.clone(), notes }, changed, heard)
    }

    pub(crate) fn of(events: &[Event]) -> Vec<Note> {
        events.iter().filter_map(note).take(NOTES_A_BATCH).collect()
    }

    /// They are durable.
    pub(crate) fn tell(&self, notes: Vec<Note>) {
        for note in notes {
            let _ = self.notes.try_send(note);
        }
        self.changed.notify_one();
    }
}

fn note(event: &Event) -> Option<Note> {
    match event {
        Event::Returned { task, why: ReturnReason::Lapsed, .. }
        | Event::HeldBack { task, why: ReturnReason::Lapsed, .. } => Some(Note::Lost(*task)),
        Event::Judged { worker, standing: Standing::Ejected, reason, .. } => {
            Some(Note::Ejected { worker: *worker, reason: reason.to_string() })
        }
        Event::JobStopped { job, stopped: true } => Some(Note::Stopped(*job)),
        _ => None,
    }
}

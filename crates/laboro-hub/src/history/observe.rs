//! A journal that passes everything on and notes what became durable. It copies a few words an event and never
//! waits: the engine is not slower for being looked at.

use super::History;
use super::log_line::LogLine;
use crate::hooks::HookNotes;
use crate::traces::TraceNotes;
use laboro_core::{
    Batch, Effect, Event, GroupId, JobId, Outcome, Ranges, ReturnReason, TaskId, Then, Time,
    WorkerId,
};
use laboro_journal::{Journal, JournalError};
use std::time::Instant;

#[derive(Debug)]
pub struct Observed<J> {
    journal: J,
    history: History,
    hooks: Option<HookNotes>,
    traces: Option<TraceNotes>,
}

/// What one batch was about.
#[derive(Debug)]
pub(super) struct Notes {
    pub at: Time,
    pub list: Vec<Note>,
}

#[derive(Debug)]
pub(super) enum Note {
    Made {
        job: JobId,
        group: GroupId,
    },
    /// So many tasks more.
    Added {
        job: JobId,
        tasks: u32,
    },
    Forgotten {
        job: JobId,
    },
    /// Another group may get its number.
    GroupForgotten {
        group: GroupId,
    },
    Started {
        task: TaskId,
        worker: WorkerId,
    },
    /// How long an attempt really ran, by its worker's clock: told before its end is.
    Measured {
        task: TaskId,
        ended: Time,
        wall_us: u64,
    },
    Ended {
        task: TaskId,
        worker: WorkerId,
        outcome: Outcome,
        is_final: bool,
    },
    /// Without a result. Lost, if not given back in order.
    Back {
        task: TaskId,
        is_lost: bool,
    },
    Cancelled {
        job: JobId,
        ranges: Ranges,
    },
}

impl<J> Observed<J> {
    pub(super) fn new(journal: J, history: History) -> Self {
        Observed { journal, history, hooks: None, traces: None }
    }
}

impl<J: Journal + Send> Journal for Observed<J> {
    async fn commit(&mut self, batch: Batch) -> Result<Vec<Effect>, JournalError> {
        let (events, began) = (batch.events.len(), Instant::now());
        let effects = self.commit_noted(batch).await?;
        let took = began.elapsed();
        // What only asks is not written.
        if events > 0 {
            self.history.measures().committed(events, took);
        }
        tracing::debug!(events, effects = effects.len(), took_us = took.as_micros(), "batch");
        Ok(effects)
    }
}

impl<J: Journal + Send> Observed<J> {
    async fn commit_noted(&mut self, batch: Batch) -> Result<Vec<Effect>, JournalError> {
        let notes = self.history.notes_of(&batch);
        let lines: Vec<LogLine> = batch.events.iter().filter_map(LogLine::of).collect();
        let is_change = !batch.events.is_empty();
        let hooks = self.hooks.as_ref().map(|_| HookNotes::of(&batch.events));
        let spans = self.traces.as_ref().map(|_| TraceNotes::of(batch.at, &batch.events));
        let effects = self.journal.commit(batch).await?;
        // What is told is durable.
        lines.into_iter().for_each(LogLine::write);
        if let Some(notes) = notes {
            self.history.shared.notes.put(notes);
        }
        if let Some((to, notes)) = self.traces.as_ref().zip(spans) {
            to.tell(notes, &effects);
        }
        if is_change {
            self.history.shared.notes.ring();
            if let Some((to, notes)) = self.hooks.as_ref().zip(hooks) {
                to.tell(notes);
            }
        }
        Ok(effects)
    }
}

impl History {
    fn notes_of(&self, batch: &Batch) -> Option<Notes> {
        // Nobody records where nobody can look.
        if self.shared.notes.is_deserted() {
            return None;
        }
        let list: Vec<Note> = batch.events.iter().filter_map(note).collect();
        (!list.is_empty()).then_some(Notes { at: batch.at, list })
    }
}

impl<J> Observed<J> {
    /// Hooks hear of everything, too.
    pub(crate) fn tell_hooks(&mut self, notes: HookNotes) {
        self.hooks = Some(notes);
    }

    /// Traces hear of attempts.
    pub(crate) fn tell_traces(&mut self, notes: TraceNotes) {
        self.traces = Some(notes);
    }

    pub(crate) fn journal(&self) -> &J {
        &self.journal
    }

    pub(crate) fn into_journal(self) -> J {
        self.journal
    }
}

fn note(event: &Event) -> Option<Note> {
    Some(match event {
        Event::JobMade { job, group, .. } => Note::Made { job: *job, group: *group },
        Event::Added(added) => {
            let elements = added.arrays.iter().map(|array| array.count).sum::<u32>();
            Note::Added { job: added.job, tasks: elements + added.tasks.len() as u32 }
        }
        Event::JobForgotten { job } => Note::Forgotten { job: *job },
        Event::GroupForgotten { group } => Note::GroupForgotten { group: *group },
        Event::Leased { task, worker, .. } => Note::Started { task: *task, worker: *worker },
        Event::Finished { task, worker, outcome, then, .. } => {
            let is_final = !matches!(then, Then::Again(_));
            Note::Ended { task: *task, worker: *worker, outcome: *outcome, is_final }
        }
        Event::Returned { task, why, .. } | Event::HeldBack { task, why, .. } => {
            Note::Back { task: *task, is_lost: *why == ReturnReason::Lapsed }
        }
        Event::Cancelled { job, ranges } => Note::Cancelled { job: *job, ranges: ranges.clone() },
        Event::Began { .. }
        | Event::GroupMade { .. }
        | Event::GroupPaused { .. }
        | Event::JobClosed { .. }
        | Event::JobHeld { .. }
        | Event::JobStopped { .. }
        | Event::JobDue { .. }
        | Event::JobDeferred { .. }
        | Event::JobLimited { .. }
        | Event::PredsAdded { .. }
        | Event::Renewed { .. }
        | Event::WorkerMet { .. }
        | Event::WorkerForgotten { .. }
        | Event::Woken { .. }
        | Event::Held { .. }
        | Event::Released { .. }
        | Event::Retried { .. }
        | Event::MarkedDone { .. }
        | Event::Prioritised { .. }
        | Event::TasksForgotten { .. }
        | Event::Judged { .. }
        | Event::DocumentChanged(_)
        | Event::Restored(_) => return None,
    })
}

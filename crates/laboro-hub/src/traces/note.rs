//! What the engine's journal passes on about attempts: taken from a batch before it is saved, told after. Never waits.

use super::TraceCounts;
use laboro_core::{
    Effect, Event, Grant, JobId, Outcome, Ranges, ReturnReason, Role, TaskId, Time, WorkerId,
};
use laboro_net::trace::{self, TraceParent};
use tokio::sync::mpsc;

/// Batches that wait for the exporter; each has at most as many notes as a step has commands.
const BATCHES_MAX: usize = 256;

#[derive(Debug)]
pub(crate) enum Note {
    Started { task: TaskId, name: String, attempt: u16, worker: WorkerId, trace: JobTrace },
    Ended { task: TaskId, outcome: Outcome },
    Back { task: TaskId, why: ReturnReason },
    Cancelled { job: JobId, ranges: Ranges },
}

/// What a job's variables say: its span, and the one that it is a part of; 0: none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct JobTrace {
    pub(crate) span: TraceParent,
    pub(crate) before: u64,
}

impl JobTrace {
    /// `None`: no spans are recorded of it.
    pub(crate) fn of(work: &laboro_core::Work) -> Option<JobTrace> {
        let env = &work.setting()?.env;
        let text = |wanted: &str| {
            let found = env.iter().find(|(name, _)| **name == *wanted.as_bytes());
            found.and_then(|(_, value)| std::str::from_utf8(value).ok())
        };
        let before = trace::read_state(text(trace::STATE)?)?;
        let span = TraceParent::parse(text(trace::PARENT)?)?;
        span.is_sampled().then_some(JobTrace { span, before })
    }
}

#[derive(Debug)]
pub(crate) struct Notes {
    pub(super) at: Time,
    pub(super) list: Vec<Note>,
}

#[derive(Clone, Debug)]
pub(crate) struct TraceNotes {
    to: mpsc::Sender<Notes>,
    counts: TraceCounts,
}

impl TraceNotes {
    pub(crate) fn new(counts: TraceCounts) -> (TraceNotes, mpsc::Receiver<Notes>) {
        let (to, from) = mpsc::channel(BATCHES_MAX);
        (TraceNotes { to, counts }, from)
    }

    /// What ended in a batch.
    pub(crate) fn of(at: Time, events: &[Event]) -> Notes {
        Notes { at, list: events.iter().filter_map(ended).collect() }
    }

    /// They are durable, and this comes of them.
    pub(crate) fn tell(&self, mut notes: Notes, effects: &[Effect]) {
        let grants = effects.iter().filter_map(|effect| match effect {
            Effect::Dispatch { worker, grants, .. } => Some((*worker, grants)),
            _ => None,
        });
        let started = grants.flat_map(|(worker, grants)| {
            grants.iter().filter_map(move |grant| started(worker, grant))
        });
        notes.list.extend(started);
        if notes.list.is_empty() {
            return;
        }
        if let Err(error) = self.to.try_send(notes) {
            self.counts.drop_some(error.into_inner().list.len());
        }
    }
}

fn started(worker: WorkerId, grant: &Grant) -> Option<Note> {
    if grant.role == Role::Kept {
        return None;
    }
    let trace = JobTrace::of(grant.work.as_deref()?)?;
    let (task, name, attempt) = (grant.task, grant.name.to_string(), grant.attempt);
    Some(Note::Started { task, name, attempt, worker, trace })
}

fn ended(event: &Event) -> Option<Note> {
    match event {
        Event::Finished { task, outcome, .. } => {
            Some(Note::Ended { task: *task, outcome: *outcome })
        }
        Event::Returned { task, why, .. } | Event::HeldBack { task, why, .. } => {
            Some(Note::Back { task: *task, why: *why })
        }
        Event::Cancelled { job, ranges } => {
            Some(Note::Cancelled { job: *job, ranges: ranges.clone() })
        }
        _ => None,
    }
}

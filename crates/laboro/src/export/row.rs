//! One attempt of a task with everything that is known of it. A task that was never tried has one row without an attempt.

use super::cell::{Cell, CellKind};
use laboro_api::{Attempt, Job, OutcomeKind, Task, Text};
use serde_json::Value;

pub(super) struct Row<'a> {
    pub(super) job: &'a Job,
    pub(super) task: &'a Task,
    pub(super) attempt: Option<&'a Attempt>,
    /// What the task gave back; with its last attempt only.
    pub(super) result: Option<&'a TaskResult>,
}

/// What a task gave back: any text, and what it means if it is JSON.
pub(super) struct TaskResult {
    pub(super) text: String,
    pub(super) json: Option<Value>,
}

impl TaskResult {
    pub(super) fn new(text: &Text) -> TaskResult {
        let text = String::from_utf8_lossy(text.bytes()).into_owned();
        let json = serde_json::from_str(&text).ok();
        TaskResult { text, json }
    }

    /// One part of a result that is an object.
    pub(super) fn field(&self, name: &str) -> Cell {
        let object = self.json.as_ref().and_then(Value::as_object);
        object.and_then(|object| object.get(name)).map_or(Cell::Nothing, Cell::of_json)
    }
}

pub(super) fn rows<'a>(
    job: &'a Job,
    task: &'a Task,
    result: Option<&'a TaskResult>,
) -> impl Iterator<Item = Row<'a>> {
    let none = task.attempts.is_empty().then_some(None);
    let attempts = task.attempts.iter().map(Some).chain(none);
    let last = task.attempts.len().max(1);
    attempts.enumerate().map(move |(at, attempt)| {
        let result = result.filter(|_| at + 1 == last);
        Row { job, task, attempt, result }
    })
}

/// The values of an element, each by itself; the byte before a separator that belongs to a value is taken away.
pub(super) fn values(task: &Task) -> Vec<Vec<u8>> {
    let Some(value) = &task.value else { return Vec::new() };
    let (mut all, mut here, mut is_escaped) = (Vec::new(), Vec::new(), false);
    for &byte in value.bytes() {
        match byte {
            0x1e if !is_escaped => is_escaped = true,
            0x1f if !is_escaped => all.push(std::mem::take(&mut here)),
            byte => {
                is_escaped = false;
                here.push(byte);
            }
        }
    }
    all.push(here);
    all
}

/// Columns that every table has, in this order.
pub(super) const COLUMNS: &[(&str, CellKind)] = &[
    ("job", CellKind::Int),
    ("job_name", CellKind::Text),
    ("owner", CellKind::Text),
    ("group", CellKind::Text),
    ("task", CellKind::Int),
    ("name", CellKind::Text),
    ("label", CellKind::Text),
    ("state", CellKind::Text),
    ("attempt", CellKind::Int),
    ("worker", CellKind::Text),
    ("outcome", CellKind::Text),
    ("exit_code", CellKind::Int),
    ("signal", CellKind::Int),
    ("started_ms", CellKind::Int),
    ("ended_ms", CellKind::Int),
    ("wall_s", CellKind::Float),
    ("user_s", CellKind::Float),
    ("system_s", CellKind::Float),
    ("peak_memory_bytes", CellKind::Int),
    ("message", CellKind::Text),
];

impl Row<'_> {
    /// One for each of `COLUMNS`.
    pub(super) fn cells(&self) -> Vec<Cell> {
        let Row { job, task, attempt, .. } = self;
        let code = |kind: OutcomeKind| {
            let outcome = attempt.and_then(|attempt| attempt.outcome)?;
            (outcome.kind == kind).then_some(outcome.code).flatten()
        };
        let exit = match attempt.and_then(|attempt| attempt.outcome).map(|outcome| outcome.kind) {
            Some(OutcomeKind::Success) => Some(0),
            _ => code(OutcomeKind::Exit),
        };
        let used = attempt.and_then(|attempt| attempt.used);
        let seconds = |micros: Option<u64>| {
            micros.map_or(Cell::Nothing, |micros| Cell::Float(micros as f64 / 1e6))
        };
        let outcome = attempt.and_then(|attempt| attempt.outcome);
        vec![
            Cell::int(Some(job.job)),
            Cell::text(job.name.to_string()),
            Cell::text(job.owner.as_ref().map(ToString::to_string).unwrap_or_default()),
            Cell::text(job.group.to_string()),
            Cell::int(Some(task.task)),
            Cell::text(task.name.to_string()),
            Cell::text(task.label.clone()),
            Cell::text(task.state.word()),
            Cell::int(attempt.map(|attempt| attempt.attempt)),
            Cell::text(attempt.map(|attempt| attempt.worker_name.to_string()).unwrap_or_default()),
            Cell::text(outcome.map(|outcome| kind(outcome.kind)).unwrap_or_default()),
            Cell::int(exit),
            Cell::int(code(OutcomeKind::Signal)),
            Cell::int(attempt.map(|attempt| attempt.started_ms)),
            Cell::int(attempt.and_then(|attempt| attempt.ended_ms)),
            seconds(self.wall_us()),
            seconds(used.map(|used| used.user_us)),
            seconds(used.map(|used| used.system_us)),
            // 0 says that it is not known; a table would take it for a measurement.
            Cell::int(used.map(|used| used.peak_memory_bytes).filter(|&bytes| bytes != 0)),
            Cell::text(task.message.clone().unwrap_or_default()),
        ]
    }

    /// As the worker measured it, else by the hub's clock.
    pub(super) fn wall_us(&self) -> Option<u64> {
        let attempt = self.attempt?;
        let measured = attempt.used.map(|used| used.wall_us);
        let seen = attempt.ended_ms.map(|ended| ended.saturating_sub(attempt.started_ms) * 1000);
        measured.or(seen)
    }
}

pub(super) fn kind(kind: OutcomeKind) -> &'static str {
    match kind {
        OutcomeKind::Success => "success",
        OutcomeKind::Exit => "exit",
        OutcomeKind::Signal => "signal",
        OutcomeKind::TimedOut => "timed_out",
        OutcomeKind::Memory => "memory",
        OutcomeKind::Error => "error",
        OutcomeKind::Lost => "lost",
        OutcomeKind::Unknown => "unknown",
    }
}

//! One attempt of a task with everything that is known of it. A task that was never tried has one row without an attempt.

use laboro_api::{Attempt, Job, OutcomeKind, Task, Text};

pub(super) struct Row<'a> {
    pub(super) job: &'a Job,
    pub(super) task: &'a Task,
    pub(super) attempt: Option<&'a Attempt>,
}

pub(super) fn rows<'a>(job: &'a Job, task: &'a Task) -> impl Iterator<Item = Row<'a>> {
    let none = task.attempts.is_empty().then_some(None);
    let attempts = task.attempts.iter().map(Some).chain(none);
    attempts.map(move |attempt| Row { job, task, attempt })
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
pub(super) const COLUMNS: &[&str] = &[
    "job",
    "job_name",
    "owner",
    "group",
    "task",
    "name",
    "label",
    "state",
    "attempt",
    "worker",
    "outcome",
    "exit_code",
    "signal",
    "started_ms",
    "ended_ms",
    "wall_s",
    "user_s",
    "system_s",
    "peak_memory_bytes",
    "message",
];

impl Row<'_> {
    pub(super) fn cells(&self) -> Vec<String> {
        let Row { job, task, attempt } = self;
        let code = |kind: OutcomeKind| {
            let outcome = attempt.and_then(|attempt| attempt.outcome)?;
            (outcome.kind == kind).then_some(outcome.code).flatten()
        };
        let exit = match attempt.and_then(|attempt| attempt.outcome).map(|outcome| outcome.kind) {
            Some(OutcomeKind::Success) => Some(0),
            _ => code(OutcomeKind::Exit),
        };
        let used = attempt.and_then(|attempt| attempt.used);
        let seconds =
            |micros: Option<u64>| micros.map(|micros| format!("{:.6}", micros as f64 / 1e6));
        let wall = self.wall_us();
        let text = |text: Option<&Text>| text.map(ToString::to_string).unwrap_or_default();
        let word = |word: Option<String>| word.unwrap_or_default();
        let number =
            |number: Option<u64>| number.map(|number| number.to_string()).unwrap_or_default();
        vec![
            job.job.to_string(),
            job.name.to_string(),
            text(job.owner.as_ref()),
            job.group.to_string(),
            task.task.to_string(),
            task.name.to_string(),
            task.label.clone(),
            task.state.word().to_owned(),
            number(attempt.map(|attempt| attempt.attempt.into())),
            attempt.map(|attempt| attempt.worker_name.to_string()).unwrap_or_default(),
            word(
                attempt
                    .and_then(|attempt| attempt.outcome)
                    .map(|outcome| kind(outcome.kind).to_owned()),
            ),
            word(exit.map(|code| code.to_string())),
            word(code(OutcomeKind::Signal).map(|signal| signal.to_string())),
            number(attempt.map(|attempt| attempt.started_ms)),
            number(attempt.and_then(|attempt| attempt.ended_ms)),
            word(seconds(wall)),
            word(seconds(used.map(|used| used.user_us))),
            word(seconds(used.map(|used| used.system_us))),
            number(used.map(|used| used.peak_memory_bytes)),
            task.message.clone().unwrap_or_default(),
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

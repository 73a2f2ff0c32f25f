//! Makes spans of notes: remembers which attempts run and in which trace jobs are, both in bounded room. Sends nothing.

use super::TraceCounts;
use super::note::{JobTrace, Note, Notes};
use super::otlp::{Span, Value};
use laboro_core::{JobId, JobView, ReturnReason, State, TaskId, Time, WorkerId};
use std::collections::{BTreeMap, VecDeque};

/// Attempts that run, as far as is known; more are left out.
const OPEN_MAX: usize = 100_000;
/// Jobs whose traces are known; of others the hub is asked when they end.
const JOBS_MAX: usize = 10_000;

#[derive(Debug)]
pub(super) struct Spans {
    open: BTreeMap<TaskId, Open>,
    jobs: BTreeMap<JobId, JobTrace>,
    ready: VecDeque<Span>,
    ready_max: usize,
    counts: TraceCounts,
}

#[derive(Debug)]
struct Open {
    name: String,
    attempt: u16,
    worker: WorkerId,
    since: Time,
    trace: JobTrace,
}

impl Spans {
    pub(super) fn new(ready_max: usize, counts: TraceCounts) -> Spans {
        let (open, jobs, ready) = Default::default();
        Spans { open, jobs, ready, ready_max, counts }
    }

    pub(super) fn hear(&mut self, notes: Notes) {
        let at = notes.at;
        for note in notes.list {
            match note {
                Note::Started { task, name, attempt, worker, trace } => {
                    if self.jobs.len() < JOBS_MAX {
                        self.jobs.insert(task.job, trace);
                    }
                    // One that was given out anew before its end was heard of.
                    self.end(task, at, Err("lost"));
                    if self.open.len() < OPEN_MAX {
                        self.open.insert(task, Open { name, attempt, worker, since: at, trace });
                    } else {
                        self.counts.drop_some(1);
                    }
                }
                Note::Ended { task, outcome } if outcome.is_success() => {
                    self.end(task, at, Ok("success"));
                }
                Note::Ended { task, outcome } => self.end(task, at, Err(&outcome.to_string())),
                Note::Back { task, why } => {
                    let why = match why {
                        ReturnReason::Lapsed => "lost",
                        ReturnReason::Left => "its worker left",
                        ReturnReason::Handed => "given back",
                        ReturnReason::Revoked => "revoked",
                    };
                    self.end(task, at, Err(why));
                }
                Note::Cancelled { job, ranges } => {
                    for (first, last) in ranges {
                        self.end_all(TaskId::new(job, first), TaskId::new(job, last), at);
                    }
                }
            }
        }
    }

    fn end_all(&mut self, first: TaskId, last: TaskId, at: Time) {
        let running: Vec<TaskId> = self.open.range(first..=last).map(|(task, _)| *task).collect();
        for task in running {
            self.end(task, at, Err("cancelled"));
        }
    }

    fn end(&mut self, task: TaskId, at: Time, how: Result<&str, &str>) {
        let Some(Open { name, attempt, worker, since, trace }) = self.open.remove(&task) else {
            return;
        };
        let own = trace.span.of_attempt(task.index, attempt);
        let (Ok(outcome) | Err(outcome)) = how;
        let name = if name.is_empty() { format!("task {}", task.index) } else { name };
        self.put(Span {
            trace: own.trace,
            span: own.span,
            parent: trace.span.span,
            name,
            start_ms: since.0,
            end_ms: at.0,
            attributes: vec![
                ("laboro.job", Value::Number(task.job.0.into())),
                ("laboro.task", Value::Number(task.index.into())),
                ("laboro.attempt", Value::Number(attempt.into())),
                ("laboro.worker", Value::Number(worker.0.into())),
                ("laboro.outcome", Value::Text(outcome.to_owned())),
            ],
            error: how.err().map(str::to_owned),
        });
    }

    pub(super) fn trace_of(&self, job: JobId) -> Option<JobTrace> {
        self.jobs.get(&job).copied()
    }

    /// A job has ended; what is still open of it has, too.
    pub(super) fn end_job(&mut self, view: &JobView, trace: JobTrace) {
        let end = view.ended.unwrap_or(view.submitted);
        self.end_all(TaskId::new(view.job, 1), TaskId::new(view.job, u32::MAX), end);
        self.jobs.remove(&view.job);
        let done = view.counts.of(State::Done);
        let failed = view.counts.total() - u64::from(done);
        let name = view.name.to_string();
        let owner = view.owner.as_ref().map(|owner| Value::Text(owner.to_string()));
        let mut attributes = vec![
            ("laboro.job", Value::Number(view.job.0.into())),
            ("laboro.group", Value::Text(view.group.to_string())),
            ("laboro.tasks.done", Value::Number(done.into())),
            ("laboro.tasks.not_done", Value::Number(failed)),
        ];
        attributes.extend(owner.map(|owner| ("laboro.owner", owner)));
        self.put(Span {
            trace: trace.span.trace,
            span: trace.span.span,
            parent: trace.before,
            name: if name.is_empty() { format!("job {}", view.job.0) } else { name },
            start_ms: view.submitted.0,
            end_ms: end.0,
            attributes,
            error: (failed > 0).then(|| format!("{failed} not done")),
        });
    }

    fn put(&mut self, span: Span) {
        if self.ready.len() >= self.ready_max {
            self.counts.drop_some(1);
        } else {
            self.ready.push_back(span);
        }
    }

    pub(super) fn take(&mut self, most: usize) -> Vec<Span> {
        self.ready.drain(..most.min(self.ready.len())).collect()
    }

    /// They could not be sent. The newest are left out where there is no room.
    pub(super) fn put_back(&mut self, spans: Vec<Span>) {
        spans.into_iter().rev().for_each(|span| self.ready.push_front(span));
        let beyond = self.ready.len().saturating_sub(self.ready_max);
        self.ready.truncate(self.ready_max);
        self.counts.drop_some(beyond);
    }
}

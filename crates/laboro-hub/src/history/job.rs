//! One job's past: how long its attempts took, who ran them, the slowest, the newest failures, and a fair
//! choice of all of them for a picture of which attempt ran where and when.

use super::durations::Durations;
use super::series::{Folding, Tally};
use laboro_api as api;
use laboro_core::{Outcome, Time};
use std::collections::{BTreeMap, VecDeque};

/// Attempts kept for the picture.
const SPANS_MAX: usize = 1024;
const SLOWEST_MAX: usize = 20;
const FAILURES_MAX: usize = 50;
/// Times at which tasks were added; those within a second count as one.
const ADDS_MAX: usize = 1000;
const APART_MS: u64 = 1000;
/// Workers told apart. What others do is counted as one.
const WORKERS_MAX: usize = 500;
const OTHERS: u32 = u32::MAX;

/// One attempt that has ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub job: u32,
    pub task: u32,
    pub worker: u32,
    pub started_ms: u64,
    pub took_ms: u64,
    pub outcome: Outcome,
}

impl Span {
    pub fn view(&self) -> api::EndedAttempt {
        api::EndedAttempt {
            job: self.job,
            task: self.task,
            worker: self.worker,
            started_ms: self.started_ms,
            took_ms: self.took_ms,
            outcome: self.outcome.into(),
        }
    }

    fn ended_ms(&self) -> u64 {
        self.started_ms.saturating_add(self.took_ms)
    }
}

#[derive(Debug)]
pub(super) struct JobPast {
    pub tally: Tally,
    /// It was seen from its first moment on.
    is_whole: bool,
    since_ms: u64,
    rate: Folding,
    durations: Durations,
    spans: Vec<Span>,
    /// Every n-th attempt is in `spans`; this is n.
    every: u64,
    ended: u64,
    slowest: Vec<Span>,
    failures: VecDeque<Span>,
    workers: BTreeMap<u32, WorkerShare>,
    /// When tasks were added, each with the index of the first; of one that is not whole, none are known.
    adds: Vec<(u32, Time)>,
    tasks: u32,
    /// When it was last heard of, counted in notes: the one with the lowest is forgotten first.
    pub heard: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct WorkerShare {
    done: u64,
    failed: u64,
    busy_ms: u64,
}

impl JobPast {
    /// More tasks than it had.
    pub fn added(&mut self, tasks: u32, at: Time) {
        let is_apart = self.adds.last().is_none_or(|(_, last)| at.since_ms(*last) >= APART_MS);
        if self.is_whole && is_apart && self.adds.len() < ADDS_MAX {
            self.adds.push((self.tasks, at));
        }
        self.tasks = self.tasks.saturating_add(tasks);
    }

    /// When this task was, as far as is known.
    pub fn submitted(&self, index: u32) -> Option<Time> {
        let after = self.adds.partition_point(|(first, _)| *first <= index);
        self.adds.get(after.checked_sub(1)?).map(|(_, at)| *at)
    }

    pub fn new(at_ms: u64, is_whole: bool) -> JobPast {
        JobPast {
            tally: Tally::default(),
            is_whole,
            since_ms: at_ms,
            rate: Folding::new(at_ms),
            durations: Durations::default(),
            spans: Vec::new(),
            every: 1,
            ended: 0,
            slowest: Vec::new(),
            failures: VecDeque::new(),
            workers: BTreeMap::new(),
            adds: Vec::new(),
            tasks: 0,
            heard: 0,
        }
    }

    pub fn add(&mut self, span: Span) {
        let is_good = span.outcome.is_success();
        self.rate.add(span.ended_ms(), is_good);
        self.durations.add(span.took_ms);
        self.sample(span);
        self.compare(span);
        if !is_good {
            if self.failures.len() == FAILURES_MAX {
                self.failures.pop_front();
            }
            self.failures.push_back(span);
        }
        let is_known = self.workers.contains_key(&span.worker) || self.workers.len() < WORKERS_MAX;
        let share = self.workers.entry(if is_known { span.worker } else { OTHERS }).or_default();
        if is_good {
            share.done += 1;
        } else {
            share.failed += 1;
        }
        share.busy_ms = share.busy_ms.saturating_add(span.took_ms);
    }

    /// Full, every second one goes and only half as many come from then on: what stays is spread evenly.
    fn sample(&mut self, span: Span) {
        let is_wanted = self.ended.is_multiple_of(self.every);
        self.ended += 1;
        if !is_wanted {
            return;
        }
        if self.spans.len() == SPANS_MAX {
            let mut at = 0;
            self.spans.retain(|_| {
                at += 1;
                at % 2 == 1
            });
            self.every *= 2;
        }
        self.spans.push(span);
    }

    fn compare(&mut self, span: Span) {
        let at = self.slowest.partition_point(|slow| slow.took_ms >= span.took_ms);
        if at < SLOWEST_MAX {
            self.slowest.truncate(SLOWEST_MAX - 1);
            self.slowest.insert(at, span);
        }
    }

    pub fn view(&self, job: u32) -> api::JobHistory {
        let shares = self.workers.iter().map(|(&worker, share)| api::Share {
            worker: (worker != OTHERS).then_some(worker),
            done: share.done,
            failed: share.failed,
            busy_ms: share.busy_ms,
        });
        api::JobHistory {
            job,
            whole: self.is_whole,
            since_ms: self.since_ms,
            started: self.tally.started,
            done: self.tally.done,
            failed: self.tally.failed,
            again: self.tally.again,
            lost: self.tally.lost,
            rate: self.rate.view(),
            durations: self.durations.view(),
            every: self.every,
            spans: self.spans.iter().map(Span::view).collect(),
            slowest: self.slowest.iter().map(Span::view).collect(),
            failures: self.failures.iter().rev().map(Span::view).collect(),
            workers: shares.collect(),
        }
    }
}

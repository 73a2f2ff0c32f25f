//! What happened lately, as the hub remembers it: sums and samples, never every single thing.

use super::task::Outcome;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Throughput and queues over time, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct History {
    /// The last ten minutes, one sample per second.
    pub seconds: Vec<Sample>,
    /// The last day, one sample per minute.
    pub minutes: Vec<Sample>,
}

/// What happened in the period before `at_ms`, and the queues at its end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct Sample {
    /// The end of the period, in Unix time.
    pub at_ms: u64,
    /// Attempts that began.
    pub started: u64,
    /// Attempts that ended well.
    pub done: u64,
    /// Tasks that failed for good.
    pub failed: u64,
    /// Attempts that failed and will be made again.
    pub again: u64,
    /// Attempts that were lost with their worker.
    pub lost: u64,
    /// Tasks that could run if there were room.
    pub queued: u64,
    /// Tasks that wait for others, or for a person.
    pub waiting: u64,
    /// Tasks that run.
    pub running: u64,
}

/// The history of one job. It is a summary of attempts: a task that was retried has several.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct JobHistory {
    /// The job.
    pub job: u32,
    /// Everything since it was submitted is in here; otherwise only what happened since `since_ms`.
    pub whole: bool,
    /// When counting began.
    pub since_ms: u64,
    /// Attempts started.
    pub started: u64,
    /// Tasks done.
    pub done: u64,
    /// Tasks failed.
    pub failed: u64,
    /// Attempts after which a task was tried again.
    pub again: u64,
    /// Attempts that were lost with their worker.
    pub lost: u64,
    /// Ends over time.
    pub rate: Rate,
    /// How long attempts took.
    pub durations: Durations,
    /// Every n-th attempt is in `spans`; this is n.
    pub every: u64,
    /// Attempts of late.
    pub spans: Vec<EndedAttempt>,
    /// The slowest first.
    pub slowest: Vec<EndedAttempt>,
    /// The newest first.
    pub failures: Vec<EndedAttempt>,
    /// Who did how much.
    pub workers: Vec<Share>,
}

/// Attempts that ended, in steps of equal length.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct Rate {
    /// The beginning of the first period.
    pub start_ms: u64,
    /// How long a period is.
    pub width_ms: u64,
    /// Tasks done in each period.
    pub done: Vec<u32>,
    /// Tasks failed in each period.
    pub failed: Vec<u32>,
}

/// How long attempts took.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct Durations {
    /// Attempts.
    pub count: u64,
    /// All of them together.
    pub sum_ms: u64,
    /// The shortest.
    pub min_ms: u64,
    /// The longest.
    pub max_ms: u64,
    /// Half of them took no longer than this; as exact as a bucket is wide.
    pub p50_ms: u64,
    /// Nine of ten took no longer.
    pub p90_ms: u64,
    /// 99 of 100 took no longer.
    pub p99_ms: u64,
    /// How many took how long.
    pub buckets: Vec<Bucket>,
}

/// How many took at least `from_ms` and less than `to_ms`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Bucket {
    /// The shortest duration in this range.
    pub from_ms: u64,
    /// Less than this.
    pub to_ms: u64,
    /// Attempts.
    pub count: u64,
}

/// One attempt that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EndedAttempt {
    /// The job.
    pub job: u32,
    /// The task.
    pub task: u32,
    /// The number of the worker.
    pub worker: u32,
    /// When it started.
    pub started_ms: u64,
    /// How long it took.
    pub took_ms: u64,
    /// How it ended.
    pub outcome: Outcome,
}

/// What one worker did for a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct Share {
    /// Without a number: all workers beyond those listed.
    pub worker: Option<u32>,
    /// Tasks done.
    pub done: u64,
    /// Tasks failed.
    pub failed: u64,
    /// Time of its slots that attempts took.
    pub busy_ms: u64,
}

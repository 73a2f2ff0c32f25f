//! What happened lately, as the hub remembers it: sums and samples, never every single thing.

use super::task::Outcome;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Throughput and queues over time, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct History {
    /// The last ten minutes, a sample a second.
    pub seconds: Vec<Sample>,
    /// The last day, a sample a minute.
    pub minutes: Vec<Sample>,
}

/// What happened in the time before `at_ms`, and how the queues were then.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct Sample {
    pub at_ms: u64,
    /// Attempts that began.
    pub started: u64,
    /// Attempts that ended well.
    pub done: u64,
    /// Tasks that failed for good.
    pub failed: u64,
    /// Attempts that failed and will be made again.
    pub again: u64,
    /// Attempts that went away with their worker.
    pub lost: u64,
    /// Tasks that could run if there were room.
    pub queued: u64,
    /// Tasks that wait for others, or for a person.
    pub waiting: u64,
    pub running: u64,
}

/// What is remembered of one job. It is a summary of attempts: one that was retried counts more than once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct JobHistory {
    pub job: u32,
    /// Everything since it was submitted is in here; otherwise only what happened since `since_ms`.
    pub whole: bool,
    pub since_ms: u64,
    pub started: u64,
    pub done: u64,
    pub failed: u64,
    pub again: u64,
    pub lost: u64,
    pub rate: Rate,
    pub durations: Durations,
    /// Every so many-th attempt is in `spans`.
    pub every: u64,
    pub spans: Vec<EndedAttempt>,
    /// The slowest first.
    pub slowest: Vec<EndedAttempt>,
    /// The newest first.
    pub failures: Vec<EndedAttempt>,
    pub workers: Vec<Share>,
}

/// Attempts that ended, in steps of equal length.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct Rate {
    pub start_ms: u64,
    pub width_ms: u64,
    pub done: Vec<u32>,
    pub failed: Vec<u32>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct Durations {
    pub count: u64,
    pub sum_ms: u64,
    pub min_ms: u64,
    pub max_ms: u64,
    /// Half of them took no longer than this; as exact as a bucket is wide.
    pub p50_ms: u64,
    pub p90_ms: u64,
    pub p99_ms: u64,
    pub buckets: Vec<Bucket>,
}

/// So many took at least `from_ms` and less than `to_ms`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Bucket {
    pub from_ms: u64,
    pub to_ms: u64,
    pub count: u64,
}

/// One attempt that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EndedAttempt {
    pub job: u32,
    pub task: u32,
    pub worker: u32,
    pub started_ms: u64,
    pub took_ms: u64,
    pub outcome: Outcome,
}

/// What one worker did for a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct Share {
    /// Without a number: all those that are too many to be told apart.
    pub worker: Option<u32>,
    pub done: u64,
    pub failed: u64,
    pub busy_ms: u64,
}

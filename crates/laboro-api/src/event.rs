//! The events of `GET events`: what changed, not the whole new state.

use super::task::{Outcome, TaskState};
use laboro_core::Change;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// One change. Fields that its kind does not have are left out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Event {
    /// What it is about.
    pub kind: EventKind,
    /// When the hub sent it, Unix time in milliseconds.
    #[serde(default)]
    pub at_ms: u64,
    /// The job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<u32>,
    /// First and last task of the range that changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<u32>,
    /// The last task of the range.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<u32>,
    /// The state that the tasks have now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<TaskState>,
    /// The worker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<u32>,
    /// How the attempt ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// The number of the group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<u32>,
}

/// What an event is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    /// Tasks of a job are in another state.
    Tasks,
    /// Something about the job: made, closed, held, ended; or more of its tasks changed than are worth
    /// telling one by one. Look at its counts again.
    Job,
    /// A worker changed.
    Worker,
    /// A group changed.
    Group,
    /// Something is missing before the next event: too much happened, or too long ago. Look at everything again.
    Gap,
    /// A word that this program does not know yet.
    #[serde(other)]
    Unknown,
}

impl EventKind {
    /// As it is written.
    pub fn word(self) -> &'static str {
        match self {
            EventKind::Tasks => "tasks",
            EventKind::Job => "job",
            EventKind::Worker => "worker",
            EventKind::Group => "group",
            EventKind::Gap => "gap",
            EventKind::Unknown => "unknown",
        }
    }
}

impl Event {
    /// Without anything but its kind and time.
    pub fn bare(kind: EventKind, at_ms: u64) -> Event {
        Event {
            kind,
            at_ms,
            job: None,
            first: None,
            last: None,
            state: None,
            worker: None,
            outcome: None,
            group: None,
        }
    }

    /// A change as the core tells of it.
    pub fn of(change: &Change, at_ms: u64) -> Event {
        match change {
            Change::Tasks { job, first, last, state, worker, outcome } => Event {
                job: Some(job.0),
                first: Some(*first),
                last: Some(*last),
                state: Some((*state).into()),
                worker: worker.map(|worker| worker.0),
                outcome: outcome.map(Outcome::from),
                ..Event::bare(EventKind::Tasks, at_ms)
            },
            Change::Job { job } => Event { job: Some(job.0), ..Event::bare(EventKind::Job, at_ms) },
            Change::Worker { worker } => {
                Event { worker: Some(worker.0), ..Event::bare(EventKind::Worker, at_ms) }
            }
            Change::Group { group } => {
                Event { group: Some(group.0), ..Event::bare(EventKind::Group, at_ms) }
            }
        }
    }
}

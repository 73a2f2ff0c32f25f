//! What replies show of groups, jobs, tasks and workers. Plain data: the program that shows it chooses the words.

use crate::effect::Element;
use crate::id::{GroupId, JobId, LeaseNo, Name, TaskId, Time, WorkerId};
use crate::job::Counts;
use crate::resources::{Amount, Supply};
use crate::task::{Outcome, Profile, State, Work};
use std::sync::Arc;

/// Where a worker stands with the hub.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Standing {
    Good,
    /// Gets nothing until what it runs is in, or its time is over.
    OnHold,
    /// Gets one task, which decides.
    Probation,
    Ejected,
}

impl Standing {
    /// What people call it.
    pub fn word(self) -> &'static str {
        match self {
            Standing::Good => "good",
            Standing::OnHold => "on hold",
            Standing::Probation => "on probation",
            Standing::Ejected => "ejected",
        }
    }
}

/// What the hub thinks of a worker, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct ConductView {
    pub standing: Standing,
    pub reason: Option<Box<str>>,
    pub until: Option<Time>,
}

impl ConductView {
    /// Nothing against it.
    pub fn good() -> ConductView {
        ConductView { standing: Standing::Good, reason: None, until: None }
    }
}

/// A group and how many tasks it has.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct GroupView {
    pub group: GroupId,
    pub name: Name,
    pub counts: Counts,
    pub paused: bool,
    pub ever_used: bool,
}

/// A job and how many tasks it has.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct JobView {
    pub job: JobId,
    pub group: Name,
    pub name: Name,
    /// Who submitted it, as far as it is known.
    pub owner: Option<Name>,
    pub counts: Counts,
    pub open: bool,
    pub held: bool,
    /// Nothing of it starts before this time.
    pub begin: Option<Time>,
    pub stopped: bool,
    pub max_running: Option<u32>,
    pub max_fails: Option<u32>,
    pub submitted: Time,
    pub ended: Option<Time>,
    /// When it is forgotten at the latest, now that it has ended.
    pub forgotten: Option<Time>,
    /// As in its options.
    pub on_end: Box<[Box<str>]>,
    /// How many tasks ended each way, successes left out.
    pub failures: Vec<(Outcome, u64)>,
}

/// What is remembered of finished jobs, and how near its limits that is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Retention {
    /// Jobs that have finished and are remembered.
    pub finished: u64,
    /// Of more than these the one that ended first is forgotten.
    pub most: u64,
    /// Those that will be too old soon. Of more than a thousand a thousand are counted.
    pub soon: u64,
    /// The one that ended first.
    pub first: Option<JobId>,
}

/// What an owner has in a group.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct OwnerView {
    /// `None`: what nobody is known to have submitted.
    pub owner: Option<Name>,
    /// Jobs that are remembered.
    pub jobs: u32,
    /// Of its tasks that are with workers.
    pub slots_used: u64,
    pub weight: u32,
    pub max_running_slots: Option<u64>,
}

/// Everything about one task.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct TaskView {
    pub task: TaskId,
    pub name: Name,
    /// Of its job.
    pub owner: Option<Name>,
    pub state: State,
    pub priority: i32,
    pub failed_attempts: u16,
    pub lost_attempts: u16,
    pub attempts: Vec<AttemptView>,
    /// The number of the attempt that runs, or of the one that would come next.
    pub attempt: u16,
    pub lease: Option<LeaseNo>,
    /// Of a running task that takes several workers: the others.
    pub nodes: Vec<Name>,
    pub delayed_until: Option<Time>,
    pub memo: Option<Arc<[u8]>>,
    pub message: Option<Box<str>>,
    /// At most this many as `Limits::preds_shown`.
    pub preds: Ties,
    pub succs: Ties,
    /// `None` is `Work::Named`.
    pub work: Option<Arc<Work>>,
    pub profile: Arc<Profile>,
    pub element: Option<Element>,
}

/// An array or a single task, as a node of the graph of its job.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct PartView {
    /// The number of its first task.
    pub first: u32,
    pub count: u32,
    pub name: Name,
    /// Of a single task.
    pub state: Option<State>,
    pub counts: Counts,
    /// At most this many as `Limits::preds_shown`. Those of other jobs too.
    pub preds: Ties,
    /// Arrays that it follows element by element.
    pub each: Ties,
}

/// Tasks and arrays before or after one. Those of other groups stand apart, because not everybody who may see
/// the one may know of them.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Ties {
    pub own: Vec<TaskId>,
    pub elsewhere: Vec<TaskId>,
}

impl Ties {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.own.len() + self.elsewhere.len()
    }

    /// Are there none?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// One attempt of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct AttemptView {
    /// From 1. Elements of arrays that are tried again by a person begin anew.
    pub number: u16,
    pub worker: WorkerId,
    /// Its number, if the worker is forgotten.
    pub name: Name,
    pub started: Time,
    pub ended: Option<Time>,
    pub outcome: Option<Outcome>,
}

/// A worker and what it does.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct WorkerView {
    pub worker: WorkerId,
    pub name: Name,
    pub group: Name,
    pub dialect: Name,
    pub connected: bool,
    /// It was given work, or gave something back, since it came.
    pub engaged: bool,
    pub draining: bool,
    pub slots: u32,
    pub slots_used: u32,
    /// In bytes, as the next one.
    pub memory: u64,
    pub memory_used: u64,
    /// Of one that is connected, as the tags, the host and the time.
    pub resources: Vec<ResourceView>,
    pub tags: Vec<Name>,
    /// Empty: it does not say.
    pub host: Name,
    /// It leaves then.
    pub leaves: Option<Time>,
    pub leases: Vec<(TaskId, LeaseNo)>,
    pub lease_count: u32,
    /// It is kept free for a task that takes more than it has free, or several workers.
    pub is_reserved: bool,
    /// It is kept for a task that runs on another worker.
    pub is_node: bool,
    pub succeeded: u64,
    pub failed: u64,
    pub conduct: ConductView,
    pub seen: Time,
}

/// How much of a resource a worker has, and how much of it is given out.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct ResourceView {
    pub name: Name,
    pub supply: Supply,
    pub used: Amount,
}

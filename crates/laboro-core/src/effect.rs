//! What the outside must do once a batch is durable: reply, dispatch, revoke, notify; and the views
//! that replies carry. Views are plain data: whoever shows them chooses the words.

use crate::bounds::Excess;
use crate::command::Drain;
use crate::event::{Event, Share};
use crate::id::{GroupId, JobId, LeaseNo, Name, SessionId, TaskId, Time, Token, WorkerId};
use crate::job::Counts;
use crate::task::{Outcome, Profile, State, Values, Work};
use std::sync::Arc;

/// What one step produced. The effects come out only through `release`, which a journal calls when
/// the events are as safe as promised.
#[derive(Debug)]
pub struct Batch {
    pub at: Time,
    pub events: Vec<Event>,
    effects: Vec<Effect>,
}

impl Batch {
    pub(crate) fn new(at: Time, events: Vec<Event>, effects: Vec<Effect>) -> Batch {
        Batch { at, events, effects }
    }

    /// Only a journal that has kept its promise about `events` may call this.
    pub fn release(self) -> Vec<Effect> {
        self.effects
    }

    pub fn is_empty(&self) -> bool {
        self.events.is_empty() && self.effects.is_empty()
    }
}

#[derive(Debug, Clone)]
pub enum Effect {
    Reply {
        token: Token,
        reply: Reply,
    },
    Dispatch {
        session: SessionId,
        worker: WorkerId,
        grants: Vec<Grant>,
    },
    /// The worker shall end these; their results do not count any more.
    Revoke {
        session: SessionId,
        worker: WorkerId,
        leases: Vec<(TaskId, LeaseNo)>,
    },
    /// The worker shall have less room, or leave.
    Stop {
        session: SessionId,
        worker: WorkerId,
        drain: Drain,
    },
    /// The worker has come on another connection: nothing more is sent on this one.
    Replaced {
        session: SessionId,
        worker: WorkerId,
    },
    Notify {
        watch: Token,
        changes: Arc<[Change]>,
    },
}

/// One task given to one worker.
#[derive(Debug, Clone)]
pub struct Grant {
    pub lease: LeaseNo,
    pub task: TaskId,
    /// Of the task, or of the array that it is an element of.
    pub name: Name,
    /// For people, and for dialects whose tasks are known by it; not unique.
    pub job_name: Name,
    pub element: Option<Element>,
    /// Counted from 1, with those that were lost.
    pub attempt: u16,
    /// How many attempts have failed before.
    pub fails: u16,
    pub work: Option<Arc<Work>>,
    pub profile: Arc<Profile>,
    pub share: Option<Box<Share>>,
    pub memo: Option<Arc<[u8]>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Element {
    /// Counted from 0 inside its array.
    pub position: u32,
    /// How many the array has.
    pub count: u32,
    pub values: Values,
}

#[derive(Debug, Clone)]
pub enum Reply {
    Ok,
    Submitted {
        job: JobId,
        first: u32,
        count: u32,
        again: bool,
    },
    Joined {
        worker: WorkerId,
        /// What it said it runs and does not hold. It may hold the same task by another lease.
        unknown: Vec<(TaskId, LeaseNo)>,
    },
    Work {
        worker: WorkerId,
        grants: Vec<Grant>,
    },
    Nothing(Idle),
    /// One verdict a result, in order.
    Reported(Vec<Result<(), Refusal>>),
    Changed {
        tasks: u64,
    },
    Refused(Refusal),
    Groups(Vec<GroupView>),
    Jobs(Vec<JobView>),
    Tasks {
        tasks: Vec<TaskView>,
        next: Option<u32>,
    },
    Parts {
        parts: Vec<PartView>,
        next: Option<u32>,
    },
    Task(Box<TaskView>),
    Explained(String),
    Workers(Vec<WorkerView>),
    Watching,
}

/// Why an offer got nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Idle {
    /// Nothing was ever submitted to this group.
    Fresh,
    /// Nothing is left that could go on without a person.
    Finished,
    /// Nothing is ready for this worker now; something may become so.
    Later,
    /// Nothing is left but what runs, here and maybe elsewhere, and what runs here does not come back whatever
    /// becomes of it.
    Own,
    OnHold,
    Ejected,
    Draining,
}

/// A quota that a submit would go beyond.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quota {
    pub whose: QuotaOf,
    /// `tasks` or `bytes`.
    pub what: &'static str,
    pub most: u64,
    pub used: u64,
    /// What the submit would add.
    pub more: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QuotaOf {
    Group(Name),
    Token(Name),
}

impl std::fmt::Display for Quota {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Quota { whose, what, most, used, more } = self;
        match whose {
            QuotaOf::Group(name) => write!(f, "the quota of group {name}")?,
            QuotaOf::Token(name) => write!(f, "the quota of token {name}")?,
        }
        write!(f, " is {most} queued {what}: {used} are queued, and this submit adds {more}")
    }
}

/// Why the hub says no. A refusal changes nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    NoSuchJob(JobId),
    NoSuchTask(Name),
    NoSuchGroup(Name),
    NoSuchWorker(Name),
    JobClosed(JobId),
    JobNotFinished(JobId),
    NameTaken(Name),
    /// Somebody else works under this name, by another dialect.
    WorkerTaken {
        name: Name,
        dialect: Name,
    },
    NameTwice(Name),
    BadName {
        name: Name,
        why: &'static str,
    },
    BadProfile(u32),
    UnknownPred {
        task: Name,
        pred: Name,
    },
    Cycle(Name),
    UnequalArrays {
        array: Name,
        other: Name,
    },
    NotAnArray(Name),
    Limit {
        what: &'static str,
        most: u64,
    },
    /// There would be more in the queue than this group or token may have there.
    Quota(Box<Quota>),
    /// No worker could take it.
    TooLarge {
        task: Name,
        excess: Excess,
    },
    /// Another worker holds it, or it lapsed and went to another.
    NotYours(Name),
    NotStarted(Name),
    AlreadyFinished {
        task: Name,
        by_you: bool,
    },
    NothingSelected,
    /// It is known, but not here.
    WorkerAway(Name),
    /// It was told to go, or to give up slots, and cannot be told otherwise.
    WorkerLeaves(Name),
    /// Another process of this name is connected. When it is gone, this one may come.
    WorkerHere(Name),
    /// By a person, until it is pardoned.
    Ejected {
        worker: Name,
        reason: Box<str>,
    },
    NotYet(&'static str),
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Refusal::NoSuchJob(job) => write!(f, "there is no job {job}"),
            Refusal::NoSuchTask(task) => write!(f, "there is no task {task}"),
            Refusal::NoSuchGroup(group) => write!(f, "there is no group {group}"),
            Refusal::NoSuchWorker(worker) => write!(f, "there is no worker {worker}"),
            Refusal::JobClosed(job) => write!(f, "job {job} is closed and takes no more tasks"),
            Refusal::JobNotFinished(job) => write!(f, "job {job} is not finished"),
            Refusal::NameTaken(name) => write!(f, "the name {name} is taken in this group"),
            Refusal::WorkerTaken { name, dialect } => {
                write!(f, "worker {name} is here by {dialect} already; choose another name")
            }
            Refusal::NameTwice(name) => write!(f, "the name {name} stands twice in one request"),
            Refusal::BadName { name, why } => write!(f, "the name {name} {why}"),
            Refusal::BadProfile(n) => write!(f, "there is no profile {n} in this submit"),
            Refusal::UnknownPred { task, pred } => {
                write!(f, "task {task} comes after {pred}, which nobody knows")
            }
            Refusal::Cycle(name) => write!(f, "task {name} would wait for itself"),
            Refusal::UnequalArrays { array, other } => {
                write!(f, "array {array} has not as many elements as {other}")
            }
            Refusal::NotAnArray(name) => write!(f, "{name} is not an array"),
            Refusal::Limit { what, most } => write!(f, "no more than {most} {what}"),
            Refusal::Quota(quota) => quota.fmt(f),
            Refusal::TooLarge { task, excess: Excess { what, has, most } } => {
                write!(f, "task {task} has {has} {what}, and a worker takes at most {most}")
            }
            Refusal::NotYours(task) => write!(f, "task {task} is not held by this worker"),
            Refusal::NotStarted(task) => write!(f, "task {task} was not started"),
            Refusal::AlreadyFinished { task, .. } => write!(f, "task {task} is finished already"),
            Refusal::NothingSelected => f.write_str("no task is selected"),
            Refusal::WorkerAway(worker) => write!(f, "worker {worker} is not connected"),
            Refusal::WorkerLeaves(worker) => write!(
                f,
                "worker {worker} was told to leave or to give up slots, and that cannot be taken back; \
                 start it again when it is gone"
            ),
            Refusal::WorkerHere(worker) => write!(
                f,
                "another worker named {worker} is connected; give this one another --name or stop that one"
            ),
            Refusal::Ejected { worker, reason } => write!(
                f,
                "worker {worker} was ejected: {reason}; `laboro workers pardon {worker}` lets it back in"
            ),
            Refusal::NotYet(why) => f.write_str(why),
        }
    }
}

/// Where a worker stands with the hub.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    Good,
    /// Gets nothing until what it runs is in, or its time is over.
    OnHold,
    /// Gets one task, which decides.
    Probation,
    Ejected,
}

impl Standing {
    pub fn word(self) -> &'static str {
        match self {
            Standing::Good => "good",
            Standing::OnHold => "on hold",
            Standing::Probation => "on probation",
            Standing::Ejected => "ejected",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConductView {
    pub standing: Standing,
    pub reason: Option<Box<str>>,
    pub until: Option<Time>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupView {
    pub group: GroupId,
    pub name: Name,
    pub counts: Counts,
    pub paused: bool,
    pub ever_used: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobView {
    pub job: JobId,
    pub group: Name,
    pub name: Name,
    pub counts: Counts,
    pub open: bool,
    pub held: bool,
    pub stopped: bool,
    pub max_running: Option<u32>,
    pub max_fails: Option<u32>,
    pub submitted: Time,
    pub ended: Option<Time>,
    /// How many tasks ended each way, successes left out.
    pub failures: Vec<(Outcome, u64)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskView {
    pub task: TaskId,
    pub name: Name,
    pub state: State,
    pub priority: i32,
    pub failed_attempts: u16,
    pub lost_attempts: u16,
    pub attempts: Vec<AttemptView>,
    /// The number of the attempt that runs, or of the one that would come next.
    pub attempt: u16,
    pub lease: Option<LeaseNo>,
    pub delayed_until: Option<Time>,
    pub memo: Option<Arc<[u8]>>,
    pub message: Option<Box<str>>,
    /// At most so many as `Limits::preds_shown`.
    pub preds: Ties,
    pub succs: Ties,
    /// `None` is `Work::Named`.
    pub work: Option<Arc<Work>>,
    pub profile: Arc<Profile>,
    pub element: Option<Element>,
}

/// An array or a single task, as a node of the graph of its job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartView {
    /// The number of its first task.
    pub first: u32,
    pub count: u32,
    pub name: Name,
    /// Of a single task.
    pub state: Option<State>,
    pub counts: Counts,
    /// At most so many as `Limits::preds_shown`. Those of other jobs too.
    pub preds: Ties,
    /// Arrays that it follows element by element.
    pub each: Ties,
}

/// Tasks and arrays before or after one. Those of other groups stand apart, because not everybody who may see
/// the one may know of them.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Ties {
    pub own: Vec<TaskId>,
    pub elsewhere: Vec<TaskId>,
}

impl Ties {
    pub fn len(&self) -> usize {
        self.own.len() + self.elsewhere.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
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

#[derive(Debug, Clone, PartialEq, Eq)]
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
    pub leases: Vec<(TaskId, LeaseNo)>,
    pub lease_count: u32,
    pub succeeded: u64,
    pub failed: u64,
    pub conduct: ConductView,
    pub seen: Time,
}

/// Something that a watcher is told. Ranges, because arrays are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    Tasks {
        job: JobId,
        first: u32,
        last: u32,
        state: State,
        worker: Option<WorkerId>,
        outcome: Option<Outcome>,
    },
    Job {
        job: JobId,
    },
    Worker {
        worker: WorkerId,
    },
    Group {
        group: GroupId,
    },
}

//! Why the hub says no: data, with a sentence that names the thing and its value. What a person could do about it is
//! said by the program that speaks to one.

use crate::bounds::Excess;
use crate::id::{JobId, Name};

/// A quota that a submit would go beyond.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Quota {
    pub whose: QuotaOf,
    /// `tasks` or `bytes`.
    pub what: &'static str,
    pub most: u64,
    pub used: u64,
    /// What the submit would add.
    pub more: u64,
}

/// Who has a quota.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
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
#[allow(missing_docs)]
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
    /// A task takes whole workers, or it has other ways to run; not both.
    NodesAndVariants,
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
                write!(f, "worker {name} is connected by {dialect} already")
            }
            Refusal::NameTwice(name) => write!(f, "the name {name} is given twice in one request"),
            Refusal::BadName { name, why } => write!(f, "the name {name} {why}"),
            Refusal::BadProfile(n) => write!(f, "there is no profile {n} in this submit"),
            Refusal::NodesAndVariants => {
                f.write_str("a task with nodes takes whole workers and has no variants")
            }
            Refusal::UnknownPred { task, pred } => {
                write!(f, "task {task} comes after {pred}, which does not exist")
            }
            Refusal::Cycle(name) => write!(f, "task {name} would wait for itself"),
            Refusal::UnequalArrays { array, other } => {
                write!(f, "array {array} has a different number of elements than {other}")
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
            Refusal::NothingSelected => f.write_str("nothing to do"),
            Refusal::WorkerAway(worker) => write!(f, "worker {worker} is not connected"),
            Refusal::WorkerLeaves(worker) => write!(
                f,
                "worker {worker} was told to leave or to give up slots, and that cannot be taken back"
            ),
            Refusal::WorkerHere(worker) => {
                write!(f, "another worker named {worker} is connected")
            }
            Refusal::Ejected { worker, reason } => {
                write!(f, "worker {worker} was ejected: {reason}")
            }
            Refusal::NotYet(why) => f.write_str(why),
        }
    }
}

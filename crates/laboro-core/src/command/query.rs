//! What can be asked about without changing anything.

use super::{TaskRef, WorkerRef};
use crate::id::{JobId, Name, Time, WorkerId};
use crate::task::State;

/// Questions, which change nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Query {
    Groups,
    Group(Name),
    /// From this job on, at most so many.
    Jobs {
        group: Option<Name>,
        owner: Option<Name>,
        from: JobId,
        most: u32,
    },
    /// Newest first, from the one before this on, at most so many.
    JobsBefore {
        group: Option<Name>,
        owner: Option<Name>,
        before: JobId,
        most: u32,
    },
    /// Jobs that have ended, in the order in which they did, after this one, at most so many. What ended in the
    /// millisecond that has just begun is left for later: more may end in it, before or after those that are there.
    Ended {
        after: (Time, JobId),
        most: u32,
    },
    Job(JobId),
    /// Who has jobs in a group, in the order of their names, from the one after this on, at most so many.
    Owners {
        group: Name,
        after: Option<Name>,
        most: u32,
    },
    /// Tasks of a job in one state or all, from this number on, at most so many.
    Tasks {
        job: JobId,
        state: Option<State>,
        from: u32,
        most: u32,
    },
    /// The numbers of a job's tasks in one state, as ranges, from this number on, at most so many ranges.
    Ranges {
        job: JobId,
        state: State,
        from: u32,
        most: u32,
    },
    /// Arrays and single tasks of a job in the order of their numbers, from this number on, at most so many.
    Parts {
        job: JobId,
        from: u32,
        most: u32,
    },
    Task {
        group: Name,
        task: TaskRef,
    },
    /// In plain words: why is it not running?
    Explain {
        group: Name,
        task: TaskRef,
    },
    Workers {
        group: Option<Name>,
        from: WorkerId,
        most: u32,
    },
    Worker(WorkerRef),
    /// How many finished jobs are remembered, and how many will be forgotten within this time because of their age.
    Retention {
        within_ms: u64,
    },
    /// What the group could run now if it had more workers, by what it needs, at most so many tasks of each.
    Backlog {
        group: Name,
        most: u64,
    },
}

/// What a watcher is told of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Scope {
    All,
    Job(JobId),
}

//! Answers to commands, one for each.

use crate::backlog::Backlog;
use crate::effect::Grant;
use crate::explanation::Explanation;
use crate::id::{JobId, LeaseNo, TaskId, WorkerId};
use crate::refusal::Refusal;
use crate::view::{GroupView, JobView, OwnerView, PartView, Retention, TaskView, WorkerView};

/// The answer to one command.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
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
    Owners(Vec<OwnerView>),
    Tasks {
        tasks: Vec<TaskView>,
        next: Option<u32>,
    },
    /// First and last of each.
    Ranges {
        ranges: Vec<(u32, u32)>,
        next: Option<u32>,
    },
    Parts {
        parts: Vec<PartView>,
        next: Option<u32>,
    },
    Task(Box<TaskView>),
    Explained(Box<Explanation>),
    Workers(Vec<WorkerView>),
    Backlog(Vec<Backlog>),
    Retention(Retention),
    Watching,
}

/// Why an offer got nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
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

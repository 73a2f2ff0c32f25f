//! What happened and cannot be derived. The journal holds only these, and the ledger is their sum.
//! Decisions are recorded as made, so that a changed rule never changes what an old journal means.

use crate::document::DocumentChange;
use crate::id::{GroupId, JobId, LeaseNo, Name, TaskId, Time, WorkerId};
use crate::job::JobOptions;
use crate::ledger::restore::Restore;
use crate::resources::Portion;
use crate::task::{NewArray, NewTask, Outcome, Profile};
use crate::view::Standing;
use std::fmt;
use std::sync::Arc;

/// One thing that happened.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Event {
    /// A hub started with this state. Every live lease gets one more period.
    Began {
        life: u32,
        seed: u64,
    },
    GroupMade {
        group: GroupId,
        name: Name,
    },
    /// Nothing is in it any more and nothing is set about it. Its number may be another group's later.
    GroupForgotten {
        group: GroupId,
    },
    GroupPaused {
        group: GroupId,
        paused: bool,
    },
    JobMade {
        job: JobId,
        group: GroupId,
        options: Box<JobOptions>,
    },
    JobClosed {
        job: JobId,
    },
    JobHeld {
        job: JobId,
        held: bool,
    },
    /// Too many of its tasks failed, or a person let it go on after that.
    JobStopped {
        job: JobId,
        stopped: bool,
    },
    /// The time has come before which nothing of it was to start.
    JobDue {
        job: JobId,
    },
    /// A person set when it begins; `None`: it may start now.
    JobDeferred {
        job: JobId,
        begin: Option<Time>,
    },
    JobLimited {
        job: JobId,
        max_running: Option<u32>,
        max_fails: Option<u32>,
    },
    JobForgotten {
        job: JobId,
    },
    /// Numbers go on from the job's last: first the arrays, then the tasks.
    Added(Box<Added>),
    PredsAdded {
        task: TaskId,
        preds: Vec<TaskId>,
    },
    /// A finished task starts over, with its name and its number.
    Renewed {
        task: TaskId,
        preds: Vec<TaskId>,
        memo: Option<Arc<[u8]>>,
    },
    /// Also when it comes back with another period.
    WorkerMet {
        worker: WorkerId,
        group: GroupId,
        name: Name,
        dialect: Name,
        period_ms: Option<u64>,
    },
    WorkerForgotten {
        worker: WorkerId,
    },
    Leased {
        task: TaskId,
        lease: LeaseNo,
        worker: WorkerId,
        until: Option<Time>,
        share: Option<Arc<Share>>,
    },
    Finished {
        task: TaskId,
        worker: WorkerId,
        outcome: Outcome,
        then: Then,
        words: Option<Box<Words>>,
    },
    /// A lease ended without a result.
    Returned {
        task: TaskId,
        why: ReturnReason,
        preds: Vec<TaskId>,
    },
    /// The same, and the task is held for this reason: it is not to be given out again before a person says so.
    HeldBack {
        task: TaskId,
        why: ReturnReason,
        reason: Box<str>,
    },
    /// The wait before the next attempt is over.
    Woken {
        task: TaskId,
    },
    Cancelled {
        job: JobId,
        ranges: Ranges,
    },
    /// They were done elsewhere: as if each had been run here and ended well.
    MarkedDone {
        job: JobId,
        ranges: Ranges,
    },
    Held {
        job: JobId,
        ranges: Ranges,
    },
    Released {
        job: JobId,
        ranges: Ranges,
    },
    Retried {
        job: JobId,
        ranges: Ranges,
    },
    Prioritised {
        job: JobId,
        ranges: Ranges,
        priority: i32,
    },
    TasksForgotten {
        job: JobId,
        ranges: Ranges,
    },
    Judged {
        worker: WorkerId,
        standing: Standing,
        reason: Box<str>,
        until: Option<Time>,
    },
    DocumentChanged(Box<DocumentChange>),
    /// A piece of a condensed ledger.
    Restored(Box<Restore>),
}

/// First and last number of each run, ascending.
pub type Ranges = Vec<(u32, u32)>;

/// What a submit added to a job.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct Added {
    pub job: JobId,
    pub profiles: Vec<Profile>,
    pub arrays: Vec<NewArray>,
    pub tasks: Vec<NewTask>,
}

/// What a lease has of its worker's resources, and which of the ways to run its task it goes.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Share {
    /// In the order of their names.
    pub portions: Vec<(Name, Portion)>,
    /// 0 is the first of its needs, and then come its variants.
    pub variant: u8,
    /// The other workers that are kept for it.
    pub nodes: Vec<WorkerId>,
}

/// What is as usual is not told: records of old stay what they are called when a field is added.
impl fmt::Debug for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Share { portions, variant, nodes } = self;
        let mut share = f.debug_struct("Share");
        share.field("portions", portions).field("variant", variant);
        if !nodes.is_empty() {
            share.field("nodes", nodes);
        }
        share.finish()
    }
}

impl Share {
    /// Whole items and nothing else, as before there was more.
    pub fn of_items(items: Vec<(Name, u128)>) -> Share {
        let portion = |(name, items)| (name, Portion::of_items(items));
        Share { portions: items.into_iter().map(portion).collect(), ..Share::default() }
    }
}

/// What a worker says beside the outcome.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Words {
    pub message: Option<Box<str>>,
    pub memo: Option<Arc<[u8]>>,
}

/// What becomes of the task after an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Then {
    Done,
    Failed,
    /// Another attempt, not before this time.
    Again(Time),
}

/// Why a lease ended without a result, and so where its task stands next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReturnReason {
    /// Its worker was lost or its time ran out: to the front, and counted.
    Lapsed,
    /// Its worker left in order: to the front.
    Left,
    /// Its worker gave it back: to the back.
    Handed,
    /// The hub took it back: to the front.
    Revoked,
}

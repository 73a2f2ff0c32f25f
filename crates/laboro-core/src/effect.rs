//! What the outside must do once a batch is durable: reply, dispatch, revoke, notify. What replies say is in `reply`,
//! `refusal` and `view`.

use crate::command::Drain;
use crate::event::{Event, Share};
use crate::id::{GroupId, JobId, LeaseNo, Name, SessionId, TaskId, Time, Token, WorkerId};
use crate::reply::Reply;
use crate::task::{Outcome, Profile, State, Values, Work};
use std::sync::Arc;

/// What one step produced. The effects come out only through `release`, for the receipt of an archive that keeps the
/// events.
#[derive(Debug)]
#[allow(missing_docs)]
pub struct Batch {
    pub at: Time,
    pub events: Vec<Event>,
    effects: Vec<Effect>,
}

impl Batch {
    pub(crate) fn new(at: Time, events: Vec<Event>, effects: Vec<Effect>) -> Batch {
        Batch { at, events, effects }
    }

    /// The receipt says that `events` are as safe as promised.
    pub fn release(self, _: Receipt) -> Vec<Effect> {
        self.effects
    }

    /// Did nothing happen?
    pub fn is_empty(&self) -> bool {
        self.events.is_empty() && self.effects.is_empty()
    }
}

/// What keeps batches. An implementation promises that the events of a batch are as safe as they have to be before
/// a receipt for it is made; nothing else can make one.
pub trait Archive {
    /// For one batch that is kept.
    fn receipt(&self) -> Receipt {
        Receipt(())
    }
}

/// Opens one batch.
#[derive(Debug)]
#[must_use]
pub struct Receipt(());

/// One thing that the outside must do.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
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
#[allow(missing_docs)]
pub struct Grant {
    pub lease: LeaseNo,
    pub task: TaskId,
    /// Of the task, or of the array that it is an element of.
    pub name: Name,
    /// For people, and for dialects whose tasks are known by it; not unique.
    pub job_name: Name,
    /// Its name means something in its job only.
    pub own_names: bool,
    pub element: Option<Element>,
    /// Counted from 1, with those that were lost.
    pub attempt: u16,
    /// How many attempts have failed before.
    pub fails: u16,
    pub work: Option<Arc<Work>>,
    /// Of a task with variants, with the needs of the one that was taken.
    pub profile: Arc<Profile>,
    pub share: Option<Arc<Share>>,
    pub memo: Option<Arc<[u8]>>,
    pub role: Role,
}

/// What a worker is for a task that it is given.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Role {
    /// It runs it.
    #[default]
    Only,
    /// It runs it, and these are kept for it, this one first.
    First(Arc<[Node]>),
    /// It is kept for it and runs nothing.
    Kept,
}

/// A worker of a task that has several.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Node {
    pub worker: Name,
    /// Its name again where it does not say.
    pub host: Name,
    pub slots: u32,
}

/// Which element of its array a task is.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Element {
    /// Counted from 0 inside its array.
    pub position: u32,
    /// How many the array has.
    pub count: u32,
    pub values: Values,
}

/// Something that a watcher is told. Ranges, because arrays are.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
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

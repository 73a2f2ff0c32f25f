//! What can be asked of the hub. Every command gets exactly one reply; an offer that waits gets it later.

mod query;

use crate::document::DocumentChange;
use crate::id::{JobId, LeaseNo, Name, SessionId, TaskId, Time, Token, WorkerId};
use crate::job::JobOptions;
use crate::resources::Supply;
use crate::task::{Kinds, NewArray, Outcome, Profile, State, Values, Work};
use smallvec::SmallVec;
use std::sync::Arc;

pub use query::{Query, Scope};

/// One command and where its reply goes.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Ask {
    pub token: Token,
    pub command: Command,
}

/// What can be asked.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum Command {
    Submit(Submit),
    /// No more tasks will be added.
    Close(JobId),
    Join(Join),
    Offer(Offer),
    /// An offer that still waits is answered with nothing, at once.
    Withdraw(Token),
    Report(Report),
    /// The worker is alive, and so are its leases.
    Renew(WorkerRef),
    Return(Return),
    Decline(Decline),
    /// What was sent to the worker has arrived there, up to this lease.
    Acknowledge(WorkerRef, LeaseNo),
    Leave(Leave),
    Cancel(Selection),
    /// Tasks that were done elsewhere, as if they had been run here.
    MarkDone(Selection),
    Hold(Selection),
    Release(Selection),
    /// Failed and cancelled tasks of the selection run again, in place.
    Retry(Selection),
    Prioritise(Selection, i32),
    /// What is `None` stays as it is; `Some(None)` lifts the limit.
    Limit {
        job: JobId,
        max_running: Option<Option<u32>>,
        max_fails: Option<Option<u32>>,
    },
    /// Nothing of the group starts until it is resumed.
    Pause(Name),
    Resume(Name),
    Drain(WorkerRef, Drain),
    /// It is sent away for this reason, and what it runs goes to others.
    Eject(WorkerRef, String),
    Pardon(WorkerRef),
    /// A finished job is forgotten now.
    Forget(JobId),
    /// All of these or none.
    ChangeDocuments(Vec<DocumentChange>),
    Query(Query),
    Watch(Scope),
    Unwatch(Token),
}

/// Tasks and arrays that come together: all of them are taken or none.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Submit {
    pub group: Name,
    pub job: SubmitTo,
    /// Tasks and arrays point into this by position.
    pub profiles: Vec<Profile>,
    pub tasks: Vec<TaskSpec>,
    pub arrays: Vec<ArraySpec>,
    pub unknown_pred: UnknownPred,
    pub if_taken: IfTaken,
}

impl Submit {
    /// A job of its own, empty so far, with the default profile. Nothing that is not known or not new is taken.
    pub fn new(group: impl Into<Name>) -> Submit {
        Submit {
            group: group.into(),
            job: SubmitTo::New(JobOptions::default()),
            profiles: vec![Profile::default()],
            tasks: Vec::new(),
            arrays: Vec::new(),
            unknown_pred: UnknownPred::Refuse,
            if_taken: IfTaken::Refuse,
        }
    }
}

/// Which job a submit goes to.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum SubmitTo {
    New(JobOptions),
    Add(JobId),
    /// The open job with the key of these options. One is made if there is none, if it was closed, or if
    /// it has no numbers left.
    Open(JobOptions),
}

/// What becomes of a predecessor that is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum UnknownPred {
    Refuse,
    /// A predecessor nobody knows counts as done.
    Ignore,
    /// The same, and one that stands later in the same submit is not known yet: as if the tasks came one
    /// by one.
    InOrder,
}

/// What becomes of a task whose name is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum IfTaken {
    Refuse,
    /// The same task again is no news; a different one is refused.
    Same,
    /// Adds predecessors to a task that has not started, and runs a finished one again.
    Merge,
}

/// A predecessor or a task meant by a peer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum TaskRef {
    Id(TaskId),
    /// The same, from somebody who may know of the command's group only: a task of another one is not there,
    /// and an explanation does not tell of it.
    Own(TaskId),
    /// In the group of the command. `array.7` means an element.
    Name(Name),
}

/// One task of a submit.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct TaskSpec {
    pub name: Name,
    pub profile: u32,
    pub work: Option<Arc<Work>>,
    pub preds: SmallVec<[TaskRef; 1]>,
    pub memo: Option<Arc<[u8]>>,
}

/// One array of a submit.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct ArraySpec {
    pub name: Name,
    pub count: u32,
    pub profile: u32,
    pub work: Arc<Work>,
    pub values: Values,
    pub preds: Vec<TaskRef>,
    pub each: Vec<TaskRef>,
}

impl ArraySpec {
    /// `count` elements numbered from 1, all with the same work.
    pub fn numbered(name: impl Into<Name>, count: u32, work: Work) -> ArraySpec {
        ArraySpec {
            name: name.into(),
            count,
            profile: 0,
            work: Arc::new(work),
            values: Values::Numbers { first: 1, step: 1 },
            preds: Vec::new(),
            each: Vec::new(),
        }
    }

    pub(crate) fn placed(self, preds: Vec<TaskId>, each: Vec<TaskId>) -> NewArray {
        let ArraySpec { name, count, profile, work, values, .. } = self;
        NewArray { name, count, profile, work, values, preds, each }
    }
}

/// How a peer says which worker it means.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum WorkerRef {
    Id(WorkerId),
    Name {
        group: Name,
        name: Name,
    },
    /// The same, and nobody who came by another dialect.
    Of {
        group: Name,
        name: Name,
        dialect: &'static str,
    },
}

/// A worker says who it is, what it has and what still runs there. Saying it again is fine.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Join {
    pub group: Name,
    pub name: Name,
    pub dialect: &'static str,
    pub session: SessionId,
    /// A number that only this process has, of a worker that can be told why it may not come in. `None`:
    /// it does not say, comes in, and is given nothing where it should not be here.
    pub life: Option<u64>,
    pub kinds: Kinds,
    pub tags: Vec<Name>,
    pub capacity: Capacity,
    /// How long the hub waits for a sign of life before its leases lapse. `None`: for ever.
    pub period_ms: Option<u64>,
    /// What runs there by its own account. `None`: it does not say, and the leases stand as they are.
    pub running: Option<Vec<(TaskId, LeaseNo)>>,
    /// It says what has arrived (`Command::Acknowledge`), and starts it in order as its slots become free. Of one
    /// that does not, whatever it was given may have been started.
    pub acknowledges: bool,
    /// The machine it is on, for people. Empty: it does not say.
    pub host: Name,
}

impl Join {
    /// Runs one task at a time, of any kind, and says no more of itself.
    pub fn new(
        group: impl Into<Name>,
        name: impl Into<Name>,
        dialect: &'static str,
        session: SessionId,
    ) -> Join {
        Join {
            group: group.into(),
            name: name.into(),
            dialect,
            session,
            life: None,
            kinds: Kinds::ALL,
            tags: Vec::new(),
            capacity: Capacity::slots(1),
            period_ms: None,
            running: None,
            acknowledges: false,
            host: Name::default(),
        }
    }
}

/// What a worker has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Capacity {
    pub slots: u32,
    pub memory: u64,
    /// A task is told which ones it got.
    pub resources: Vec<(Name, Supply)>,
    /// It leaves after so long: tasks that may take longer are not for it. `None`: it stays.
    pub time_left_ms: Option<u64>,
}

impl Capacity {
    /// Slots and nothing else.
    pub fn slots(slots: u32) -> Capacity {
        Capacity { slots, ..Capacity::default() }
    }
}

/// Room for work at a worker.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Offer {
    pub worker: WorkerRef,
    pub route: Route,
    /// A lease given for this offer lapses after so long. `None`: it lives as long as its worker.
    pub lease_ms: Option<u64>,
}

/// How tasks reach the worker that offers room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Route {
    /// The reply carries up to `most` tasks, at the latest when patience ends.
    Answer { most: u32, patience: Patience },
    /// Stands until the worker leaves: whatever fits its free capacity is sent to its session, and up to
    /// `ahead` small tasks beyond it, so that a slot that becomes free need not wait for the hub. Said
    /// again, the new number holds.
    Push { ahead: u32 },
}

/// How long an offer waits for its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Patience {
    None,
    /// Answered where nothing more can come by itself, also when that becomes so while it waits. Something may
    /// always come where nothing was ever submitted.
    Until(Time),
    /// The same, for who can say nothing else before it is answered: one that holds something may have
    /// a result to tell, and waits only until `busy_until`.
    InTurn {
        until: Time,
        busy_until: Time,
    },
    /// Waits also then, for what somebody may submit.
    Always(Time),
}

/// Results of a worker.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Report {
    pub worker: WorkerRef,
    pub results: Vec<TaskResult>,
}

/// How one attempt ended.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct TaskResult {
    pub lease: LeaseRef,
    pub outcome: Outcome,
    /// Words that go with a failure.
    pub message: Option<Box<str>>,
    pub memo: Option<Arc<[u8]>>,
}

/// How a peer says which lease it means.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum LeaseRef {
    Number {
        task: TaskId,
        lease: LeaseNo,
    },
    /// The one that the reporting worker holds on this task.
    Held(TaskRef),
    /// As above; and none is needed where the task is ready and nobody holds it: the work is done already.
    HeldOrFree(TaskRef),
    /// As above; and where another worker holds the task, that lease ends with the result. Only success can be
    /// said so, and saying it of a task that is done changes nothing.
    Anyones(TaskRef),
}

/// Work that a worker gives back unfinished. All of it or none.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Return {
    pub worker: WorkerRef,
    pub tasks: Vec<Returned>,
    pub place: Place,
}

/// One task that is given back.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Returned {
    pub lease: LeaseRef,
    /// It turned out that these must be done first.
    pub preds: Vec<TaskRef>,
}

/// Work that a worker cannot run, whatever it tries: it could not even read it. That is not an attempt. Each of
/// these tasks is held with the reason; what it does not hold any more is left as it is.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Decline {
    pub worker: WorkerRef,
    pub tasks: Vec<Declined>,
}

/// One task that a worker cannot run.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Declined {
    pub lease: LeaseRef,
    pub reason: Box<str>,
}

/// Where a task that is given back stands in its lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Place {
    Front,
    Back,
}

/// A worker goes.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Leave {
    pub worker: WorkerRef,
    /// Only this session's end counts: a worker that has joined anew meanwhile stays.
    pub session: Option<SessionId>,
    pub how: Leaving,
}

/// Whether a worker that goes may come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Leaving {
    /// Its tasks go back now.
    Gone,
    /// It may come back: its leases run on for so long.
    Away { grace_ms: u64 },
}

/// What a worker shall be given no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drain {
    /// Give it nothing more.
    All,
    /// Give it so many slots less.
    Slots(u32),
    /// Give it nothing more and take back what runs there.
    AtOnce,
    /// Back to work.
    Lift,
}

/// Which tasks of a job are meant.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Selection {
    pub job: JobId,
    pub which: Which,
}

/// Which of a job's tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Which {
    /// The job itself and so all its tasks.
    Job,
    /// First and last number of each range.
    Ranges(Vec<(u32, u32)>),
    InState(State),
}

/// How workers are judged. See `hub/conduct.rs`.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum ConductRule {
    Off,
    /// A failure counts only where others succeed on the same work.
    Compared,
    /// Every failure counts.
    Fixed,
}

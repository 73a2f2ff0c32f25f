//! One conversation with one peer, whatever its dialect: bytes and deliveries come in; bytes to say, things
//! to ask of the hub and output to keep go out. Who carries the bytes and how long anything takes is not
//! decided here.

mod output;

pub use output::{AttemptEnd, Chunk, Ends, HangUp, Output, Stream};

use bytes::BytesMut;
use laboro_core::{Drain, Grant, JobId, LeaseNo, Name, Reply, SessionId, TaskId, Time, WorkerId};
use std::net::IpAddr;
use std::sync::Arc;

/// The hub's side of a conversation. Whoever drives it calls one method at a time, then does what stands
/// in the output, and closes the connection when the output says so.
pub trait Session: Send {
    /// The connection stands. Some dialects speak first.
    fn open(&mut self, now: Time, out: &mut Output);

    /// Takes all whole messages off the front of `input`. What it leaves is the beginning of the next one,
    /// and it hangs up when that would grow beyond the limits.
    fn receive(&mut self, now: Time, input: &mut BytesMut, out: &mut Output);

    /// The same for one of several messages that came together. What follows from all of them, and not from this one
    /// alone, may wait for the `receive` that comes after the last, with bytes or without.
    fn hear(&mut self, now: Time, input: &mut BytesMut, out: &mut Output) {
        self.receive(now, input, out);
    }

    /// The hub answers, sends work or takes it back.
    fn deliver(&mut self, now: Time, delivery: Delivery, out: &mut Output);

    /// When `tick` is to be called at the latest.
    fn deadline(&self) -> Option<Time>;

    /// The deadline has come: says or gives up what was waiting for it.
    fn tick(&mut self, now: Time, out: &mut Output);

    /// The hub stops: what can still be said is said now. What is heard from here on is not acted on by a
    /// dialect that has a word for that. `close` follows.
    fn last_words(&mut self, now: Time, out: &mut Output) {
        let _ = (now, out);
    }

    /// After the last words: whether something is under way whose answer the peer still has to be told.
    fn owes_answers(&self) -> bool {
        false
    }

    /// After the last words: whether a request that was on its way then still gets an answer, so that it is
    /// worth hearing for a little while.
    fn answers_late(&self) -> bool {
        false
    }

    /// The hub stops, and everything that is owed has been answered: the very last thing to say.
    fn farewell(&mut self, now: Time, out: &mut Output) {
        let _ = (now, out);
    }

    /// The connection is gone, from whichever side. What is asked now still reaches the hub; what is said
    /// does not reach anybody.
    fn close(&mut self, now: Time, out: &mut Output);
}

/// What arrives at a session from the hub.
#[derive(Debug)]
#[allow(missing_docs)]
pub enum Delivery {
    /// The answer to what was asked with this tag.
    Reply { tag: u64, reply: Reply },
    /// Tasks for a worker of this session, each with its lease.
    Work { worker: WorkerId, grants: Vec<Grant> },
    /// Leases that do not count any more: the worker should end these tasks.
    Revoke { worker: WorkerId, leases: Vec<(TaskId, LeaseNo)> },
    /// The worker shall have less room, or leave. A dialect without a word for it lets it pass: the hub
    /// gives such a worker nothing more in any case.
    Stop { worker: WorkerId, drain: Drain },
    /// The worker has come on another connection: nothing more arrives at this one. A dialect whose workers have
    /// several at once, or a name for each, lets it pass.
    Replaced,
}

/// What a session knows of its connection and of the door that it came through.
#[derive(Clone)]
pub struct SessionContext {
    /// The number by which the hub knows this conversation.
    pub session: SessionId,
    /// The group that the door is bound to.
    pub group: Name,
    /// Where the peer connected from; `None` where it is in the same process.
    pub peer: Option<IpAddr>,
    /// The largest message taken, in bytes.
    pub message_max: usize,
    /// How long leases run on when a connection is lost.
    pub grace_ms: u64,
    /// Who may work at this door.
    pub admission: Arc<dyn Admission>,
}

impl std::fmt::Debug for SessionContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SessionContext")
            .field("session", &self.session)
            .field("group", &self.group)
            .field("peer", &self.peer)
            .finish_non_exhaustive()
    }
}

/// Who may come in. The hub keeps the tokens; a session only hands over what the peer showed.
pub trait Admission: Send + Sync {
    /// May a peer that shows this secret work here? Gives the group that the secret is bound to, if to one.
    fn admit_worker(
        &self,
        secret: &[u8],
        peer: Option<IpAddr>,
        now: Time,
    ) -> Result<Admitted, Denied>;

    /// A secret that opens the hub to a task of this job while the job lives. `None`: there are none here.
    fn job_secret(&self, _: JobId) -> Option<String> {
        None
    }
}

/// What a secret that was accepted allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Admitted {
    /// `None`: any group.
    pub group: Option<Name>,
}

/// In words for the peer: what was wrong and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denied(pub String);

/// Everybody may come in: for doors whose dialect has no authentication, and for tests.
#[derive(Clone, Copy, Debug)]
pub struct OpenAdmission;

impl Admission for OpenAdmission {
    fn admit_worker(&self, _: &[u8], _: Option<IpAddr>, _: Time) -> Result<Admitted, Denied> {
        Ok(Admitted { group: None })
    }
}

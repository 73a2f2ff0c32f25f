//! What a session wants done. Filled by the session, emptied by its driver.

use crate::messages;
use crate::worker::Used;
use bytes::{Bytes, BytesMut};
use laboro_core::{Command, LeaseNo, Name, Outcome, TaskId, Time, WorkerId};

/// Everything that one call of a session wants done.
#[derive(Debug, Default)]
pub struct Output {
    /// Bytes for the peer, in order. Write a message to it, then call `end_message`.
    pub say: BytesMut,
    /// Where each message in `say` ends. A byte stream has no use for it, a websocket has.
    ends: Vec<usize>,
    /// How many messages were taken from the peer, for those who count.
    pub heard: usize,
    /// How many of them could be neither understood nor answered.
    pub dropped: usize,
    /// Asked of the hub, with the tag that the reply will carry.
    pub ask: Vec<(u64, Command)>,
    /// Output of tasks, to be kept. Before anything asked in the same output is done, it is handed over.
    pub keep: Vec<Chunk>,
    /// Attempts that are over, to be kept too. Said beside their results, which decide what becomes of the
    /// tasks: this is only remembered.
    pub ended: Vec<Ends>,
    /// The conversation is over once everything above is done.
    pub hang_up: Option<HangUp>,
}

/// A piece of what a task wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Chunk {
    pub task: TaskId,
    pub lease: LeaseNo,
    pub attempt: u16,
    pub stream: Stream,
    /// How much its stream had before it, where the dialect says so: a piece said twice is kept once.
    pub offset: Option<u64>,
    pub bytes: Bytes,
}

/// Attempts that ended at one worker.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Ends {
    pub worker: WorkerId,
    pub name: Name,
    pub ends: Vec<AttemptEnd>,
}

/// One attempt that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct AttemptEnd {
    pub task: TaskId,
    pub lease: LeaseNo,
    /// 0: the worker does not say which.
    pub attempt: u16,
    pub outcome: Outcome,
    /// By the hub's clock.
    pub ended: Time,
    pub used: Used,
}

/// Which of the streams of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Stream {
    Out,
    Err,
    /// What the task gives back, which is not printed.
    Result,
}

/// Why a session ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HangUp {
    /// Everything is said.
    Finished,
    /// The peer said what its dialect does not have. Counted.
    Malformed(String),
    /// The peer may not come in. Counted.
    Denied(String),
    /// The peer was silent for too long. Counted.
    Silent,
}

impl Output {
    /// What was written to `say` since the last call is one message.
    pub fn end_message(&mut self) {
        self.ends.push(self.say.len());
    }

    /// Says one whole message.
    pub fn say_message(&mut self, message: &[u8]) {
        self.say.extend_from_slice(message);
        self.end_message();
    }

    /// Asks the hub; the reply carries this tag.
    pub fn ask(&mut self, tag: u64, command: Command) {
        self.ask.push((tag, command));
    }

    /// The first reason stands.
    pub fn hang_up(&mut self, why: HangUp) {
        self.hang_up.get_or_insert(why);
    }

    /// Hangs up because the peer said what its dialect does not have.
    pub fn malformed(&mut self, why: impl Into<String>) {
        self.hang_up(HangUp::Malformed(why.into()));
    }

    /// How many messages are to be said.
    pub fn messages(&self) -> usize {
        self.ends.len()
    }

    /// Everything to be said, as one piece.
    pub fn take_bytes(&mut self) -> BytesMut {
        self.ends.clear();
        self.say.split()
    }

    /// Everything to be said, message by message, for whoever copies it anyway.
    pub fn drain_messages(&mut self, take: impl FnMut(&[u8])) {
        messages::drain(&mut self.say, &mut self.ends, take);
    }

    /// Everything to be said, message by message.
    pub fn take_messages(&mut self) -> Vec<Bytes> {
        messages::take(&mut self.say, &mut self.ends)
    }
}

//! The heartbeat of the sides that connect: a PING at once, then one whenever nothing was heard for a while.

use super::codec::{Command, Envelope};
use crate::zmtp::Message;
use bytes::Bytes;
use laboro_core::Time;

const IDLE_MS: u64 = 120_000;
const ANSWER_MS: u64 = 10_000;

#[derive(Debug)]
pub(super) struct Pulse {
    /// The same in every PING of a connection.
    id: Bytes,
    due: Due,
}

#[derive(Clone, Copy, Debug)]
enum Due {
    /// There is no connection.
    Never,
    PingAt(Time),
    AnswerBy(Time),
}

impl Pulse {
    pub fn new() -> Pulse {
        Pulse { id: Bytes::new(), due: Due::Never }
    }

    pub fn open(&mut self, now: Time, number: u64, out: &mut Vec<Message>) {
        self.id = Bytes::copy_from_slice(&number.to_le_bytes());
        self.ping(now, out);
    }

    pub fn lost(&mut self) {
        self.due = Due::Never;
    }

    pub fn hear(&mut self, now: Time) {
        self.due = Due::PingAt(now.after_ms(IDLE_MS));
    }

    pub fn deadline(&self) -> Option<Time> {
        match self.due {
            Due::Never => None,
            Due::PingAt(at) | Due::AnswerBy(at) => Some(at),
        }
    }

    /// `false` when the other side is gone: it left a PING without an answer.
    pub fn tick(&mut self, now: Time, out: &mut Vec<Message>) -> bool {
        match self.due {
            Due::PingAt(at) if now >= at => self.ping(now, out),
            Due::AnswerBy(by) if now >= by => return false,
            _ => {}
        }
        true
    }

    fn ping(&mut self, now: Time, out: &mut Vec<Message>) {
        out.push(Envelope::new(Command::Ping, self.id.clone(), []).to_message());
        self.due = Due::AnswerBy(now.after_ms(ANSWER_MS));
    }
}

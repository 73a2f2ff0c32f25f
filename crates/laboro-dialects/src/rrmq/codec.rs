//! An rrmq message as frames and back: where it shall go, a command, an id, arguments, where it came from.

use crate::zmtp::Message;
use bytes::{Buf, Bytes};
use smallvec::SmallVec;

const PROTOCOL: &[u8] = b"LMQv100";

/// Frames of a message that belong together.
pub type Parts = SmallVec<[Bytes; 4]>;

/// One message, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// Whom it shall be passed on to, the next one first. Empty: it is for whoever gets it.
    pub hops: Parts,
    /// What is asked or answered.
    pub command: Command,
    /// Whatever the asker chose; the answer has the same.
    pub id: Bytes,
    /// What the command is about.
    pub args: Parts,
    /// Through whom it came, the oldest first.
    pub travelled: Parts,
}

/// What a message asks for or answers, as the server reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Are you there?
    Ping,
    /// The answer to a PING.
    Pong,
    /// Do this; no answer is wanted.
    Exec,
    /// Do this and answer.
    TrackExec,
    /// Do this, and answer where it is done.
    TrackAddress,
    /// The answer to a TRACKEXEC.
    Response,
}

/// What is to be done: the first argument of EXEC and TRACKEXEC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum App {
    Ping,
    Increment,
    Register,
    Deregister,
    Stream,
    More,
    Ongoing,
    Unknown,
}

/// Why a message cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum EnvelopeError {
    #[error("message has no empty frame before the protocol")]
    NoStart,
    #[error("message is not of the protocol LMQv100")]
    OtherProtocol,
    #[error("message has no command of one byte from 1 to 6")]
    NoCommand,
    #[error("message has no id")]
    NoId,
    #[error("message has no empty frame after its arguments")]
    NoEnd,
}

impl Envelope {
    /// A message for the next peer, which has travelled nowhere yet.
    pub fn new(command: Command, id: Bytes, args: impl IntoIterator<Item = Bytes>) -> Envelope {
        let (hops, travelled) = (Parts::new(), Parts::new());
        Envelope { hops, command, id, args: args.into_iter().collect(), travelled }
    }

    /// Takes a message apart. Its frames are shared, not copied.
    pub fn parse(message: &Message) -> Result<Envelope, EnvelopeError> {
        let mut frames = message.iter();
        let hops = until_empty(&mut frames).ok_or(EnvelopeError::NoStart)?;
        if frames.next().is_none_or(|frame| frame != PROTOCOL) {
            return Err(EnvelopeError::OtherProtocol);
        }
        let command = frames.next().and_then(|frame| Command::from_frame(frame));
        let command = command.ok_or(EnvelopeError::NoCommand)?;
        let id = frames.next().ok_or(EnvelopeError::NoId)?.clone();
        let args = until_empty(&mut frames).ok_or(EnvelopeError::NoEnd)?;
        Ok(Envelope { hops, command, id, args, travelled: frames.cloned().collect() })
    }

    /// The frames as they go out.
    pub fn to_message(&self) -> Message {
        let empty = std::iter::once(Bytes::new);
        let middle = [
            Bytes::from_static(PROTOCOL),
            Bytes::from_static(self.command.frame()),
            self.id.clone(),
        ];
        let start = self.hops.iter().cloned().chain(empty.clone().map(|empty| empty()));
        let end = empty.map(|empty| empty()).chain(self.travelled.iter().cloned());
        Message(start.chain(middle).chain(self.args.iter().cloned()).chain(end).collect())
    }

    /// An answer to this message, back the way it came.
    pub fn answer(&self, command: Command, args: impl IntoIterator<Item = Bytes>) -> Envelope {
        let mut answer = Envelope::new(command, self.id.clone(), args);
        answer.hops = self.travelled.iter().rev().cloned().collect();
        answer
    }

    /// What EXEC and TRACKEXEC want; `None` for other commands, and when it is missing.
    pub fn app(&self) -> Option<App> {
        match self.command {
            Command::Exec | Command::TrackExec => Some(App::from_frame(self.args.first()?)),
            _ => None,
        }
    }
}

fn until_empty<'a>(frames: &mut impl Iterator<Item = &'a Bytes>) -> Option<Parts> {
    let mut parts = Parts::new();
    loop {
        match frames.next()? {
            empty if empty.is_empty() => return Some(parts),
            frame => parts.push(frame.clone()),
        }
    }
}

impl Command {
    fn frame(self) -> &'static [u8] {
        match self {
            Command::Ping => &[1],
            Command::Pong => &[2],
            Command::Exec => &[3],
            Command::TrackExec => &[4],
            Command::TrackAddress => &[5],
            Command::Response => &[6],
        }
    }

    fn from_frame(frame: &[u8]) -> Option<Command> {
        match frame {
            [1] => Some(Command::Ping),
            [2] => Some(Command::Pong),
            [3] => Some(Command::Exec),
            [4] => Some(Command::TrackExec),
            [5] => Some(Command::TrackAddress),
            [6] => Some(Command::Response),
            _ => None,
        }
    }
}

impl App {
    /// `Unknown` is never said.
    pub(super) fn frame(self) -> Bytes {
        Bytes::from_static(match self {
            App::Ping => &[0x01],
            App::Increment => &[0x07],
            App::Register => &[0x08],
            App::Deregister => &[0x09],
            App::Stream => &[0x0a],
            App::More => b"mqs_more",
            App::Ongoing => b"ongoing",
            App::Unknown => b"",
        })
    }

    fn from_frame(frame: &[u8]) -> App {
        match frame {
            [0x01] => App::Ping,
            [0x07] => App::Increment,
            [0x08] => App::Register,
            [0x09] => App::Deregister,
            [0x0a] => App::Stream,
            b"mqs_more" => App::More,
            b"ongoing" => App::Ongoing,
            _ => App::Unknown,
        }
    }
}

/// A decimal number as strictly as it is written: digits only.
pub(super) fn decimal(frame: &[u8]) -> Option<u32> {
    let is_digits = !frame.is_empty() && frame.iter().all(u8::is_ascii_digit);
    is_digits.then(|| std::str::from_utf8(frame).ok()?.parse().ok()).flatten()
}

/// How an `ongoing` stands: two numbers, each a zigzag varint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Status {
    pub op: i64,
    pub error: i64,
}

impl Status {
    /// It is done.
    pub const OK: Status = Status { op: 10, error: 0 };
    /// It was not done.
    pub const FAILED: Status = Status { op: 20, error: 0 };

    /// As it stands in a message.
    pub fn to_frame(self) -> Bytes {
        let mut frame = Vec::with_capacity(4);
        for number in [self.op, self.error] {
            let mut rest = ((number << 1) ^ (number >> 63)) as u64;
            while rest >= 0x80 {
                frame.push(rest as u8 | 0x80);
                rest >>= 7;
            }
            frame.push(rest as u8);
        }
        frame.into()
    }

    /// `None`: not two whole numbers and nothing else.
    pub fn parse(mut frame: &[u8]) -> Option<Status> {
        let (op, error) = (zigzag(&mut frame)?, zigzag(&mut frame)?);
        frame.is_empty().then_some(Status { op, error })
    }
}

fn zigzag(frame: &mut &[u8]) -> Option<i64> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        if frame.is_empty() {
            return None;
        }
        let byte = frame.get_u8();
        // The tenth byte has room for one bit only.
        if shift == 63 && byte > 1 {
            return None;
        }
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some((value >> 1) as i64 ^ -((value & 1) as i64));
        }
    }
    None
}

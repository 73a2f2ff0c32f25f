//! The asking side of a conversation, for producers, workers and people alike: requests go out numbered, replies come
//! back with their number, in whatever order. Waiting and giving up are left to the caller.

use super::codec::{Query, decode};
use super::wire::WireError;
use crate::zmtp::{Connection, Limits, Mechanism, Message, Options, SocketType, ZmtpError};
use bytes::{Bytes, BytesMut};
use laboro_core::Time;

/// One connection to a dwork hub, ours or an original.
#[derive(Debug)]
pub struct Client {
    connection: Connection,
    next: u64,
}

/// One reply. Its number is that of the request.
#[derive(Clone, Debug)]
pub struct Reply {
    /// Of the request that it answers.
    pub number: u64,
    body: Bytes,
}

/// Why a connection to a hub ended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum ClientError {
    #[error(transparent)]
    Zmtp(#[from] ZmtpError),
    #[error("the hub answered with {frames} frames where three are due")]
    Frames { frames: usize },
    #[error("the hub answered a request that was not made")]
    Unasked,
}

/// The largest reply taken.
const REPLY_BYTES_MAX: usize = 64 << 20;

impl Client {
    /// Not connected yet.
    pub fn new(mechanism: Mechanism) -> Client {
        let limits = Limits {
            frame_bytes: REPLY_BYTES_MAX,
            message_bytes: REPLY_BYTES_MAX,
            ..Limits::default()
        };
        // A REQ socket may not ask again before it is answered; a DEALER with an envelope may, and knows
        // which answer is which also where a hub answers out of order.
        let options = Options { mechanism, limits, ..Options::new(SocketType::Dealer) };
        Client { connection: Connection::new(options), next: 0 }
    }

    /// The connection stands.
    pub fn open(&mut self, now: Time, say: &mut BytesMut) {
        self.connection.open(now, say);
    }

    /// Requests may be made from now on.
    pub fn is_ready(&self) -> bool {
        self.connection.is_ready()
    }

    /// Makes a request, written with a `QueryWriter`; gives its number.
    pub fn ask(&mut self, request: &[u8], say: &mut BytesMut) -> u64 {
        let number = self.next;
        self.next += 1;
        self.connection.send([&number.to_be_bytes()[..], &[], request], say);
        number
    }

    /// The next reply; `None` when there is no whole one. To be called until then, also before `is_ready`.
    pub fn receive(
        &mut self,
        now: Time,
        input: &mut BytesMut,
        say: &mut BytesMut,
    ) -> Result<Option<Reply>, ClientError> {
        let Some(Message(mut frames)) = self.connection.receive(now, input, say)? else {
            return Ok(None);
        };
        let (3, Some(body)) = (frames.len(), frames.pop()) else {
            return Err(ClientError::Frames { frames: frames.len() });
        };
        let number = <[u8; 8]>::try_from(&frames[0][..]).map(u64::from_be_bytes);
        match number {
            Ok(number) if number < self.next => Ok(Some(Reply { number, body })),
            _ => Err(ClientError::Unasked),
        }
    }

    /// When `tick` is to be called at the latest.
    pub fn deadline(&self) -> Option<Time> {
        self.connection.deadline()
    }

    /// The deadline has come.
    pub fn tick(&mut self, now: Time, say: &mut BytesMut) -> Result<(), ClientError> {
        Ok(self.connection.tick(now, say)?)
    }
}

impl Reply {
    /// The message in the reply.
    pub fn query(&self) -> Result<Query<'_>, WireError> {
        decode(&self.body, usize::MAX)
    }
}

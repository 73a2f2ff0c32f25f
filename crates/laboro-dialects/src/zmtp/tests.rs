//! What a ZMTP connection promises: between two of ours, to strangers, and to whoever must pay for memory.

mod curve;
mod heartbeat;
mod hostile;
mod properties;
mod talk;

use super::*;
use bytes::{Bytes, BytesMut};
use laboro_core::Time;

const NOW: Time = Time(1_000_000);

/// One side of a connection and what it has said and read.
struct Side {
    connection: Connection,
    input: BytesMut,
    say: BytesMut,
}

impl Side {
    fn open(options: Options) -> Side {
        let mut connection = Connection::new(options);
        let (input, mut say) = (BytesMut::new(), BytesMut::new());
        connection.open(NOW, &mut say);
        Side { connection, input, say }
    }

    fn hear(&mut self, bytes: &[u8]) -> Result<Vec<Message>, ZmtpError> {
        self.hear_at(NOW, bytes)
    }

    fn hear_at(&mut self, now: Time, bytes: &[u8]) -> Result<Vec<Message>, ZmtpError> {
        self.input.extend_from_slice(bytes);
        let mut messages = Vec::new();
        while let Some(message) = self.connection.receive(now, &mut self.input, &mut self.say)? {
            messages.push(message);
        }
        Ok(messages)
    }

    fn send(&mut self, frames: &[&[u8]]) {
        self.connection.send(frames.iter().copied(), &mut self.say);
    }
}

/// Carries bytes both ways until both are silent. The first error ends it.
fn converse(a: &mut Side, b: &mut Side) -> Result<Vec<Message>, ZmtpError> {
    let mut messages = Vec::new();
    while !a.say.is_empty() || !b.say.is_empty() {
        let said = a.say.split();
        messages.extend(b.hear(&said)?);
        let said = b.say.split();
        messages.extend(a.hear(&said)?);
    }
    Ok(messages)
}

fn options(socket: SocketType, identity: &'static str) -> Options {
    Options { identity: Bytes::from_static(identity.as_bytes()), ..Options::new(socket) }
}

fn server_options() -> Options {
    Options { as_server: true, ..options(SocketType::Router, "hub") }
}

/// A server that has the handshake behind it, with a DEALER that calls itself `peer`.
fn ready_server() -> Side {
    ready_server_with(Limits::default())
}

fn ready_server_with(limits: Limits) -> Side {
    let mut server = Side::open(Options { limits, ..server_options() });
    let mut client = Side::open(options(SocketType::Dealer, "peer"));
    converse(&mut client, &mut server).unwrap();
    assert!(server.connection.is_ready());
    server
}

fn message(frames: &[&[u8]]) -> Message {
    frames.iter().map(|frame| Bytes::copy_from_slice(frame)).collect()
}

/// A greeting of version 3.1 with this mechanism.
fn greeting(mechanism: &str, is_server: bool) -> Vec<u8> {
    let mut said = BytesMut::new();
    greeting::write(mechanism, is_server, 0, &mut said);
    said.to_vec()
}

fn command(name: &str, rest: &[u8]) -> Vec<u8> {
    let mut body = vec![name.len() as u8];
    body.extend_from_slice(name.as_bytes());
    body.extend_from_slice(rest);
    let mut said = BytesMut::new();
    frame::write(frame::COMMAND, &body, &mut said);
    said.to_vec()
}

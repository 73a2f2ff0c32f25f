//! One connection of the door: its socket, its ZMTP, and what was said but not sent. What the words mean is
//! not known here.

use super::poll::Wanted;
use bytes::{Buf, BytesMut};
use laboro_core::{Name, Time};
use laboro_dialects::zmtp::{Connection, Options};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};

/// Buffers of a peer that has nothing to say are kept for its next words only if they are small.
const KEPT_BYTES_MAX: usize = 32 << 10;

pub(super) struct BrokerPeer {
    pub stream: TcpStream,
    pub address: SocketAddr,
    pub connection: Connection,
    /// The beginning of a frame that is not whole.
    pub input: BytesMut,
    pub unsent: BytesMut,
    /// How much of it stands in the sum over all peers.
    pub counted: usize,
    /// The server knows it.
    pub is_open: bool,
    pub acquaintance: Acquaintance,
    /// It stands in the list of those that have something to be sent.
    pub is_listed: bool,
    pub wanted: Wanted,
    /// Since when it has taken nothing of what is there for it.
    pub stuck: Option<Time>,
    /// As it stands among the timers; never later than it has to be.
    pub timer: Option<Time>,
    /// Whoever let it in knows by this that it has gone.
    _guest: Box<dyn Send>,
}

/// What is known of a peer by what it has said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Acquaintance {
    New,
    /// Nothing but one PING.
    Pinged,
    /// There is no more to be said about it.
    Known,
}

/// What reading brought.
pub(super) struct Heard {
    pub bytes: usize,
    pub is_over: bool,
}

impl BrokerPeer {
    pub fn new(
        stream: TcpStream,
        address: SocketAddr,
        options: Options,
        now: Time,
        guest: Box<dyn Send>,
    ) -> BrokerPeer {
        let mut connection = Connection::new(options);
        let mut unsent = BytesMut::new();
        connection.open(now, &mut unsent);
        BrokerPeer {
            stream,
            address,
            connection,
            input: BytesMut::new(),
            unsent,
            counted: 0,
            is_open: false,
            acquaintance: Acquaintance::New,
            is_listed: false,
            wanted: Wanted::Input,
            stuck: None,
            timer: None,
            _guest: guest,
        }
    }

    /// For a log.
    pub fn shown(&self) -> String {
        match self.connection.peer_identity() {
            [] => self.address.to_string(),
            identity => format!("{} ({})", Name::new(identity), self.address),
        }
    }

    /// Reads what is there, up to a turn's worth. It goes through a buffer that all share: so each keeps only
    /// what it has really sent, and those that say nothing keep nothing.
    pub fn hear(&mut self, buffer: &mut [u8], turn_bytes: usize) -> Heard {
        let mut bytes = 0;
        while bytes < turn_bytes {
            match (&self.stream).read(buffer) {
                Ok(0) => return Heard { bytes, is_over: true },
                Ok(read) => {
                    self.input.extend_from_slice(&buffer[..read]);
                    bytes += read;
                    if read < buffer.len() {
                        break;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    let is_over = error.kind() != io::ErrorKind::WouldBlock;
                    return Heard { bytes, is_over };
                }
            }
        }
        Heard { bytes, is_over: false }
    }

    /// Sends what the peer takes now, and says how much that was.
    pub fn flush(&mut self, now: Time) -> io::Result<usize> {
        let mut sent = 0;
        while !self.unsent.is_empty() {
            match (&self.stream).write(&self.unsent) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => {
                    self.unsent.advance(written);
                    sent += written;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        if self.unsent.is_empty() {
            self.stuck = None;
            shrink(&mut self.unsent);
        } else if sent > 0 || self.stuck.is_none() {
            self.stuck = Some(now);
        }
        Ok(sent)
    }

    pub fn rest(&mut self) {
        if self.input.is_empty() {
            shrink(&mut self.input);
        }
    }

    /// When it has to be looked at though nothing happened.
    pub fn deadline(&self, write_ms: u64) -> Option<Time> {
        let stuck = self.stuck.map(|since| since.after_ms(write_ms));
        [self.connection.deadline(), stuck].into_iter().flatten().min()
    }
}

fn shrink(buffer: &mut BytesMut) {
    if buffer.capacity() > KEPT_BYTES_MAX {
        *buffer = BytesMut::new();
    } else {
        buffer.clear();
    }
}

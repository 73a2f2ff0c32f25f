//! One ZMTP connection, from the greeting to the end. Its driver passes in what was read and the time, and sends what
//! is in `say`; after an error the connection has ended, and what was written before is still sent.

use super::command::{self, Metadata};
use super::curve::Seal;
use super::error::ZmtpError;
use super::greeting::{self, GREETING_BYTES, Greeting};
use super::handshake::{Handshake, Met};
use super::key::KeyBytes;
use super::{Message, Options, SocketType, frame};
use bytes::{Buf, Bytes, BytesMut};
use laboro_core::Time;

/// One side of one connection.
pub struct Connection {
    options: Options,
    phase: ConnectionPhase,
    peer: Option<Metadata>,
    peer_key: Option<KeyBytes>,
    /// Set in a handshake that agrees on one; everything after it is sealed.
    seal: Option<Box<Seal>>,
    /// The frames of a message whose last one has not come yet, and their bytes together.
    partial: Message,
    partial_bytes: usize,
    /// Of a last frame that is left out: what is still to come.
    left_out: Option<u64>,
    heartbeat: Heartbeat,
}

enum ConnectionPhase {
    Greeting { until: Time },
    Handshake { until: Time, has_pings: bool, handshake: Handshake },
    Ready,
    Over(ZmtpError),
}

/// Who was heard when, and what is owed.
#[derive(Default)]
struct Heartbeat {
    heard: Time,
    /// How long the peer wants to be silent at most. 0: as long as it likes.
    peer_ttl_ms: u64,
    /// `None` where this side sends no PINGs.
    ping_at: Option<Time>,
    /// A PING went out and nothing was heard since.
    answer_by: Option<Time>,
}

impl Connection {
    /// Nothing was said yet; `open` begins.
    pub fn new(options: Options) -> Connection {
        Connection {
            options,
            phase: ConnectionPhase::Greeting { until: Time::NEVER },
            peer: None,
            peer_key: None,
            seal: None,
            partial: Message::new(),
            partial_bytes: 0,
            left_out: None,
            heartbeat: Heartbeat::default(),
        }
    }

    /// The byte stream stands: says the greeting, and the time for the handshake runs.
    pub fn open(&mut self, now: Time, say: &mut BytesMut) {
        let mechanism = &self.options.mechanism;
        let identity_bytes = self.options.identity.len();
        greeting::write(mechanism.name(), mechanism.is_server(), identity_bytes, say);
        self.phase =
            ConnectionPhase::Greeting { until: now.after_ms(self.options.limits.handshake_ms) };
        self.heartbeat.heard = now;
    }

    /// The next message off the front of `input`; `None` when there is no whole one. To be called until
    /// then. What it leaves in `input` is the beginning of a frame within the limits.
    #[inline]
    pub fn receive(
        &mut self,
        now: Time,
        input: &mut BytesMut,
        say: &mut BytesMut,
    ) -> Result<Option<Message>, ZmtpError> {
        if !input.is_empty() {
            self.heartbeat.heard = now;
            self.heartbeat.answer_by = None;
        }
        let received = match self.phase {
            ConnectionPhase::Ready => self.receive_traffic(input, say),
            _ => self.receive_handshake(now, input, say),
        };
        received.inspect_err(|error| self.end(error))
    }

    /// Says one message, of at least one frame. Only after `is_ready`.
    #[inline]
    pub fn send<'a>(&mut self, frames: impl IntoIterator<Item = &'a [u8]>, say: &mut BytesMut) {
        assert!(self.is_ready(), "messages are sent after the handshake");
        let mut frames = frames.into_iter();
        let Some(mut frame) = frames.next() else { return };
        for next in frames {
            write(&mut self.seal, frame::MORE, frame, say);
            frame = next;
        }
        write(&mut self.seal, 0, frame, say);
    }

    /// The handshake is over: messages may be sent.
    pub fn is_ready(&self) -> bool {
        matches!(self.phase, ConnectionPhase::Ready)
    }

    /// Empty before `is_ready`, and when the peer has none.
    pub fn peer_identity(&self) -> &[u8] {
        self.peer.as_ref().map_or(&[], |peer| &peer.identity)
    }

    /// `None` before `is_ready`.
    pub fn peer_socket(&self) -> Option<SocketType> {
        self.peer.as_ref().map(|peer| peer.socket)
    }

    /// The public key of a peer that has proven to have the secret; `None` without CURVE.
    pub fn peer_key(&self) -> Option<&KeyBytes> {
        self.peer_key.as_ref()
    }

    /// When `tick` is to be called at the latest.
    pub fn deadline(&self) -> Option<Time> {
        match self.phase {
            ConnectionPhase::Greeting { until } | ConnectionPhase::Handshake { until, .. } => {
                Some(until)
            }
            ConnectionPhase::Ready => self.heartbeat.deadline(),
            ConnectionPhase::Over(_) => None,
        }
    }

    /// The deadline has come: says PING, or ends the connection.
    pub fn tick(&mut self, now: Time, say: &mut BytesMut) -> Result<(), ZmtpError> {
        let limits = &self.options.limits;
        let done = match &self.phase {
            ConnectionPhase::Greeting { until } | ConnectionPhase::Handshake { until, .. }
                if now >= *until =>
            {
                Err(ZmtpError::SlowHandshake { ms: limits.handshake_ms })
            }
            ConnectionPhase::Greeting { .. } | ConnectionPhase::Handshake { .. } => Ok(()),
            ConnectionPhase::Ready => {
                self.heartbeat.check(now).map(|()| self.ping_if_due(now, say))
            }
            ConnectionPhase::Over(error) => return Err(error.clone()),
        };
        done.inspect_err(|error| self.end(error))
    }

    fn end(&mut self, error: &ZmtpError) {
        self.phase = ConnectionPhase::Over(error.clone());
        self.partial = Message::new();
    }

    fn receive_handshake(
        &mut self,
        now: Time,
        input: &mut BytesMut,
        say: &mut BytesMut,
    ) -> Result<Option<Message>, ZmtpError> {
        loop {
            match &mut self.phase {
                ConnectionPhase::Greeting { until } => {
                    let until = *until;
                    let mechanism = &self.options.mechanism;
                    let Some(greeting) = greeting::read(input, mechanism.name())? else {
                        return Ok(None);
                    };
                    input.advance(GREETING_BYTES);
                    self.greeted(&greeting, until, say)?;
                }
                ConnectionPhase::Handshake { has_pings, handshake, .. } => {
                    let has_pings = *has_pings;
                    let max = self.options.limits.command_bytes;
                    let Some(mut body) = handshake_command(input, max)? else { return Ok(None) };
                    let own = own_metadata(&self.options);
                    if let Some(met) = handshake.receive(&mut body, &own, say)? {
                        self.meet(met, has_pings, now);
                    }
                }
                ConnectionPhase::Ready => return self.receive_traffic(input, say),
                ConnectionPhase::Over(error) => return Err(error.clone()),
            }
        }
    }

    fn greeted(
        &mut self,
        greeting: &Greeting,
        until: Time,
        say: &mut BytesMut,
    ) -> Result<(), ZmtpError> {
        let mechanism = &self.options.mechanism;
        // libzmq never says that it is the server, so two clients are only found out by their words.
        if mechanism.is_server() && greeting.is_server {
            return Err(ZmtpError::TwoServers);
        }
        let handshake = Handshake::begin(mechanism, &own_metadata(&self.options), say);
        self.phase =
            ConnectionPhase::Handshake { until, has_pings: greeting.minor >= 1, handshake };
        Ok(())
    }

    /// The peer has said who it is.
    fn meet(&mut self, met: Met, has_pings: bool, now: Time) {
        let every_ms = self.options.limits.heartbeat_ms;
        if has_pings && !self.options.as_server && every_ms > 0 {
            self.heartbeat.ping_at = Some(now.after_ms(every_ms));
        }
        self.peer = Some(met.peer);
        self.peer_key = met.key;
        self.seal = met.seal;
        self.phase = ConnectionPhase::Ready;
    }

    #[inline]
    fn receive_traffic(
        &mut self,
        input: &mut BytesMut,
        say: &mut BytesMut,
    ) -> Result<Option<Message>, ZmtpError> {
        loop {
            if let Some(rest) = self.left_out {
                let here = within(rest, input.len()).unwrap_or(input.len());
                input.advance(here);
                self.left_out = (rest > here as u64).then(|| rest - here as u64);
                if self.left_out.is_some() {
                    return Ok(None);
                }
                self.partial_bytes = 0;
                return Ok(Some(std::mem::take(&mut self.partial)));
            }
            let Some(header) = frame::header(input)? else { return Ok(None) };
            if self.leaves_out(&header) {
                input.advance(header.bytes);
                self.left_out = Some(header.body);
                continue;
            }
            let bytes = self.body_bytes(&header)?;
            if input.len() < header.bytes + bytes {
                return Ok(None);
            }
            input.advance(header.bytes);
            let (has_more, is_command, body) = match &mut self.seal {
                // An empty slice would still hold on to the buffer.
                None if bytes == 0 => (header.has_more, header.is_command, Bytes::new()),
                None => (header.has_more, header.is_command, input.split_to(bytes).freeze()),
                Some(seal) => seal.open(input.split_to(bytes))?,
            };
            if is_command {
                self.obey(&body, say)?;
                continue;
            }
            if !has_more && self.partial.is_empty() {
                let mut message = Message::new();
                message.push(body);
                return Ok(Some(message));
            }
            self.partial_bytes += body.len();
            self.partial.push(body);
            if !has_more {
                self.partial_bytes = 0;
                return Ok(Some(std::mem::take(&mut self.partial)));
            }
        }
    }

    fn leaves_out(&self, header: &frame::FrameHeader) -> bool {
        let limits = &self.options.limits;
        limits.leaves_out_long
            && self.seal.is_none()
            && !header.is_command
            && !header.has_more
            && !self.partial.is_empty()
            && within(header.body, limits.frame_bytes).is_none()
    }

    /// How long the body is, if one of this size may come: known before its bytes are read.
    #[inline]
    fn body_bytes(&self, header: &frame::FrameHeader) -> Result<usize, ZmtpError> {
        let limits = &self.options.limits;
        if header.is_command && self.seal.is_none() {
            return command_bytes(header.body, limits.command_bytes);
        }
        // A sealed frame says inside what it is: a command is well below these limits too.
        let overhead = if self.seal.is_some() { Seal::OVERHEAD } else { 0 };
        if header.has_more && self.seal.is_some() {
            return Err(ZmtpError::Flags(frame::MORE));
        }
        if self.partial.len() >= limits.frames_a_message {
            return Err(ZmtpError::ManyFrames { max: limits.frames_a_message });
        }
        let max = limits.frame_bytes;
        let body = within(header.body, max.saturating_add(overhead))
            .ok_or(ZmtpError::LongFrame { bytes: header.body, max })?;
        let plain = body.saturating_sub(overhead);
        let (bytes, max) = (self.partial_bytes.saturating_add(plain), limits.message_bytes);
        if bytes > max {
            return Err(ZmtpError::LongMessage { bytes, max });
        }
        Ok(body)
    }

    /// A command between messages. What this version does not have is refused: SUBSCRIBE and CANCEL come
    /// only from sockets that none of ours talks to.
    fn obey(&mut self, body: &[u8], say: &mut BytesMut) -> Result<(), ZmtpError> {
        match command::split(body)? {
            (b"PING", rest) => {
                let (ttl_ms, context) = command::read_ping(rest)?;
                self.heartbeat.peer_ttl_ms = ttl_ms;
                self.say_command(&command::pong(context), say);
                Ok(())
            }
            (b"PONG", _) => Ok(()),
            (b"ERROR", rest) => Err(command::read_error(rest)),
            (name, _) => Err(command::other(name, "PING, PONG or a message")),
        }
    }

    fn say_command(&mut self, body: &[u8], say: &mut BytesMut) {
        write(&mut self.seal, frame::COMMAND, body, say);
    }

    fn ping_if_due(&mut self, now: Time, say: &mut BytesMut) {
        let limits = self.options.limits;
        if self.heartbeat.ping_at.is_some_and(|at| now >= at) {
            let ttl_ms = limits.heartbeat_ms.saturating_add(limits.silence_ms);
            self.say_command(&command::ping(ttl_ms), say);
            self.heartbeat.ping_at = Some(now.after_ms(limits.heartbeat_ms));
            self.heartbeat.answer_by.get_or_insert(now.after_ms(limits.silence_ms));
        }
    }
}

impl Heartbeat {
    /// When the peer will have broken the time to live that it set itself.
    fn peer_until(&self) -> Option<Time> {
        (self.peer_ttl_ms > 0).then(|| self.heard.after_ms(self.peer_ttl_ms))
    }

    fn deadline(&self) -> Option<Time> {
        [self.peer_until(), self.ping_at, self.answer_by].into_iter().flatten().min()
    }

    fn check(&self, now: Time) -> Result<(), ZmtpError> {
        let overdue = |by: Option<Time>| by.is_some_and(|by| now >= by);
        if overdue(self.peer_until()) || overdue(self.answer_by) {
            return Err(ZmtpError::Silent { ms: now.since_ms(self.heard) });
        }
        Ok(())
    }
}

fn own_metadata(options: &Options) -> Metadata {
    Metadata { socket: options.socket, identity: options.identity.clone() }
}

/// Takes one whole command off the front. Nothing else belongs into a handshake.
fn handshake_command(input: &mut BytesMut, max: usize) -> Result<Option<BytesMut>, ZmtpError> {
    let Some(header) = frame::header(input)? else { return Ok(None) };
    if !header.is_command {
        return Err(ZmtpError::EarlyMessage);
    }
    let body = command_bytes(header.body, max)?;
    if input.len() < header.bytes + body {
        return Ok(None);
    }
    input.advance(header.bytes);
    Ok(Some(input.split_to(body)))
}

fn command_bytes(body: u64, max: usize) -> Result<usize, ZmtpError> {
    within(body, max).ok_or(ZmtpError::LongCommand { bytes: body, max })
}

#[inline]
fn write(seal: &mut Option<Box<Seal>>, flags: u8, body: &[u8], say: &mut BytesMut) {
    match seal {
        None => frame::write(flags, body, say),
        Some(seal) => seal.write(flags, body, say),
    }
}

#[inline]
fn within(bytes: u64, max: usize) -> Option<usize> {
    usize::try_from(bytes).ok().filter(|&bytes| bytes <= max)
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection")
            .field("socket", &self.options.socket)
            .field("peer", &self.peer)
            .field("is_ready", &self.is_ready())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
impl Connection {
    pub(super) fn partial_bytes(&self) -> usize {
        self.partial_bytes
    }
}

//! The loop of the door's thread. A turn reads all sockets that have something, lets the server decide, and
//! then writes once to each peer that is told something: under load one call of the system carries many
//! messages, and alone a message waits for nothing.

use super::notes::{Registrations, note};
use super::peer::BrokerPeer;
use super::peers::Peers;
use super::poll::{BELL, LISTENER, Poll, PollBell, PollTurn, Ready, Wanted};
use super::report::Report;
use super::table::{self, Crowd};
use super::{Ask, MqError, MqSettings};
use crate::listen::Complaints;
use crate::listen::stats::count;
use laboro_api::BrokerTable;
use laboro_core::{PeerId, Time};
use laboro_dialects::rrmq::{Effect, Server};
use laboro_dialects::zmtp::{Message, Options, SocketType, ZmtpError};
use laboro_net::{Clock, set_keepalive};
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::io;
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Duration;

/// Read from one peer in one turn at most, so that a fast one leaves the others their time.
const TURN_BYTES: usize = 256 << 10;
const READ_BYTES: usize = 64 << 10;

/// Said to one peer before it is tried whether it takes some of it.
const EAGER_BYTES: usize = 1 << 20;

/// Taken from the line in one turn at most.
const ACCEPTS_A_TURN: usize = 64;

/// When the system has no more sockets to give, this long until the next try.
const OUT_OF_SOCKETS_MS: u64 = 100;

/// A peer whose machine does not answer for so long is gone. Workers are asked for a sign of life earlier.
const LOST_AFTER: Duration = Duration::from_secs(120);

pub(super) struct BrokerDoor {
    listener: TcpListener,
    settings: MqSettings,
    clock: Clock,
    asked: Receiver<Ask>,
    poll: Poll,
    server: Server,
    peers: Peers,
    effects: Vec<Effect>,
    /// Those that have something to be sent.
    told: Vec<PeerId>,
    buffer: Vec<u8>,
    report: Report,
    /// No one is let in until then.
    closed_until: Option<Time>,
    register: Registrations,
    complaints: Complaints,
    notes: Complaints,
    slow: u64,
}

impl BrokerDoor {
    pub fn new(
        listener: TcpListener,
        settings: MqSettings,
        clock: Clock,
        asked: Receiver<Ask>,
    ) -> io::Result<BrokerDoor> {
        listener.set_nonblocking(true)?;
        let poll = Poll::new()?;
        poll.add(&listener, LISTENER)?;
        // Names come from peers, and must not be made to collide.
        let seed = RandomState::new().hash_one(0);
        Ok(BrokerDoor {
            listener,
            server: Server::new(settings.broker, seed),
            settings,
            clock,
            asked,
            poll,
            peers: Peers::default(),
            effects: Vec::new(),
            told: Vec::new(),
            buffer: vec![0; READ_BYTES],
            report: Report::default(),
            closed_until: None,
            register: Registrations::default(),
            complaints: Complaints::default(),
            notes: Complaints::default(),
            slow: 0,
        })
    }

    pub fn bell(&self) -> Arc<PollBell> {
        self.poll.bell()
    }

    pub fn run(mut self) -> Result<(), MqError> {
        let mut turn = PollTurn::new();
        loop {
            let timeout = self.deadline().map(|at| self.clock.until(at));
            self.poll.wait(timeout.map(round_up), &mut turn).map_err(MqError::Poll)?;
            let now = self.clock.now();
            for ready in turn.ready() {
                match ready.key {
                    LISTENER => self.accept(now),
                    BELL => {
                        if self.obey(now).is_break() {
                            return Ok(());
                        }
                    }
                    _ => self.attend(now, ready),
                }
            }
            self.tick(now);
            self.send(now);
        }
    }

    fn deadline(&self) -> Option<Time> {
        let report = self.report.deadline();
        let own = [self.peers.deadline(), self.closed_until, report];
        own.into_iter().chain([self.server.deadline()]).flatten().min()
    }

    fn obey(&mut self, now: Time) -> std::ops::ControlFlow<()> {
        self.poll.bell().hush();
        while let Ok(ask) = self.asked.try_recv() {
            match ask {
                // Whoever asked may have gone since.
                Ask::Table(reply) => drop(reply.send(self.table(now))),
                Ask::Stop => {
                    self.send(now);
                    return std::ops::ControlFlow::Break(());
                }
            }
        }
        std::ops::ControlFlow::Continue(())
    }

    fn table(&self, now: Time) -> BrokerTable {
        table::table_of(self.server.broker(), now, self.crowd())
    }

    fn crowd(&self) -> Crowd {
        let unread_bytes = self.peers.unread_bytes();
        Crowd { connections: self.peers.len(), unread_bytes, slow: self.slow }
    }

    fn accept(&mut self, now: Time) {
        for _ in 0..ACCEPTS_A_TURN {
            match self.listener.accept() {
                Ok((stream, address)) => {
                    let is_full = self.peers.len() >= self.settings.connections_max;
                    let guest = (self.settings.admit)(address.ip()).filter(|_| !is_full);
                    let Some(guest) = guest else {
                        tracing::debug!("{address} was refused");
                        continue;
                    };
                    if let Err(error) = self.enter(now, stream, address, guest) {
                        tracing::debug!("{address} cannot come in: {error}");
                    }
                }
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => return,
                    // Whoever gave up while waiting in line is no trouble.
                    io::ErrorKind::ConnectionAborted | io::ErrorKind::Interrupted => {}
                    _ => {
                        tracing::error!("cannot accept connections: {error}");
                        self.close_listener_until(now.after_ms(OUT_OF_SOCKETS_MS));
                        return;
                    }
                },
            }
        }
    }

    /// The listener would be told of in every turn.
    fn close_listener_until(&mut self, until: Time) {
        if self.poll.change(&self.listener, LISTENER, Wanted::Nothing).is_ok() {
            self.closed_until = Some(until);
        }
    }

    fn enter(
        &mut self,
        now: Time,
        stream: TcpStream,
        address: std::net::SocketAddr,
        guest: Box<dyn Send>,
    ) -> io::Result<()> {
        stream.set_nonblocking(true)?;
        // Small messages shall not wait for each other.
        stream.set_nodelay(true)?;
        let _ = set_keepalive(&stream, LOST_AFTER);
        let options = Options {
            identity: self.settings.identity.clone(),
            mechanism: self.settings.mechanism.clone(),
            as_server: true,
            limits: self.settings.limits,
            ..Options::new(SocketType::Router)
        };
        let id = self.peers.next_id();
        self.poll.add(&stream, id.0)?;
        self.peers.insert(id, BrokerPeer::new(stream, address, options, now, guest));
        self.list(id);
        Ok(())
    }

    fn attend(&mut self, now: Time, ready: Ready) {
        let id = PeerId(ready.key);
        if ready.is_writable {
            self.list(id);
        }
        if ready.is_readable {
            self.hear(now, id);
        }
    }

    /// Takes in all that a peer has said.
    fn hear(&mut self, now: Time, id: PeerId) {
        let Some(peer) = self.peers.get(id) else { return };
        let heard = peer.hear(&mut self.buffer, TURN_BYTES);
        count(&self.settings.stats.bytes_in, heard.bytes);
        let end = loop {
            match self.understand(now, id) {
                Words::Over => break heard.is_over.then_some(End::Left),
                Words::Senseless(error) => break Some(End::Malformed(error)),
                // The answer is long: who asks and does not read is found out before it has many.
                Words::Table => self.deliver(now),
            }
        };
        if let Some(peer) = self.peers.get(id) {
            peer.rest();
            self.register.tell(self.server.broker().counters(), peer, &self.notes);
            if !peer.unsent.is_empty() {
                self.list(id);
            }
        }
        self.deliver(now);
        match end {
            Some(end) => self.end(now, id, &end),
            None => self.peers.schedule(id, self.settings.write_ms),
        }
    }

    /// Gives the server what was read, up to a request for the table.
    fn understand(&mut self, now: Time, id: PeerId) -> Words {
        let crowd = self.crowd();
        let Some(peer) = self.peers.get(id) else { return Words::Over };
        loop {
            let received = peer.connection.receive(now, &mut peer.input, &mut peer.unsent);
            if !peer.is_open && peer.connection.is_ready() {
                peer.is_open = true;
                tracing::debug!("{} comes in", peer.shown());
                let identity = peer.connection.peer_identity();
                self.server.open(now, id, identity, &mut self.effects);
            }
            match received {
                Ok(Some(message)) if table::is_asked_for(&message) => {
                    let table = table::table_of(self.server.broker(), now, crowd);
                    let answer = table::answer(&message, &table);
                    self.effects.extend(answer.map(|message| Effect::Send { to: id, message }));
                    return Words::Table;
                }
                Ok(Some(message)) => {
                    count(&self.settings.stats.messages_in, 1);
                    note(peer, &message, &self.notes, || self.server.broker().is_worker(id));
                    if let Err(why) = self.server.receive(now, id, message, &mut self.effects) {
                        self.report.blame(why, peer);
                    }
                }
                Ok(None) => return Words::Over,
                Err(error) => return Words::Senseless(error),
            }
        }
    }

    /// What the server wants done.
    fn deliver(&mut self, now: Time) {
        let mut effects = std::mem::take(&mut self.effects);
        for effect in effects.drain(..) {
            match effect {
                Effect::Send { to, message } => self.tell(now, to, &message),
                Effect::Close { peer } => self.end(now, peer, &End::Replaced),
            }
        }
        self.effects = effects;
    }

    fn tell(&mut self, now: Time, to: PeerId, message: &Message) {
        // It may have gone, or broken its word, in this same turn.
        let Some(peer) = self.peers.get(to).filter(|peer| peer.connection.is_ready()) else {
            return;
        };
        peer.connection.send(message.slices(), &mut peer.unsent);
        count(&self.settings.stats.messages_out, 1);
        if peer.unsent.len() > EAGER_BYTES && peer.wanted == Wanted::Input {
            self.flush(now, to);
        }
        self.peers.count_unread(to);
        let max = self.settings.unsent_bytes_max;
        match self.peers.get(to) {
            Some(peer) if peer.unsent.len() > max => self.end(now, to, &End::Slow),
            Some(_) => self.list(to),
            None => {}
        }
        if self.peers.unread_bytes() > self.settings.unsent_bytes_all_max {
            self.make_room(now);
        }
    }

    /// Too much is unread by all together. What was said in this turn has not been offered to them yet; if
    /// that was not it, the slowest has to go.
    #[cold]
    fn make_room(&mut self, now: Time) {
        self.send(now);
        while self.peers.unread_bytes() > self.settings.unsent_bytes_all_max
            && let Some(id) = self.peers.slowest()
        {
            self.end(now, id, &End::Slow);
        }
    }

    fn list(&mut self, id: PeerId) {
        if let Some(peer) = self.peers.get(id)
            && !std::mem::replace(&mut peer.is_listed, true)
        {
            self.told.push(id);
        }
    }

    /// Sends to all that were told something.
    fn send(&mut self, now: Time) {
        let mut told = std::mem::take(&mut self.told);
        for id in told.drain(..) {
            if let Some(peer) = self.peers.get(id) {
                peer.is_listed = false;
                self.flush(now, id);
            }
        }
        self.told = told;
    }

    fn flush(&mut self, now: Time, id: PeerId) {
        let Some(peer) = self.peers.get(id) else { return };
        let Ok(sent) = peer.flush(now) else { return self.end(now, id, &End::Left) };
        count(&self.settings.stats.bytes_out, sent);
        self.peers.count_unread(id);
        let Some(peer) = self.peers.get(id) else { return };
        let wanted = if peer.unsent.is_empty() { Wanted::Input } else { Wanted::InputAndRoom };
        if peer.wanted != wanted {
            peer.wanted = wanted;
            if self.poll.change(&peer.stream, id.0, wanted).is_err() {
                return self.end(now, id, &End::Left);
            }
        }
        self.peers.schedule(id, self.settings.write_ms);
    }

    /// What time brings.
    fn tick(&mut self, now: Time) {
        if self.server.deadline().is_some_and(|at| at <= now) {
            self.server.tick(now, &mut self.effects);
            self.report.want();
            self.deliver(now);
        }
        while let Some(id) = self.peers.due(now) {
            let Some(peer) = self.peers.get(id) else { continue };
            let write_ms = self.settings.write_ms;
            let is_stuck = peer.stuck.is_some_and(|since| now >= since.after_ms(write_ms));
            match peer.connection.tick(now, &mut peer.unsent) {
                Err(error) => self.end(now, id, &End::Silent(error)),
                Ok(()) if is_stuck => self.end(now, id, &End::Slow),
                Ok(()) => {
                    self.list(id);
                    self.peers.schedule(id, write_ms);
                }
            }
        }
        if self.closed_until.is_some_and(|until| now >= until) {
            self.closed_until = None;
            if self.poll.change(&self.listener, LISTENER, Wanted::Input).is_err() {
                self.closed_until = Some(now.after_ms(OUT_OF_SOCKETS_MS));
            }
        }
        self.report.say_if_due(now, self.server.broker().counters());
    }

    /// A connection is over. Its last words, such as why it is refused, are tried to be sent.
    fn end(&mut self, now: Time, id: PeerId, end: &End) {
        let Some(mut peer) = self.peers.remove(id) else { return };
        let _ = peer.flush(now);
        let stats = &self.settings.stats;
        match end {
            End::Left | End::Replaced => tracing::debug!("{} has gone: {end:?}", peer.shown()),
            End::Malformed(why) if why.is_denial() => {
                count(&stats.denied, 1);
                self.complaints.warn(format_args!("{} was denied: {why}", peer.shown()));
            }
            End::Malformed(why) => {
                count(&stats.malformed, 1);
                self.complaints.warn(format_args!("{} sent malformed data: {why}", peer.shown()));
            }
            End::Silent(why) => {
                count(&stats.silent, 1);
                self.notes.info(format_args!("{} is cut off: {why}", peer.shown()));
            }
            End::Slow => {
                self.slow += 1;
                count(&stats.slow, 1);
                let bytes = peer.unsent.len();
                let who = peer.shown();
                self.complaints
                    .warn(format_args!("{who} is cut off: it left {bytes} bytes unread"));
            }
        }
        if peer.is_open {
            self.server.close(now, id);
        }
    }
}

/// What came of what was read.
enum Words {
    /// All of it is understood, up to the beginning of a message.
    Over,
    Senseless(ZmtpError),
    /// The table was asked for, and its answer is to be delivered before anything else is read.
    Table,
}

/// Why a connection is over.
#[derive(Debug)]
enum End {
    Left,
    /// Its name came again on another one, or it was silent for too long.
    Replaced,
    Malformed(ZmtpError),
    Silent(ZmtpError),
    Slow,
}

/// The system counts its time out in whole milliseconds, where it is old, and the core does too.
fn round_up(timeout: Duration) -> Duration {
    Duration::from_millis(u64::try_from(timeout.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX))
}

//! A hub with peers around it, without sockets, disk or clock: what sessions ask goes through the real core,
//! what it says goes back through real connections.

use crate::dwork::codec::{Kind, Query, decode};
use crate::dwork::{HubDoor, HubSide, Settings};
use crate::session::{Delivery, OpenAdmission, Output, Session, SessionContext};
use crate::zmtp::{Connection, Message, Options, SocketType};
use bytes::BytesMut;
use laboro_core::{
    Ask, Batch, Command, Config, Effect, Event, Hub, Ledger, Query as Question, Reply, SessionId,
    TaskRef, TaskView, Time, Token,
};
use std::sync::Arc;

pub(super) struct Ring {
    hub: Hub,
    pub(super) now: Time,
    pub(super) door: Arc<HubDoor>,
    peers: Vec<Peer>,
    /// What a journal would hold.
    events: Vec<(Time, Event)>,
    second_first: bool,
}

struct Peer {
    side: HubSide,
    output: Output,
    connection: Connection,
    /// What has arrived at the peer and is not read yet.
    inbox: BytesMut,
    answers: Vec<Message>,
    socket: SocketType,
    /// Whoever is there has a connection of its own: only bytes are carried.
    is_raw: bool,
}

impl Ring {
    /// Nothing waits by itself: a steal without work is answered at once.
    pub(super) fn new() -> Ring {
        Ring::with(Settings { patience_ms: 0, ..Settings::default() })
    }

    pub(super) fn with(settings: Settings) -> Ring {
        let now = Time(1_794_769_000_000);
        let (hub, first) = Hub::begin(Ledger::default(), Config::default(), now, 1);
        let door = HubDoor::new(settings);
        let mut ring =
            Ring { hub, now, door, peers: Vec::new(), events: Vec::new(), second_first: false };
        ring.keep(first);
        ring
    }

    /// The hub is gone with all connections; another goes on with what was journaled.
    pub(super) fn restart(&mut self) {
        let mut ledger = Ledger::default();
        for (at, event) in &self.events {
            ledger.apply(*at, event);
        }
        let (hub, first) = Hub::begin(ledger, Config::default(), self.now, 1);
        self.hub = hub;
        self.peers.clear();
        self.door = HubDoor::new(self.door.settings.clone());
        self.keep(first);
    }

    /// A peer of bytes alone.
    pub(super) fn attach(&mut self) -> usize {
        let mut peer = self.peer(SocketType::Dealer);
        peer.is_raw = true;
        peer.side.open(self.now, &mut peer.output);
        self.peers.push(peer);
        self.peers.len() - 1
    }

    pub(super) fn take_bytes(&mut self, peer: usize) -> BytesMut {
        self.peers[peer].inbox.split()
    }

    fn peer(&self, socket: SocketType) -> Peer {
        let context = SessionContext {
            session: SessionId(self.peers.len() as u64),
            group: "default".into(),
            peer: None,
            message_max: 1 << 20,
            grace_ms: 0,
            admission: Arc::new(OpenAdmission),
        };
        Peer {
            side: HubSide::new(context, self.door.clone()),
            output: Output::default(),
            connection: Connection::new(Options::new(socket)),
            inbox: BytesMut::new(),
            answers: Vec::new(),
            socket,
            is_raw: false,
        }
    }

    pub(super) fn connect(&mut self, socket: SocketType) -> usize {
        let mut peer = self.peer(socket);
        let mut say = BytesMut::new();
        peer.side.open(self.now, &mut peer.output);
        peer.connection.open(self.now, &mut say);
        for _ in 0..3 {
            peer.side.receive(self.now, &mut say, &mut peer.output);
            peer.inbox.unsplit(peer.output.take_bytes());
            let none = peer.connection.receive(self.now, &mut peer.inbox, &mut say);
            assert_eq!(none, Ok(None));
        }
        assert!(peer.connection.is_ready());
        self.peers.push(peer);
        self.peers.len() - 1
    }

    /// The peer sends frames; the hub does what is to be done at once.
    pub(super) fn send(&mut self, peer: usize, frames: &[&[u8]]) {
        let mut say = BytesMut::new();
        self.peers[peer].connection.send(frames.iter().copied(), &mut say);
        self.send_bytes(peer, say);
        self.turn();
    }

    pub(super) fn send_bytes(&mut self, peer: usize, mut bytes: BytesMut) {
        let Peer { side, output, .. } = &mut self.peers[peer];
        side.receive(self.now, &mut bytes, output);
    }

    /// A request that the hub has not looked at yet.
    pub(super) fn send_only(&mut self, peer: usize, body: &[u8]) {
        let mut say = BytesMut::new();
        self.peers[peer].connection.send([&[][..], body], &mut say);
        self.send_bytes(peer, say);
    }

    /// One request of a REQ peer and its answer.
    pub(super) fn ask(&mut self, peer: usize, body: &[u8]) -> Option<Vec<u8>> {
        assert_eq!(self.peers[peer].socket, SocketType::Req);
        self.send(peer, &[b"", body]);
        self.answers(peer).pop().map(|answer| {
            assert_eq!((answer.len(), answer.0[0].len()), (2, 0), "delimiter and body");
            answer.0[1].to_vec()
        })
    }

    pub(super) fn answers(&mut self, peer: usize) -> Vec<Message> {
        std::mem::take(&mut self.peers[peer].answers)
    }

    pub(super) fn close(&mut self, peer: usize) {
        let Peer { side, output, .. } = &mut self.peers[peer];
        side.close(self.now, output);
    }

    /// The hub says to every session that it stops.
    pub(super) fn stop(&mut self) {
        for peer in &mut self.peers {
            peer.side.last_words(self.now, &mut peer.output);
        }
        self.turn();
    }

    pub(super) fn hung_up(&self, peer: usize) -> bool {
        self.peers[peer].output.hang_up.is_some()
    }

    pub(super) fn dropped(&self, peer: usize) -> usize {
        self.peers[peer].output.dropped
    }

    /// The ring turns until nobody has anything more to ask.
    pub(super) fn turn(&mut self) {
        loop {
            let asks = self.asks();
            let is_last = asks.is_empty();
            let batch = self.hub.step(self.now, asks);
            let effects = self.keep(batch);
            for effect in effects {
                if let Effect::Reply { token, reply } = effect {
                    let (peer, tag) = untoken(token);
                    let Peer { side, output, .. } = &mut self.peers[peer];
                    side.deliver(self.now, Delivery::Reply { tag, reply }, output);
                }
            }
            self.carry();
            if is_last {
                return;
            }
        }
    }

    fn asks(&mut self) -> Vec<Ask> {
        let mut asks = Vec::new();
        let mut order: Vec<(usize, &mut Peer)> = self.peers.iter_mut().enumerate().collect();
        if self.second_first {
            order.swap(0, 1);
        }
        for (at, peer) in order {
            for (tag, command) in peer.output.ask.drain(..) {
                let command = match command {
                    Command::Withdraw(Token(tag)) => Command::Withdraw(token(at, tag)),
                    command => command,
                };
                asks.push(Ask { token: token(at, tag), command });
            }
        }
        asks
    }

    /// Takes what the hub's sides say to the peers.
    fn carry(&mut self) {
        for peer in &mut self.peers {
            peer.inbox.unsplit(peer.output.take_bytes());
            if peer.is_raw {
                continue;
            }
            let mut say = BytesMut::new();
            while let Some(message) =
                peer.connection.receive(self.now, &mut peer.inbox, &mut say).unwrap()
            {
                peer.answers.push(message);
            }
        }
    }

    fn keep(&mut self, batch: Batch) -> Vec<Effect> {
        let at = batch.at;
        self.events.extend(batch.events.iter().map(|event| (at, event.clone())));
        crate::nowhere::release(batch)
    }

    /// What the first peer asks next comes after what the second asks.
    pub(super) fn swap_first_two(&mut self) {
        self.second_first = true;
    }

    pub(super) fn hub(&mut self) -> &mut Hub {
        &mut self.hub
    }
}

/// Conversations in few words.
impl Ring {
    /// One request and its answer in few words; `nothing` while it waits.
    #[track_caller]
    pub(super) fn hears(&mut self, peer: usize, request: BytesMut, answer: &str) {
        self.send(peer, &[b"", &request]);
        self.heard(peer, answer);
    }

    #[track_caller]
    pub(super) fn heard(&mut self, peer: usize, answer: &str) {
        let bodies = self.answers(peer);
        let words: Vec<String> = bodies.iter().map(|m| show(m.0.last().unwrap())).collect();
        let words = if words.is_empty() { "nothing".to_owned() } else { words.join(", ") };
        assert_eq!(words, answer);
    }

    pub(super) fn pass(&mut self, ms: u64) {
        self.now = self.now.after_ms(ms);
        self.turn();
    }

    pub(super) fn command(&mut self, command: Command) -> Vec<Effect> {
        let now = self.now;
        let ask = Ask { token: Token(u64::MAX), command };
        crate::nowhere::release(self.hub().step(now, vec![ask]))
    }

    pub(super) fn task(&mut self, name: &str) -> Box<TaskView> {
        let (group, task) = ("default".into(), TaskRef::Name(name.into()));
        match self.command(Command::Query(Question::Task { group, task })).pop() {
            Some(Effect::Reply { reply: Reply::Task(view), .. }) => view,
            other => panic!("{other:?}"),
        }
    }
}

fn token(peer: usize, tag: u64) -> Token {
    Token((peer as u64) << 48 | tag & 0xffff_ffff_ffff)
}

fn untoken(token: Token) -> (usize, u64) {
    ((token.0 >> 48) as usize, token.0 & 0xffff_ffff_ffff)
}

/// A reply in few words: its type, the names of its tasks, what else it has.
pub(super) fn show(body: &[u8]) -> String {
    let Ok(query) = decode(body, 1000) else { return format!("unreadable {body:02x?}") };
    let Query { kind, tasks, name, n, location } = query;
    let mut words = match kind {
        Kind::Ok => "OK".to_owned(),
        kind => format!("{kind:?}"),
    };
    if !tasks.is_empty() {
        let names: Vec<String> = tasks.iter().map(|t| t.name.escape_ascii().to_string()).collect();
        words += &format!(" [{}]", names.join(" "));
    }
    if let Some(name) = name {
        words += &format!(" \"{}\"", name.escape_ascii());
    }
    if let Some(n) = n {
        words += &format!(" n={n}");
    }
    if let Some(location) = location {
        words += &format!(" at {}", location.escape_ascii());
    }
    words
}

/// Requests, as a client would write them.
pub(super) mod say {
    use crate::dwork::codec::{Dep, Kind, Log, QueryWriter};
    use bytes::BytesMut;

    /// `b<a,c` comes after `a` and `c`.
    fn tasks(kind: Kind, tasks: &str, log: &[Log], to: &mut BytesMut) {
        let mut query = QueryWriter::new(kind, to);
        for word in tasks.split_whitespace() {
            let (name, preds) = word.split_once('<').unwrap_or((word, ""));
            let preds = preds.split(',').filter(|pred| !pred.is_empty());
            let preds = preds.map(|pred| Dep::new(pred.as_bytes()));
            query = query.task(name.as_bytes(), b"cli", preds, log);
        }
    }

    pub(in super::super) fn create(names: &str) -> BytesMut {
        create_with_log(names, &[])
    }

    pub(in super::super) fn create_with_log(names: &str, log: &[Log]) -> BytesMut {
        let mut bytes = BytesMut::new();
        tasks(Kind::Create, names, log, &mut bytes);
        bytes
    }

    pub(in super::super) fn complete(names: &str, location: &str) -> BytesMut {
        complete_with_log(names, location, &[])
    }

    pub(in super::super) fn complete_with_log(
        names: &str,
        location: &str,
        log: &[Log],
    ) -> BytesMut {
        let mut bytes = BytesMut::new();
        tasks(Kind::Complete, names, log, &mut bytes);
        with_location(bytes, location)
    }

    pub(in super::super) fn transfer(names: &str, location: &str) -> BytesMut {
        let mut bytes = BytesMut::new();
        tasks(Kind::Transfer, names, &[], &mut bytes);
        with_location(bytes, location)
    }

    fn with_location(mut bytes: BytesMut, location: &str) -> BytesMut {
        bytes.extend_from_slice(&[0x32, location.len() as u8]);
        bytes.extend_from_slice(location.as_bytes());
        bytes
    }

    pub(in super::super) fn steal(n: i32, location: &str) -> BytesMut {
        let mut bytes = BytesMut::new();
        QueryWriter::new(Kind::Steal, &mut bytes).n(n).location(location.as_bytes());
        bytes
    }

    pub(in super::super) fn exit(location: &str) -> BytesMut {
        let mut bytes = BytesMut::new();
        QueryWriter::new(Kind::Exit, &mut bytes).location(location.as_bytes());
        bytes
    }

    pub(in super::super) fn lookup(name: &str) -> BytesMut {
        let mut bytes = BytesMut::new();
        QueryWriter::new(Kind::Lookup, &mut bytes).name(name.as_bytes());
        bytes
    }

    pub(in super::super) fn status() -> BytesMut {
        let mut bytes = BytesMut::new();
        QueryWriter::new(Kind::Ok, &mut bytes);
        bytes
    }
}

//! The request broker's own world: the real server around the core's broker, real workers, clients with
//! requests that can be told apart, ZMTP on both ends of lines that split and break. Nothing of it is
//! journaled, so a crash forgets everything; what must hold is that no request is done twice, that slots are
//! what was registered, and that what is not done is counted.

mod side;

use crate::clock::Offset;
use crate::dice::Dice;
use crate::network::{Pipe, Weather};
use crate::plan::Sabotage;
use crate::promise::{Broken, Kept, Promise};
use crate::timeline::Timeline;
use bytes::{Bytes, BytesMut};
use laboro_core::{BrokerConfig, Counters, Dropped, PeerId, Time};
use laboro_dialects::rrmq::{Command, Effect, Envelope, Server};
use laboro_dialects::zmtp::{Connection, Options, SocketType, ZmtpError};
use side::Side;
use std::collections::{BTreeMap, BTreeSet};

pub(crate) struct BrokerWorld<'a> {
    now: u64,
    dice: Dice,
    weather: Weather,
    config: BrokerConfig,
    server: Option<Server>,
    up_at: u64,
    lines: BTreeMap<u64, BrokerLine>,
    next_line: u64,
    sides: Vec<Side>,
    /// Requests that were sent to a worker in this life of the server.
    sent: BTreeSet<Bytes>,
    timeline: &'a mut Timeline,
    trouble_ms: u64,
    trouble_at: u64,
    is_calm: bool,
    sabotage: Option<Sabotage>,
    messages: u64,
    pub requests: u64,
}

struct BrokerLine {
    up: Pipe,
    down: Pipe,
    side: usize,
    /// The server's end; `None` when it is closed.
    server: Option<End>,
    /// The other end.
    peer: Option<End>,
}

/// One end of a line.
struct End {
    connection: Connection,
    input: BytesMut,
    has_met: bool,
}

impl End {
    fn new(options: Options, now: Time, pipe: &mut Pipe, world: (u64, &Weather, &mut Dice)) -> End {
        let mut connection = Connection::new(options);
        let mut say = BytesMut::new();
        connection.open(now, &mut say);
        pipe.send(world.0, say.freeze(), world.1, world.2);
        End { connection, input: BytesMut::new(), has_met: false }
    }
}

const TURBULENT_MS: u64 = 20_000;
const CALM_MS: u64 = 200_000;
const SEED: u64 = 11;

impl<'a> BrokerWorld<'a> {
    pub fn new(
        mut dice: Dice,
        sabotage: Option<Sabotage>,
        timeline: &'a mut Timeline,
    ) -> BrokerWorld<'a> {
        let config = BrokerConfig {
            workers_max: 100,
            slots_max: 1000,
            queue_messages_max: [2, 10, 1000][dice.index(3)],
            queue_ms: dice.between(1000, 40_000),
            grace_ms: dice.between(0, 10_000),
            probe_ms: dice.between(500, 10_000),
            answer_ms: dice.between(500, 5000),
            slot_ms: dice.one_in(3).then(|| dice.between(1000, 20_000)),
            ..BrokerConfig::default()
        };
        let workers = dice.between(1, 4);
        let clients = dice.between(1, 3);
        let mut sides: Vec<Side> =
            (0..workers).map(|n| Side::worker(format!("w{n}"), dice.split())).collect();
        sides.extend((0..clients).map(|n| Side::client(format!("c{n}"), dice.split())));
        timeline.say(0, format_args!("broker: {workers} workers, {clients} clients, {config:?}"));
        let delay_ms_max = [2, 40, 600][dice.index(3)];
        BrokerWorld {
            now: 0,
            weather: Weather { delay_ms_max, pieces_max: dice.between(1, 8) },
            config,
            server: None,
            up_at: 0,
            lines: BTreeMap::new(),
            next_line: 1,
            sides,
            sent: BTreeSet::new(),
            timeline,
            trouble_ms: dice.between(200, 6000),
            trouble_at: 0,
            is_calm: false,
            sabotage,
            messages: 0,
            requests: 0,
            dice,
        }
    }

    pub fn run(&mut self) -> Kept {
        self.go_on_until(TURBULENT_MS)?;
        self.timeline.say(self.now, format_args!("broker: calm"));
        self.is_calm = true;
        self.weather = Weather { delay_ms_max: 2, pieces_max: 2 };
        self.up_at = self.up_at.min(self.now);
        let now = self.now;
        self.sides.iter_mut().for_each(|side| side.calm_down(now));
        self.go_on_until(self.now + CALM_MS)?;
        self.last_look()
    }

    fn go_on_until(&mut self, end: u64) -> Kept {
        while self.now < end {
            self.moment()?;
            let due = self.next_due();
            self.now = due.max(self.now + 1).min(end);
        }
        Ok(())
    }

    fn next_due(&self) -> u64 {
        let server = match &self.server {
            Some(server) => server.deadline().map(|at| Offset::USUAL.world(at)),
            None => Some(self.up_at),
        };
        let lines = self.lines.values().flat_map(|line| {
            let ends = [&line.server, &line.peer].map(|end| {
                let deadline = end.as_ref().and_then(|end| end.connection.deadline());
                deadline.map(|at| Offset::USUAL.world(at))
            });
            [line.up.due(), line.down.due(), ends[0], ends[1]]
        });
        let sides = self.sides.iter().map(|side| side.due(self.now));
        let trouble = (!self.is_calm).then_some(self.trouble_at);
        let all = lines.flatten().chain(sides.flatten()).chain(server).chain(trouble);
        all.min().unwrap_or(u64::MAX)
    }

    fn time(&self) -> Time {
        Offset::USUAL.time(self.now)
    }

    fn moment(&mut self) -> Kept {
        if !self.is_calm && self.trouble_at <= self.now {
            self.trouble_at = self.now + self.dice.between(1, 2 * self.trouble_ms);
            self.go_wrong();
        }
        if self.server.is_none() && self.up_at <= self.now {
            self.timeline.say(self.now, format_args!("broker: begins"));
            self.server = Some(Server::new(self.config, SEED));
            self.sent.clear();
        }
        self.connect();
        self.peers_turn()?;
        self.server_turns()?;
        self.lines.retain(|_, line| line.server.is_some() || line.peer.is_some());
        Ok(())
    }

    fn go_wrong(&mut self) {
        match self.dice.below(8) {
            0 if self.server.is_some() => {
                self.timeline.say(self.now, format_args!("broker: crashes"));
                self.server = None;
                self.up_at = self.now + self.dice.mostly_short(4000);
                for line in self.lines.values_mut() {
                    if line.server.take().is_some() {
                        line.down.cut(self.now, self.dice.mostly_short(2000), &mut self.dice);
                    }
                }
            }
            1..=3 => {
                let at = self.dice.index(self.lines.len());
                if let Some(line) = self.lines.values_mut().nth(at) {
                    let (one, other) = (self.dice.mostly_short(6000), self.dice.mostly_short(6000));
                    line.up.cut(self.now, one, &mut self.dice);
                    line.down.cut(self.now, other, &mut self.dice);
                }
            }
            4 | 5 => {
                let at = self.dice.index(self.sides.len());
                let until = self.now + self.dice.mostly_short(15_000);
                self.sides[at].stall(until);
            }
            _ => {
                let at = self.dice.index(self.sides.len());
                let back_at = self.now + self.dice.mostly_short(5000);
                self.sides[at].crash(back_at);
                for line in self.lines.values_mut().filter(|line| line.side == at) {
                    if line.peer.take().is_some() {
                        line.up.cut(self.now, self.dice.mostly_short(6000), &mut self.dice);
                    }
                }
            }
        }
    }

    fn connect(&mut self) {
        if self.server.is_none() {
            return;
        }
        let now = self.time();
        for (at, side) in self.sides.iter_mut().enumerate() {
            if !side.wants_connection(self.now) {
                continue;
            }
            let (mut up, mut down) = (Pipe::default(), Pipe::default());
            let theirs = Options { as_server: true, ..Options::new(SocketType::Router) };
            let ours = Options {
                identity: Bytes::copy_from_slice(side.name().as_bytes()),
                ..Options::new(SocketType::Dealer)
            };
            let (weather, dice) = (&self.weather, &mut self.dice);
            let server = End::new(theirs, now, &mut down, (self.now, weather, dice));
            let peer = End::new(ours, now, &mut up, (self.now, weather, dice));
            let line = BrokerLine { up, down, side: at, server: Some(server), peer: Some(peer) };
            self.lines.insert(self.next_line, line);
            self.next_line += 1;
            side.connected();
        }
    }

    fn peers_turn(&mut self) -> Kept {
        let now = self.time();
        for side in &mut self.sides {
            side.work(self.now);
        }
        for line in self.lines.values_mut() {
            let side = &mut self.sides[line.side];
            let Some(end) = &mut line.peer else { continue };
            if side.stalled_until() > self.now {
                continue;
            }
            line.down.take(self.now, &mut end.input);
            let mut say = BytesMut::new();
            let mut is_fine = true;
            loop {
                match end.connection.receive(now, &mut end.input, &mut say) {
                    Ok(Some(message)) => side.hear(now, &message)?,
                    Ok(None) => break,
                    // It stood still for too long itself.
                    Err(ZmtpError::SlowHandshake { .. } | ZmtpError::Silent { .. }) => {
                        is_fine = false;
                        break;
                    }
                    Err(error) => {
                        let what = format!("{}: {error}", side.name());
                        return Err(Broken::new(Promise::OneAnswer, what));
                    }
                }
            }
            if !end.has_met && end.connection.is_ready() {
                end.has_met = true;
                side.met(now);
            }
            if end.connection.is_ready() {
                is_fine &= side.tick(now);
                for message in side.take_said() {
                    end.connection.send(message.slices(), &mut say);
                }
            }
            if end.connection.deadline().is_some_and(|at| at <= now) {
                is_fine &= end.connection.tick(now, &mut say).is_ok();
            }
            line.up.send(self.now, say.freeze(), &self.weather, &mut self.dice);
            if !is_fine || line.down.has_ended(self.now) {
                line.up.finish(self.now);
                line.peer = None;
                side.lost(self.now);
            }
        }
        Ok(())
    }

    fn server_turns(&mut self) -> Kept {
        let (now, at) = (self.time(), self.now);
        let Some(server) = &mut self.server else { return Ok(()) };
        let mut effects = Vec::new();
        for (&id, line) in &mut self.lines {
            let Some(end) = &mut line.server else { continue };
            let peer = PeerId(id);
            line.up.take(at, &mut end.input);
            let mut say = BytesMut::new();
            let mut is_fine = true;
            loop {
                let received = end.connection.receive(now, &mut end.input, &mut say);
                if !end.has_met && end.connection.is_ready() {
                    end.has_met = true;
                    server.open(now, peer, end.connection.peer_identity(), &mut effects);
                }
                match received {
                    Ok(Some(message)) => drop(server.receive(now, peer, message, &mut effects)),
                    Ok(None) => break,
                    Err(_) => {
                        is_fine = false;
                        break;
                    }
                }
            }
            if end.connection.deadline().is_some_and(|due| due <= now) {
                is_fine &= end.connection.tick(now, &mut say).is_ok();
            }
            line.down.send(at, say.freeze(), &self.weather, &mut self.dice);
            if !is_fine || line.up.has_ended(at) {
                if end.has_met {
                    server.close(now, peer);
                }
                line.down.finish(at);
                line.server = None;
            }
        }
        if server.deadline().is_some_and(|due| due <= now) {
            server.tick(now, &mut effects);
        }
        for effect in effects {
            self.messages += 1;
            match self.sabotage.filter(|_| self.messages.is_multiple_of(7)) {
                Some(Sabotage::DropsSilently) => continue,
                Some(Sabotage::SendsTwice) => self.act(effect.clone())?,
                _ => {}
            }
            self.act(effect)?;
        }
        self.check()
    }

    fn act(&mut self, effect: Effect) -> Kept {
        match effect {
            Effect::Send { to, message } => {
                if let Some(tag) = request(&message)
                    && !self.sent.insert(tag.clone())
                {
                    let what = format!("request {} is sent to two workers", tag.escape_ascii());
                    return Err(Broken::new(Promise::OneWorkerAMessage, what));
                }
                if let Some(line) = self.lines.get_mut(&to.0)
                    && let Some(end) = &mut line.server
                {
                    let mut say = BytesMut::new();
                    end.connection.send(message.slices(), &mut say);
                    line.down.send(self.now, say.freeze(), &self.weather, &mut self.dice);
                }
            }
            Effect::Close { peer } => {
                if let Some(line) = self.lines.get_mut(&peer.0) {
                    line.server = None;
                    line.down.finish(self.now);
                }
            }
        }
        Ok(())
    }

    fn check(&self) -> Kept {
        let Some(server) = &self.server else { return Ok(()) };
        let broker = server.broker();
        for row in broker.workers() {
            let most =
                self.sides.iter().find(|side| side.name().as_bytes() == row.identity.bytes());
            let most = most.map_or(0, Side::slots);
            if row.free > row.slots || row.slots > most {
                let what = format!("{} has {} of {} slots", row.identity, row.free, row.slots);
                return Err(Broken::new(Promise::Slots, what));
            }
        }
        let (waiting, _) = broker.waiting();
        if waiting > self.config.queue_messages_max {
            return Err(Broken::new(Promise::Limits, format!("{waiting} requests wait")));
        }
        let counters: &Counters = broker.counters();
        let dropped = [Dropped::QueueFull, Dropped::QueueBytes, Dropped::Expired]
            .map(|why| counters.dropped(why))
            .iter()
            .sum::<u64>();
        let accounted = counters.dispatched + dropped + waiting as u64;
        if counters.requests != accounted {
            let what = format!("{} requests, {accounted} accounted for", counters.requests);
            return Err(Broken::new(Promise::Drains, what));
        }
        Ok(())
    }

    fn last_look(&mut self) -> Kept {
        self.requests = self.sides.iter().map(Side::requests).sum();
        let answered: u64 = self.sides.iter().map(Side::answers).sum();
        let requests = self.requests;
        self.timeline.say(self.now, format_args!("broker: {answered} of {requests} answered"));
        let Some(server) = &self.server else { return Ok(()) };
        let broker = server.broker();
        if broker.waiting().0 > 0 {
            let what = format!("{} requests still wait", broker.waiting().0);
            return Err(Broken::new(Promise::Drains, what));
        }
        if let Some(row) = broker.workers().find(|row| row.free != row.slots) {
            let what =
                format!("{} is idle and has {} of {} slots", row.identity, row.free, row.slots);
            return Err(Broken::new(Promise::Slots, what));
        }
        match self.sides.iter().find(|side| !side.is_settled()) {
            None => Ok(()),
            Some(side) => {
                Err(Broken::new(Promise::OneAnswer, format!("{} waits for ever", side.name())))
            }
        }
    }
}

/// What makes a request for any worker the one it is.
fn request(message: &laboro_dialects::zmtp::Message) -> Option<Bytes> {
    let envelope = Envelope::parse(message).ok()?;
    let is_request = matches!(envelope.command, Command::Exec | Command::TrackExec);
    let tag = envelope.args.first().filter(|_| is_request && envelope.hops.is_empty())?;
    tag.starts_with(side::TAG).then(|| tag.clone())
}

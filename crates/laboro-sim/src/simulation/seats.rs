//! Everybody beside the hub, and the connections between them and it.

use super::Simulation;
use crate::agent::Agent;
use crate::clerk::group;
use crate::clock::Offset;
use crate::dice::Dice;
use crate::network::Pipe;
use crate::now_or_never;
use crate::peer::{Peer, Turned};
use crate::plan::{Dialect, Plan};
use crate::promise::{Broken, Kept};
use crate::talk::{Parting, Talk, TalkLimits};
use crate::tap::Seen;
use crate::timeline::Timeline;
use crate::visitor::Visitor;
use bytes::BytesMut;
use laboro_core::{Effect, Event, Reply, Time};
use laboro_dialects::session::{OpenAdmission, Session, SessionContext};
use laboro_dialects::{fuq1, fuq2, websocket};
use std::collections::BTreeMap;
use std::sync::Arc;

pub(crate) struct Seats {
    pub seats: Vec<Seat>,
    lines: BTreeMap<u64, Line>,
    next_line: u64,
    queue: usize,
    grace_ms: u64,
}

pub(crate) struct Seat {
    pub who: Who,
    line: Option<u64>,
    /// Cut off from the hub until then.
    pub apart_until: u64,
}

pub(crate) enum Who {
    Agent(Box<Agent>),
    Visitor(Box<Visitor>),
}

/// One connection.
struct Line {
    up: Pipe,
    down: Pipe,
    /// `None`: the hub's end is closed.
    talk: Option<Talk>,
    /// Arrived at the peer and not read yet.
    heard: BytesMut,
    /// The peer's end is open.
    has_peer: bool,
}

const MESSAGE_BYTES: usize = 1 << 20;

impl Who {
    pub fn peer(&self) -> &dyn Peer {
        match self {
            Who::Agent(agent) => &**agent,
            Who::Visitor(visitor) => &**visitor,
        }
    }

    pub fn peer_mut(&mut self) -> &mut dyn Peer {
        match self {
            Who::Agent(agent) => &mut **agent,
            Who::Visitor(visitor) => &mut **visitor,
        }
    }

    fn dialect(&self) -> Dialect {
        match self {
            Who::Agent(agent) => agent.plan().dialect,
            Who::Visitor(_) => Dialect::Dwork,
        }
    }

    fn numbering(&self) -> fuq2::Numbering {
        match self {
            Who::Agent(agent) => agent.plan().numbering,
            Who::Visitor(_) => fuq2::Numbering::default(),
        }
    }

    fn slots(&self) -> u32 {
        match self {
            Who::Agent(agent) => agent.plan().slots,
            Who::Visitor(_) => 1,
        }
    }

    fn is_settled(&self) -> bool {
        match self {
            Who::Agent(agent) => agent.is_settled(),
            Who::Visitor(visitor) => visitor.is_settled(),
        }
    }
}

impl Seats {
    pub fn new(plan: &Plan, dice: &mut Dice) -> Seats {
        let mut all: Vec<Who> = Vec::new();
        for worker in &plan.workers {
            all.push(Who::Agent(Box::new(Agent::new(worker.clone(), dice.split()))));
        }
        for number in 0..plan.visitors {
            let name = format!("visitor-{number}");
            all.push(Who::Visitor(Box::new(Visitor::new(name, dice.split()))));
        }
        let seat = |who| Seat { who, line: None, apart_until: 0 };
        Seats {
            seats: all.into_iter().map(seat).collect(),
            lines: BTreeMap::new(),
            next_line: 1,
            queue: plan.server.session,
            grace_ms: plan.grace_ms,
        }
    }

    pub fn due(&self, now: u64, hub: Option<Offset>) -> Option<u64> {
        let peers = self.seats.iter().filter_map(|seat| seat.who.peer().due(now));
        let lines = self.lines.values().flat_map(|line| {
            let talk = line.talk.as_ref().and_then(Talk::deadline);
            let talk = talk.and_then(|at| hub.map(|offset| offset.world(at)));
            [line.up.due(), line.down.due(), talk]
        });
        peers.chain(lines.flatten()).min()
    }

    pub fn calm_down(&mut self, now: u64) {
        for seat in &mut self.seats {
            seat.apart_until = seat.apart_until.min(now);
            match &mut seat.who {
                Who::Agent(agent) => agent.calm_down(now),
                Who::Visitor(visitor) => visitor.calm_down(now),
            }
        }
    }

    /// How many tasks began at workers of each dialect.
    pub fn started(&self) -> [u64; Dialect::ALL.len()] {
        let mut started = [0; Dialect::ALL.len()];
        for seat in &self.seats {
            if let Who::Agent(agent) = &seat.who {
                started[agent.plan().dialect as usize] += agent.started;
            }
        }
        started
    }

    pub fn are_settled(&self) -> bool {
        self.seats.iter().all(|seat| seat.who.is_settled())
    }

    pub fn unsettled(&self) -> impl Iterator<Item = &str> {
        let seats = self.seats.iter().filter(|seat| !seat.who.is_settled());
        seats.map(|seat| seat.who.peer().name())
    }

    pub fn has_talks(&self) -> bool {
        self.lines.values().any(|line| line.talk.is_some())
    }

    pub fn stop_talks(&mut self, now: Time) {
        self.lines
            .values_mut()
            .filter_map(|line| line.talk.as_mut())
            .for_each(|talk| talk.stop(now));
    }

    /// The hub's process is gone, and its ends of all lines with it.
    pub fn lose_hub(&mut self, now: u64, dice: &mut Dice) {
        for line in self.lines.values_mut() {
            if line.talk.take().is_some() {
                let seen = dice.mostly_short(2000);
                line.down.cut(now, seen, dice);
            }
        }
    }

    /// The line of this seat breaks. Each end sees it at its own time.
    pub fn cut(&mut self, seat: usize, now: u64, dice: &mut Dice) -> bool {
        let Some(line) = self.seats[seat].line.and_then(|id| self.lines.get_mut(&id)) else {
            return false;
        };
        let (one, other) = (dice.mostly_short(8000), dice.mostly_short(8000));
        line.up.cut(now, one, dice);
        line.down.cut(now, other, dice);
        true
    }

    /// Its process is gone: what it had not sent is not sent any more.
    pub fn drop_line(&mut self, seat: usize, now: u64, dice: &mut Dice) {
        if let Some(line) = self.seats[seat].line.take().and_then(|id| self.lines.get_mut(&id)) {
            line.has_peer = false;
            let seen = dice.mostly_short(8000);
            line.up.cut(now, seen, dice);
        }
    }
}

impl Simulation {
    pub(super) fn connect(&mut self) {
        let (Some(engine), Some(doors)) = (&self.hub.engine, &self.hub.doors) else { return };
        if self.hub.is_stopping {
            return;
        }
        let now = engine.offset.time(self.now);
        for seat in &mut self.seats.seats {
            let is_free = seat.line.is_none() && seat.apart_until <= self.now;
            if !is_free || !seat.who.peer().wants_connection(self.now) {
                continue;
            }
            let Some(Ok(subscription)) = now_or_never(engine.handle.open_session()) else { return };
            let context = SessionContext {
                session: subscription.session,
                group: group(),
                peer: None,
                message_max: MESSAGE_BYTES,
                grace_ms: self.seats.grace_ms,
                admission: Arc::new(OpenAdmission),
            };
            let session: Box<dyn Session> = match seat.who.dialect() {
                Dialect::Native => Box::new(fuq2::Foreman::new(context, fuq2::Mode::Native)),
                Dialect::Dwork => {
                    let door = Arc::clone(&doors.dwork);
                    Box::new(laboro_dialects::dwork::HubSide::new(context, door))
                }
                Dialect::Fuq2 => {
                    let plain =
                        fuq2::Plain { numbering: seat.who.numbering(), ..fuq2::Plain::tcp() };
                    Box::new(fuq2::Foreman::new(context, fuq2::Mode::Plain(plain)))
                }
                Dialect::Fuq => {
                    let name = seat.who.peer().name();
                    let plain = fuq2::Plain {
                        numbering: seat.who.numbering(),
                        slots: seat.who.slots(),
                        ..fuq2::Plain::websocket(name.into(), Vec::new())
                    };
                    let side = fuq2::Foreman::new(context, fuq2::Mode::Plain(plain));
                    Box::new(websocket::Server::new(side, MESSAGE_BYTES, name))
                }
                Dialect::Fuq1 => Box::new(fuq1::Server::new(context)),
                Dialect::Runexp => Box::new(doors.runexp.session(context)),
            };
            let limits = TalkLimits {
                queue: self.seats.queue,
                message_bytes: MESSAGE_BYTES,
                write_ms: 10_000,
                handshake_ms: 10_000,
            };
            let talk = Talk::open(session, subscription, limits, now);
            let line = Line {
                up: Pipe::default(),
                down: Pipe::default(),
                talk: Some(talk),
                heard: BytesMut::new(),
                has_peer: true,
            };
            let id = self.seats.next_line;
            self.seats.next_line += 1;
            self.seats.lines.insert(id, line);
            seat.line = Some(id);
            seat.who.peer_mut().connected(self.now);
            let name = seat.who.peer().name();
            self.timeline.say(self.now, format_args!("{name}: connected, line {id}"));
        }
    }

    pub(super) fn peers_turn(&mut self) -> Kept {
        let now = self.now;
        for seat in &mut self.seats.seats {
            let peer = seat.who.peer_mut();
            if peer.stalled_until() > now {
                continue;
            }
            let mut nothing = BytesMut::new();
            let line = seat.line.and_then(|id| self.seats.lines.get_mut(&id));
            let Some(line) = line else {
                let turned = peer.turn(now, &mut nothing);
                debug_assert!(turned.say.is_empty() || turned.hangs_up || seat.line.is_none());
                continue;
            };
            line.down.take(now, &mut line.heard);
            let Turned { say, hangs_up } = peer.turn(now, &mut line.heard);
            line.up.send(now, say.freeze(), &self.weather, &mut self.dice);
            if hangs_up || line.down.has_ended(now) {
                let name = peer.name();
                self.timeline.say(now, format_args!("{name}: connection ended"));
                line.up.finish(now);
                line.has_peer = false;
                seat.line = None;
                peer.lost(now);
            }
            if let Who::Visitor(visitor) = &mut seat.who {
                visitor.check()?;
            }
        }
        self.seats.lines.retain(|_, line| line.has_peer || line.talk.is_some());
        Ok(())
    }

    pub(super) fn talks_turn(&mut self) -> Result<(), Broken> {
        let Some(engine) = &self.hub.engine else { return Ok(()) };
        let now = engine.offset.time(self.now);
        for (id, line) in &mut self.seats.lines {
            let Some(talk) = &mut line.talk else { continue };
            if let Some(parting) = talk.turn(now, &mut line.up, self.now, &mut self.results)? {
                self.timeline.say(self.now, format_args!("hub: line {id} ends: {parting:?}"));
                self.tally.cuts += u64::from(parting == Parting::Left);
                if let Some(talk) = line.talk.take() {
                    let (down, dice) = (&mut line.down, &mut self.dice);
                    talk.close(now, &parting, down, self.now, &self.weather, dice);
                }
            }
        }
        Ok(())
    }

    pub(super) fn talks_send(&mut self) {
        let Some(engine) = &self.hub.engine else { return };
        let now = engine.offset.time(self.now);
        for line in self.seats.lines.values_mut() {
            if let Some(talk) = &mut line.talk {
                talk.send(now, &mut line.down, self.now, &self.weather, &mut self.dice);
            }
        }
    }
}

/// What the hub did, in few words.
pub(super) fn tell(timeline: &mut Timeline, now: u64, seen: &Seen) {
    match seen {
        Seen::Asked(asks) => {
            for ask in asks {
                let words = format!("{:?}", ask.command);
                let short: String = words.chars().take(200).collect();
                timeline.say(now, format_args!("  asked {} {short}", ask.token.0));
            }
        }
        Seen::Kept { events, .. } => {
            for event in events {
                match event {
                    Event::Added(added) => {
                        let (tasks, arrays) = (added.tasks.len(), added.arrays.len());
                        let job = added.job;
                        timeline.say(
                            now,
                            format_args!("  kept job {job} gets {tasks} tasks, {arrays} arrays"),
                        );
                    }
                    event => timeline.say(now, format_args!("  kept {event:?}")),
                }
            }
        }
        Seen::LetOut(effects) => {
            for effect in effects {
                match effect {
                    Effect::Reply { token, reply: Reply::Work { worker, grants } } => {
                        let count = grants.len();
                        let words =
                            format_args!("  out {} {count} tasks for worker {}", token.0, worker.0);
                        timeline.say(now, words);
                    }
                    Effect::Reply { token, reply } => {
                        let words = format!("{reply:?}");
                        let short: String = words.chars().take(120).collect();
                        timeline.say(now, format_args!("  out {} {short}", token.0));
                    }
                    Effect::Dispatch { worker, grants, .. } => {
                        let count = grants.len();
                        timeline
                            .say(now, format_args!("  sent {count} tasks to worker {}", worker.0));
                    }
                    Effect::Revoke { worker, leases, .. } => {
                        timeline
                            .say(now, format_args!("  revoked {leases:?} of worker {}", worker.0));
                    }
                    Effect::Stop { worker, drain, .. } => {
                        timeline.say(now, format_args!("  told worker {} {drain:?}", worker.0));
                    }
                    Effect::Replaced { worker, .. } => {
                        let worker = worker.0;
                        timeline.say(now, format_args!("  worker {worker} has another connection"));
                    }
                    Effect::Notify { .. } => {}
                }
            }
        }
    }
}

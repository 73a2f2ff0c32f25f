//! A real hub with sessions of one dialect around it, without sockets, disk or clock. What sessions ask goes
//! through the core, and what it does goes back to them as in a running hub.

use crate::steps::{Deed, Step, number};
use bytes::BytesMut;
use laboro_core::{
    Archive, ArraySpec, Ask, Batch, Command, CommandWork, Config, Drain, Effect, Event, Grant, Hub,
    IfTaken, JobId, JobOptions, LeaseRef, Ledger, Limits, Name, Place, Profile, Program, Reply,
    Return, Returned, Selection, SessionId, Setting, Submit, SubmitTo, TaskSpec, Time, Token,
    UnknownPred, Which, Work, WorkerId, WorkerRef,
};
use laboro_dialects::session::{Delivery, OpenAdmission, Output, Session, SessionContext};
use std::collections::HashMap;
use std::sync::Arc;

/// How a dialect is spoken here.
pub(crate) struct Dialect<'a> {
    pub(crate) session: &'a dyn Fn(SessionContext) -> Box<dyn Session>,
    /// What the peer says before its first message, so that not every input has to find it.
    pub(crate) greeting: &'a [u8],
    /// Puts around a message what carries it.
    pub(crate) wrap: fn(&[u8]) -> Vec<u8>,
}

/// A message that nothing is put around.
pub(crate) fn plain(message: &[u8]) -> Vec<u8> {
    message.to_vec()
}

pub(crate) const MESSAGE_BYTES_MAX: usize = 64 << 10;
/// More than there are steps' worth of asks in any sensible conversation.
const TURNS_MAX: usize = 10_000;
const PEERS: usize = 2;

/// Holds the conversation, then looks whether the hub is sound and its journal tells the same.
pub(crate) fn hold<'a>(dialect: &Dialect<'_>, steps: impl Iterator<Item = Step<'a>>) {
    let mut world = World::new(dialect);
    for step in steps {
        world.take(step);
        world.turn();
    }
    world.check();
}

struct World<'a> {
    dialect: &'a Dialect<'a>,
    hub: Hub,
    now: Time,
    peers: Vec<Peer>,
    next_session: u64,
    events: Vec<(Time, Event)>,
    waiting: HashMap<u64, (SessionId, u64)>,
    next_token: u64,
    asks: Vec<Ask>,
}

struct Peer {
    id: SessionId,
    session: Box<dyn Session>,
    output: Output,
    input: BytesMut,
    is_open: bool,
}

impl<'a> World<'a> {
    fn new(dialect: &'a Dialect<'a>) -> World<'a> {
        let now = Time(1_700_000_000_000);
        let limits = Limits { tasks: 10_000, workers: 64, offers: 64, ..Limits::default() };
        let config = Config { limits, ..Config::default() };
        let (hub, first) = Hub::begin(Ledger::default(), config, now, 1);
        let mut world = World {
            dialect,
            hub,
            now,
            peers: Vec::new(),
            next_session: 1,
            events: Vec::new(),
            waiting: HashMap::new(),
            next_token: 1,
            asks: Vec::new(),
        };
        world.keep(first);
        world.ask_for_nobody(Command::Submit(work_of_every_kind()));
        for _ in 0..PEERS {
            let peer = world.connect();
            world.peers.push(peer);
        }
        world.turn();
        world
    }

    fn connect(&mut self) -> Peer {
        let id = SessionId(self.next_session);
        self.next_session += 1;
        let context = SessionContext {
            session: id,
            group: "default".into(),
            peer: None,
            message_max: MESSAGE_BYTES_MAX,
            grace_ms: 1000,
            admission: Arc::new(OpenAdmission),
        };
        let (session, output) = ((self.dialect.session)(context), Output::default());
        let mut peer = Peer { id, session, output, input: BytesMut::new(), is_open: true };
        peer.session.open(self.now, &mut peer.output);
        peer
    }

    fn take(&mut self, step: Step<'_>) {
        let at = usize::from(step.which) % PEERS;
        match step.deed {
            Deed::Say => self.hear(at, step.payload),
            Deed::SayInPieces => step.payload.chunks(1).for_each(|byte| self.hear(at, byte)),
            Deed::SayMessage => self.hear(at, &(self.dialect.wrap)(step.payload)),
            Deed::Wait => {
                // Not to the end of time, from where nothing can be added.
                let ms = number(&step.payload[..step.payload.len().min(5)]);
                self.now = self.now.after_ms(ms);
            }
            Deed::Reconnect => {
                self.close(at);
                self.peers[at] = self.connect();
            }
            Deed::Greet => {
                self.close(at);
                self.peers[at] = self.connect();
                self.hear(at, self.dialect.greeting);
            }
            Deed::Act => self.act(step.which, step.payload),
            Deed::Stop => {
                let peer = &mut self.peers[at];
                if peer.is_open {
                    peer.session.last_words(self.now, &mut peer.output);
                    let _ = (peer.session.owes_answers(), peer.session.answers_late());
                }
            }
        }
    }

    fn hear(&mut self, at: usize, bytes: &[u8]) {
        let peer = &mut self.peers[at];
        if !peer.is_open {
            return;
        }
        peer.input.extend_from_slice(bytes);
        peer.session.receive(self.now, &mut peer.input, &mut peer.output);
        let left = peer.input.len();
        let is_over = peer.output.hang_up.is_some();
        assert!(is_over || left <= 2 * MESSAGE_BYTES_MAX, "{left} bytes are kept unread");
        if is_over {
            self.close(at);
        }
    }

    fn close(&mut self, at: usize) {
        let peer = &mut self.peers[at];
        if std::mem::replace(&mut peer.is_open, false) {
            peer.session.close(self.now, &mut peer.output);
        }
        self.collect(at);
    }

    /// What a person may do meanwhile.
    fn act(&mut self, which: u8, payload: &[u8]) {
        let [job, low, high, worker] = payload.first_chunk().copied().unwrap_or([1, 1, 9, 1]);
        let job = JobId(job.into());
        let all = Selection { job, which: Which::Job };
        let some = Selection { job, which: Which::Ranges(vec![(low.into(), high.into())]) };
        let worker = WorkerRef::Id(WorkerId(worker.into()));
        self.ask_for_nobody(match which & 15 {
            0 => Command::Cancel(all),
            1 => Command::Cancel(some),
            2 => Command::Hold(some),
            3 => Command::Release(some),
            4 => Command::Retry(all),
            5 => Command::Prioritise(some, i32::from(high) - 100),
            6 => Command::Drain(worker, Drain::All),
            7 => Command::Drain(worker, Drain::AtOnce),
            8 => Command::Drain(worker, Drain::Slots(high.into())),
            9 => Command::Drain(worker, Drain::Lift),
            10 => Command::Eject(worker, "so it was decided".into()),
            11 => Command::Pardon(worker),
            12 => Command::Pause("default".into()),
            13 => Command::Resume("default".into()),
            14 => Command::Forget(job),
            _ => Command::Submit(work_of_every_kind()),
        });
    }

    fn ask_for_nobody(&mut self, command: Command) {
        self.asks.push(Ask { token: Token(0), command });
    }

    /// Until nobody has anything more to ask.
    fn turn(&mut self) {
        for turns in 0.. {
            assert!(turns < TURNS_MAX, "the ring does not come to rest");
            for at in 0..self.peers.len() {
                let peer = &mut self.peers[at];
                if peer.is_open && peer.session.deadline().is_some_and(|due| due <= self.now) {
                    peer.session.tick(self.now, &mut peer.output);
                }
                if peer.is_open && peer.output.hang_up.is_some() {
                    self.close(at);
                }
                self.collect(at);
            }
            let is_due = self.hub.next_deadline().is_some_and(|due| due <= self.now);
            if self.asks.is_empty() && !is_due {
                return;
            }
            let batch = self.hub.step(self.now, std::mem::take(&mut self.asks));
            let effects = self.keep(batch);
            effects.into_iter().for_each(|effect| self.deliver(effect));
        }
    }

    /// What a session wants done, as whoever drives it does it.
    fn collect(&mut self, at: usize) {
        let Peer { id, output, .. } = &mut self.peers[at];
        let id = *id;
        output.take_bytes();
        output.keep.clear();
        output.ended.clear();
        let asks: Vec<_> = output.ask.drain(..).collect();
        for (tag, command) in asks {
            let command = match command {
                Command::Withdraw(Token(tag)) => {
                    let offer = self.waiting.iter().find(|(_, of)| **of == (id, tag));
                    Command::Withdraw(Token(offer.map_or(0, |(&token, _)| token)))
                }
                command => command,
            };
            self.waiting.insert(self.next_token, (id, tag));
            self.asks.push(Ask { token: Token(self.next_token), command });
            self.next_token += 1;
        }
    }

    fn deliver(&mut self, effect: Effect) {
        let (session, delivery) = match effect {
            Effect::Reply { token, reply } => match self.waiting.remove(&token.0) {
                Some((session, tag)) => (session, Delivery::Reply { tag, reply }),
                None => {
                    assert_eq!(token, Token(0), "every question is answered once");
                    return;
                }
            },
            Effect::Dispatch { session, worker, grants } => {
                (session, Delivery::Work { worker, grants })
            }
            Effect::Revoke { session, worker, leases } => {
                (session, Delivery::Revoke { worker, leases })
            }
            Effect::Stop { session, worker, drain } => (session, Delivery::Stop { worker, drain }),
            Effect::Replaced { session, .. } => (session, Delivery::Replaced),
            Effect::Notify { .. } => return,
        };
        let peer = self.peers.iter_mut().find(|peer| peer.id == session && peer.is_open);
        match (peer, delivery) {
            (Some(peer), delivery) => {
                peer.session.deliver(self.now, delivery, &mut peer.output);
            }
            (None, Delivery::Reply { reply: Reply::Work { worker, grants }, .. }) => {
                self.give_back(worker, grants);
            }
            (None, _) => {}
        }
    }

    fn give_back(&mut self, worker: WorkerId, grants: Vec<Grant>) {
        let back = |grant: Grant| Returned {
            lease: LeaseRef::Number { task: grant.task, lease: grant.lease },
            preds: Vec::new(),
        };
        let tasks = grants.into_iter().map(back).collect();
        let worker = WorkerRef::Id(worker);
        self.ask_for_nobody(Command::Return(Return { worker, tasks, place: Place::Front }));
    }

    fn keep(&mut self, batch: Batch) -> Vec<Effect> {
        let at = batch.at;
        self.events.extend(batch.events.iter().map(|event| (at, event.clone())));
        batch.release(Nowhere.receipt())
    }

    fn check(&self) {
        self.hub.ledger().check().expect("a hub adds up whatever it is told");
        let mut again = Ledger::default();
        for (at, event) in &self.events {
            again.apply(*at, event);
        }
        assert_eq!(again.describe(), self.hub.ledger().describe(), "a journal tells the same");
    }
}

fn work_of_every_kind() -> Submit {
    let setting = Arc::new(Setting::default());
    let command = Work::Command(CommandWork {
        program: Program::Argv(["true"].into_iter().collect()),
        setting: setting.clone(),
    });
    let script = Work::script(".sh", Arc::from(*b"echo RES:ok\n"), setting);
    let indexed = Work::indexed((*b"./run").into(), (*b"/d").into(), (*b"/l").into());
    let task = |name: &str, work: Work| TaskSpec {
        name: Name::from(name),
        profile: 0,
        work: Some(Arc::new(work)),
        preds: Default::default(),
        memo: None,
    };
    Submit {
        group: "default".into(),
        job: SubmitTo::New(JobOptions::default()),
        profiles: vec![Profile { attempts: 2, ..Profile::default() }],
        tasks: vec![
            task("a", Work::Named),
            task("b", Work::Named),
            task("c", command),
            task("d", script),
        ],
        arrays: vec![ArraySpec::numbered("e", 5, indexed)],
        unknown_pred: UnknownPred::Refuse,
        if_taken: IfTaken::Merge,
    }
}

/// Nobody waits for what is decided here to be safe.
pub(crate) struct Nowhere;

impl Archive for Nowhere {}

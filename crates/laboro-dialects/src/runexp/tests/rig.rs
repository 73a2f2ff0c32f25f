//! A real hub with as many managers' sides as there are connections. Time stands still unless told.

use crate::runexp::{Manager, ManagerDoor};
use crate::session::{Chunk, Delivery, HangUp, OpenAdmission, Output, Session, SessionContext};
use bytes::{Bytes, BytesMut};
use laboro_core::{
    Ask, Command, Config, Effect, Hub, IfTaken, JobOptions, Ledger, Name, Profile, Query, Reply,
    SessionId, Setting, State, Submit, SubmitTo, TaskRef, TaskSpec, TaskView, Time, Token,
    UnknownPred, Work,
};
use std::collections::BTreeMap;
use std::sync::Arc;

pub(super) struct Rig {
    pub(super) now: Time,
    pub(super) door: ManagerDoor,
    hub: Hub,
    peers: BTreeMap<u64, Peer>,
    pub(super) kept: Vec<Chunk>,
    replies: Vec<Reply>,
    next_session: u64,
}

struct Peer {
    session: Manager,
    number: u64,
    said: Vec<Bytes>,
    hang_up: Option<HangUp>,
}

const TEST: u64 = 1 << 60;
const START: u64 = 1_000_000;

pub(super) fn script(body: &[u8]) -> Work {
    Work::script(".sh", Arc::from(body), Arc::new(Setting::default()))
}

impl Rig {
    pub(super) fn new(config: Config) -> Rig {
        let (hub, _) = Hub::begin(Ledger::default(), config, Time(START), 7);
        Rig {
            now: Time(START),
            door: ManagerDoor::new("").unwrap(),
            hub,
            peers: BTreeMap::new(),
            kept: Vec::new(),
            replies: Vec::new(),
            next_session: 1,
        }
    }

    /// A hub with these scripts, each of which may fail so often.
    pub(super) fn with_scripts(names: &[&str], attempts: u16) -> Rig {
        let mut rig = Rig::new(Config::default());
        let tasks: Vec<_> = names.iter().map(|name| (*name, script(b"echo RES:ok\n"))).collect();
        rig.submit(&tasks, Profile { attempts, ..Profile::default() });
        rig
    }

    pub(super) fn submit(&mut self, tasks: &[(&str, Work)], profile: Profile) {
        let tasks = tasks.iter().map(|(name, work)| TaskSpec {
            name: Name::from(*name),
            profile: 0,
            work: Some(Arc::new(work.clone())),
            preds: Default::default(),
            memo: None,
        });
        self.ask(Command::Submit(Submit {
            group: Name::from("default"),
            job: SubmitTo::New(JobOptions::default()),
            profiles: vec![profile],
            tasks: tasks.collect(),
            arrays: Vec::new(),
            unknown_pred: UnknownPred::Refuse,
            if_taken: IfTaken::Refuse,
        }));
    }

    pub(super) fn ask(&mut self, command: Command) -> Reply {
        self.step(vec![Ask { token: Token(TEST), command }]);
        self.replies.pop().expect("everything is answered at once")
    }

    pub(super) fn task(&mut self, name: &str) -> TaskView {
        let task = TaskRef::Name(Name::from(name));
        match self.ask(Command::Query(Query::Task { group: Name::from("default"), task })) {
            Reply::Task(view) => *view,
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn state(&mut self, name: &str) -> State {
        self.task(name).state
    }

    pub(super) fn connect(&mut self, peer: u64) {
        self.connect_from(peer, "127.0.0.1");
    }

    pub(super) fn connect_from(&mut self, peer: u64, address: &str) {
        let context = SessionContext {
            session: SessionId(self.next_session),
            group: Name::from("default"),
            peer: Some(address.parse().unwrap()),
            message_max: 1 << 20,
            grace_ms: 10_000,
            admission: Arc::new(OpenAdmission),
        };
        let mut session = self.door.session(context);
        let mut out = Output::default();
        session.open(self.now, &mut out);
        let number = self.next_session;
        self.next_session += 1;
        self.peers.insert(peer, Peer { session, number, said: Vec::new(), hang_up: None });
        self.take(peer, out);
    }

    /// Up to the first PETO.
    pub(super) fn greet(&mut self, peer: u64, host: &str) {
        self.connect(peer);
        assert_eq!(self.says(peer, format!("SALUTON; MI {host}")), ["VERSIO 1.3"]);
        assert_eq!(self.says(peer, "KOMPRENAS"), ["ALIGI __defaulte__"]);
        assert_eq!(self.says(peer, "JES"), [""; 0]);
    }

    /// One read of the session; gives what it has said since.
    pub(super) fn says(&mut self, peer: u64, bytes: impl AsRef<[u8]>) -> Vec<String> {
        self.hears(peer, bytes.as_ref());
        self.said(peer).iter().map(|said| said.escape_ascii().to_string()).collect()
    }

    pub(super) fn hears(&mut self, peer: u64, bytes: &[u8]) {
        let mut out = Output::default();
        let mut input = BytesMut::from(bytes);
        let now = self.now;
        self.peer(peer).session.receive(now, &mut input, &mut out);
        assert!(input.is_empty(), "the session takes everything");
        self.take(peer, out);
    }

    pub(super) fn said(&mut self, peer: u64) -> Vec<Bytes> {
        std::mem::take(&mut self.peer(peer).said)
    }

    pub(super) fn hang_up(&mut self, peer: u64) -> Option<HangUp> {
        self.peer(peer).hang_up.clone()
    }

    /// The reason why the conversation ended.
    pub(super) fn malformed(&mut self, peer: u64) -> String {
        match self.hang_up(peer) {
            Some(HangUp::Malformed(why)) => why,
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn close(&mut self, peer: u64) {
        let mut out = Output::default();
        let now = self.now;
        self.peer(peer).session.close(now, &mut out);
        self.take(peer, out);
        self.peers.remove(&peer);
    }

    /// Gone without a word to the hub, as when the hub itself was gone.
    pub(super) fn vanish(&mut self, peer: u64) {
        self.peers.remove(&peer).expect("connected");
    }

    /// Lets so much time pass; whatever is due is done when it is due.
    pub(super) fn pass(&mut self, ms: u64) {
        let end = self.now.after_ms(ms);
        loop {
            let due = |peer: &Peer| peer.session.deadline();
            let next = self.peers.values().filter_map(due).chain(self.hub.next_deadline()).min();
            let Some(next) = next.filter(|next| *next <= end) else { break };
            self.now = next.max(self.now);
            self.step(Vec::new());
            for peer in self.peers.keys().copied().collect::<Vec<_>>() {
                let mut out = Output::default();
                let now = self.now;
                let session = &mut self.peer(peer).session;
                if session.deadline().is_some_and(|deadline| deadline <= now) {
                    session.tick(now, &mut out);
                    assert!(session.deadline().is_none_or(|deadline| deadline > now));
                }
                self.take(peer, out);
            }
        }
        self.now = end;
    }

    fn peer(&mut self, peer: u64) -> &mut Peer {
        self.peers.get_mut(&peer).expect("connected")
    }

    fn take(&mut self, peer: u64, mut out: Output) {
        let this = self.peer(peer);
        this.said.extend(out.take_messages());
        this.hang_up = this.hang_up.take().or(out.hang_up);
        let number = this.number;
        self.kept.append(&mut out.keep);
        let ask = |(tag, command)| Ask { token: Token(number << 8 | tag), command };
        let asks: Vec<Ask> = out.ask.drain(..).map(ask).collect();
        if !asks.is_empty() {
            self.step(asks);
        }
    }

    fn step(&mut self, asks: Vec<Ask>) {
        for effect in crate::nowhere::release(self.hub.step(self.now, asks)) {
            let (session, delivery) = match effect {
                Effect::Reply { token: Token(TEST), reply } => {
                    self.replies.push(reply);
                    continue;
                }
                Effect::Reply { token: Token(token), reply } => {
                    (token >> 8, Delivery::Reply { tag: token & 0xff, reply })
                }
                Effect::Revoke { session, worker, leases } => {
                    (session.0, Delivery::Revoke { worker, leases })
                }
                Effect::Stop { session, worker, drain } => {
                    (session.0, Delivery::Stop { worker, drain })
                }
                Effect::Replaced { session, .. } => (session.0, Delivery::Replaced),
                other => panic!("a session that only asks is sent {other:?}"),
            };
            let is_it = |(_, peer): &(&u64, &Peer)| peer.number == session;
            let Some(peer) = self.peers.iter().find(is_it).map(|(peer, _)| *peer) else { continue };
            let mut out = Output::default();
            let now = self.now;
            self.peer(peer).session.deliver(now, delivery, &mut out);
            self.take(peer, out);
        }
    }
}

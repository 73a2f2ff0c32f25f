//! A hub core with one foreman and one worker, joined by byte buffers. Time stands still unless told.

use crate::fuq2::{Foreman, Mode};
use crate::session::{
    Chunk, Delivery, Ends, HangUp, OpenAdmission, Output, Session, SessionContext,
};
use crate::worker::{Assignment, Key, News, Order, Orders, Parting, TaskEnd, Used, WorkerSide};
use bytes::BytesMut;
use laboro_core::{
    ArraySpec, Ask, Command, CommandWork, Config, Effect, Grant, Hub, JobId, JobOptions, Ledger,
    Name, Outcome, Profile, Program, Query, Reply, SessionId, State, Submit, SubmitTo, TaskId,
    TaskRef, TaskView, Time, Token, UnknownPred, Work,
};
use std::sync::Arc;

pub(super) struct Rig<W> {
    pub(super) now: Time,
    pub(super) hub: Hub,
    pub(super) foreman: Foreman,
    pub(super) worker: W,
    pub(super) connected: bool,
    session: u64,
    to_worker: BytesMut,
    to_foreman: BytesMut,
    pub(super) orders: Vec<Order>,
    pub(super) kept: Vec<Chunk>,
    pub(super) ended: Vec<Ends>,
    pub(super) hang_up: Option<HangUp>,
    pub(super) parting: Option<Parting>,
    next_token: u64,
    /// The answers to what the test itself asked.
    pub(super) replies: Vec<Reply>,
    overdone: Option<&'static str>,
}

const TEST: u64 = 1 << 62;

pub(super) fn context(session: u64) -> SessionContext {
    SessionContext {
        session: SessionId(session),
        group: Name::from("default"),
        peer: None,
        message_max: 1 << 20,
        grace_ms: 10_000,
        admission: Arc::new(OpenAdmission),
    }
}

pub(super) fn ended(outcome: Outcome) -> TaskEnd {
    TaskEnd { outcome, message: None, used: Used::default() }
}

impl<W: WorkerSide> Rig<W> {
    pub(super) fn new(mode: Mode, worker: W) -> Rig<W> {
        let now = Time(1_000_000);
        let (hub, _) = Hub::begin(Ledger::default(), Config::default(), now, 7);
        let mut rig = Rig {
            now,
            hub,
            foreman: Foreman::new(context(1), mode),
            worker,
            connected: false,
            session: 1,
            to_worker: BytesMut::new(),
            to_foreman: BytesMut::new(),
            orders: Vec::new(),
            kept: Vec::new(),
            ended: Vec::new(),
            hang_up: None,
            parting: None,
            next_token: 0,
            replies: Vec::new(),
            overdone: None,
        };
        rig.connect();
        rig
    }

    fn connect(&mut self) {
        self.connected = true;
        let mut out = Output::default();
        self.foreman.open(self.now, &mut out);
        self.do_output(out);
        let mut out = Orders::default();
        self.worker.open(self.now, &mut out);
        self.do_orders(out);
        self.settle();
    }

    /// Both sides lose the connection; what was under way is lost with it.
    pub(super) fn cut(&mut self) {
        self.connected = false;
        self.to_worker.clear();
        self.to_foreman.clear();
        let mut out = Output::default();
        self.foreman.close(self.now, &mut out);
        self.do_output(out);
        self.worker.lost(self.now);
    }

    /// The worker loses the connection, and the hub does not hear of it.
    pub(super) fn lose_silently(&mut self) {
        self.connected = false;
        self.to_worker.clear();
        self.to_foreman.clear();
        self.worker.lost(self.now);
    }

    pub(super) fn reconnect(&mut self, mode: Mode) {
        self.session += 1;
        self.foreman = Foreman::new(context(self.session), mode);
        (self.hang_up, self.parting) = (None, None);
        self.connect();
    }

    /// There is a connection again, and what the worker says on it is not heard.
    pub(super) fn come_back_silent(&mut self, mode: Mode) {
        self.session += 1;
        self.foreman = Foreman::new(context(self.session), mode);
        (self.hang_up, self.parting) = (None, None);
        self.connected = true;
        let mut out = Output::default();
        self.foreman.open(self.now, &mut out);
        self.do_output(out);
        self.worker.open(self.now, &mut Orders::default());
    }

    /// The hub is killed and started again; connections break without a word.
    pub(super) fn restart_hub(&mut self) {
        self.connected = false;
        self.worker.lost(self.now);
        let mut ledger = Ledger::default();
        self.hub.ledger().condense(&mut |event| ledger.apply(self.now, &event));
        self.hub = Hub::begin(ledger, Config::default(), self.now, 7).0;
    }

    /// Carries bytes to and fro until nobody has anything to say.
    pub(super) fn settle(&mut self) {
        while self.connected && !(self.to_worker.is_empty() && self.to_foreman.is_empty()) {
            let mut input = self.to_foreman.split();
            let mut out = Output::default();
            self.foreman.receive(self.now, &mut input, &mut out);
            assert!(input.is_empty() || self.hang_up.is_some() || out.hang_up.is_some());
            self.do_output(out);
            let mut input = self.to_worker.split();
            let mut out = Orders::default();
            self.worker.receive(self.now, &mut input, &mut out);
            self.do_orders(out);
        }
    }

    /// What the hub has said arrives, and what the worker says does not.
    pub(super) fn worker_hears(&mut self) {
        let mut input = self.to_worker.split();
        let mut out = Orders::default();
        self.worker.receive(self.now, &mut input, &mut out);
        self.do_orders(out);
    }

    fn do_output(&mut self, mut out: Output) {
        self.to_worker.unsplit(out.take_bytes());
        self.kept.append(&mut out.keep);
        self.ended.append(&mut out.ended);
        self.hang_up = self.hang_up.take().or(out.hang_up);
        let session = self.session;
        let asks = (out.ask.drain(..))
            .map(|(tag, command)| Ask { token: Token(session << 48 | tag), command })
            .collect();
        self.step(asks);
    }

    fn step(&mut self, asks: Vec<Ask>) {
        let effects = crate::nowhere::release(self.hub.step(self.now, asks));
        for effect in effects {
            let delivery = match effect {
                Effect::Reply { token, reply } if token.0 >= TEST => {
                    self.replies.push(reply);
                    continue;
                }
                Effect::Reply { token, .. } if token.0 >> 48 != self.session => continue,
                Effect::Reply { token, reply } => {
                    Delivery::Reply { tag: token.0 & ((1 << 48) - 1), reply }
                }
                Effect::Dispatch { worker, mut grants, .. } => {
                    self.overdo(&mut grants);
                    Delivery::Work { worker, grants }
                }
                Effect::Revoke { worker, leases, .. } => Delivery::Revoke { worker, leases },
                Effect::Stop { worker, drain, .. } => Delivery::Stop { worker, drain },
                Effect::Replaced { session, .. } if session.0 != self.session => continue,
                Effect::Replaced { .. } => Delivery::Replaced,
                Effect::Notify { .. } => continue,
            };
            let mut out = Output::default();
            self.foreman.deliver(self.now, delivery, &mut out);
            self.do_output(out);
        }
    }

    fn do_orders(&mut self, mut out: Orders) {
        self.to_foreman.unsplit(out.take_bytes());
        self.orders.append(&mut out.orders);
        self.parting = self.parting.take().or(out.hang_up);
    }

    pub(super) fn tell(&mut self, news: News) {
        let mut out = Orders::default();
        self.worker.tell(self.now, news, &mut out);
        self.do_orders(out);
        self.settle();
    }

    /// The worker says it, and the connection is lost: before the hub hears it, or before the worker hears
    /// the answer.
    pub(super) fn tell_and_cut(&mut self, news: News, heard: bool) {
        let mut out = Orders::default();
        self.worker.tell(self.now, news, &mut out);
        self.do_orders(out);
        if heard {
            let mut input = self.to_foreman.split();
            let mut out = Output::default();
            self.foreman.receive(self.now, &mut input, &mut out);
            self.do_output(out);
        }
        self.cut();
    }

    /// Says several things before anyone can answer.
    pub(super) fn tell_all(&mut self, news: impl IntoIterator<Item = News>) {
        for news in news {
            let mut out = Orders::default();
            self.worker.tell(self.now, news, &mut out);
            self.do_orders(out);
        }
        self.settle();
    }

    pub(super) fn ask(&mut self, command: Command) -> Reply {
        self.next_token += 1;
        self.step(vec![Ask { token: Token(TEST + self.next_token), command }]);
        self.settle();
        self.replies.pop().expect("every command has an answer")
    }

    /// An array of so many tasks with this work.
    pub(super) fn submit(&mut self, count: u32, work: Work) -> JobId {
        self.submit_arrays(vec![ArraySpec::numbered("sim", count, work)], Profile::default())
    }

    pub(super) fn submit_arrays(&mut self, arrays: Vec<ArraySpec>, profile: Profile) -> JobId {
        let submit = Submit {
            group: Name::from("default"),
            job: SubmitTo::New(JobOptions::default()),
            profiles: vec![profile],
            tasks: Vec::new(),
            arrays,
            unknown_pred: UnknownPred::Refuse,
            if_taken: laboro_core::IfTaken::Refuse,
        };
        match self.ask(Command::Submit(submit)) {
            Reply::Submitted { job, .. } => job,
            other => panic!("not submitted: {other:?}"),
        }
    }

    /// Time passes, and whoever waits for it is called.
    pub(super) fn pass(&mut self, ms: u64) {
        let end = self.now.after_ms(ms);
        loop {
            let due = [self.foreman.deadline(), self.worker.deadline(), self.hub.next_deadline()];
            let due = due.into_iter().flatten().min().unwrap_or(end).max(Time(self.now.0 + 1));
            self.now = due.min(end);
            self.step(Vec::new());
            if self.connected && self.foreman.deadline().is_some_and(|at| at <= self.now) {
                let mut out = Output::default();
                self.foreman.tick(self.now, &mut out);
                self.do_output(out);
            }
            if self.worker.deadline().is_some_and(|at| at <= self.now) {
                let mut out = Orders::default();
                self.worker.tick(self.now, &mut out);
                self.do_orders(out);
            }
            self.settle();
            if self.now >= end {
                return;
            }
        }
    }

    /// Time passes for the hub, while nothing moves between the two.
    pub(super) fn stall(&mut self, ms: u64) {
        self.now = self.now.after_ms(ms);
        self.step(Vec::new());
    }

    /// What was started since the last call.
    pub(super) fn started(&mut self) -> Vec<Assignment> {
        let is_start = |order: &mut Order| matches!(order, Order::Start(_));
        let started = self.orders.extract_if(.., is_start);
        started
            .filter_map(|order| match order {
                Order::Start(assignment) => Some(*assignment),
                _ => None,
            })
            .collect()
    }

    /// Runs everything that is given until nothing more comes.
    pub(super) fn run_all(&mut self) -> usize {
        let mut count = 0;
        loop {
            let started = self.started();
            if started.is_empty() {
                return count;
            }
            count += started.len();
            let success = |key| News::Ended { key, how: ended(Outcome::Success) };
            self.tell_all(started.iter().map(|assignment| success(assignment.key)));
        }
    }

    pub(super) fn cancelled(&self) -> Vec<Key> {
        let cancelled = |order: &Order| match order {
            Order::Cancel(key) => Some(*key),
            _ => None,
        };
        self.orders.iter().filter_map(cancelled).collect()
    }

    pub(super) fn task(&mut self, job: JobId, number: u32) -> TaskView {
        let task = TaskRef::Id(TaskId::new(job, number));
        match self.ask(Command::Query(Query::Task { group: "default".into(), task })) {
            Reply::Task(view) => *view,
            other => panic!("no task: {other:?}"),
        }
    }

    pub(super) fn message(&mut self, job: JobId, number: u32) -> String {
        self.task(job, number).message.map(String::from).unwrap_or_default()
    }

    /// A hub without the limits of this version: on its way to the worker, this task gets more words than it reads.
    pub(super) fn hub_says_too_much(&mut self, name: &'static str) {
        self.overdone = Some(name);
    }

    fn overdo(&self, grants: &mut [Grant]) {
        let words = std::iter::repeat_n("a", laboro_core::WORDS_MAX + 1).collect();
        let work = CommandWork { program: Program::Argv(words), setting: Arc::default() };
        let work = Arc::new(Work::Command(work));
        for grant in grants
            .iter_mut()
            .filter(|grant| self.overdone.is_some_and(|name| grant.name.bytes() == name.as_bytes()))
        {
            grant.work = Some(Arc::clone(&work));
        }
    }

    pub(super) fn count(&mut self, job: JobId, state: State) -> u32 {
        match self.ask(Command::Query(Query::Job(job))) {
            Reply::Jobs(jobs) => jobs[0].counts.of(state),
            other => panic!("no job: {other:?}"),
        }
    }
}

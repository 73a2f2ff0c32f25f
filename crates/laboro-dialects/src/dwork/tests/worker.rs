//! A worker against the hub's side, with a real core behind it: what it steals, tells and gives back.

use super::ring::{Ring, say};
use crate::dwork::codec::Task;
use crate::dwork::{OnFailure, Settings, Template, TemplateError, Worker, WorkerSettings};
use crate::worker::{Key, News, Order, Orders, Parting, TaskEnd, Used, WorkerSide};
use crate::zmtp::Mechanism;
use crate::zmtp::SocketType::Req;
use bytes::BytesMut;
use laboro_core::{CommandWork, Outcome, Program, Setting, State, Time, Work};

struct Rig {
    ring: Ring,
    client: usize,
    peer: usize,
    worker: Worker,
    out: Orders,
    is_open: bool,
    /// What it was ordered, and of that what was started.
    orders: Vec<Order>,
    started: Vec<(Key, String)>,
}

fn settings() -> WorkerSettings {
    WorkerSettings {
        location: b"w".to_vec(),
        slots: 2,
        template: Template::new(["run"], Setting::default()).unwrap(),
        on_failure: OnFailure::Complete,
        stays: false,
        mechanism: Mechanism::Null,
    }
}

impl Rig {
    fn new(settings: WorkerSettings) -> Rig {
        Rig::at(Ring::with(Settings::default()), settings)
    }

    fn at(mut ring: Ring, settings: WorkerSettings) -> Rig {
        let client = ring.connect(Req);
        let peer = ring.attach();
        let (worker, out) = (Worker::new(settings), Orders::default());
        let (orders, started) = (Vec::new(), Vec::new());
        Rig { ring, client, peer, worker, out, is_open: false, orders, started }
    }

    fn create(&mut self, names: &str) {
        self.ring.hears(self.client, say::create(names), "OK");
        self.turn();
    }

    fn open(&mut self) {
        self.is_open = true;
        self.worker.open(self.ring.now, &mut self.out);
        self.turn();
    }

    /// Bytes go to and fro until nobody has more to say.
    fn turn(&mut self) {
        while self.is_open {
            let mut bytes = self.ring.take_bytes(self.peer);
            self.worker.receive(self.ring.now, &mut bytes, &mut self.out);
            assert!(bytes.is_empty(), "whole messages come and are taken");
            let said = self.out.take_bytes();
            if said.is_empty() {
                break;
            }
            self.ring.send_bytes(self.peer, said);
            self.ring.turn();
        }
        let start = |order: &Order| match order {
            Order::Start(task) => Some((task.key, task.name.clone())),
            _ => None,
        };
        self.started.extend(self.out.orders.iter().filter_map(start));
        self.orders.append(&mut self.out.orders);
    }

    fn tell(&mut self, news: News) {
        self.worker.tell(self.ring.now, news, &mut self.out);
        self.turn();
    }

    fn end(&mut self, name: &str, outcome: Outcome) {
        let news = self.ended(name, outcome);
        self.tell(news);
    }

    fn ended(&self, name: &str, outcome: Outcome) -> News {
        let (key, _) = self.started.iter().rfind(|(_, n)| n == name).expect("it was started");
        let used = Used { wall_us: 5000, ..Used::default() };
        let how = TaskEnd { outcome, message: None, used };
        News::Ended { key: *key, how }
    }

    fn pass(&mut self, ms: u64) {
        self.ring.pass(ms);
        if self.worker.deadline().is_some_and(|at| at <= self.ring.now) {
            self.worker.tick(self.ring.now, &mut self.out);
        }
        self.turn();
    }

    #[track_caller]
    fn has_started(&self, names: &str) {
        let started: Vec<&str> = self.started.iter().map(|(_, name)| name.as_str()).collect();
        assert_eq!(started.join(" "), names);
    }

    fn was_told(&self, wanted: &str) -> bool {
        self.orders.iter().any(|order| format!("{order:?}").starts_with(wanted))
    }

    fn state(&mut self, name: &str) -> State {
        self.ring.task(name).state
    }

    /// The connection is lost and another one made.
    fn reconnect(&mut self) {
        self.ring.close(self.peer);
        self.ring.turn();
        self.worker.lost(self.ring.now);
        self.peer = self.ring.attach();
        self.open();
    }
}

#[test]
fn a_worker_runs_what_there_is_and_leaves_when_all_is_done() {
    let mut rig = Rig::new(settings());
    rig.create("a b<a c<b");
    rig.open();
    assert!(rig.was_told("Welcome"));
    rig.has_started("a");
    let a = rig.started[0].0;
    rig.tell(News::Started(a));
    rig.ring.now = rig.ring.now.after_ms(7);
    rig.end("a", Outcome::Success);
    rig.has_started("a b");
    rig.end("b", Outcome::Success);
    rig.end("c", Outcome::Success);
    rig.has_started("a b c");
    assert!(rig.was_told("Drain"), "the hub said that everything is done");
    assert!(rig.worker.is_settled());
    rig.tell(News::Leaving);
    assert_eq!(rig.out.hang_up, Some(Parting::Finished));

    // The hub keeps what the worker wrote into the log.
    let mut whole = vec![0x0a, 1, b'a'];
    whole.extend_from_slice(&rig.ring.task("a").memo.unwrap());
    let kept = Task::decode(&whole).unwrap();
    let log: Vec<(&str, i64)> = kept.log().map(|log| (log.note.word(), log.at_us)).collect();
    let [(stolen, t0), (started, t1), (done, t2)] = log[..] else { panic!("{log:?}") };
    assert_eq!((stolen, started, done), ("stolen", "started", "done"));
    assert_eq!((t1 - t0, t2 - t1), (0, 7000));
    assert_eq!(kept.origin, b"cli");
}

#[test]
fn a_worker_takes_what_it_has_room_for_and_a_few_ahead() {
    let mut rig = Rig::new(settings());
    rig.create("a b c d e f");
    rig.open();
    rig.has_started("a b");
    rig.tell(News::Ahead(3));
    rig.has_started("a b c d e");
    rig.end("a", Outcome::Success);
    rig.has_started("a b c d e f");
}

#[test]
fn a_steal_that_waits_does_not_hold_up_results() {
    let mut rig = Rig::new(settings());
    rig.create("a b<a");
    rig.open();
    rig.has_started("a");
    // One slot is free, so a steal waits at the hub while the result is told.
    rig.pass(10);
    rig.end("a", Outcome::Success);
    assert_eq!(rig.state("a"), State::Done);
    rig.has_started("a b");
}

#[test]
fn results_gather_while_one_is_being_answered() {
    let mut rig = Rig::new(WorkerSettings { slots: 4, ..settings() });
    rig.create("a b c d");
    rig.open();
    let now = rig.ring.now;
    let mut messages = 0;
    for name in ["a", "b", "c", "d"] {
        let news = rig.ended(name, Outcome::Success);
        rig.worker.tell(now, news, &mut rig.out);
        messages += usize::from(!rig.worker.is_settled());
    }
    assert_eq!(messages, 4, "none is answered yet");
    rig.turn();
    assert!(rig.worker.is_settled());
    let ends = ["a", "b", "c", "d"].map(|name| rig.ring.task(name).state);
    assert_eq!(ends, [State::Done; 4]);
}

#[test]
fn a_failure_is_complete_or_goes_back_as_asked() {
    let mut rig = Rig::new(settings());
    rig.create("a b<a");
    rig.open();
    rig.end("a", Outcome::Exit(1));
    rig.has_started("a b");
    let told = "a failed, exit code 1: it counts as done";
    assert!(rig.orders.iter().any(|order| matches!(order, Order::Say(words) if words == told)));

    let mut rig = Rig::new(WorkerSettings { on_failure: OnFailure::Transfer, ..settings() });
    rig.create("a b c");
    rig.open();
    rig.end("a", Outcome::Exit(1));
    // Behind all that was ready.
    rig.end("b", Outcome::Success);
    rig.end("c", Outcome::Success);
    rig.has_started("a b c a");
    rig.end("a", Outcome::Success);
    assert_eq!(rig.state("a"), State::Done);
}

#[test]
fn what_could_not_be_started_goes_back_and_the_worker_takes_no_more() {
    let mut rig = Rig::new(settings());
    rig.create("a b c");
    rig.open();
    let a = rig.started[0].0;
    rig.worker.not_started(rig.ring.now, a, "run: no such program".into(), &mut rig.out);
    rig.turn();
    assert!(rig.was_told("Fail(\"task a could not be started: run: no such program;"));
    rig.tell(News::Draining);
    assert_eq!((rig.state("a"), rig.state("b")), (State::Ready, State::Leased));
    rig.end("b", Outcome::Success);
    rig.tell(News::Leaving);
    assert_eq!(rig.out.hang_up, Some(Parting::Finished));
    assert_eq!((rig.state("a"), rig.state("b")), (State::Ready, State::Done));
}

#[test]
fn what_was_lost_with_the_guardian_is_not_done() {
    let mut rig = Rig::new(settings());
    rig.create("a");
    rig.open();
    rig.end("a", Outcome::Lost);
    rig.has_started("a a");
}

#[test]
fn a_worker_that_was_killed_and_comes_back_gets_what_it_had() {
    let mut rig = Rig::new(settings());
    rig.create("a");
    rig.open();
    rig.has_started("a");
    // The process is gone without a word, and another of its name comes.
    rig.worker = Worker::new(settings());
    rig.reconnect();
    rig.has_started("a a");
    rig.end("a", Outcome::Success);
    assert_eq!(rig.state("a"), State::Done);
}

#[test]
fn what_a_draining_worker_is_given_goes_back() {
    let mut rig = Rig::new(settings());
    rig.create("a");
    rig.open();
    // A steal waits at the hub when the worker is told to drain.
    rig.tell(News::Draining);
    rig.create("b");
    rig.has_started("a");
    assert_eq!(rig.state("b"), State::Ready);
    let a = rig.started[0].0;
    rig.tell(News::Returned(a));
    assert_eq!(rig.state("a"), State::Ready);
    rig.tell(News::Leaving);
    rig.pass(1000);
    assert_eq!(rig.out.hang_up, Some(Parting::Finished));
}

#[test]
fn results_outlive_a_connection() {
    let mut rig = Rig::new(settings());
    rig.create("a b");
    rig.open();
    rig.has_started("a b");
    // Told on a connection that does not carry it any more, and while there is none.
    let news = rig.ended("a", Outcome::Success);
    rig.worker.tell(rig.ring.now, news, &mut rig.out);
    rig.out.take_bytes();
    rig.worker.lost(rig.ring.now);
    rig.is_open = false;
    rig.end("b", Outcome::Success);
    assert!(!rig.worker.is_settled());
    rig.reconnect();
    assert!(rig.worker.is_settled());
    assert_eq!((rig.state("a"), rig.state("b")), (State::Done, State::Done));
}

#[test]
fn a_task_given_to_a_connection_that_broke_goes_back_when_the_worker_is_idle() {
    let mut rig = Rig::new(settings());
    rig.create("a");
    rig.open();
    rig.has_started("a");
    // The hub gives b to the waiting steal, but the answer never arrives.
    rig.ring.hears(rig.client, say::create("b"), "OK");
    rig.ring.take_bytes(rig.peer);
    assert_eq!(rig.state("b"), State::Leased);
    rig.reconnect();
    assert_eq!(rig.state("b"), State::Leased, "while a runs, it cannot be told from a");
    rig.end("a", Outcome::Success);
    rig.has_started("a b");
}

#[test]
fn a_hub_that_answers_at_once_is_asked_less_and_less_often() {
    let hub = Settings { patience_ms: 0, exit_when_finished: false, ..Settings::default() };
    let mut rig = Rig::at(Ring::with(hub), settings());
    rig.open();
    let mut waits = Vec::new();
    for _ in 0..8 {
        let wait = rig.worker.deadline().unwrap().since_ms(rig.ring.now);
        waits.push(wait);
        rig.pass(wait);
    }
    assert_eq!(waits, [20, 40, 80, 160, 320, 640, 1000, 1000]);
    rig.create("a b<a");
    rig.pass(1000);
    rig.end("a", Outcome::Success);
    rig.has_started("a b");
}

#[test]
fn a_worker_that_stays_waits_for_more() {
    let mut rig = Rig::new(WorkerSettings { stays: true, ..settings() });
    rig.create("a");
    rig.open();
    rig.end("a", Outcome::Success);
    assert!(!rig.was_told("Drain"));
    rig.create("b");
    rig.pass(1000);
    rig.has_started("a b");
}

#[test]
fn a_hub_that_stops_is_told_again_later() {
    let mut rig = Rig::new(settings());
    rig.create("a");
    rig.open();
    rig.ring.stop();
    rig.end("a", Outcome::Success);
    assert!(matches!(rig.out.hang_up.take(), Some(Parting::Again(_))));
    assert!(!rig.worker.is_settled());
    rig.worker.lost(rig.ring.now);
    rig.ring.restart();
    rig.peer = rig.ring.attach();
    rig.open();
    assert!(rig.worker.is_settled());
    assert_eq!(rig.state("a"), State::Done);
}

#[test]
fn a_silent_hub_is_left() {
    let mut worker = Worker::new(settings());
    let (mut rig, mut out) = (Rig::new(settings()), Orders::default());
    worker.open(rig.ring.now, &mut out);
    rig.ring.send_bytes(rig.peer, out.take_bytes());
    rig.ring.turn();
    let mut bytes = rig.ring.take_bytes(rig.peer);
    worker.receive(rig.ring.now, &mut bytes, &mut out);
    let mut now = rig.ring.now;
    while out.hang_up.is_none() {
        now = worker.deadline().expect("it waits for an answer");
        worker.tick(now, &mut out);
        assert!(now < rig.ring.now.after_ms(120_000), "it waits for ever");
    }
    assert!(matches!(out.hang_up, Some(Parting::Again(_))), "{:?}", out.hang_up);
    assert!(now > Time(0));
}

#[test]
fn what_is_no_answer_ends_the_connection() {
    let mut rig = Rig::new(settings());
    rig.open();
    // An answer without an envelope, in short frames.
    let mut bytes = BytesMut::from(&[1, 0, 0, 2, 8, 6][..]);
    rig.worker.receive(rig.ring.now, &mut bytes, &mut rig.out);
    assert!(matches!(rig.out.hang_up, Some(Parting::Malformed(_))));
}

#[test]
fn a_name_is_one_word_wherever_it_stands() {
    let filled = |words: &[&str]| {
        let template = Template::new(words, Setting::default()).unwrap();
        let Work::Command(CommandWork { program: Program::Argv(argv), .. }) =
            &*template.fill(b"a b;{}$(x)")
        else {
            panic!()
        };
        argv.iter().map(|word| word.escape_ascii().to_string()).collect::<Vec<_>>()
    };
    assert_eq!(filled(&["run"]), ["run", "a b;{}$(x)"]);
    assert_eq!(filled(&["run", "-x", "{}"]), ["run", "-x", "a b;{}$(x)"]);
    assert_eq!(
        filled(&["run", "in/{name}.txt={}", "{"]),
        ["run", "in/a b;{}$(x).txt=a b;{}$(x)", "{"]
    );
    assert_eq!(Template::new([""; 0], Setting::default()), Err(TemplateError::Empty));
}

//! Originals at the foreman: whole conversations with a hub, and the foreman's words one by one.

use super::rig::{Rig, context, ended};
use crate::fuq2::frame::{self, Frame};
use crate::fuq2::header::{MessageHeader, MessageKind, Numbering, SAY_HELLO};
use crate::fuq2::payload::{JobStatusUpdate, PlainHello};
use crate::fuq2::{Foreman, Mode, Plain, PlainSettings, PlainWorker};
use crate::session::{Delivery, HangUp, Output, Session};
use crate::worker::{Assignment, News, Order, Parting};
use bytes::BytesMut;
use laboro_core::{
    ArraySpec, Command, Drain, Grant, JobId, LeaseNo, LeaseRef, Name, Outcome, Profile, Query,
    Refusal, Reply, Role, Selection, State, TaskId, Time, Which, Work, WorkerId, WorkerRef,
};
use std::sync::Arc;

fn indexed() -> Work {
    let part = |text: &str| Box::from(text.as_bytes());
    Work::indexed(part("/bin/true"), part("/tmp"), part("/logs"))
}

fn tcp() -> Mode {
    Mode::Plain(Plain { name: Some("vm".into()), ..Plain::tcp() })
}

fn rig(slots: u32) -> Rig<PlainWorker> {
    Rig::new(tcp(), PlainWorker::new(PlainSettings::tcp("vm", slots)))
}

fn who() -> WorkerRef {
    WorkerRef::Name { group: "default".into(), name: "vm".into() }
}

#[test]
fn an_array_runs_one_task_a_job() {
    let mut rig = rig(3);
    let job = rig.submit(50, indexed());
    let first = rig.started();
    let names: Vec<&str> = first.iter().map(|assignment| assignment.name.as_str()).collect();
    assert_eq!(names, ["sim.1", "sim.2", "sim.3"]);
    assert_eq!(*first[0].work, indexed());
    let success = |key| News::Ended { key, how: ended(Outcome::Success) };
    rig.tell_all(first.iter().map(|assignment| success(assignment.key)));
    assert_eq!(rig.run_all(), 47);
    assert_eq!(rig.count(job, State::Done), 50);
}

#[test]
fn two_of_ours_begin_anew_when_the_numbers_run_out() {
    for from in [(40, u32::MAX - 0xFFFF), (u32::MAX - 0xFFFF, 40)] {
        let mut rig = rig(3);
        rig.worker.talk().reset_from(from.0);
        rig.foreman.talk().reset_from(from.1);
        let job = rig.submit(100, indexed());
        assert_eq!(rig.run_all(), 100, "every task runs once");
        assert_eq!(rig.count(job, State::Done), 100);
        assert_eq!((&rig.hang_up, &rig.parting), (&None, &None), "on the same connection");
    }
}

#[test]
fn only_what_the_dialect_can_carry_is_given() {
    let mut rig = rig(3);
    let job = rig.submit(5, Work::Named);
    assert!(rig.started().is_empty());
    assert_eq!(rig.count(job, State::Ready), 5);
}

#[test]
fn arrays_of_one_job_are_told_apart() {
    let mut rig = rig(8);
    let arrays =
        vec![ArraySpec::numbered("a", 2, indexed()), ArraySpec::numbered("b", 2, indexed())];
    let job = rig.submit_arrays(arrays, Profile::default());
    let started = rig.started();
    let names: Vec<&str> = started.iter().map(|assignment| assignment.name.as_str()).collect();
    assert_eq!(names, ["a.1", "a.2", "b.1", "b.2"]);
    rig.tell(News::Ended { key: started[2].key, how: ended(Outcome::Exit(3)) });
    assert_eq!(rig.count(job, State::Failed), 1);
    rig.ask(Command::Cancel(Selection { job, which: Which::Ranges(vec![(4, 4)]) }));
    assert_eq!(rig.cancelled(), [started[3].key]);
}

#[test]
fn work_that_has_no_room_yet_waits_for_the_next_update() {
    let mut rig = rig(1);
    let job = rig.submit(2, indexed());
    let first = rig.started()[0].key;
    // The hub has the slot back at once; the worker has it when the task has ended.
    rig.ask(Command::Cancel(Selection { job, which: Which::Ranges(vec![(1, 1)]) }));
    assert_eq!(rig.cancelled(), [first]);
    assert!(rig.started().is_empty());
    assert_eq!(rig.count(job, State::Leased), 1);
    rig.pass(200);
    assert!(rig.started().is_empty());
    rig.tell(News::Ended { key: first, how: ended(Outcome::Signal(9)) });
    assert_eq!(rig.started().len(), 1);
    assert_eq!(rig.hang_up, None);
}

#[test]
fn what_still_runs_after_a_reconnect_is_kept() {
    let mut rig = rig(2);
    let job = rig.submit(2, indexed());
    let started = rig.started();
    rig.cut();
    rig.tell(News::Ended { key: started[0].key, how: ended(Outcome::Success) });
    rig.reconnect(tcp());
    assert_eq!((rig.count(job, State::Done), rig.count(job, State::Leased)), (1, 1));
    assert!(rig.started().is_empty() && rig.cancelled().is_empty());
    rig.tell(News::Ended { key: started[1].key, how: ended(Outcome::Success) });
    assert_eq!(rig.count(job, State::Done), 2);
}

fn nameless() -> Mode {
    Mode::Plain(Plain::tcp())
}

fn nameless_rig() -> Rig<PlainWorker> {
    Rig::new(nameless(), PlainWorker::new(PlainSettings::tcp("vm", 2)))
}

fn end_all(rig: &mut Rig<PlainWorker>, started: Vec<Assignment>) {
    for assignment in started {
        rig.tell(News::Ended { key: assignment.key, how: ended(Outcome::Success) });
    }
}

#[test]
fn a_worker_without_a_name_is_known_by_what_runs_there() {
    let mut rig = nameless_rig();
    let job = rig.submit(3, indexed());
    let started = rig.started();
    rig.cut();
    rig.reconnect(nameless());
    rig.pass(60_000);
    assert!(rig.started().is_empty() && rig.cancelled().is_empty());
    end_all(&mut rig, started);
    assert_eq!((rig.count(job, State::Done), rig.started().len()), (2, 1));
}

#[test]
fn the_first_that_runs_there_may_be_one_whose_answer_was_lost() {
    let mut rig = nameless_rig();
    let job = rig.submit(2, indexed());
    let started = rig.started();
    let success = News::Ended { key: started[0].key, how: ended(Outcome::Success) };
    rig.tell_and_cut(success, true);
    rig.reconnect(nameless());
    assert!(rig.started().is_empty());
    assert_eq!((rig.count(job, State::Done), rig.count(job, State::Leased)), (1, 1));
    rig.tell(News::Ended { key: started[1].key, how: ended(Outcome::Success) });
    assert_eq!(rig.count(job, State::Done), 2);
}

#[test]
fn it_is_known_after_a_restart_of_the_hub_and_when_nobody_saw_its_connection_end() {
    let mut rig = nameless_rig();
    let job = rig.submit(2, indexed());
    let started = rig.started();
    rig.restart_hub();
    rig.reconnect(nameless());
    assert!(rig.started().is_empty() && rig.cancelled().is_empty());
    rig.lose_silently();
    rig.reconnect(nameless());
    rig.pass(60_000);
    assert!(rig.started().is_empty() && rig.cancelled().is_empty());
    end_all(&mut rig, started);
    assert_eq!(rig.count(job, State::Done), 2);
}

#[test]
fn what_lapsed_and_is_somebody_elses_by_now_is_ended() {
    let mut rig = nameless_rig();
    rig.submit(1, indexed());
    let first = rig.started();
    rig.cut();
    rig.stall(10_000);
    let before = std::mem::replace(&mut rig.worker, PlainWorker::new(PlainSettings::tcp("vm", 2)));
    rig.reconnect(nameless());
    assert_eq!(rig.started().len(), 1, "another one of the same machine has it");
    rig.lose_silently();
    rig.worker = before;
    rig.reconnect(nameless());
    assert_eq!(rig.cancelled(), [first[0].key]);
}

#[test]
fn a_worker_that_forgot_its_tasks_gets_them_again() {
    let mut rig = rig(2);
    let job = rig.submit(2, indexed());
    rig.started();
    rig.cut();
    rig.worker = PlainWorker::new(PlainSettings::tcp("vm", 2));
    rig.reconnect(tcp());
    assert_eq!(rig.started().len(), 2);
    assert_eq!(rig.count(job, State::Leased), 2);
}

#[test]
fn a_stopped_worker_leaves_when_nothing_runs() {
    let mut rig = rig(3);
    rig.submit(2, indexed());
    let started = rig.started();
    rig.ask(Command::Drain(who(), Drain::Slots(1)));
    assert!(matches!(rig.orders.last(), Some(Order::GiveUpSlots(1))));
    rig.ask(Command::Drain(who(), Drain::All));
    assert!(matches!(rig.orders.last(), Some(Order::Drain)));
    for assignment in started {
        assert_eq!(rig.parting, None);
        rig.tell(News::Ended { key: assignment.key, how: ended(Outcome::Success) });
    }
    assert_eq!(rig.parting, Some(Parting::Finished));
}

#[test]
fn a_lease_stands_with_its_connection_and_lapses_when_nobody_comes_back_to_a_new_hub() {
    let mut rig = rig(1);
    let job = rig.submit(1, indexed());
    assert_eq!(rig.started().len(), 1);
    rig.pass(600_000);
    assert_eq!((rig.count(job, State::Leased), &rig.hang_up), (1, &None));
    rig.restart_hub();
    assert_eq!(rig.count(job, State::Leased), 1);
    rig.stall(10_000);
    assert_eq!(rig.count(job, State::Ready), 1);
}

#[test]
fn a_connection_that_outlived_its_leases_ends() {
    let mut rig = rig(1);
    let job = rig.submit(1, indexed());
    rig.stall(600_000);
    assert_eq!(rig.count(job, State::Ready), 1);
    rig.pass(1);
    assert!(matches!(rig.hang_up, Some(HangUp::Denied(_))));
}

/// The foreman alone, with the test as the worker and as the hub.
struct Bare {
    foreman: Foreman,
    asked: Vec<(u64, Command)>,
    said: Vec<Frame>,
    out: Output,
}

pub(super) const NOW: Time = Time(1000);

impl Bare {
    fn new(plain: Plain) -> Bare {
        let foreman = Foreman::new(context(1), Mode::Plain(plain));
        let (asked, said) = (Vec::new(), Vec::new());
        let mut bare = Bare { foreman, asked, said, out: Output::default() };
        bare.foreman.open(NOW, &mut bare.out);
        bare.collect();
        bare
    }

    fn collect(&mut self) {
        self.asked = std::mem::take(&mut self.out.ask);
        let mut said = self.out.take_bytes();
        self.said.clear();
        while let Ok(Some(message)) = frame::take(&mut said, Numbering::Current, 1 << 20) {
            self.said.push(message);
        }
    }

    fn hear(&mut self, bytes: BytesMut) {
        let mut bytes = bytes;
        self.foreman.receive(NOW, &mut bytes, &mut self.out);
        self.collect();
    }

    fn reply(&mut self, tag: u64, reply: Reply) {
        self.foreman.deliver(NOW, Delivery::Reply { tag, reply }, &mut self.out);
        self.collect();
    }

    /// Says HELLO and is known.
    fn join(&mut self, hello: BytesMut) {
        self.hear(hello);
        assert!(matches!(self.asked[..], [(_, Command::Query(Query::Worker(_)))]));
        self.reply(self.asked[0].0, Reply::Refused(Refusal::NoSuchWorker("vm".into())));
        assert!(matches!(self.asked[..], [(_, Command::Join(_))]));
        let joined = Reply::Joined { worker: WorkerId(1), unknown: Vec::new() };
        self.reply(self.asked[0].0, joined);
    }
}

pub(super) fn bytes(kind: MessageKind, seq: u32, subtype: u8, arg0: u32) -> BytesMut {
    let mut bytes = BytesMut::new();
    MessageHeader { kind, subtype, seq, padding: 0, arg0 }.write(Numbering::Current, &mut bytes);
    bytes
}

pub(super) fn with_body(kind: MessageKind, seq: u32, body: impl FnOnce(&mut BytesMut)) -> BytesMut {
    let mut rest = BytesMut::new();
    body(&mut rest);
    let mut bytes = bytes(kind, seq, 0, rest.len() as u32);
    bytes.unsplit(rest);
    bytes
}

fn hello(free: i64) -> BytesMut {
    with_body(MessageKind::Hello, 0, |to| PlainHello { free, running: Vec::new() }.write(to))
}

fn grant() -> Grant {
    Grant {
        lease: LeaseNo(1),
        task: TaskId::new(JobId(1), 1),
        name: Name::default(),
        job_name: "job".into(),
        own_names: false,
        element: None,
        attempt: 1,
        fails: 0,
        work: Some(Arc::new(indexed())),
        profile: Arc::default(),
        share: None,
        memo: None,
        role: Role::Only,
    }
}

#[test]
fn the_greeting_has_number_one_and_is_not_said_on_a_websocket() {
    let bare = Bare::new(Plain::tcp());
    let greeting = bare.said[0].header;
    assert_eq!((greeting.kind, greeting.seq, greeting.arg0), (MessageKind::Ok, 1, 0));
    assert!(Bare::new(Plain::websocket("vm".into(), Vec::new())).said.is_empty());
}

#[test]
fn a_hello_is_answered_with_what_it_said() {
    let mut bare = Bare::new(Plain::tcp());
    bare.join(hello(2));
    let answer = bare.said[0].header;
    assert_eq!((answer.seq, answer.arg0, answer.padding), (0, 2 << 16, 0));
    let mut bare = Bare::new(Plain::tcp());
    bare.join(hello(70_000));
    assert_eq!(bare.said[0].header.arg0, 0xFFFE << 16);
}

#[test]
fn a_hello_without_a_body_is_a_worker_of_unknown_size() {
    let mut bare = Bare::new(Plain::tcp());
    bare.join(bytes(MessageKind::Hello, 0, 0, 0));
    assert_eq!(bare.said[0].header.arg0, 0);
}

#[test]
fn an_update_before_the_hello_is_told_to_say_it() {
    let mut bare = Bare::new(Plain::tcp());
    bare.hear(with_body(MessageKind::Update, 4, |to| JobStatusUpdate::default().write(to)));
    assert_eq!((bare.said[0].header.seq, bare.said[0].header.arg0), (4, SAY_HELLO));
}

#[test]
fn a_result_told_before_the_hello_counts_where_the_node_is_known() {
    let mut node = Bare::new(Plain::websocket("vm".into(), Vec::new()));
    let update = JobStatusUpdate { job: 3, task: 2, success: true, ..JobStatusUpdate::default() };
    node.hear(with_body(MessageKind::Update, 4, |to| update.write(to)));
    assert!(node.said.is_empty(), "not before the result is safe");
    let [(tag, Command::Report(report))] = &node.asked[..] else { panic!("a report") };
    assert_eq!(report.worker, who());
    assert!(matches!(report.results[0].lease, LeaseRef::Held(_)));
    node.reply(*tag, Reply::Reported(vec![Ok(())]));
    assert_eq!((node.said[0].header.seq, node.said[0].header.arg0), (4, SAY_HELLO));
}

#[test]
fn a_stranger_must_say_hello_but_not_a_node_that_has_logged_in() {
    let minute = NOW.after_ms(60_000);
    let mut stranger = Bare::new(Plain::tcp());
    assert!(stranger.foreman.deadline().is_some_and(|at| at <= minute));
    stranger.foreman.tick(minute, &mut stranger.out);
    assert_eq!(stranger.out.hang_up, Some(HangUp::Silent));
    let mut node = Bare::new(Plain::websocket("vm".into(), Vec::new()));
    node.foreman.tick(minute, &mut node.out);
    assert_eq!(node.out.hang_up, None);
}

#[test]
fn an_update_is_answered_when_its_result_is_safe() {
    let mut bare = Bare::new(Plain::tcp());
    bare.join(hello(2));
    let status = "error encountered: signal: killed".into();
    let update = JobStatusUpdate { job: 3, task: 2, status, ..JobStatusUpdate::default() };
    bare.hear(with_body(MessageKind::Update, 2, |to| update.write(to)));
    assert!(bare.said.is_empty());
    let [(tag, Command::Report(report))] = &bare.asked[..] else { panic!("a report") };
    assert_eq!(report.results[0].outcome, Outcome::Signal(9));
    assert!(matches!(report.results[0].lease, LeaseRef::Held(_)));
    bare.reply(*tag, Reply::Reported(vec![Ok(())]));
    assert_eq!((bare.said[0].header.kind, bare.said[0].header.seq), (MessageKind::Ok, 2));
}

#[test]
fn a_hello_and_an_update_that_come_together_are_answered_in_order() {
    let mut node = Bare::new(Plain::websocket("vm".into(), Vec::new()));
    let mut both = hello(2);
    let update = JobStatusUpdate { job: 3, task: 2, success: true, ..JobStatusUpdate::default() };
    both.unsplit(with_body(MessageKind::Update, 2, |to| update.write(to)));
    node.join(both);
    assert_eq!((node.said[0].header.seq, node.said[0].header.arg0), (0, 2 << 16));
    let report = node.asked.iter().find(|(_, command)| matches!(command, Command::Report(_)));
    let tag = report.expect("the result is told").0;
    node.reply(tag, Reply::Reported(vec![Ok(())]));
    assert_eq!((node.said[0].header.seq, node.said[0].header.arg0), (2, 2 << 16));
}

#[test]
fn work_that_a_node_has_no_room_for_waits_a_moment_and_then_longer() {
    let mut node = Bare::new(Plain::websocket("vm".into(), Vec::new()));
    node.join(hello(1));
    let mut now = NOW;
    let mut waited = Vec::new();
    for _ in 0..8 {
        let work = Delivery::Work { worker: WorkerId(1), grants: vec![grant()] };
        node.foreman.deliver(now, work, &mut node.out);
        if node.out.say.is_empty() {
            let due = node.foreman.deadline().expect("it is tried again");
            waited.push(due.since_ms(now));
            now = due;
            node.foreman.tick(now, &mut node.out);
        }
        node.collect();
        let seq = node.said[0].header.seq;
        node.foreman.receive(now, &mut bytes(MessageKind::Error, seq, 2, 1), &mut node.out);
    }
    assert_eq!(waited, [1, 2, 4, 8, 16, 32, 50]);
}

#[test]
fn wrong_numbers_of_an_original_end_the_conversation_without_a_word() {
    let mut bare = Bare::new(Plain::tcp());
    bare.join(hello(2));
    bare.hear(with_body(MessageKind::Update, 3, |to| JobStatusUpdate::default().write(to)));
    assert!(bare.said.is_empty() && bare.out.hang_up.is_some());
}

#[test]
fn a_connection_that_ends_leaves_its_leases_for_the_grace_time() {
    let mut bare = Bare::new(Plain::tcp());
    bare.join(hello(2));
    bare.foreman.close(NOW, &mut bare.out);
    bare.collect();
    assert!(matches!(&bare.asked[..], [(_, Command::Leave(_))]));
}

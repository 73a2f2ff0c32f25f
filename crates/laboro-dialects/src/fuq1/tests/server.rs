//! The server's rows, with a real hub core behind it.

use crate::fuq1::Server;
use crate::fuq1::codec::{CANNOT_RUN_JOB, Message};
use crate::fuq2::{AT_ONCE, JobStatusUpdate};
use crate::session::{Delivery, HangUp, OpenAdmission, Output, Session, SessionContext};
use bytes::BytesMut;
use laboro_core::{
    ArraySpec, Ask, Command, Config, Drain, Effect, Hub, IfTaken, JobId, JobOptions, Ledger, Name,
    Profile, Query, Reply, SessionId, State, Submit, SubmitTo, Time, Token, UnknownPred, Work,
    WorkerId, WorkerRef,
};
use std::sync::Arc;

const TEST: u64 = 1 << 62;

struct Desk {
    now: Time,
    hub: Hub,
    server: Server,
    said: Vec<Message>,
    hang_up: Option<HangUp>,
    replies: Vec<Reply>,
}

impl Desk {
    fn new() -> Desk {
        let now = Time(1000);
        let context = SessionContext {
            session: SessionId(1),
            group: Name::from("default"),
            peer: None,
            message_max: 1 << 20,
            grace_ms: 10_000,
            admission: Arc::new(OpenAdmission),
        };
        let (hub, _) = Hub::begin(Ledger::default(), Config::default(), now, 7);
        let (said, replies) = (Vec::new(), Vec::new());
        let mut desk =
            Desk { now, hub, server: Server::new(context), said, hang_up: None, replies };
        let mut out = Output::default();
        desk.server.open(now, &mut out);
        desk.act(out);
        desk
    }

    /// In the loop, with a client of so many processors.
    fn ready(slots: u32) -> Desk {
        let mut desk = Desk::new();
        desk.hear(&Message::Ok(slots));
        desk.said.clear();
        desk
    }

    fn act(&mut self, mut out: Output) {
        let mut said = out.take_bytes();
        while let Ok(Some(message)) = Message::take(&mut said, 1 << 20) {
            self.said.push(message);
        }
        self.hang_up = self.hang_up.take().or(out.hang_up.take());
        let asks = out.ask.drain(..).map(|(tag, command)| Ask { token: Token(tag), command });
        self.step(asks.collect());
    }

    fn step(&mut self, asks: Vec<Ask>) {
        for effect in crate::nowhere::release(self.hub.step(self.now, asks)) {
            let delivery = match effect {
                Effect::Reply { token, reply } if token.0 >= TEST => {
                    self.replies.push(reply);
                    continue;
                }
                Effect::Reply { token, reply } => Delivery::Reply { tag: token.0, reply },
                Effect::Dispatch { worker, grants, .. } => Delivery::Work { worker, grants },
                Effect::Revoke { worker, leases, .. } => Delivery::Revoke { worker, leases },
                Effect::Stop { worker, drain, .. } => Delivery::Stop { worker, drain },
                Effect::Replaced { .. } | Effect::Notify { .. } => continue,
            };
            let mut out = Output::default();
            self.server.deliver(self.now, delivery, &mut out);
            self.act(out);
        }
    }

    fn hear(&mut self, message: &Message) {
        let mut bytes = BytesMut::new();
        message.write(&mut bytes);
        let mut out = Output::default();
        self.server.receive(self.now, &mut bytes, &mut out);
        self.act(out);
    }

    fn ask(&mut self, command: Command) -> Reply {
        self.step(vec![Ask { token: Token(TEST), command }]);
        self.replies.pop().expect("every command has an answer")
    }

    fn submit(&mut self, count: u32) -> JobId {
        let part = |text: &str| Box::from(text.as_bytes());
        let (program, dir, log_dir) = (part("/bin/true"), part("/tmp"), part("/logs"));
        let work = Work::indexed(program, dir, log_dir);
        let submit = Submit {
            group: Name::from("default"),
            job: SubmitTo::New(JobOptions::default()),
            profiles: vec![Profile::default()],
            tasks: Vec::new(),
            arrays: vec![ArraySpec::numbered(format!("sim{count}"), count, work)],
            unknown_pred: UnknownPred::Refuse,
            if_taken: IfTaken::Refuse,
        };
        match self.ask(Command::Submit(submit)) {
            Reply::Submitted { job, .. } => job,
            other => panic!("not submitted: {other:?}"),
        }
    }

    fn count(&mut self, job: JobId, state: State) -> u32 {
        match self.ask(Command::Query(Query::Job(job))) {
            Reply::Jobs(jobs) => jobs[0].counts.of(state),
            other => panic!("no job: {other:?}"),
        }
    }

    /// The numbers of the tasks that were sent, and what else was said.
    fn take_said(&mut self) -> (Vec<i64>, Vec<Message>) {
        let said = std::mem::take(&mut self.said);
        let task = |message: &Message| match message {
            Message::Job(task) => Some(task.task),
            _ => None,
        };
        let tasks = said.iter().filter_map(task).collect();
        (tasks, said.into_iter().filter(|message| task(message).is_none()).collect())
    }
}

fn update(job: JobId, task: i64) -> Message {
    let (job, status) = (job.0.into(), "done".into());
    Message::Update(JobStatusUpdate { job, task, success: true, status, new_job: None })
}

fn only_worker(desk: &mut Desk) -> WorkerRef {
    let all = Query::Workers { group: None, from: WorkerId(0), most: 1 };
    match desk.ask(Command::Query(all)) {
        Reply::Workers(views) => WorkerRef::Id(views[0].worker),
        other => panic!("no workers: {other:?}"),
    }
}

#[test]
fn init0_greets() {
    assert_eq!(Desk::new().said, [Message::Ok(0)]);
}

#[test]
fn init1_and_init2_record_what_the_client_has_and_say_it_back() {
    let mut desk = Desk::new();
    desk.hear(&Message::Ok(5));
    assert_eq!(desk.said[1..], [Message::Ok(5)]);
}

#[test]
fn loop0_and_loop1_send_no_more_than_fits() {
    let mut desk = Desk::ready(2);
    desk.submit(5);
    assert_eq!(desk.take_said(), (vec![1, 2], vec![]));
}

#[test]
fn loop2_on_job_queued_sends_it() {
    let mut desk = Desk::ready(4);
    desk.submit(1);
    assert_eq!(desk.take_said().0, [1]);
    desk.submit(2);
    assert_eq!(desk.take_said().0, [1, 2]);
}

#[test]
fn loop2_and_loop3_on_update_record_answer_and_send_the_next() {
    let mut desk = Desk::ready(1);
    let job = desk.submit(2);
    desk.take_said();
    desk.hear(&update(job, 1));
    assert_eq!(desk.take_said(), (vec![2], vec![Message::Ok(1)]));
    assert_eq!(desk.count(job, State::Done), 1);
}

#[test]
fn loop3_never_says_zero_while_the_client_has_tasks() {
    let mut desk = Desk::ready(2);
    let job = desk.submit(2);
    desk.take_said();
    let worker = only_worker(&mut desk);
    desk.ask(Command::Drain(worker, Drain::All));
    assert_eq!(desk.take_said().1, [Message::Stop(2)]);
    desk.hear(&update(job, 1));
    assert_eq!(desk.take_said().1, [Message::Ok(1)]);
    desk.hear(&update(job, 2));
    assert_eq!(desk.take_said().1, [Message::Ok(0)]);
}

/// It has been here before, and all it has is busy.
#[test]
fn a_client_that_says_it_has_nothing_is_not_sent_away() {
    let mut desk = Desk::new();
    desk.hear(&Message::Ok(0));
    assert_eq!(desk.said[1..], [Message::Ok(1)]);
    let job = desk.submit(1);
    desk.take_said();
    desk.hear(&Message::Error(CANNOT_RUN_JOB));
    desk.hear(&update(JobId(99), 1));
    assert_eq!(desk.take_said(), (vec![1], vec![Message::Ok(1)]), "it has room now");
    assert_eq!(desk.count(job, State::Leased), 1);
}

#[test]
fn loop2_on_stop_req_says_so() {
    let mut desk = Desk::ready(3);
    let worker = only_worker(&mut desk);
    desk.ask(Command::Drain(worker, Drain::Slots(1)));
    assert_eq!(desk.take_said().1, [Message::Stop(1)]);
    desk.submit(5);
    assert_eq!(desk.take_said().0, [1, 2]);
}

#[test]
fn loop2_on_stop_immed_says_so_and_the_tasks_go_back() {
    let mut desk = Desk::ready(3);
    let job = desk.submit(2);
    desk.take_said();
    let worker = only_worker(&mut desk);
    desk.ask(Command::Drain(worker, Drain::AtOnce));
    assert_eq!(desk.take_said().1, [Message::Stop(AT_ONCE)]);
    assert_eq!(desk.count(job, State::Ready), 2);
}

#[test]
fn loop2_on_disconnect_keeps_the_tasks_for_the_grace_time() {
    let mut desk = Desk::ready(2);
    let job = desk.submit(2);
    let mut out = Output::default();
    desk.server.close(desk.now, &mut out);
    desk.act(out);
    assert_eq!(desk.count(job, State::Leased), 2);
    desk.now = desk.now.after_ms(10_000);
    desk.step(Vec::new());
    assert_eq!(desk.count(job, State::Ready), 2);
}

#[test]
fn a_lease_stands_while_the_connection_does_and_no_longer() {
    let mut desk = Desk::ready(1);
    let job = desk.submit(1);
    for _ in 0..20 {
        desk.now = desk.server.deadline().expect("a sign of life is due some day");
        let mut out = Output::default();
        desk.server.tick(desk.now, &mut out);
        desk.act(out);
    }
    assert_eq!(desk.count(job, State::Leased), 1);
    // As after a restart of the hub: nobody says that the connection is gone.
    desk.now = desk.now.after_ms(10_000);
    desk.step(Vec::new());
    assert_eq!(desk.count(job, State::Ready), 1);
}

#[test]
fn an_error_gives_the_last_job_back_and_it_waits() {
    let mut desk = Desk::ready(2);
    let job = desk.submit(2);
    desk.take_said();
    desk.hear(&Message::Error(CANNOT_RUN_JOB));
    assert!(desk.take_said().0.is_empty());
    desk.now = desk.now.after_ms(50);
    let mut out = Output::default();
    desk.server.tick(desk.now, &mut out);
    desk.act(out);
    assert_eq!(desk.take_said().0, [2]);
    assert_eq!(desk.count(job, State::Leased), 2);
}

#[test]
fn what_a_client_may_not_say_ends_the_conversation() {
    for message in [Message::Stop(1), update(JobId(1), 1), Message::Error(1)] {
        let mut desk = Desk::new();
        desk.hear(&message);
        assert!(matches!(desk.hang_up, Some(HangUp::Malformed(_))), "{message:?}");
    }
}

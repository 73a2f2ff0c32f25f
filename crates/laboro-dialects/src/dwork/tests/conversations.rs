//! What the recording cannot show: waiting, order, lost connections, the end of the hub, and what several
//! connections do to each other.

use super::ring::{Ring, say};
use crate::dwork::Settings;
use crate::dwork::codec::{Log, Note, decode, notes};
use crate::zmtp::SocketType::{Dealer, Req};
use bytes::BytesMut;
use laboro_core::*;
use std::sync::Arc;

fn patient() -> Ring {
    Ring::with(Settings::default())
}

#[test]
fn a_steal_waits_for_work_and_gets_it() {
    let mut ring = patient();
    let (worker, client) = (ring.connect(Dealer), ring.connect(Req));
    ring.hears(client, say::create("a"), "OK");
    ring.hears(worker, say::steal(1, "w"), "Transfer [a]");
    ring.hears(worker, say::steal(1, "w"), "nothing");
    ring.pass(999);
    ring.heard(worker, "nothing");
    ring.hears(client, say::create("b c"), "OK");
    ring.heard(worker, "Transfer [b]");
}

#[test]
fn a_steal_does_not_keep_a_worker_from_telling_what_it_has_done() {
    let mut ring = patient();
    let (worker, client) = (ring.connect(Req), ring.connect(Req));
    ring.hears(client, say::create("a b<a c<b"), "OK");
    ring.hears(worker, say::steal(1, "w"), "Transfer [a]");
    for (done, next) in [("a", "b"), ("b", "c")] {
        // One in reserve, as original workers want it; there is none before they have told their result.
        ring.hears(worker, say::steal(1, "w"), "nothing");
        ring.pass(10);
        ring.heard(worker, "NotFound");
        ring.hears(worker, say::complete(done, "w"), "OK");
        ring.hears(worker, say::steal(1, "w"), &format!("Transfer [{next}]"));
    }
    ring.hears(worker, say::steal(1, "w"), "nothing");
    ring.pass(10);
    ring.heard(worker, "NotFound");
    ring.hears(worker, say::complete("c", "w"), "OK");
    ring.hears(worker, say::steal(1, "w"), "Exit");
}

#[test]
fn a_steal_that_waited_in_vain_is_told_so() {
    let mut ring = patient();
    let (worker, other) = (ring.connect(Req), ring.connect(Req));
    ring.hears(worker, say::create("a b<a"), "OK");
    ring.hears(worker, say::steal(9, "w"), "Transfer [a]");
    ring.hears(other, say::steal(9, "v"), "nothing");
    ring.pass(1000);
    ring.heard(other, "NotFound");
    // What became ready while it waited is its own.
    ring.hears(other, say::steal(9, "v"), "nothing");
    ring.hears(worker, say::complete("a", "w"), "OK");
    ring.heard(other, "Transfer [b]");
    // And when the last one is done meanwhile, there is nothing to wait for.
    ring.hears(worker, say::steal(9, "w"), "nothing");
    ring.hears(other, say::complete("b", "v"), "OK");
    ring.heard(worker, "Exit");
}

#[test]
fn everybody_who_waits_is_told_at_once_that_the_last_task_is_done() {
    let mut ring = patient();
    let (worker, client) = (ring.connect(Req), ring.connect(Req));
    let waiting: Vec<usize> =
        [Req, Dealer, Req].into_iter().map(|socket| ring.connect(socket)).collect();
    ring.hears(client, say::create("a"), "OK");
    ring.hears(worker, say::steal(1, "w"), "Transfer [a]");
    for (number, &peer) in waiting.iter().enumerate() {
        ring.hears(peer, say::steal(1, &format!("v{number}")), "nothing");
    }
    ring.hears(worker, say::complete("a", "w"), "OK");
    waiting.iter().for_each(|&peer| ring.heard(peer, "Exit"));
}

#[test]
fn a_steal_before_the_first_create_waits_for_it() {
    let mut ring = patient();
    let (worker, client) = (ring.connect(Req), ring.connect(Req));
    ring.hears(worker, say::steal(1, "w"), "nothing");
    ring.pass(1000);
    ring.heard(worker, "NotFound");
    ring.hears(worker, say::steal(1, "w"), "nothing");
    ring.hears(client, say::create("a"), "OK");
    ring.heard(worker, "Transfer [a]");
}

#[test]
fn a_hub_that_goes_on_for_months_keeps_its_workers() {
    let settings = Settings { exit_when_finished: false, ..Settings::default() };
    let mut ring = Ring::with(settings);
    let (worker, client) = (ring.connect(Req), ring.connect(Req));
    ring.hears(client, say::create("a"), "OK");
    ring.hears(worker, say::steal(1, "w"), "Transfer [a]");
    ring.hears(worker, say::complete("a", "w"), "OK");
    ring.hears(worker, say::steal(1, "w"), "nothing");
    ring.pass(1000);
    ring.heard(worker, "NotFound");
    ring.hears(worker, say::steal(1, "w"), "nothing");
    ring.hears(client, say::create("b"), "OK");
    ring.heard(worker, "Transfer [b]");
}

#[test]
fn another_request_ends_the_waiting_of_a_steal() {
    let mut ring = patient();
    let peer = ring.connect(Dealer);
    ring.hears(peer, say::create("a"), "OK");
    ring.hears(peer, say::steal(1, "w"), "Transfer [a]");
    ring.hears(peer, say::steal(1, "w"), "nothing");
    let status = "OK \"dhub: 1 active tasks, 0 ready.\" n=0";
    ring.hears(peer, say::status(), &format!("NotFound, {status}"));
    // A steal that was not asked alone is not given anything later either.
    ring.hears(peer, say::create("b"), "OK");
    ring.hears(peer, say::steal(1, "w"), "Transfer [b]");
}

#[test]
fn answers_come_in_the_order_of_requests() {
    let mut ring = patient();
    let peer = ring.connect(Dealer);
    for number in 0..64u8 {
        let request = match number {
            5 => say::steal(0, "w"),
            6 => say::lookup("p1"),
            7 => say::exit("nobody"),
            _ => say::create(&format!("p{number}")),
        };
        ring.send(peer, &[&[number], b"", &request]);
    }
    let answers = ring.answers(peer);
    assert!(answers.iter().map(|answer| answer.0[0][0]).eq(0..64));
    ring.send(peer, &[b"", &say::steal(64, "w")]);
    let names: Vec<String> =
        (0..64).filter(|n| ![5, 6, 7].contains(n)).map(|n| format!("p{n}")).collect();
    ring.heard(peer, &format!("Transfer [{}]", names.join(" ")));
}

#[test]
fn what_is_sent_in_one_piece_is_answered_in_order_however_much_it_is() {
    let mut ring = patient();
    let (peer, client) = (ring.connect(Dealer), ring.connect(Req));
    let mut bytes = BytesMut::new();
    for number in 0..5000u32 {
        let request = say::create(&format!("t{number}"));
        let number = number.to_be_bytes();
        // Short frames: flags, length, bytes.
        bytes.extend_from_slice(&[1, 4]);
        bytes.extend_from_slice(&number);
        bytes.extend_from_slice(&[1, 0, 0, request.len() as u8]);
        bytes.extend_from_slice(&request);
    }
    ring.send_bytes(peer, bytes);
    ring.turn();
    let numbers = ring.answers(peer);
    let numbers = numbers.iter().map(|m| u32::from_be_bytes(m.0[0][..].try_into().unwrap()));
    assert!(numbers.eq(0..5000));
    ring.hears(client, say::status(), "OK \"dhub: 5000 active tasks, 5000 ready.\" n=5000");
    assert!(!ring.hung_up(peer));
}

#[test]
fn a_request_that_is_too_long_is_refused_and_the_next_one_heard() {
    let mut ring = patient();
    let peer = ring.connect(Req);
    let mut head = BytesMut::from(&[1, 0, 2][..]);
    head.extend_from_slice(&(2u64 << 20).to_be_bytes());
    ring.send_bytes(peer, head);
    for _ in 0..32 {
        ring.heard(peer, "nothing");
        ring.send_bytes(peer, BytesMut::zeroed(64 << 10));
    }
    ring.turn();
    ring.heard(peer, "Error");
    ring.hears(peer, say::create("a"), "OK");
}

#[test]
fn a_steal_gets_no_more_than_a_reply_holds() {
    let mut ring = Ring::new();
    let peer = ring.connect(Req);
    let name = |number: usize| format!("{number}{}", "x".repeat(4000));
    for message in 0..10 {
        let names: Vec<String> = (0..250).map(|task| name(250 * message + task)).collect();
        ring.hears(peer, say::create(&names.join(" ")), "OK");
    }
    let (mut stolen, mut next) = (Vec::new(), 0);
    for _ in 0..2 {
        let reply = ring.ask(peer, &say::steal(5000, "w")).unwrap();
        assert!(reply.len() < 9 << 20, "{} bytes", reply.len());
        let query = decode(&reply, 5000).unwrap();
        stolen.push(query.tasks.len());
        for task in &query.tasks {
            assert_eq!(task.name, name(next).as_bytes());
            next += 1;
        }
    }
    assert!(stolen[0] < 2500 && next == 2500, "{stolen:?}");
}

#[test]
fn a_peer_that_only_sends_is_cut_off() {
    let mut ring = patient();
    let peer = ring.connect(Dealer);
    let flood: Vec<u8> = [1, 0, 0, 2, 8, 6].repeat(100_000);
    ring.send_bytes(peer, BytesMut::from(&flood[..]));
    assert!(ring.hung_up(peer));
}

#[test]
fn a_lost_connection_takes_nothing_with_it() {
    let mut ring = patient();
    let (worker, other) = (ring.connect(Req), ring.connect(Req));
    ring.hears(worker, say::create("a"), "OK");
    ring.hears(worker, say::steal(1, "w"), "Transfer [a]");
    ring.hears(worker, say::steal(1, "w"), "nothing");
    ring.close(worker);
    ring.turn();
    // Nobody waits for the next task any more, and the first is still with its worker.
    ring.hears(other, say::create("b"), "OK");
    ring.hears(other, say::steal(9, "v"), "Transfer [b]");
    ring.hears(other, say::lookup("a"), "Lookup \"a\" at w");
    ring.hears(other, say::complete("a", "w"), "OK");
}

#[test]
fn work_for_a_connection_that_is_gone_goes_back() {
    let mut ring = patient();
    let (worker, other) = (ring.connect(Req), ring.connect(Req));
    ring.hears(other, say::create("x"), "OK");
    ring.hears(other, say::steal(1, "v"), "Transfer [x]");
    ring.hears(worker, say::steal(1, "w"), "nothing");
    // In one step the task is given and only then the steal is withdrawn.
    ring.send_only(other, &say::create("a"));
    ring.swap_first_two();
    ring.close(worker);
    ring.turn();
    ring.heard(worker, "nothing");
    ring.heard(other, "OK");
    ring.hears(other, say::steal(1, "v"), "Transfer [a]");
}

#[test]
fn a_hub_that_stops_says_exit_to_everybody() {
    let mut ring = patient();
    let (worker, client) = (ring.connect(Req), ring.connect(Req));
    ring.hears(client, say::create("a b<a"), "OK");
    ring.hears(worker, say::steal(1, "w"), "Transfer [a]");
    ring.hears(worker, say::steal(1, "w"), "nothing");
    ring.stop();
    ring.heard(worker, "Exit");
    ring.hears(client, say::create("c"), "Exit");
    ring.hears(worker, say::complete("a", "w"), "Exit");
    ring.restart();
    let client = ring.connect(Req);
    ring.hears(client, say::status(), "OK \"dhub: 2 active tasks, 0 ready.\" n=0");
}

#[test]
fn a_task_that_comes_when_exit_was_said_goes_back() {
    let mut ring = patient();
    let (worker, other) = (ring.connect(Req), ring.connect(Req));
    ring.hears(worker, say::steal(1, "w"), "nothing");
    // The task is created and given in the same step in which the steal is withdrawn.
    ring.send_only(other, &say::create("a"));
    ring.swap_first_two();
    ring.stop();
    ring.heard(worker, "Exit");
    ring.heard(other, "OK");
    assert_eq!(ring.task("a").state, State::Ready);
}

#[test]
fn a_restart_forgets_nobody_who_holds_something() {
    let mut ring = Ring::new();
    let worker = ring.connect(Req);
    ring.hears(worker, say::create("a b c"), "OK");
    ring.hears(worker, say::steal(2, "w"), "Transfer [a b]");
    ring.restart();
    let (worker, other) = (ring.connect(Req), ring.connect(Req));
    ring.hears(other, say::steal(9, "v"), "Transfer [c]");
    ring.hears(worker, say::complete("a", "w"), "OK");
    ring.hears(other, say::exit("w"), "OK");
    ring.hears(other, say::exit("w"), "NotFound");
    ring.hears(other, say::steal(9, "v"), "Transfer [b]");
    // New tasks go on in the same job.
    ring.hears(other, say::create("d"), "OK");
    assert_eq!(ring.task("d").task.job, ring.task("a").task.job);
}

#[test]
fn a_lease_ends_by_itself_only_where_the_door_says_so() {
    let mut ring = Ring::with(Settings { patience_ms: 0, ..Settings::default() });
    let peer = ring.connect(Req);
    ring.hears(peer, say::create("a"), "OK");
    ring.hears(peer, say::steal(1, "w"), "Transfer [a]");
    ring.pass(30 * 86_400_000);
    ring.hears(peer, say::steal(1, "v"), "NotFound");

    let settings = Settings { lease_ms: Some(5000), patience_ms: 0, ..Settings::default() };
    let mut ring = Ring::with(settings);
    let peer = ring.connect(Req);
    ring.hears(peer, say::create("a b"), "OK");
    ring.hears(peer, say::steal(2, "w"), "Transfer [a b]");
    ring.pass(5000);
    // Late, but nobody else has it: the work is done.
    ring.hears(peer, say::complete("a", "w"), "OK");
    ring.hears(peer, say::steal(2, "v"), "Transfer [b]");
    // And also where another has it.
    ring.hears(peer, say::complete("b", "w"), "OK");
    ring.hears(peer, say::complete("b", "v"), "OK");
    ring.hears(peer, say::complete("b", "v"), "OK");
}

#[test]
fn a_task_is_done_whoever_says_so() {
    let mut ring = Ring::new();
    let (worker, client) = (ring.connect(Req), ring.connect(Req));
    ring.hears(client, say::create("a b<a c<b"), "OK");
    ring.hears(worker, say::steal(1, "w"), "Transfer [a]");
    // As a query program does that cannot say for whom it speaks.
    ring.hears(client, say::complete("a", "host"), "OK");
    ring.hears(client, say::status(), "OK \"dhub: 2 active tasks, 1 ready.\" n=1");
    ring.hears(worker, say::steal(9, "w"), "Transfer [b]");
    ring.hears(worker, say::complete("a", "w"), "OK");
    ring.hears(client, say::complete("c nobody b", "host"), "NotFound [c nobody]");
    ring.hears(client, say::lookup("b"), "NotFound");
    // It is not given out again when its holder goes.
    ring.hears(worker, say::exit("w"), "OK");
    ring.hears(worker, say::steal(9, "w"), "Transfer [c]");
}

#[test]
fn a_door_may_ask_that_only_the_holder_completes() {
    let only_holder = Settings { only_holder: true, patience_ms: 0, ..Settings::default() };
    let mut ring = Ring::with(only_holder);
    let (worker, client) = (ring.connect(Req), ring.connect(Req));
    ring.hears(client, say::create("a b<a"), "OK");
    ring.hears(worker, say::steal(1, "w"), "Transfer [a]");
    ring.hears(client, say::complete("a", "host"), "NotFound [a]");
    ring.hears(worker, say::complete("a", "w"), "OK");
    ring.hears(worker, say::complete("a", "w"), "OK");
    ring.hears(client, say::complete("a", "host"), "NotFound [a]");
}

#[test]
fn origin_and_log_come_back_with_a_steal_and_stay_with_the_task() {
    let mut ring = Ring::new();
    let peer = ring.connect(Req);
    let pending = Log::new(Note::Pending, 5);
    assert!(ring.ask(peer, &say::create_with_log("a", &[pending])).is_some());
    let reply = ring.ask(peer, &say::steal(1, "w")).unwrap();
    let stolen = Log::new(Note::Stolen, ring.now.0 as i64 * 1000);
    let query = decode(&reply, 1).unwrap();
    assert_eq!(query.tasks[0].origin, b"cli");
    assert_eq!(query.tasks[0].log().collect::<Vec<_>>(), [pending, stolen]);

    let done = [stolen, Log::new(Note::Started, 7), Log::new(Note::Done, 8)];
    ring.hears(peer, say::complete_with_log("a", "w", &done), "OK");
    let memo = ring.task("a").memo.expect("what was told is kept");
    assert_eq!(notes(&memo), Some((&b"cli"[..], done.to_vec())));
    assert_eq!(notes(b"not ours"), None);
}

#[test]
fn a_thief_gets_only_what_it_can_carry() {
    let work = Work::Command(CommandWork {
        program: Program::Shell(b"true".as_slice().into()),
        setting: Arc::default(),
    });
    let submit = |ring: &mut Ring| {
        let unnamed = ArraySpec::numbered("", 2, Work::Named);
        let arrays = vec![ArraySpec::numbered("named", 2, Work::Named), unnamed];
        let task = TaskSpec {
            name: "command".into(),
            profile: 0,
            work: Some(Arc::new(work.clone())),
            preds: Default::default(),
            memo: Some(b"not ours".as_slice().into()),
        };
        ring.command(Command::Submit(Submit {
            group: "default".into(),
            job: SubmitTo::New(JobOptions::default()),
            profiles: vec![Profile::default()],
            tasks: vec![task],
            arrays,
            unknown_pred: UnknownPred::Refuse,
            if_taken: IfTaken::Refuse,
        }));
    };
    let mut ring = Ring::new();
    submit(&mut ring);
    let peer = ring.connect(Req);
    ring.hears(peer, say::steal(9, "w"), "Transfer [named.1 named.2 1/3 1/4]");
    ring.hears(peer, say::complete("named.2", "w"), "OK");
    ring.hears(peer, say::lookup("1/3"), "Lookup \"1/3\" at w");
    ring.hears(peer, say::transfer("1/3", "w"), "OK");
    ring.hears(peer, say::complete("1/4 1/5 1/04", "w"), "NotFound [1/5 1/04]");
    // A name that was given counts more than a number, and is no predecessor by it.
    ring.hears(peer, say::create("1/3 after<1/4"), "OK");
    ring.hears(peer, say::complete("1/3", "w"), "OK");
    ring.hears(peer, say::steal(9, "w"), "Transfer [after 1/3]");
    ring.hears(peer, say::complete("command", "w"), "OK");

    let settings = Settings { kinds: Kinds::ALL, patience_ms: 0, ..Settings::default() };
    let mut ring = Ring::with(settings);
    submit(&mut ring);
    let peer = ring.connect(Req);
    let reply = ring.ask(peer, &say::steal(9, "w")).unwrap();
    let query = decode(&reply, 9).unwrap();
    assert!(query.tasks.iter().all(|task| task.origin == b"laboro"));
    assert_eq!(query.tasks.len(), 5);
}

#[test]
fn who_left_by_another_connection_may_come_back() {
    let mut ring = Ring::new();
    let (worker, other) = (ring.connect(Req), ring.connect(Req));
    ring.hears(other, say::create("a b"), "OK");
    ring.hears(worker, say::steal(1, "w"), "Transfer [a]");
    ring.hears(other, say::exit("w"), "OK");
    ring.hears(worker, say::steal(2, "w"), "Transfer [a b]");
    ring.hears(other, say::exit("w"), "OK");
    // Known again by what it gives back, not by asking in vain.
    ring.hears(other, say::steal(2, "v"), "Transfer [b a]");
    ring.hears(worker, say::steal(2, "w"), "NotFound");
    ring.hears(other, say::exit("w"), "NotFound");
    ring.hears(worker, say::complete("a nobody", "w"), "NotFound [nobody]");
    ring.hears(other, say::exit("w"), "OK");
}

#[test]
fn a_name_that_works_by_another_dialect_is_not_taken_over() {
    let mut ring = Ring::new();
    let (peer, other) = (ring.connect(Req), ring.connect(Req));
    let join = |name: &str| {
        Command::Join(Join {
            group: "default".into(),
            name: name.into(),
            dialect: "native",
            session: SessionId(77),
            life: None,
            kinds: Kinds::ALL,
            tags: Vec::new(),
            capacity: Capacity::slots(4),
            period_ms: Some(60_000),
            running: Some(Vec::new()),
            acknowledges: false,
            host: Default::default(),
        })
    };
    let joined =
        |effects: &[Effect]| matches!(effects, [Effect::Reply { reply: Reply::Joined { .. }, .. }]);
    ring.hears(peer, say::create("a b"), "OK");
    assert!(joined(&ring.command(join("host"))));
    ring.hears(peer, say::steal(1, "host"), "Error");
    ring.hears(peer, say::complete("a", "host"), "Error");
    ring.hears(peer, say::exit("host"), "NotFound");
    assert_eq!(ring.task("a").state, State::Ready);

    // Nor the other way round, while it holds something. Afterwards it makes way.
    ring.hears(peer, say::steal(1, "node"), "Transfer [a]");
    assert!(!joined(&ring.command(join("node"))));
    ring.hears(peer, say::complete("a", "node"), "OK");
    assert!(joined(&ring.command(join("node"))));
    ring.hears(peer, say::steal(1, "node"), "Error");
    ring.hears(other, say::steal(1, "free"), "Transfer [b]");
}

#[test]
fn what_waits_for_others_is_not_completed_by_who_had_it_before() {
    let mut ring = patient();
    let peer = ring.connect(Dealer);
    ring.hears(peer, say::create("a p"), "OK");
    ring.hears(peer, say::steal(1, "w"), "Transfer [a]");
    ring.hears(peer, say::exit("w"), "OK");
    ring.hears(peer, say::create("a<p"), "OK");
    ring.hears(peer, say::complete("a", "w"), "NotFound [a]");
    ring.hears(peer, say::steal(2, "w"), "Transfer [p]");
}

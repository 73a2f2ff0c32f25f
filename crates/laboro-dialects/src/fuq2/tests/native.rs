//! A hub core, the foreman and a Laboro worker, talking to each other.

use super::rig::{Rig, ended};
use crate::fuq2::{Mode, NativeWorker, WorkerSettings};
use crate::session::{HangUp, Stream};
use crate::worker::{News, Order, Parting, TaskEnd, Used, WorkerSide};
use bytes::Bytes;
use laboro_core::{
    ArraySpec, CallWork, Command, CommandWork, Drain, Fields, Needs, Outcome, Profile, Program,
    Runner, Setting, State, Stdin, Warning, Work, WorkerRef,
};
use std::sync::Arc;

fn rig(slots: u32, ahead: u32) -> Rig<NativeWorker> {
    let settings = WorkerSettings { ahead, ..WorkerSettings::new("w", slots) };
    Rig::new(Mode::Native, NativeWorker::new(settings))
}

fn command(words: &[&str]) -> Work {
    let words = words.iter().collect();
    Work::Command(CommandWork { program: Program::Argv(words), setting: Arc::default() })
}

fn who() -> WorkerRef {
    WorkerRef::Name { group: "default".into(), name: "w".into() }
}

#[test]
fn an_array_runs_to_its_end() {
    let mut rig = rig(2, 10);
    assert!(matches!(&rig.orders[..], [Order::Welcome { name }] if name == "w"));
    let job = rig.submit(1000, command(&["true"]));
    assert_eq!(rig.run_all(), 1000);
    assert_eq!(rig.count(job, State::Done), 1000);
    assert!(rig.worker.is_settled());
}

#[test]
fn a_task_arrives_with_all_that_it_needs() {
    let mut rig = rig(8, 0);
    let work = Work::Command(CommandWork {
        program: Program::Shell(Box::from(&b"echo {}"[..])),
        setting: Arc::new(Setting {
            dir: Some(Box::from(&b"/data"[..])),
            env: vec![(Box::from(&b"A"[..]), Box::from(&b"\xFF"[..]))],
            stdin: Stdin::Text(Box::default()),
            stdout: Some(Box::from(&b"out/{}"[..])),
            stderr: Some(Box::from(&b"out/{}"[..])),
            nice: Some(-1),
            umask: Some(0o77),
            shell: Some(b"bash".as_slice().into()),
            placeholders: Some(2),
            runner: None,
            wrap: vec![b"env".as_slice().into(), b"A={}".as_slice().into()],
            warning: Some(Warning { signal: 10, before_ms: 100 }),
            value_names: Vec::new(),
        }),
    });
    let array = ArraySpec {
        values: ["x", "y z"].into_iter().collect(),
        ..ArraySpec::numbered("greet", 2, work.clone())
    };
    let needs = Needs { slots: 3, memory: 0, ..Needs::default() };
    rig.submit_arrays(
        vec![array],
        Profile { needs, time_limit_ms: Some(9000), ..Profile::default() },
    );
    let started = rig.started();
    assert_eq!(started.len(), 2);
    let second = &started[1];
    assert_eq!(*second.work, work);
    assert_eq!((second.name.as_str(), second.index, second.attempt), ("greet.2", 2, 1));
    assert_eq!((second.slots, second.time_limit_ms), (3, Some(9000)));
    let value = second.value.as_ref().unwrap();
    assert_eq!((value.position, &value.bytes[..]), (1, &b"y z"[..]));
}

#[test]
fn a_call_arrives_with_its_payload_its_runner_and_its_value() {
    let runner = Runner {
        words: vec![Box::from(&b"python3"[..]), Box::from(&b"\xFF"[..])],
        idle_ms: Some(5),
        calls_max: Some(7),
        memory_max: Some(9),
    };
    let setting = Setting { runner: Some(Arc::new(runner)), ..Setting::default() };
    let payload = Arc::from(&b"\x00payload"[..]);
    let work = Work::Call(CallWork { payload, setting: Arc::new(setting) });
    let array = ArraySpec {
        values: [b"\x00\x01"].into_iter().collect(),
        ..ArraySpec::numbered("calls", 1, work.clone())
    };
    let mut rig = rig(1, 0);
    let job = rig.submit_arrays(vec![array.clone()], Profile::default());
    let started = rig.started();
    assert_eq!(*started[0].work, work);
    assert_eq!(started[0].value.as_ref().unwrap().bytes[..], b"\x00\x01"[..]);
    let key = started[0].key;
    let bytes = Bytes::from_static(b"result");
    rig.tell_all([
        News::Wrote { key, stream: Stream::Result, bytes },
        News::Ended { key, how: ended(Outcome::Success) },
    ]);
    assert_eq!((rig.kept[0].stream, &rig.kept[0].bytes[..]), (Stream::Result, &b"result"[..]));
    assert_eq!(rig.count(job, State::Done), 1);

    // A worker of an earlier version knows nothing of runners.
    let settings = WorkerSettings { fields: Fields::NONE, ..WorkerSettings::new("w", 1) };
    let mut rig = Rig::new(Mode::Native, NativeWorker::new(settings));
    let job = rig.submit_arrays(vec![array], Profile::default());
    assert_eq!((rig.run_all(), rig.count(job, State::Ready)), (0, 1));
}

#[test]
fn names_go_only_to_workers_that_know_them() {
    let settings = WorkerSettings { takes_names: false, ..WorkerSettings::new("w", 1) };
    let mut rig = Rig::new(Mode::Native, NativeWorker::new(settings));
    let names = rig.submit(1, Work::Named);
    let array = ArraySpec::numbered("other", 1, command(&["true"]));
    let commands = rig.submit_arrays(vec![array], Profile::default());
    assert_eq!(rig.run_all(), 1);
    assert_eq!((rig.count(names, State::Ready), rig.count(commands, State::Done)), (1, 1));
}

/// One that any worker runs as it was asked, one that an older worker would run without its files.
fn settings() -> [Setting; 2] {
    let path = |path: &[u8]| Some(Box::from(path));
    let plain = Setting { stdout: path(b"both"), stderr: path(b"both"), ..Setting::default() };
    let stdin = Stdin::File(Box::from(&b"in"[..]));
    [plain, Setting { stdin, stderr: path(b"err"), nice: Some(3), ..Setting::default() }]
}

fn with(setting: &Setting) -> Work {
    let program = Program::Argv(["true"].into_iter().collect());
    Work::Command(CommandWork { program, setting: Arc::new(setting.clone()) })
}

#[test]
fn an_older_worker_gets_only_tasks_whose_fields_it_understands() {
    let older = WorkerSettings { fields: Fields::NONE, ..WorkerSettings::new("w", 8) };
    let mut rig = Rig::new(Mode::Native, NativeWorker::new(older));
    let [plain, other] = settings();
    let plain = rig.submit(1, with(&plain));
    let array = ArraySpec::numbered("other", 2, with(&other));
    let other = rig.submit_arrays(vec![array], Profile::default());
    assert_eq!(rig.run_all(), 1);
    assert_eq!((rig.count(plain, State::Done), rig.count(other, State::Ready)), (1, 2));
}

#[test]
fn every_field_of_a_setting_survives_the_wire() {
    for setting in settings() {
        let body = Arc::from(&b"echo\n"[..]);
        for work in [with(&setting), Work::script(".sh", body, Arc::new(setting.clone()))] {
            let mut rig = rig(1, 0);
            rig.submit(1, work.clone());
            assert_eq!(*rig.started()[0].work, work);
        }
    }
}

#[test]
fn every_kind_of_work_survives_the_wire() {
    let setting = Arc::new(Setting { dir: Some(Box::from(&b"/d"[..])), ..Setting::default() });
    let kinds = [
        Work::Named,
        command(&["a", "", "b c"]),
        Work::script(".sh", Arc::from(&b"echo\n"[..]), setting),
        Work::indexed(Box::from(&b"/bin/p"[..]), Box::from(&b"/tmp"[..]), Box::from(&b"/log"[..])),
    ];
    for work in kinds {
        let mut rig = rig(1, 0);
        rig.submit(1, work.clone());
        assert_eq!(*rig.started()[0].work, work);
    }
}

#[test]
fn failures_keep_their_codes_and_words() {
    let mut rig = rig(4, 0);
    let job = rig.submit(3, command(&["false"]));
    let keys: Vec<_> = rig.started().iter().map(|assignment| assignment.key).collect();
    let mut error = ended(Outcome::Error);
    error.message = Some("no such program".into());
    let outcomes = [ended(Outcome::Exit(3)), ended(Outcome::Signal(9)), error];
    rig.tell_all(keys.into_iter().zip(outcomes).map(|(key, how)| News::Ended { key, how }));
    assert_eq!(rig.count(job, State::Failed), 3);
}

#[test]
fn output_reaches_the_store_before_the_result() {
    let mut rig = rig(1, 0);
    rig.submit(1, command(&["echo"]));
    let key = rig.started()[0].key;
    let wrote = |stream, text: &'static [u8]| News::Wrote { key, stream, bytes: Bytes::from(text) };
    rig.tell_all([
        wrote(Stream::Out, b"one\n"),
        wrote(Stream::Err, b"two\n"),
        News::Ended { key, how: ended(Outcome::Success) },
    ]);
    let kept: Vec<(Stream, &[u8])> = rig.kept.iter().map(|c| (c.stream, &c.bytes[..])).collect();
    assert_eq!(kept, [(Stream::Out, &b"one\n"[..]), (Stream::Err, &b"two\n"[..])]);
    assert_eq!(rig.worker.unsaid(), 0);
}

#[test]
fn what_an_attempt_used_comes_with_its_result_however_late() {
    let mut rig = rig(1, 0);
    rig.submit(1, command(&["true"]));
    let key = rig.started()[0].key;
    rig.pass(3000);
    rig.cut();
    let used = Used { wall_us: 3_000_000, user_us: 20, system_us: 30, peak_kib: 40 };
    let at = rig.now;
    rig.tell(News::Ended { key, how: TaskEnd { used, ..ended(Outcome::Exit(2)) } });
    rig.stall(7000);
    rig.reconnect(Mode::Native);
    let [ends] = &rig.ended[..] else { panic!("{:?}", rig.ended) };
    assert_eq!((&ends.name, ends.ends.len()), (&"w".into(), 1));
    let end = ends.ends[0];
    assert_eq!((end.attempt, end.outcome, end.used), (1, Outcome::Exit(2), used));
    assert_eq!(end.ended, at, "not when the hub heard of it");
}

#[test]
fn output_says_where_it_belongs_also_when_it_is_said_again() {
    let mut rig = rig(1, 0);
    rig.submit(1, command(&["true"]));
    let key = rig.started()[0].key;
    let wrote = |stream, bytes| News::Wrote { key, stream, bytes };
    let long = Bytes::from(vec![b'x'; 300 << 10]);
    rig.tell_and_cut(wrote(Stream::Out, Bytes::from_static(b"abc")), true);
    rig.tell(wrote(Stream::Err, Bytes::from_static(b"oh")));
    rig.tell(wrote(Stream::Out, long));
    rig.reconnect(Mode::Native);
    let kept: Vec<_> =
        rig.kept.iter().map(|c| (c.stream, c.offset.unwrap(), c.bytes.len())).collect();
    let (first, again) = ((Stream::Out, 0, 3), (Stream::Out, 0, 3));
    let rest = [(Stream::Out, 3, 256 << 10), (Stream::Out, 3 + (256 << 10), 44 << 10)];
    assert_eq!(kept, [first, again, (Stream::Err, 0, 2), rest[0], rest[1]]);
}

#[test]
fn what_was_not_answered_is_said_again_on_the_next_connection() {
    let mut rig = rig(2, 0);
    let job = rig.submit(2, command(&["true"]));
    let keys: Vec<_> = rig.started().iter().map(|assignment| assignment.key).collect();
    rig.cut();
    rig.tell(News::Ended { key: keys[0], how: ended(Outcome::Success) });
    assert!(!rig.worker.is_settled());
    rig.reconnect(Mode::Native);
    assert_eq!(rig.count(job, State::Done), 1);
    // The other one was kept, not started anew.
    assert_eq!(rig.count(job, State::Leased), 1);
    assert!(rig.started().is_empty() && rig.cancelled().is_empty());
    rig.tell(News::Ended { key: keys[1], how: ended(Outcome::Success) });
    assert_eq!(rig.count(job, State::Done), 2);
}

#[test]
fn what_went_to_others_meanwhile_is_ended() {
    let mut rig = rig(1, 0);
    let job = rig.submit(1, command(&["sleep"]));
    let key = rig.started()[0].key;
    rig.cut();
    rig.pass(10_001);
    assert_eq!(rig.count(job, State::Ready), 1);
    rig.reconnect(Mode::Native);
    assert_eq!(rig.cancelled(), [key]);
    assert_eq!(rig.started().len(), 1, "it runs anew, under a new lease");
}

#[test]
fn a_cancelled_task_is_ended_at_the_worker() {
    let mut rig = rig(2, 0);
    let job = rig.submit(2, command(&["sleep"]));
    let keys: Vec<_> = rig.started().iter().map(|assignment| assignment.key).collect();
    let which = laboro_core::Which::Ranges(vec![(1, 1)]);
    rig.ask(Command::Cancel(laboro_core::Selection { job, which }));
    assert_eq!(rig.cancelled(), keys[..1]);
    rig.tell(News::Ended { key: keys[0], how: ended(Outcome::Signal(9)) });
    assert_eq!(rig.count(job, State::Cancelled), 1);
}

#[test]
fn a_silent_worker_gives_signs_of_life() {
    let mut rig = rig(1, 0);
    let job = rig.submit(1, command(&["sleep"]));
    rig.started();
    rig.pass(300_000);
    assert_eq!(rig.count(job, State::Leased), 1);
    assert_eq!((&rig.hang_up, &rig.parting), (&None, &None));
}

#[test]
fn a_worker_that_says_nothing_is_left_and_leaves_itself() {
    let mut rig = rig(1, 0);
    rig.connected = false;
    rig.pass(60_000);
    assert!(matches!(rig.parting, Some(Parting::Again(_))));
    rig.connected = true;
    let mut out = crate::session::Output::default();
    crate::session::Session::tick(&mut rig.foreman, rig.now, &mut out);
    assert_eq!(out.hang_up, Some(HangUp::Silent));
}

#[test]
fn a_drained_worker_finishes_and_says_goodbye() {
    let mut rig = rig(2, 0);
    let job = rig.submit(5, command(&["true"]));
    let keys: Vec<_> = rig.started().iter().map(|assignment| assignment.key).collect();
    rig.ask(Command::Drain(who(), Drain::All));
    assert!(matches!(rig.orders.last(), Some(Order::Drain)));
    let success = |&key| News::Ended { key, how: ended(Outcome::Success) };
    rig.tell_all(keys.iter().map(success));
    assert!(rig.started().is_empty());
    rig.tell(News::Leaving);
    assert_eq!(rig.parting, Some(Parting::Finished));
    assert_eq!((rig.count(job, State::Done), rig.count(job, State::Ready)), (2, 3));
}

#[test]
fn stop_at_once_ends_everything() {
    let mut rig = rig(2, 0);
    let job = rig.submit(2, command(&["sleep"]));
    rig.started();
    rig.ask(Command::Drain(who(), Drain::AtOnce));
    assert!(matches!(rig.orders.last(), Some(Order::StopNow)));
    assert_eq!(rig.parting, Some(Parting::Finished));
    assert_eq!(rig.count(job, State::Ready), 2);
}

#[test]
fn a_worker_that_drains_of_its_own_is_not_told_to() {
    let mut rig = rig(2, 0);
    let job = rig.submit(3, command(&["true"]));
    let keys: Vec<_> = rig.started().iter().map(|assignment| assignment.key).collect();
    rig.tell(News::Draining);
    rig.tell(News::Returned(keys[0]));
    rig.tell(News::Ended { key: keys[1], how: ended(Outcome::Success) });
    rig.tell(News::Leaving);
    assert!(!rig.orders.iter().any(|order| matches!(order, Order::Drain)));
    assert_eq!((rig.count(job, State::Done), rig.count(job, State::Ready)), (1, 2));
    assert_eq!(rig.parting, Some(Parting::Finished));
}

#[test]
fn numbers_that_run_out_lose_nothing() {
    for (worker, foreman) in [(20, 1 << 30), (1 << 30, 20), (20, 20), (31, 24)] {
        let mut rig = rig(2, 3);
        rig.worker.talk().reset_from(worker);
        rig.foreman.talk().reset_from(foreman);
        let job = rig.submit(500, command(&["true"]));
        assert_eq!(rig.run_all(), 500, "every task runs once");
        assert_eq!(rig.count(job, State::Done), 500);
        assert_eq!((&rig.hang_up, &rig.parting), (&None, &None));
        assert!(rig.cancelled().is_empty());
        let hellos = rig.orders.iter().filter(|order| matches!(order, Order::Welcome { .. }));
        assert!(hellos.count() > 5, "and the conversation began anew");
    }
}

#[test]
fn a_task_that_fits_no_message_is_held_with_words() {
    let mut rig = rig(2, 0);
    let body = Arc::from(vec![b'x'; 2 << 20]);
    let job = rig.submit(1, Work::script(".sh", body, Arc::default()));
    assert_eq!(rig.count(job, State::Held), 1);
    assert!(rig.message(job, 1).contains("a message takes at most 1048576"));
    assert_eq!(rig.hang_up, None);
}

/// A JOB of three batches, the second of which has one word more than a worker reads.
#[test]
fn a_task_that_the_worker_cannot_read_comes_back_with_a_reason_and_the_others_run() {
    let mut rig = rig(3, 0);
    let arrays =
        ["one", "two", "three"].map(|name| ArraySpec::numbered(name, 1, command(&["true"])));
    rig.hub_says_too_much("two");
    let job = rig.submit_arrays(arrays.into(), Profile::default());
    let started: Vec<String> = rig.started().into_iter().map(|start| start.name).collect();
    assert_eq!(started, ["one.1", "three.1"]);
    assert_eq!((rig.count(job, State::Leased), rig.count(job, State::Held)), (2, 1));
    let reason = rig.message(job, 2);
    assert!(reason.contains("worker w cannot run it: Work: an array of 131073"), "{reason}");
    assert_eq!((&rig.hang_up, &rig.parting), (&None, &None), "and nobody hangs up");
}

#[test]
fn a_lost_worker_has_started_no_more_than_it_has_slots_and_has_taken() {
    let mut rig = rig(2, 4);
    let job = rig.submit(6, command(&["kill"]));
    assert_eq!(rig.started().len(), 6);
    rig.cut();
    let settings = WorkerSettings { life: 2, ..WorkerSettings::new("w", 2) };
    rig.worker = NativeWorker::new(settings);
    rig.reconnect(Mode::Native);
    let lost: Vec<u16> = (1..=6).map(|number| rig.task(job, number).lost_attempts).collect();
    assert_eq!(lost, [1, 1, 0, 0, 0, 0]);
}

#[test]
fn what_is_too_much_for_one_message_goes_in_several() {
    let mut rig = rig(8, 0);
    let array = ArraySpec {
        values: (0..8).map(|n| vec![n; 300 << 10]).collect(),
        ..ArraySpec::numbered("wide", 8, command(&["true"]))
    };
    let job = rig.submit_arrays(vec![array], Profile::default());
    assert_eq!(rig.run_all(), 8);
    assert_eq!(rig.count(job, State::Done), 8);
}

#[test]
fn much_output_goes_in_pieces_and_in_order() {
    let mut rig = rig(1, 0);
    rig.submit(1, command(&["cat"]));
    let key = rig.started()[0].key;
    let all: Vec<u8> = (0..3_000_000u32).map(|n| n as u8).collect();
    let bytes = Bytes::from(all.clone());
    rig.tell(News::Wrote { key, stream: Stream::Out, bytes });
    let kept: Vec<u8> = rig.kept.iter().flat_map(|chunk| chunk.bytes.to_vec()).collect();
    assert!(kept == all && rig.kept.len() > 1);
    assert_eq!(rig.worker.unsaid(), 0);
}

#[test]
fn how_far_ahead_can_change() {
    let mut rig = rig(1, 0);
    rig.submit(100, command(&["true"]));
    assert_eq!(rig.started().len(), 1);
    rig.tell(News::Ahead(10));
    assert_eq!(rig.started().len(), 10);
}

#[test]
fn a_worker_that_the_hub_forgot_says_hello_again() {
    let mut rig = rig(1, 0);
    let job = rig.submit(1, command(&["true"]));
    let key = rig.started()[0].key;
    rig.stall(31_000);
    assert_eq!(rig.count(job, State::Ready), 1, "its lease has lapsed");
    rig.tell(News::Ended { key, how: ended(Outcome::Success) });
    assert_eq!(rig.count(job, State::Done), 1);
    let second = rig.submit_arrays(
        vec![ArraySpec::numbered("next", 1, command(&["true"]))],
        Profile::default(),
    );
    rig.pass(30_000);
    assert_eq!(rig.run_all(), 1, "and gets work again");
    assert_eq!(rig.count(second, State::Done), 1);
}

/// Connections are lost at random: before the hub hears a result, or before the worker hears the answer. Every
/// task is done once, and nothing that was kept runs twice.
#[test]
fn no_result_is_lost_with_its_connection() {
    for seed in 1..60u64 {
        let mut dice = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let mut roll = move |sides: u32| {
            dice ^= dice << 13;
            dice ^= dice >> 7;
            dice ^= dice << 17;
            (dice >> 33) as u32 % sides
        };
        let mut rig = rig(3, 4);
        let job = rig.submit(200, command(&["true"]));
        let (mut running, mut started) = (Vec::new(), 0);
        for _ in 0..5000 {
            let new = rig.started();
            started += new.len();
            running.extend(new.iter().map(|assignment| assignment.key));
            if running.is_empty() && rig.connected {
                break;
            }
            let end = |key| News::Ended { key, how: ended(Outcome::Success) };
            match roll(10) {
                _ if running.is_empty() => {}
                0..=6 => {
                    let key = running.remove(roll(running.len() as u32) as usize);
                    rig.tell(end(key));
                }
                heard @ 7..=8 if rig.connected => {
                    let key = running.remove(0);
                    rig.tell_and_cut(end(key), heard == 7);
                }
                _ => {}
            }
            if !rig.connected && roll(3) == 0 {
                rig.reconnect(Mode::Native);
            }
        }
        assert_eq!(rig.count(job, State::Done), 200, "seed {seed}");
        assert!(rig.worker.is_settled(), "seed {seed}");
        // Work that was sent and lost with its connection is sent again, and counts once only here.
        assert_eq!(started, 200, "seed {seed}");
    }
}

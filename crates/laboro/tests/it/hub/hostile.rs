//! Names and words of strangers on their way to a terminal or a log: they are shown, and do nothing there.

use super::place::Place;
use crate::rig::{LABORO, until};
use crate::terminal::TERMINAL;
use laboro_core::{
    Command, CommandWork, IfTaken, JobOptions, LeaseRef, Name, Outcome, Profile, Program, Reply,
    Report, Setting, Stdin, Submit, SubmitTo, TaskResult, TaskSpec, UnknownPred, Work, WorkerRef,
};
use std::io::Write;
use std::sync::Arc;

/// Sets the title of a window, rings, begins a new line, clears the screen in two ways, goes back.
const EVIL: &str = "ev\u{1b}]0;pwned\u{7}\nil\u{9b}2J\u{1b}[2J\r\u{8}\u{7f}";

fn submit(place: &Place, group: &str) {
    let text = || EVIL.as_bytes().to_vec().into_boxed_slice();
    let setting = Setting {
        dir: Some(text()),
        env: vec![((*b"EVIL").into(), text())],
        stdin: Stdin::File(text()),
        stdout: Some(text()),
        stderr: Some(EVIL.repeat(2).into_bytes().into()),
        ..Setting::default()
    };
    let program = Program::Argv(["echo", EVIL].into_iter().collect());
    let work = Work::Command(CommandWork { program, setting: Arc::new(setting) });
    let task = |name: &str| TaskSpec {
        name: Name::from(format!("{name}{EVIL}")),
        profile: 0,
        work: Some(Arc::new(work.clone())),
        preds: Default::default(),
        memo: None,
    };
    let submitted = place.ask(Command::Submit(Submit {
        group: group.into(),
        job: SubmitTo::New(JobOptions { name: EVIL.into(), ..JobOptions::default() }),
        profiles: vec![Profile::default()],
        tasks: vec![task("a"), task("b")],
        arrays: Vec::new(),
        unknown_pred: UnknownPred::Refuse,
        if_taken: IfTaken::Refuse,
    }));
    assert!(matches!(submitted, Reply::Submitted { .. }), "{submitted:?}");
}

/// One task has failed, with words; the other waits.
fn stage() -> Place {
    let place = Place::new();
    submit(&place, "default");
    submit(&place, EVIL);
    let worker = place.worker(EVIL, 1);
    let grant = worker.take(1).pop().unwrap();
    let result = TaskResult {
        lease: LeaseRef::Number { task: grant.task, lease: grant.lease },
        outcome: Outcome::Exit(3),
        message: Some(EVIL.into()),
        memo: None,
    };
    let worker = WorkerRef::Name { group: "default".into(), name: EVIL.into() };
    place.ask(Command::Report(Report { worker, results: vec![result] }));
    place.prints(1, 1, EVIL, EVIL);
    place
}

#[track_caller]
fn is_harmless(what: &str, text: &str) {
    let bad = text.chars().find(|c| c.is_control() && !matches!(c, '\n' | '\t'));
    assert_eq!(bad, None, "{what} lets it through: {text:?}");
}

#[test]
fn no_list_passes_on_what_would_move_a_terminal() {
    let place = stage();
    for words in [
        &["status"][..],
        &["jobs"],
        &["tasks", "1"],
        &["show", "1"],
        &["show", "1/1"],
        &["show", "1/2"],
        &["explain", "1/2"],
        &["workers"],
        &["groups"],
        &["wait", "1", "--timeout", "10ms"],
        &["graph", "1"],
        &["cancel", "1/2"],
        &["retry", "1"],
        &["report", "1"],
        &["show", "no such\u{1b}]0;pwned\u{7}job"],
        &["workers", "drain", EVIL],
    ] {
        let ran = place.run(words);
        let text = ran.out() + &ran.err();
        assert!(!text.is_empty(), "{words:?}");
        is_harmless(&format!("{words:?}"), &text);
        for line in text.lines() {
            assert!(!line.starts_with("il"), "{words:?} lets a new line through: {text}");
        }
    }
}

#[test]
fn json_has_the_words_as_they_are_and_one_line_each() {
    let place = stage();
    for words in [&["jobs", "--json"][..], &["tasks", "1", "--json"], &["workers", "--json"]] {
        let ran = place.run(words);
        let text = ran.expect(0).out();
        assert!(text.bytes().all(|byte| byte >= b' ' || byte == b'\n'), "{text:?}");
        assert!(ran.events().iter().all(|row| row["name"].as_str().unwrap().contains(EVIL)));
    }
}

#[test]
fn events_pass_nothing_on_either() {
    let place = stage();
    let live = place.laboro(&["events"]).start();
    until("something is told", || {
        place.run(&["hold", "1"]);
        place.run(&["release", "1"]);
        live.out().lines().count() > 3
    });
    live.signal(rustix::process::Signal::INT);
    let ran = live.wait();
    is_harmless("events", &(ran.out() + &ran.err()));
}

#[test]
fn lines_with_a_name_before_them_pass_nothing_on() {
    let place = stage();
    // What a task printed is given byte for byte; only what stands beside it is ours to guard.
    let ran = place.run(&["logs", "1/1", "--stdout"]);
    assert!(ran.out().contains('\u{1b}'), "{:?}", ran.out());
    let all = place.run(&["logs", "1", "--all"]);
    is_harmless("logs", &all.err());
}

#[test]
fn top_passes_nothing_on() {
    let place = stage();
    let fifo = place.rig.at("keyboard");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", "exec python3 -c \"$0\" \"$@\" < keyboard", TERMINAL, LABORO, "top"]);
    shell.args(["--dir", place.rig.at("hub").to_str().unwrap(), "--every", "100ms"]);
    let live = place.rig.call(shell).env("TERM", "xterm-256color").start();
    let mut keyboard = std::fs::OpenOptions::new().write(true).open(&fifo).unwrap();
    until("the job is listed", || live.out().contains("pwned"));
    keyboard.write_all(b"\r").unwrap();
    until("its tasks are listed", || live.out().contains("tasks:"));
    keyboard.write_all(b"q").unwrap();
    let ran = live.wait();
    ran.expect(0);
    for bad in ["\u{1b}]0;pwned", "\u{7}", "\u{9b}", "\u{7f}"] {
        assert!(!ran.out().contains(bad), "{bad:?}");
    }
}

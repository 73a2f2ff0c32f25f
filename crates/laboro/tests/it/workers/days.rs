//! Workers that leave.

use super::hub::{HubRig, WAITS};
use crate::rig::{Life, until};
use laboro_core::{Command, Profile, State, WorkerRef};
use rustix::process::Signal;
use std::time::{Duration, Instant};

#[test]
fn a_worker_that_is_told_to_end_finishes_what_runs_and_leaves_the_rest() {
    let hub = HubRig::new();
    let worker = hub.worker("one", &[]);
    hub.rig.write("go", "");
    let job = hub.submit(2, WAITS, Profile::default());
    hub.line_of("pids");
    worker.signal(Signal::TERM);
    until("it says so", || worker.err().contains("waiting for 1 running task"));
    std::fs::remove_file(hub.rig.at("go")).unwrap();
    worker.wait().expect(0);
    let counts = hub.counts(job);
    assert_eq!((counts.of(State::Done), counts.of(State::Ready)), (1, 1));
    assert!(hub.workers().is_empty());
}

#[test]
fn a_second_signal_ends_what_runs_and_it_goes_back() {
    let hub = HubRig::new();
    let worker = hub.worker("one", &[]);
    hub.rig.write("go", "");
    let job = hub.submit(1, WAITS, Profile::default());
    let life = Life::of(&hub.line_of("pids"));
    worker.signal(Signal::INT);
    until("it says so", || worker.err().contains("interrupt again to end now"));
    worker.signal(Signal::INT);
    worker.wait().expect(0);
    assert!(life.is_over());
    assert_eq!(hub.counts(job).of(State::Ready), 1);
}

#[test]
fn an_idle_worker_leaves() {
    let hub = HubRig::new();
    let worker = hub.worker_unmet("one", &["--idle-timeout", "300ms"]);
    let ran = worker.wait();
    ran.expect(0).says("exiting");
}

#[test]
fn a_worker_is_gone_when_its_time_is_over() {
    let hub = HubRig::new();
    let worker = hub.worker("one", &["--time-limit", "3s", "--grace", "100ms"]);
    hub.rig.write("go", "");
    let job = hub.submit(1, WAITS, Profile::default());
    let life = Life::of(&hub.line_of("pids"));
    worker.wait().expect(0).says("the time limit is near");
    assert!(life.is_over());
    assert_eq!(hub.counts(job).of(State::Ready), 1);
}

#[test]
fn a_worker_without_a_hub_leaves_when_it_is_told_or_has_nothing_to_do() {
    let mut hub = HubRig::new();
    hub.stop();
    let idle = hub.worker_unmet("idle", &["--idle-timeout", "200ms"]);
    let told = hub.worker_unmet("told", &[]);
    until("it has tried", || told.err().contains("trying again"));
    told.signal(Signal::TERM);
    told.wait().expect(0);
    idle.wait().expect(0).says("exiting");
}

#[test]
fn a_batch_job_that_is_ended_gives_back_tasks_that_the_signal_hit_too() {
    let hub = HubRig::new();
    let worker = hub.worker_call("one", &[]).env("PBS_JOBID", "7.server").start();
    hub.rig.write("go", "");
    let job = hub.submit(1, WAITS, Profile::default());
    let pid = hub.line_of("pids");
    let pid = rustix::process::Pid::from_raw(pid.trim().parse().unwrap()).unwrap();
    // The task is told before its worker.
    rustix::process::kill_process(pid, Signal::TERM).unwrap();
    worker.signal(Signal::TERM);
    worker.wait().expect(0);
    assert_eq!(hub.counts(job).of(State::Ready), 1);
}

#[test]
fn a_worker_whose_hub_is_away_is_gone_when_its_time_is_over() {
    let mut hub = HubRig::new();
    let began = Instant::now();
    let worker = hub.worker("one", &["--time-limit", "3s", "--grace", "100ms"]);
    hub.rig.write("go", "");
    hub.submit(1, WAITS, Profile::default());
    let life = Life::of(&hub.line_of("pids"));
    hub.stop();
    worker.wait().expect(3).says("the hub was not told everything");
    assert!(life.is_over());
    // Far less than the time that a hub has for its last answer.
    assert!(began.elapsed() < Duration::from_secs(6), "{:?}", began.elapsed());
}

#[test]
fn a_task_that_may_take_too_long_is_left_to_others() {
    let hub = HubRig::new();
    let worker = hub.worker("one", &["--time-limit", "10m"]);
    let limited = |ms| Profile { time_limit_ms: Some(ms), priority: 5, ..Profile::default() };
    let long = hub.submit(2, "true", limited(3_600_000));
    // Not in the way of what can be done here.
    let short = hub.submit(20, "true", Profile { priority: 0, ..limited(300_000) });
    hub.until_done(short);
    assert_eq!(hub.counts(long).of(State::Ready), 2);
    assert_eq!(hub.workers(), ["one"], "it stays for more that fits");
    let _other = hub.worker("other", &[]);
    hub.until_done(long);
    worker.signal(Signal::TERM);
    worker.wait().expect(0);
}

#[test]
fn a_wrong_token_is_refused_with_words_that_help() {
    let hub = HubRig::new();
    let text = std::fs::read_to_string(hub.access()).unwrap();
    let at = text.find("laboro_").unwrap() + 20;
    let digit = if &text[at..=at] == "0" { "1" } else { "0" };
    hub.rig.write("wrong.toml", format!("{}{digit}{}", &text[..at], &text[at + 1..]));
    let worker = hub.rig.laboro(["worker", "--access", "wrong.toml", "--scratch", "."]).run();
    worker.expect(3).says("the hub refuses this worker").says("laboro access");
}

#[test]
fn an_ejected_worker_ends_at_once_and_is_told_why_when_it_comes_again() {
    let hub = HubRig::new();
    let worker = hub.worker("one", &[]);
    hub.rig.write("go", "");
    let job = hub.submit(1, WAITS, Profile::default());
    let life = Life::of(&hub.line_of("pids"));
    let one = WorkerRef::Name { group: "default".into(), name: "one".into() };
    hub.ask(Command::Eject(one.clone(), "its disk is broken".into()));
    worker.wait().expect(0).says("stopped by the hub");
    assert!(life.is_over());
    assert_eq!(hub.counts(job).of(State::Ready), 1);

    let again = hub.worker_unmet("one", &[]).wait();
    again.expect(3).says("was ejected: its disk is broken").says("laboro workers pardon one");
    hub.ask(Command::Pardon(one));
    std::fs::remove_file(hub.rig.at("go")).unwrap();
    let _worker = hub.worker("one", &[]);
    hub.until_done(job);
}

#[test]
fn a_stranger_in_the_hubs_place_is_not_worked_for() {
    let (hub, other) = (HubRig::new(), HubRig::new());
    let address = other.address.to_string();
    let access = hub.access();
    let words = ["worker", "--access", &access, "--scratch", ".", &address];
    hub.rig.laboro(words).run().expect(3).says("certificate");
}

#[test]
fn what_makes_no_sense_is_said_before_anything_starts() {
    let hub = HubRig::new();
    for (words, says) in [
        (vec!["-j", "0"], "at least one slot"),
        (vec!["--with", "gpu"], "write gpu=2"),
        (vec!["--slots", "2"], "-j 2"),
        (vec!["--resource", "gpu=1"], "--with gpu=1"),
        (vec!["--tag", "fast"], "--with-tag fast"),
        (vec!["--memory", "2G"], "--memory-free 2G"),
        (vec!["--time-limit", "soon"], "--time-limit"),
        (vec!["--from", "gopher://x:1"], "fuq2+tcp"),
        (vec!["--from", "dwork://127.0.0.1:1"], "-- ./run {}"),
        (vec!["--lease", "1ms"], "--lease"),
    ] {
        let access = hub.access();
        let access = if words[0] == "--from" { vec![] } else { vec!["--access", &access] };
        let all = ["worker"].into_iter().chain(access).chain(words);
        hub.rig.laboro(all).run().expect(2).says(says);
    }
    hub.rig.laboro(["worker", "--access", "nowhere.toml"]).run().expect(3).says("nowhere.toml");
}

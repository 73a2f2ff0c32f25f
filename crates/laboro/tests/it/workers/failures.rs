//! Links that are cut, hubs that restart, workers that are killed or stand still.

use super::hub::{HubRig, WAITS};
use super::proxy::Proxy;
use crate::kills::kill_with_all_that_watches;
use crate::rig::{Life, until};
use laboro_core::{Profile, State};
use rustix::process::Signal;

#[test]
fn many_tasks_run_once_each_and_their_placeholders_are_filled() {
    let hub = HubRig::new();
    let _worker = hub.worker("one", &["-j", "2"]);
    let job = hub.submit(200, "echo {} {name} >> done", Profile::default());
    hub.until_done(job);
    let mut lines = hub.rig.lines("done");
    lines.sort_by_key(|line| line.split(' ').next().unwrap().parse::<u32>().unwrap());
    let wanted: Vec<String> = (1..=200).map(|n| format!("{n} array.{n}")).collect();
    assert_eq!(lines, wanted);
}

#[test]
fn a_link_that_is_cut_costs_no_task_a_second_run() {
    let hub = HubRig::new();
    let proxy = Proxy::to(hub.address);
    let _worker = hub.worker("one", &["-j", "2", &proxy.address.to_string()]);
    hub.rig.write("go", "");
    let job = hub.submit(2, WAITS, Profile::default());
    until("both run", || hub.rig.lines("starts").len() == 2);
    proxy.cut();
    until("the hub has noticed", || hub.workers().is_empty());
    std::fs::remove_file(hub.rig.at("go")).unwrap();
    until("both are over", || hub.rig.lines("done").len() == 2);
    assert_eq!(hub.counts(job).of(State::Done), 0);
    proxy.heal();
    hub.until_done(job);
    assert_eq!(hub.rig.lines("starts").len(), 2);
}

#[test]
fn what_a_task_prints_is_kept_once_however_often_the_link_is_cut() {
    let hub = HubRig::new();
    let proxy = Proxy::to(hub.address);
    let _worker = hub.worker("one", &[&proxy.address.to_string()]);
    hub.rig.write("go", "");
    let line = "n=0; while test -e go; do n=$((n+1)); echo line $n; sleep 0.002; done; echo end";
    let job = hub.submit(1, line, Profile::default());
    for _ in 0..3 {
        let before = hub.printed(job, 1).len();
        until("more has arrived", || hub.printed(job, 1).len() > before);
        proxy.cut();
        proxy.heal();
    }
    std::fs::remove_file(hub.rig.at("go")).unwrap();
    hub.until_done(job);
    let printed = hub.printed(job, 1);
    let mut lines: Vec<&str> = printed.lines().collect();
    assert_eq!(lines.pop(), Some("end"));
    let wrong = lines.iter().enumerate().find(|(at, line)| **line != format!("line {}", at + 1));
    assert_eq!(wrong, None, "of {}", lines.len());
}

#[test]
fn what_a_worker_left_that_was_killed_with_all_that_watches_it_is_ended_by_the_next() {
    let hub = HubRig::new();
    let worker = hub.worker("one", &[]);
    let living = hub.worker("other", &[]);
    hub.rig.write("go", "");
    let line = "echo $$ $PPID $LABORO_WORKER >> starts; while test -e go; do sleep 0.01; done";
    hub.submit(2, line, Profile::default());
    until("both run", || hub.rig.lines("starts").len() == 2);
    let lines = hub.rig.lines("starts");
    let of = |name: &str| {
        let line = lines.iter().find(|line| line.ends_with(name)).unwrap();
        line.split(' ').map(str::to_owned).collect::<Vec<_>>()
    };
    let (task, sibling) = (of("one"), of("other"));
    let (left, alive) = (Life::of(&task[0]), Life::of(&sibling[0]));
    kill_with_all_that_watches(worker.pid(), &task[1]);
    worker.wait();
    assert!(!left.is_over(), "nobody was there to end it");
    let _next = hub.worker("next", &[]);
    assert!(left.is_over());
    assert!(!alive.is_over(), "a living worker's task");
    drop(living);
}

#[test]
fn a_hub_that_restarts_finds_its_tasks_running_and_takes_their_results() {
    let mut hub = HubRig::new();
    let _worker = hub.worker("one", &["-j", "2"]);
    hub.rig.write("go", "");
    let job = hub.submit(3, WAITS, Profile::default());
    until("both run", || hub.rig.lines("starts").len() == 2);
    hub.stop();
    std::fs::remove_file(hub.rig.at("go")).unwrap();
    until("both are over", || hub.rig.lines("done").len() == 2);
    hub.start_again();
    hub.until_done(job);
    assert_eq!(hub.rig.lines("starts").len(), 3);
}

#[test]
fn a_hub_that_is_killed_and_started_again_loses_nothing_that_runs() {
    let mut hub = HubRig::new();
    hub.rig.write("go", "");
    let job = hub.submit(3, WAITS, Profile::default());
    hub.stop();
    let first = hub.start_apart();
    let _worker = hub.worker_unmet("one", &["-j", "2"]);
    until("both run", || hub.rig.lines("starts").len() == 2);
    first.signal(Signal::KILL);
    first.wait();
    std::fs::remove_file(hub.rig.at("go")).unwrap();
    until("both are over", || hub.rig.lines("done").len() == 2);
    let second = hub.start_apart();
    until("the third is over", || hub.rig.lines("done").len() == 3);
    second.signal(Signal::TERM);
    second.wait().expect(0);
    hub.start_again();
    hub.until_done(job);
    assert_eq!(hub.rig.lines("starts").len(), 3);
}

#[test]
fn a_killed_worker_takes_its_tasks_along_and_another_does_them() {
    let hub = HubRig::with(|settings| settings.grace_ms = 500);
    let first = hub.worker("first", &[]);
    hub.rig.write("go", "");
    let job = hub.submit(1, WAITS, Profile::default());
    let life = Life::of(&hub.line_of("pids"));
    first.signal(Signal::KILL);
    until("its task is gone", || life.is_over());
    let _second = hub.worker("second", &[]);
    std::fs::remove_file(hub.rig.at("go")).unwrap();
    hub.until_done(job);
    assert_eq!(hub.rig.lines("done").len(), 1);
}

#[test]
fn a_killed_worker_is_waited_for_no_longer_than_its_lease() {
    let hub = HubRig::with(|settings| settings.grace_ms = 600_000);
    let first = hub.worker("first", &["--lease", "1s"]);
    hub.rig.write("go", "");
    let job = hub.submit(1, WAITS, Profile::default());
    hub.line_of("pids");
    let _second = hub.worker("second", &[]);
    first.signal(Signal::KILL);
    until("the other runs it", || hub.rig.lines("starts").len() == 2);
    std::fs::remove_file(hub.rig.at("go")).unwrap();
    hub.until_done(job);
}

#[test]
fn a_worker_and_a_hub_end_with_the_process_that_they_belong_to() {
    let hub = HubRig::new();
    let mut sleep = std::process::Command::new("sleep");
    sleep.arg("1000");
    let owner = hub.rig.call(sleep).start();
    let number = owner.pid().to_string();
    let worker = hub.worker("one", &["--exit-with", &number]);
    let words = ["hub", "--dir", "other", "--http", "off", "--native", "127.0.0.1:0"];
    let other = hub.rig.laboro(words.into_iter().chain(["--exit-with", &number])).start();
    until("it listens", || other.out().contains("127.0.0.1:"));
    hub.rig.write("go", "");
    hub.submit(1, WAITS, Profile::default());
    let life = Life::of(&hub.line_of("pids"));
    owner.signal(Signal::KILL);
    owner.wait();
    worker.wait();
    other.wait();
    until("its task is gone", || life.is_over());
    // Of a process that has ended already.
    hub.worker_unmet("two", &["--exit-with", &number]).wait();
}

#[test]
fn a_second_worker_of_a_name_waits_until_the_first_is_gone() {
    let hub = HubRig::new();
    let first = hub.worker("one", &[]);
    hub.rig.write("go", "");
    let job = hub.submit(2, WAITS, Profile::default());
    hub.line_of("pids");
    let second = hub.worker_unmet("one", &[]);
    until("it says so", || second.err().contains("another worker named one is connected"));
    assert_eq!(hub.rig.lines("starts").len(), 1);
    first.signal(Signal::TERM);
    until("it drains", || first.err().contains("waiting for 1 running task"));
    std::fs::remove_file(hub.rig.at("go")).unwrap();
    first.wait().expect(0);
    hub.until_done(job);
    assert_eq!(hub.rig.lines("starts").len(), 2);
    assert!(second.err().contains("connected as one"));
}

#[test]
fn what_a_stopped_worker_had_is_done_by_another_and_its_late_result_does_not_count() {
    let hub = HubRig::new();
    let first = hub.worker("first", &["--lease", "1s"]);
    hub.rig.write("go", "");
    let job = hub.submit(1, WAITS, Profile::default());
    hub.line_of("pids");
    first.signal(Signal::STOP);
    let _second = hub.worker("second", &[]);
    until("it runs a second time", || hub.rig.lines("starts").len() == 2);
    std::fs::remove_file(hub.rig.at("go")).unwrap();
    hub.until_done(job);
    first.signal(Signal::CONT);
    // It works on as if nothing had been.
    until("the first is back", || hub.workers().len() == 2);
    let job = hub.submit(4, "echo {} >> later", Profile::default());
    hub.until_done(job);
    assert_eq!(hub.rig.lines("later").len(), 4);
}

//! A worker of each dialect, and the hub itself, killed or made to stand still in the middle of a task.

use super::Hub;
use super::stage::Stage;
use crate::rig::{Life, Rig, until};
use rustix::process::Signal;

fn a_killed_worker_costs_one_more_run(dialect: &'static str) {
    let stage = Stage::new(dialect);
    let job = stage.submit();
    let first = stage.worker("first");
    let life = Life::of(&stage.hub.line_of("pids"));
    first.signal(Signal::KILL);
    until("its task is gone", || life.is_over());
    let _second = stage.worker("second");
    until("it runs a second time", || stage.hub.rig.lines("starts").len() == 2);
    std::fs::remove_file(stage.hub.rig.at("go")).unwrap();
    stage.hub.until_done(job);
    assert_eq!(stage.hub.rig.lines("done").len(), 1);
}

#[test]
fn what_a_killed_dwork_worker_had_is_run_by_another() {
    a_killed_worker_costs_one_more_run("dwork");
}

#[test]
fn what_a_killed_fuq2_worker_had_is_run_by_another() {
    a_killed_worker_costs_one_more_run("fuq2");
}

#[test]
fn what_a_killed_fuq1_worker_had_is_run_by_another() {
    a_killed_worker_costs_one_more_run("fuq1");
}

#[test]
fn what_a_killed_runexp_worker_had_is_run_by_another() {
    a_killed_worker_costs_one_more_run("runexp");
}

#[test]
fn what_a_killed_websocket_had_is_run_by_another() {
    a_killed_worker_costs_one_more_run("websocket");
}

#[test]
fn what_a_killed_worker_that_polls_had_is_run_by_another() {
    a_killed_worker_costs_one_more_run("polling");
}

/// These dialects have no sign of life: a worker that stands still is waited for while its connection is there.
fn a_worker_that_stands_still_goes_on(dialect: &'static str) {
    let stage = Stage::with(dialect, "");
    let job = stage.submit();
    let worker = stage.worker("first");
    stage.hub.line_of("pids");
    worker.signal(Signal::STOP);
    std::fs::remove_file(stage.hub.rig.at("go")).unwrap();
    until("the task is over", || stage.hub.rig.lines("done").len() == 1);
    worker.signal(Signal::CONT);
    stage.hub.until_done(job);
    assert_eq!(stage.hub.rig.lines("starts").len(), 1);
}

#[test]
fn a_fuq2_worker_that_stood_still_hands_in_what_it_has() {
    a_worker_that_stands_still_goes_on("fuq2");
}

#[test]
fn a_fuq1_worker_that_stood_still_hands_in_what_it_has() {
    a_worker_that_stands_still_goes_on("fuq1");
}

#[test]
fn a_runexp_worker_that_stood_still_hands_in_what_it_has() {
    a_worker_that_stands_still_goes_on("runexp");
}

#[test]
fn a_dwork_worker_that_stood_still_hands_in_what_it_has() {
    a_worker_that_stands_still_goes_on("dwork");
}

#[test]
fn a_websocket_that_stood_still_hands_in_what_it_has() {
    a_worker_that_stands_still_goes_on("websocket");
}

#[test]
fn a_worker_that_polls_and_stood_still_hands_in_what_it_has() {
    a_worker_that_stands_still_goes_on("polling");
}

#[test]
fn a_dwork_worker_that_stood_still_for_too_long_does_not_overwrite_another() {
    let stage = Stage::new("dwork");
    let job = stage.submit();
    let first = stage.worker("first");
    stage.hub.line_of("pids");
    first.signal(Signal::STOP);
    let second = stage.worker("second");
    until("it runs a second time", || stage.hub.rig.lines("starts").len() == 2);
    std::fs::remove_file(stage.hub.rig.at("go")).unwrap();
    stage.hub.until_done(job);
    second.signal(Signal::TERM);
    second.wait().expect(0);
    // It says Complete for what is not its own any more, and works on.
    first.signal(Signal::CONT);
    let next = stage.submit_as("two");
    stage.hub.until_done(next);
    assert_eq!(stage.hub.rig.lines("starts").len(), 3);
    first.signal(Signal::TERM);
    first.wait().expect(0);
}

/// A task ends while there is no hub; the next one is told.
fn a_killed_hub_costs_no_second_run(dialect: &'static str) {
    assert_eq!(starts_with_a_killed_hub(dialect), 1);
}

fn starts_with_a_killed_hub(dialect: &'static str) -> usize {
    let mut stage = Stage::with(dialect, staying(dialect));
    let job = stage.submit();
    let hub = stage.hub_apart();
    let _worker = stage.worker("first");
    stage.hub.line_of("pids");
    hub.signal(Signal::KILL);
    hub.wait();
    stage.go();
    until("the task is over", || stage.hub.rig.lines("done").len() == 1);
    let hub = stage.hub_apart();
    stage.wait(job);
    hub.signal(Signal::TERM);
    hub.wait().expect(0);
    stage.starts()
}

/// Else workers of these are sent away when all is done.
fn staying(dialect: &str) -> &'static str {
    if matches!(dialect, "dwork" | "runexp") { ",stay" } else { "" }
}

#[test]
fn a_dwork_worker_tells_the_next_hub() {
    a_killed_hub_costs_no_second_run("dwork");
}

#[test]
fn a_fuq2_worker_tells_the_next_hub() {
    a_killed_hub_costs_no_second_run("fuq2");
}

#[test]
fn a_websocket_tells_the_next_hub() {
    a_killed_hub_costs_no_second_run("websocket");
}

#[test]
fn a_worker_that_polls_tells_the_next_hub() {
    a_killed_hub_costs_no_second_run("polling");
}

#[test]
fn a_runner_tells_the_next_hub() {
    a_killed_hub_costs_no_second_run("runexp");
}

/// It has no name, so the next hub cannot know whose result it is told.
#[test]
fn what_a_fuq1_worker_had_when_the_hub_was_killed_may_run_again() {
    assert!((1..=2).contains(&starts_with_a_killed_hub("fuq1")));
}

fn a_hub_that_stands_still_takes_no_task_away(dialect: &'static str) {
    let mut stage = Stage::with(dialect, staying(dialect));
    let job = stage.submit();
    let hub = stage.hub_apart();
    let _worker = stage.worker("first");
    stage.hub.line_of("pids");
    hub.signal(Signal::STOP);
    stage.go();
    until("the task is over", || stage.hub.rig.lines("done").len() == 1);
    // Nothing can be seen of time that passes for nobody: it has to pass.
    std::thread::sleep(std::time::Duration::from_millis(1200));
    hub.signal(Signal::CONT);
    stage.wait(job);
    assert_eq!(stage.starts(), 1);
    hub.signal(Signal::TERM);
    hub.wait().expect(0);
}

#[test]
fn what_a_fuq1_worker_says_while_the_hub_stands_still_counts() {
    a_hub_that_stands_still_takes_no_task_away("fuq1");
}

#[test]
fn what_a_fuq2_worker_says_while_the_hub_stands_still_counts() {
    a_hub_that_stands_still_takes_no_task_away("fuq2");
}

#[test]
fn what_a_websocket_says_while_the_hub_stands_still_counts() {
    a_hub_that_stands_still_takes_no_task_away("websocket");
}

#[test]
fn what_one_that_polls_says_while_the_hub_stands_still_counts() {
    a_hub_that_stands_still_takes_no_task_away("polling");
}

#[test]
fn what_a_runner_says_while_the_hub_stands_still_counts() {
    a_hub_that_stands_still_takes_no_task_away("runexp");
}

/// The lease is over when the hub goes on, and the task too: what was said meanwhile is heard first.
#[test]
fn what_dwork_peers_say_while_the_hub_stands_still_counts() {
    let rig = Rig::new();
    let hub = Hub::start(&rig, &["dwork,lease_ms=1500,stay"], "");
    let door = hub.address("dwork");
    rig.write("go", "");
    let line = "echo x >> starts; while test -e go; do sleep 0.02; done; echo x >> done";
    let from = format!("dwork://{door}");
    let worker = |name: &str| {
        let words = ["worker", "--from", &from, "--name", name, "-j", "1", "--stay", "--"];
        rig.laboro(words.iter().copied().chain(["sh", "-c", line])).start()
    };
    let workers = ["first", "second"].map(worker);
    until("both ask", || hub.out(&["workers", "--json"]).lines().count() == 2);
    hub.out(&["dwork", "-s", &door, "create", "one"]);
    until("it runs", || rig.lines("starts").len() == 1);
    hub.live.signal(Signal::STOP);
    std::fs::remove_file(rig.at("go")).unwrap();
    let create = rig.laboro(["dwork", "-s", &door, "--timeout", "60s", "create", "two"]).start();
    until("the task is over", || rig.lines("done").len() == 1);
    // Nothing can be seen of time that passes for nobody: it has to pass.
    std::thread::sleep(std::time::Duration::from_millis(2000));
    hub.live.signal(Signal::CONT);
    create.wait().expect(0);
    until("both are done", || {
        hub.laboro(&["dwork", "-s", &door, "--json", "status"]).events()[0]["active"] == 0
    });
    assert_eq!((rig.lines("starts").len(), rig.lines("done").len()), (2, 2));
    for worker in workers {
        worker.signal(Signal::TERM);
        worker.wait().expect(0);
    }
    hub.stop();
}

#[test]
fn a_hub_that_stood_still_for_longer_than_its_leases_takes_no_task_away() {
    let rig = Rig::new();
    let hub = Hub::start(&rig, &[], "");
    rig.write("go", "");
    let line = "echo x >> starts; while test -e go; do sleep 0.02; done; echo x >> done";
    let job = hub.out(&["submit", "-q", "--", "sh", "-c", line]);
    let _worker = hub.worker("one", &["--lease", "1s"]);
    until("it runs", || rig.lines("starts").len() == 1);
    hub.live.signal(Signal::STOP);
    // Nothing can be seen of time that passes for nobody: it has to pass.
    std::thread::sleep(std::time::Duration::from_millis(2500));
    hub.live.signal(Signal::CONT);
    std::fs::remove_file(rig.at("go")).unwrap();
    hub.laboro(&["wait", &job, "--timeout", "30s"]).expect(0);
    assert_eq!((rig.lines("starts").len(), rig.lines("done").len()), (1, 1));
    hub.stop();
}

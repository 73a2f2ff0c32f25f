//! The way between a hub and a worker of each dialect is cut, so that nobody hears of it, and heals: for less than
//! anybody waits, and for longer. `bench/faults` has the same with real time limits.

use super::cable::{Cable, HERE};
use super::stage::{Stage, short_lease};
use crate::mq::rig::{Program, Server};
use crate::rig::until;
use laboro_core::State;
use rustix::process::Signal;
use std::time::Duration;

/// Nothing can be seen of time that passes for nobody: it has to pass.
fn pass(ms: u64) {
    std::thread::sleep(Duration::from_millis(ms));
}

/// A task ends while nobody can be told.
fn a_short_cut_is_not_noticed(dialect: &'static str) {
    let options = if matches!(dialect, "dwork" | "runexp") { ",stay" } else { "" };
    let Some(stage) = Stage::apart(dialect, options, |_| {}) else { return };
    let job = stage.submit();
    let worker = stage.worker("far");
    stage.hub.line_of("pids");
    let next = stage.submit_as("two");
    stage.cable().cut();
    stage.go();
    until("the task is over", || stage.hub.rig.lines("done").len() == 1);
    pass(300);
    stage.cable().mend();
    stage.hub.until_done(job);
    stage.hub.until_done(next);
    assert_eq!(stage.starts(), 2);
    assert_eq!(worker.err().matches("lost ").count(), 0, "{}", worker.err());
}

/// A task is given to somebody who cannot hear of it yet.
fn what_is_sent_into_a_cut_arrives(dialect: &'static str) {
    let Some(stage) = Stage::apart(dialect, short_lease(dialect), |_| {}) else { return };
    stage.go();
    let _worker = stage.worker("far");
    until("it has come", || stage.hub.workers().len() == 1);
    stage.cable().cut();
    let job = stage.submit();
    pass(300);
    stage.cable().mend();
    stage.hub.until_done(job);
    assert_eq!(stage.starts(), 1);
}

/// After so long without an answer from its machine, a peer is gone.
const LOST_MS: u64 = 1500;

/// What a worker had runs elsewhere, its connection is let go, and it comes back by itself.
fn a_long_cut_costs_one_more_run(dialect: &'static str) {
    let stage = Stage::apart(dialect, short_lease(dialect), |settings| {
        settings.limits.lost_ms = LOST_MS;
    });
    let Some(stage) = stage else { return };
    let job = stage.submit();
    let _far = stage.worker("far");
    stage.hub.line_of("pids");
    stage.cable().cut();
    until("it is taken away", || stage.hub.counts(job).of(State::Ready) == 1);
    let near = stage.worker_here("near");
    until("it runs a second time", || stage.starts() == 2);
    until("only the one here is connected", || stage.door_counts().connections == 1);
    // How an idle connection of HTTP has ended is not told.
    let silent = stage.door_counts().silent;
    assert!(silent > 0 || dialect == "polling", "{:?}", stage.door_counts());
    stage.go();
    stage.hub.until_done(job);
    near.signal(Signal::KILL);
    near.wait();
    let next = stage.submit_as("two");
    stage.cable().mend();
    stage.hub.until_done(next);
    assert_eq!(stage.starts(), 3);
}

#[test]
fn a_short_cut_is_not_noticed_by_a_worker() {
    a_short_cut_is_not_noticed("native");
}

#[test]
fn a_short_cut_is_not_noticed_by_a_dwork_worker() {
    a_short_cut_is_not_noticed("dwork");
}

#[test]
fn a_short_cut_is_not_noticed_by_a_fuq1_worker() {
    a_short_cut_is_not_noticed("fuq1");
}

#[test]
fn a_short_cut_is_not_noticed_by_a_fuq2_worker() {
    a_short_cut_is_not_noticed("fuq2");
}

#[test]
fn a_short_cut_is_not_noticed_by_a_websocket() {
    a_short_cut_is_not_noticed("websocket");
}

#[test]
fn a_short_cut_is_not_noticed_by_one_that_polls() {
    a_short_cut_is_not_noticed("polling");
}

#[test]
fn a_short_cut_is_not_noticed_by_a_runner() {
    a_short_cut_is_not_noticed("runexp");
}

#[test]
fn what_is_sent_to_a_worker_during_a_cut_arrives() {
    what_is_sent_into_a_cut_arrives("native");
}

#[test]
fn what_is_sent_to_a_dwork_worker_during_a_cut_arrives() {
    what_is_sent_into_a_cut_arrives("dwork");
}

#[test]
fn what_is_sent_to_a_fuq1_worker_during_a_cut_arrives() {
    what_is_sent_into_a_cut_arrives("fuq1");
}

#[test]
fn what_is_sent_to_a_fuq2_worker_during_a_cut_arrives() {
    what_is_sent_into_a_cut_arrives("fuq2");
}

#[test]
fn what_is_sent_to_a_websocket_during_a_cut_arrives() {
    what_is_sent_into_a_cut_arrives("websocket");
}

#[test]
fn what_is_sent_to_one_that_polls_during_a_cut_arrives() {
    what_is_sent_into_a_cut_arrives("polling");
}

#[test]
fn a_worker_comes_back_after_a_long_cut() {
    a_long_cut_costs_one_more_run("native");
}

#[test]
fn a_dwork_worker_comes_back_after_a_long_cut() {
    a_long_cut_costs_one_more_run("dwork");
}

#[test]
fn a_fuq1_worker_comes_back_after_a_long_cut() {
    a_long_cut_costs_one_more_run("fuq1");
}

#[test]
fn a_fuq2_worker_comes_back_after_a_long_cut() {
    a_long_cut_costs_one_more_run("fuq2");
}

#[test]
fn a_websocket_comes_back_after_a_long_cut() {
    a_long_cut_costs_one_more_run("websocket");
}

#[test]
fn one_that_polls_comes_back_after_a_long_cut() {
    a_long_cut_costs_one_more_run("polling");
}

#[test]
fn a_runner_comes_back_after_a_long_cut() {
    a_long_cut_costs_one_more_run("runexp");
}

/// A server here, and one of its programs at the other end.
fn broker(cable: &Cable, more: &[&str]) -> (Server, Program) {
    let server = Server::start_at(&format!("{HERE}:0"), &[&["--insecure"], more].concat());
    let mut command = cable.there();
    command.args(["mq", "worker", "--debug", "0", "-s", &server.address]);
    let mut worker = Program::start(command);
    worker.until("registered with");
    (server, worker)
}

#[test]
fn a_broker_and_its_worker_do_not_notice_a_short_cut() {
    let Some(cable) = Cable::lay() else { return };
    let (server, _worker) = broker(&cable, &[]);
    cable.cut();
    let words = ["client", "-d", "0", "--json", "--timeout", "30s", "-s", &server.address];
    let client = Program::laboro(&[&words[..], &["bulkping", "20"]].concat());
    until("some were passed on", || server.table()["dispatched"].as_u64() > Some(0));
    pass(300);
    cable.mend();
    let (code, lines) = client.end();
    assert_eq!(code, 0, "{lines:?}");
    let workers = server.table()["workers"].clone();
    assert_eq!(workers.as_array().unwrap().len(), 1, "{workers}");
}

#[test]
fn slow_a_worker_of_a_broker_registers_again_after_a_long_cut() {
    let Some(cable) = Cable::lay() else { return };
    let (server, _worker) = broker(&cable, &["--probe", "1s", "--grace", "500ms"]);
    cable.cut();
    let there = || server.table()["workers"].as_array().unwrap().len();
    until("it is out of the table", || there() == 0);
    cable.mend();
    until("it is back", || there() == 1);
    assert_eq!(server.ask(&["bulkping", "20"])["successes"], 20);
}

#[test]
fn a_client_of_a_broker_does_not_notice_a_short_cut() {
    let Some(cable) = Cable::lay() else { return };
    let server = Server::start_at(&format!("{HERE}:0"), &["--insecure"]);
    let _worker = server.worker(&[]);
    let mut command = cable.there();
    command.args(["mq", "client", "-d", "0", "--json", "--timeout", "30s"]);
    command.args(["-s", &server.address, "bulkping", "5000"]);
    let client = Program::start(command);
    until("some are answered", || server.table()["passed"].as_u64() > Some(20));
    cable.cut();
    pass(300);
    cable.mend();
    let (code, lines) = client.end();
    assert_eq!(code, 0, "{lines:?}");
}

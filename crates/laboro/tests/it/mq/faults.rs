//! What goes wrong in earnest: workers that are killed, a server that is started again, commands that nobody
//! knows.

use super::rig::{Program, Server};
use crate::rig::until;
use rustix::process::Signal;

#[test]
fn a_worker_killed_amid_a_thousand_requests_costs_only_what_it_held() {
    let server = Server::start(&["--grace", "1s"]);
    let mut doomed = server.worker(&["--slots", "10"]);
    let _survivor = server.worker(&["--slots", "10"]);
    let arguments = ["client", "-d", "0", "--json", "--timeout", "4s", "-s", &server.address];
    let client = Program::laboro(&[&arguments[..], &["bulkping", "1000"]].concat());
    until("some are answered", || server.table()["passed"].as_u64() > Some(20));
    doomed.kill();
    let (_, lines) = client.end();
    let summary: serde_json::Value = serde_json::from_str(&lines[0]).unwrap();
    let lost = 1000 - summary["successes"].as_u64().unwrap();
    // Ten at once are on their way, so no more can be lost.
    assert!(lost <= 10, "{summary}");
    until("it is out of the table", || server.table()["workers"].as_array().unwrap().len() == 1);
    assert_eq!(server.ask(&["bulkping", "100"])["successes"], 100);
    assert_eq!(server.table()["workers"][0]["free"], 10);
}

#[test]
fn after_a_restart_of_the_server_workers_register_again_under_load() {
    let mut first = Server::start(&[]);
    let address = first.address.clone();
    let _workers = [first.worker(&[]), first.worker(&[])];
    let arguments = ["client", "-d", "0", "--json", "--timeout", "3s", "-s", &address];
    let client = Program::laboro(&[&arguments[..], &["bulkping", "20000"]].concat());
    until("some are answered", || first.table()["passed"].as_u64() > Some(100));
    first.program.kill();
    drop(first);
    let second = Server::start_at(&address, &[]);
    until("both are back", || second.table()["workers"].as_array().unwrap().len() == 2);
    let (_, lines) = client.end();
    let summary: serde_json::Value = serde_json::from_str(&lines[0]).unwrap();
    // Ten were on their way; those that were sent into the gap are as many at most.
    assert!(summary["successes"].as_u64() >= Some(19_900), "{summary}");
    assert_eq!(second.ask(&["bulkping", "100"])["successes"], 100);
}

#[test]
fn a_command_that_no_worker_knows_takes_no_slot_for_ever() {
    let server = Server::start(&[]);
    let mut worker = Program::laboro(&["worker", "-d", "0", "-s", &server.address]);
    worker.until("registered with");
    let mut peer = Program::python(&["unknown", "--port", server.port(), "--count", "1000"]);
    assert_eq!(peer.line(), "sent 1000");
    until("all slots are free", || {
        let table = server.table();
        table["dispatched"] == 1000 && table["workers"][0]["free"] == 10
    });
    assert_eq!(server.ask(&["pingt"])["successes"], 1);
}

#[test]
fn a_worker_that_is_told_to_end_deregisters_first() {
    let server = Server::start(&[]);
    for signal in [Signal::TERM, Signal::INT] {
        let worker = server.worker(&[]);
        worker.signal(signal);
        let (code, lines) = worker.end();
        assert_eq!((code, lines.len()), (0, 1), "{lines:?}");
        assert_eq!(server.table()["workers"], serde_json::json!([]));
    }
}

/// A client that asks 20 times, not waited for.
fn asking(server: &Server) -> Program {
    let words = ["client", "-d", "0", "--json", "--timeout", "30s", "-s", &server.address];
    Program::laboro(&[&words[..], &["bulkping", "20"]].concat())
}

#[test]
fn a_worker_that_stood_still_answers_what_came_meanwhile() {
    let server = Server::start(&[]);
    let worker = server.worker(&[]);
    worker.signal(Signal::STOP);
    let client = asking(&server);
    until("some were passed on", || server.table()["dispatched"].as_u64() > Some(0));
    worker.signal(Signal::CONT);
    let (code, lines) = client.end();
    assert_eq!(code, 0, "{lines:?}");
}

/// How many connections the system holds for a server that has not taken them yet.
fn not_let_in(address: &str) -> u32 {
    let port = address.rsplit(':').next().unwrap().parse::<u16>().unwrap();
    let sockets = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let mut lines = sockets.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let (own, listens) = (format!(":{port:04X}"), "0A");
    let line = lines.find(|line| line[1].ends_with(&own) && line[3] == listens).unwrap();
    u32::from_str_radix(line[4].split(':').nth(1).unwrap(), 16).unwrap()
}

#[test]
fn a_server_that_stood_still_passes_on_what_came_meanwhile() {
    let server = Server::start(&[]);
    let _worker = server.worker(&[]);
    server.program.signal(Signal::STOP);
    let client = asking(&server);
    until("the client is at the door", || not_let_in(&server.address) > 0);
    server.program.signal(Signal::CONT);
    let (code, lines) = client.end();
    assert_eq!(code, 0, "{lines:?}");
}

#[test]
fn a_client_that_is_killed_takes_no_slot_with_it() {
    let server = Server::start(&[]);
    let _worker = server.worker(&[]);
    let words = ["client", "-d", "0", "-s", &server.address, "bulkping", "100000"];
    let mut client = Program::laboro(&words);
    until("some are answered", || server.table()["passed"].as_u64() > Some(20));
    client.kill();
    until("all slots are free", || server.table()["workers"][0]["free"] == 10);
    assert_eq!(server.ask(&["bulkping", "20"])["successes"], 20);
}

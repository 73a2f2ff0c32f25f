//! Programs of libzmq in every role: clients and workers as the original has them (ROUTER with a name), plain
//! DEALER clients, and a server.

use super::rig::{Program, Server};

#[test]
fn clients_of_libzmq_are_answered_by_our_worker() {
    let server = Server::start(&[]);
    let _worker = server.worker(&[]);
    for kind in ["router", "dealer", "nameless"] {
        let mut client = Program::python(&["client", "--port", server.port(), "--kind", kind]);
        assert_eq!(client.line(), "pings 200, data 1032 bytes", "{kind}");
    }
}

#[test]
fn workers_of_libzmq_answer_our_client() {
    let server = Server::start(&[]);
    let mut worker = Program::python(&["worker", "--port", server.port()]);
    assert_eq!(worker.line(), "registered");
    assert_eq!(server.table()["workers"][0]["slots"], 10);
    assert_eq!(server.ask(&["bulkping", "500"])["successes"], 500);
    let answer = server.ask(&["send", "echo", "one", "two"]);
    assert_eq!(answer["answer"], serde_json::json!(["one", "two"]));
    worker.say("leave");
    assert_eq!(worker.line(), "left");
    crate::rig::until("it is gone", || server.table()["workers"] == serde_json::json!([]));
}

#[test]
fn our_worker_and_client_serve_a_server_of_libzmq() {
    let mut server = Program::python(&["server"]);
    let port = server.line();
    let address = format!("tcp://127.0.0.1:{port}");
    let mut worker = Program::laboro(&["worker", "-s", &address, "--slots", "7", "-d", "0"]);
    worker.until("registered with");
    assert_eq!(server.line(), "registered 7");
    let rig = crate::rig::Rig::new();
    let ran = rig.laboro(["mq", "client", "-s", &address, "--json", "bulkping", "100"]).run();
    assert!(ran.expect(0).out().contains("\"successes\":100"), "{}", ran.out());
    worker.signal(rustix::process::Signal::TERM);
    assert_eq!(worker.end().0, 0);
    assert_eq!(server.until("deregistered"), "deregistered");
}

#[test]
fn a_server_behind_another_address_is_found_by_the_name_it_is_given() {
    let server = Server::start(&["--identity", "tcp://elsewhere:1"]);
    let _worker = server.worker(&[]);
    let arguments = ["client", "--port", server.port(), "--kind", "router", "--name"];
    let mut client = Program::python(&[&arguments[..], &["tcp://elsewhere:1"]].concat());
    assert_eq!(client.line(), "pings 200, data 1032 bytes");
}

//! Workers that answer with programs of their own.

use super::rig::Server;
use crate::rig::{Rig, until};
use rustix::process::Signal;

#[test]
fn a_program_gets_the_arguments_and_its_output_is_the_answer() {
    let server = Server::start(&[]);
    let _worker =
        server.worker(&["--exec", "echo \"$LABORO_MQ_COMMAND:$LABORO_MQ_LENGTHS\"; tr a-z A-Z"]);
    let answer = server.ask(&["send", "upper", "hello ", "world"]);
    assert_eq!(answer["answer"], serde_json::json!(["upper:6 5\\x0aHELLO WORLD"]));
    assert_eq!(server.ask(&["bulkping", "10"])["successes"], 10);
}

#[test]
fn a_program_that_fails_or_takes_too_long_is_no_answer_and_gives_its_slot_back() {
    let server = Server::start(&[]);
    let line = "case $LABORO_MQ_COMMAND in bad) exit 3;; slow) exec sleep 1000;; *) echo ok;; esac";
    let _worker = server.worker(&["--slots", "1", "--exec", line, "--time-limit", "300ms"]);
    for command in ["bad", "slow"] {
        let rig = Rig::new();
        let send = ["--timeout", "1s", "-s", &server.address, "send", command];
        rig.laboro([&["mq", "client"][..], &send].concat()).run().expect(1).says("no answer in");
        until("the slot is free", || server.table()["workers"][0]["free"] == 1);
    }
    assert_eq!(server.ask(&["send", "good"])["answer"], serde_json::json!(["ok\\x0a"]));
}

#[test]
fn a_program_that_is_kept_answers_one_request_after_another() {
    let rig = Rig::new();
    rig.write("kept.py", KEPT);
    let server = Server::start(&[]);
    let line = format!("exec python3 {}", rig.at("kept.py").display());
    let _worker = server.worker(&["--slots", "1", "--exec", &line, "--long-lived"]);
    for count in 1..=3 {
        let answer = server.ask(&["send", "count", "a", "bc"]);
        assert_eq!(answer["answer"], serde_json::json!([count.to_string(), "count", "a", "bc"]));
    }
}

/// Says how many requests it had, and what was in this one.
const KEPT: &str = r#"
import struct, sys
i, o = sys.stdin.buffer, sys.stdout.buffer
number = lambda: struct.unpack(">I", i.read(4) or sys.exit())[0]
had = 0
while True:
    frames = [i.read(number()) for _ in range(number())]
    had += 1
    frames.insert(0, str(had).encode())
    o.write(struct.pack(">I", len(frames)))
    for f in frames:
        o.write(struct.pack(">I", len(f)) + f)
    o.flush()
"#;

#[test]
fn a_program_is_not_told_where_the_hub_of_its_worker_is() {
    let rig = Rig::new();
    let server = Server::start(&[]);
    let line = "echo \"dir=$LABORO_DIR access=$LABORO_ACCESS token=$LABORO_TOKEN own=$MINE\"";
    let worker = ["mq", "worker", "--debug", "0", "-s", &server.address, "--exec", line];
    let secrets = ["LABORO_DIR", "LABORO_ACCESS", "LABORO_TOKEN", "MINE"];
    let call = secrets.iter().fold(rig.laboro(worker), |call, name| call.env(name, "told"));
    let worker = call.start();
    until("it is there", || server.table()["workers"] != serde_json::json!([]));
    let answer = server.ask(&["send", "what"]);
    assert_eq!(answer["answer"], serde_json::json!(["dir= access= token= own=told\\x0a"]));
    let table = rig.laboro(["mq", "workers", "-s", &server.address]).run();
    assert!(table.expect(0).out().contains("1 worker, 0 requests wait"), "{}", table.out());
    worker.signal(Signal::TERM);
    worker.wait().expect(0);
}

#[test]
fn a_worker_that_leaves_finishes_what_it_has_begun() {
    let rig = Rig::new();
    let server = Server::start(&[]);
    let line =
        format!("echo begun > {0}/begun; read end < {0}/end; echo done", rig.dir().display());
    let fifo = rig.at("end");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let worker = server.worker(&["--exec", &line]);
    let client = rig.laboro(["mq", "client", "-s", &server.address, "send", "wait"]).start();
    until("it has begun", || rig.read("begun") == "begun\n");
    worker.signal(Signal::TERM);
    until("it takes no more", || server.table()["workers"] == serde_json::json!([]));
    std::fs::write(&fifo, "end\n").unwrap();
    assert_eq!(client.wait().expect(0).out(), "done\n");
    assert_eq!(worker.end().0, 0);
}

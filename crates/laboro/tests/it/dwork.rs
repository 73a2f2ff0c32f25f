//! `laboro dwork` as people and scripts call it, against a hub with our door, and peers that have nothing
//! of ours in them.

mod commands;
mod hub;
mod python;
mod worker;

use crate::rig::{LABORO, Live, Rig, until};
use hub::Hub;
use laboro_hub::config::Settings;
use std::io::Write;
use std::net::{TcpListener, TcpStream};

/// A steal is not kept waiting.
const AT_ONCE: &str = ",patience_ms=0";

#[test]
fn everything_the_query_program_can_say_can_be_said() {
    let rig = Rig::new();
    let hub = Hub::start(&rig, AT_ONCE);
    hub.prints(&["status"], "dhub: 0 active tasks, 0 ready.\n");
    hub.prints(&["create", "a"], "");
    hub.prints(&["create", "b", "a"], "");
    hub.prints(&["status"], "dhub: 2 active tasks, 1 ready.\n");
    hub.prints(&["steal", "-q", "w"], "a\n");
    hub.dwork(&["steal", "w"]).expect(1).says("nothing is ready");
    let none = hub.dwork(&["steal", "-q", "w"]);
    none.expect(1);
    assert_eq!(none.out(), "No task\n");
    hub.prints(&["lookup", "a"], "w\n");
    hub.dwork(&["complete", "a", "nobody", "--location", "w"]).expect(1).says("nobody");
    hub.prints(&["complete", "a", "--location", "w"], "");
    hub.prints(&["complete", "a"], "");
    hub.prints(&["steal", "-n", "5", "-q", "w"], "b\n");
    hub.prints(&["create", "c"], "");
    hub.prints(&["transfer", "b", "c", "--location", "w"], "");
    hub.dwork(&["lookup", "b"]).expect(1).says("no worker has it");
    hub.prints(&["steal", "-n", "5", "-q", "w"], "c\n");
    hub.prints(&["exit", "w"], "");
    hub.dwork(&["exit", "w"]).expect(1).says("does not know this worker");
    hub.prints(&["steal", "-q"], "c\n");
    hub.prints(&["complete", "c"], "");
    hub.prints(&["steal", "-q"], "b\n");
    hub.prints(&["complete", "b"], "");
    hub.dwork(&["steal"]).expect(5).says("all tasks are done");
    let none = hub.dwork(&["steal", "-q"]);
    none.expect(5);
    assert_eq!(none.out(), "No task\n");
    hub.dwork(&["create", "x", "x"]).expect(1).says("the task would wait for itself");
    hub.dwork(&["create", ""]).expect(1).says("a task needs a name");
}

#[test]
fn a_task_is_done_whoever_says_so_unless_the_door_asks_for_its_holder() {
    let rig = Rig::new();
    let hub = Hub::start(&rig, AT_ONCE);
    hub.prints(&["create", "a"], "");
    hub.prints(&["create", "b", "a"], "");
    hub.prints(&["steal", "-q", "w"], "a\n");
    // As the original query program does it, which cannot say for whom it speaks.
    hub.prints(&["complete", "a"], "");
    hub.prints(&["complete", "a", "--location", "w"], "");
    hub.prints(&["status"], "dhub: 1 active tasks, 1 ready.\n");
    drop(hub);

    let rig = Rig::new();
    let hub = Hub::start(&rig, ",patience_ms=0,only_holder");
    hub.prints(&["create", "a"], "");
    hub.prints(&["steal", "-q", "w"], "a\n");
    let missed = hub.dwork(&["complete", "a"]);
    missed.expect(1).says("another host has it").says("a");
    hub.prints(&["complete", "a", "--location", "w"], "");
}

#[test]
fn a_steal_that_waits_is_told_at_once_that_the_last_task_is_done() {
    let rig = Rig::new();
    let hub = Hub::start(&rig, ",patience_ms=600000");
    hub.prints(&["create", "a"], "");
    hub.prints(&["steal", "-q", "w"], "a\n");
    let words = ["dwork", "-s", &hub.address, "--timeout", "600s", "steal", "v"];
    let thief = rig.laboro(words).start();
    hub.prints(&["complete", "a", "--location", "w"], "");
    thief.wait().expect(5).says("all tasks are done");
}

#[test]
fn steal_can_wait_for_a_task_or_for_the_end_of_all() {
    let rig = Rig::new();
    let hub = Hub::start(&rig, AT_ONCE);
    let wait = || {
        let words = ["dwork", "-s", &hub.address, "steal", "-q", "--wait", "w"];
        rig.laboro(words).start()
    };
    // Before the first task, while one is with another worker, and to the end.
    let thief = wait();
    hub.prints(&["create", "a"], "");
    assert_eq!(thief.wait().expect(0).out(), "a\n");
    hub.prints(&["create", "b", "a"], "");
    let thief = wait();
    hub.prints(&["complete", "a", "--location", "w"], "");
    assert_eq!(thief.wait().expect(0).out(), "b\n");
    let thief = wait();
    hub.prints(&["complete", "b", "--location", "w"], "");
    assert_eq!(thief.wait().expect(5).out(), "No task\n");
    hub.dwork(&["steal", "--wait", "-n", "0"]).expect(2).says("at least 1");
}

#[test]
fn the_worker_of_the_manual_does_everything_once_and_gives_back_what_failed() {
    let rig = Rig::new();
    let hub = Hub::start(&rig, AT_ONCE);
    rig.write("tasks.txt", "last,b,bad\nb,first\nbad,first\nfirst\n");
    hub.prints(&["addfile", "tasks.txt"], "");
    // It was killed, and begins anew under its name.
    hub.prints(&["steal", "-q", "me-loop"], "first\n");
    rig.write("work", "echo $1 >> done.txt; test $1 != bad || { test -e again || ! touch again; }");
    let manual = include_str!("../../../../docs/dwork.md");
    let (_, rest) = manual.split_once("```sh\nme=").expect("the loop is there");
    let (script, _) = rest.split_once("```").expect("a block has an end");
    let laboro = format!("{} dwork -s {}", LABORO, hub.address);
    let script = format!("me={script}").replace("laboro dwork", &laboro);
    let script = script.replace("$(hostname)", "me").replace("./work", "sh ./work");
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", &script]);
    rig.call(shell).run().expect(0);
    let mut done = rig.lines("done.txt");
    assert_eq!((&done[0][..], &done[4][..]), ("first", "last"), "{done:?}");
    done.sort();
    assert_eq!(done, ["b", "bad", "bad", "first", "last"]);
    hub.prints(&["status"], "dhub: 0 active tasks, 0 ready.\n");
}

#[test]
fn what_a_hub_refuses_is_explained_without_guessing() {
    let rig = Rig::new();
    let hub = Hub::start(&rig, ",patience_ms=0,max_tasks_per_message=1000");
    let mut text: String = (0..1500).map(|number| format!("t{number}\n")).collect();
    text += &"x".repeat(5000);
    rig.write("tasks.txt", text);
    let told = hub.dwork(&["addfile", "tasks.txt"]);
    told.expect(1).says("longer than 4096 bytes").says("1000 tasks before these are created");
    hub.prints(&["status"], "dhub: 1000 active tasks, 1000 ready.\n");
    // However long their predecessors are, tasks are sent in messages that the hub takes.
    let name = |number: usize| format!("{number}-{}", "y".repeat(3000));
    let wide: String = (0..20)
        .map(|task| {
            let preds: Vec<String> = (0..400).map(|number| name(task * 400 + number)).collect();
            format!("wide{task},{}\n", preds.join(","))
        })
        .collect();
    rig.write("wide.txt", wide);
    hub.prints(&["addfile", "wide.txt"], "");
    hub.prints(&["status"], "dhub: 1020 active tasks, 1020 ready.\n");
}

#[test]
fn a_file_of_tasks_may_be_in_any_order_and_as_another_system_writes_it() {
    let rig = Rig::new();
    let hub = Hub::start(&rig, AT_ONCE);
    let mut text = String::from("last, mid ,\r\n\r\nmid,first\r\nfirst\r\n");
    for number in 0..2500 {
        text += &format!("t{number},first\r\n");
    }
    rig.write("tasks.txt", text);
    hub.prints(&["addfile", "tasks.txt"], "");
    hub.prints(&["status"], "dhub: 2503 active tasks, 1 ready.\n");
    hub.prints(&["steal", "-q", "-n", "9"], "first\n");
    hub.prints(&["complete", "first"], "");
    hub.prints(&["status"], "dhub: 2502 active tasks, 2501 ready.\n");

    rig.write("cycle.txt", "a,b\nb,a\n");
    hub.dwork(&["addfile", "cycle.txt"]).expect(2).says("task a would wait for itself");
    hub.dwork(&["addfile", "missing.txt"]).expect(3).says("missing.txt");
    rig.write("empty.txt", "\n , \n");
    hub.dwork(&["addfile", "empty.txt"]).expect(2).says("no tasks");
}

#[test]
fn answers_can_be_read_by_programs() {
    let rig = Rig::new();
    let hub = Hub::start(&rig, AT_ONCE);
    let json = |words: &[&str], code: i32| -> serde_json::Value {
        let ran = hub.dwork(&[words, &["--json"]].concat());
        ran.expect(code);
        serde_json::from_slice(&ran.out).unwrap()
    };
    assert_eq!(json(&["create", "a\n\\"], 0), serde_json::json!({ "answer": "ok" }));
    let status = json(&["status"], 0);
    assert_eq!((&status["active"], &status["ready"]), (&1.into(), &1.into()));
    let stolen = json(&["steal", "w"], 0);
    assert_eq!(stolen["tasks"][0]["name"], "a\\x0a\\x5c");
    assert_eq!(stolen["tasks"][0]["log"][0]["state"], "stolen");
    assert_eq!(json(&["lookup", "a\n\\"], 0)["location"], "w");
    let missed = json(&["complete", "nobody", "--location", "w"], 1);
    assert_eq!(
        (&missed["answer"], &missed["tasks"][0]["name"]),
        (&"not found".into(), &"nobody".into())
    );
    assert_eq!(json(&["complete", "a\n\\", "--location", "w"], 0)["answer"], "ok");
    assert_eq!(json(&["steal", "w"], 5)["answer"], "exit");
}

#[test]
fn who_is_not_there_or_does_not_answer_is_not_waited_for_for_ever() {
    let rig = Rig::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = listener.local_addr().unwrap().to_string();
    let call = rig.laboro(["dwork", "-s", &silent, "--timeout", "200ms", "status"]);
    call.run().expect(3).says("did not answer within 200ms");
    drop(listener);
    let call = rig.laboro(["dwork", "-s", &silent, "status"]);
    call.run().expect(3).says("is a dwork hub running there");
    rig.laboro(["dwork", "-s", "ipc:///x", "status"]).run().expect(2).says("tcp://host:port");
    rig.laboro(["dwork", "--timeout", "soon", "status"]).run().expect(2).says("--timeout soon");
}

#[test]
fn a_steal_waits_at_the_hub_for_what_another_creates() {
    let rig = Rig::new();
    let hub = Hub::start(&rig, ",patience_ms=60000");
    let address = &hub.address;
    let thief =
        rig.laboro(["dwork", "-s", address, "--timeout", "60s", "steal", "-q", "w"]).start();
    hub.prints(&["create", "a"], "");
    let ran = thief.wait();
    ran.expect(0);
    assert_eq!(ran.out(), "a\n");
}

#[test]
fn a_hub_that_stops_says_so_to_those_who_wait() {
    let rig = Rig::new();
    let mut settings = Settings::in_dir(&rig.at("hub"));
    settings.door.push("dwork=127.0.0.1:0,patience_ms=60000".parse().unwrap());
    let hub = laboro_hub::process::start(&settings).unwrap();
    let door = &hub.doors[1];
    let address = door.address.to_string();
    let words = ["dwork", "-s", &address, "--timeout", "60s", "steal", "w"];
    let thieves: Vec<Live> = (0..3).map(|_| rig.laboro(words).start()).collect();
    // Each makes its worker known and offers a slot, for what somebody may create.
    until("they wait", || door.stats.counts().commands == 6);
    hub.stop();
    hub.wait().unwrap();
    for thief in thieves {
        thief.wait().expect(5).says("all tasks are done, or the hub is stopping");
    }
}

#[test]
fn a_peer_that_asks_and_never_reads_is_cut_off_and_counted() {
    let rig = Rig::new();
    let mut settings = Settings::in_dir(&rig.at("hub"));
    settings.limits.write_ms = 300;
    settings.door.push("dwork=127.0.0.1:0".parse().unwrap());
    let hub = laboro_hub::process::start(&settings).unwrap();
    let door = &hub.doors[1];
    let mut deaf = TcpStream::connect(door.address).unwrap();
    let mut greeting = [0; 64];
    greeting[..16].copy_from_slice(b"\xff\0\0\0\0\0\0\0\x01\x7f\x03\x01NULL");
    deaf.write_all(&greeting).unwrap();
    deaf.write_all(b"\x04\x19\x05READY\x0bSocket-Type\0\0\0\x03REQ").unwrap();
    // Delimiter and a question for the status.
    let questions = b"\x01\0\0\x02\x08\x06".repeat(1000);
    // Whichever comes first: it has not read for too long, or has too many answers waiting.
    let cut_off = || {
        let counts = door.stats.counts();
        counts.slow + counts.malformed
    };
    while deaf.write_all(&questions).is_ok() {
        assert!(cut_off() <= 1);
    }
    until("it is counted", || cut_off() == 1);
    let address = door.address.to_string();
    let ran = rig.laboro(["dwork", "-s", &address, "status"]).run();
    assert_eq!(ran.expect(0).out(), "dhub: 0 active tasks, 0 ready.\n");
}

#[test]
fn what_was_answered_survives_a_kill() {
    let rig = Rig::new();
    let mut hub = Hub::start(&rig, AT_ONCE);
    hub.prints(&["create", "a"], "");
    hub.prints(&["create", "b", "a"], "");
    hub.prints(&["steal", "-q", "w"], "a\n");
    hub.kill_and_restart();
    hub.prints(&["status"], "dhub: 2 active tasks, 0 ready.\n");
    hub.prints(&["lookup", "a"], "w\n");
    hub.prints(&["complete", "a", "--location", "w"], "");
    hub.kill_and_restart();
    hub.prints(&["steal", "-q", "w"], "b\n");
}

#[test]
fn our_worker_runs_the_tasks_of_a_dwork_hub_and_leaves() {
    let rig = Rig::new();
    let hub = Hub::start(&rig, "");
    rig.write("tasks.txt", "last,b,c\nb,first\nc,first\nfirst\n");
    hub.prints(&["addfile", "tasks.txt"], "");
    let from = format!("dwork://{}", hub.address);
    let line = "echo \"$1\" >> done.txt";
    let worker = ["worker", "--from", &from, "-j", "2", "--", "sh", "-c", line, "sh", "{}"];
    rig.laboro(worker).run().expect(0);
    let done = rig.lines("done.txt");
    assert_eq!((done.len(), &done[0][..], &done[3][..]), (4, "first", "last"), "{done:?}");
    hub.prints(&["status"], "dhub: 0 active tasks, 0 ready.\n");
}

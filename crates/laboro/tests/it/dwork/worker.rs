//! `laboro worker --from dwork://` and what it says to a hub that has nothing of ours in it.

use crate::mq::rig::Program;
use crate::rig::{Live, Rig, python, until};
use rustix::process::Signal;
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// A stand-in for an original hub, with these tasks.
struct Original {
    program: Program,
    from: String,
}

impl Original {
    fn start(tasks: &[&str]) -> Original {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/dwork/original.py");
        let mut command = Command::new(python());
        command.arg("-B").arg(script).args(tasks);
        let mut program = Program::start(command);
        let from = format!("dwork://{}", program.line());
        Original { program, from }
    }

    fn worker(&self, rig: &Rig, options: &[&str], line: &str) -> Live {
        let words = ["worker", "--from", &self.from, "--name", "w"];
        rig.laboro([&words[..], options, &["--", "sh", "-c", line]].concat()).start()
    }

    /// Everything the worker said, once it has gone; other than steals that found nothing.
    fn told(&mut self) -> Vec<Value> {
        // What another process of this name had goes back first.
        let first: Value = serde_json::from_str(&self.program.line()).unwrap();
        assert_eq!(first["type"], "Exit");
        let mut told: Vec<Value> = Vec::new();
        while told.last().is_none_or(|last| last["type"] != "Exit") {
            told.push(serde_json::from_str(&self.program.line()).unwrap());
        }
        assert!(told.iter().all(|request| request["location"] == "w"), "{told:?}");
        told
    }
}

/// The names in all requests of a kind.
fn names(told: &[Value], kind: &str) -> Vec<String> {
    let requests = told.iter().filter(|request| request["type"] == kind);
    let tasks = requests.flat_map(|request| request["tasks"].as_array().unwrap());
    tasks.map(|task| task["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn it_completes_with_origin_and_log_and_says_that_it_leaves() {
    let rig = Rig::new();
    let mut hub = Original::start(&["a", "bad,a", "c,bad"]);
    hub.worker(&rig, &["-j", "2"], "echo $0 >> done; test $0 != bad").wait().expect(0);
    let told = hub.told();
    assert_eq!(names(&told, "Complete"), ["a", "bad", "c"]);
    assert_eq!(names(&told, "Transfer"), [""; 0]);
    assert_eq!(rig.lines("done"), ["a", "bad", "c"]);
    for request in told.iter().filter(|request| request["type"] == "Complete") {
        // What the hub said, and then: started, done.
        let task = &request["tasks"][0];
        assert_eq!((&task["origin"], &task["log"]), (&"original".into(), &[1, 5, 6][..].into()));
    }
    assert_eq!((&told[0]["type"], &told[0]["n"]), (&"Steal".into(), &2.into()));
}

#[test]
fn it_gives_back_what_failed_where_that_is_asked_for() {
    let rig = Rig::new();
    let mut hub = Original::start(&["a", "bad", "c"]);
    let line = "echo $0 >> done; test $0 != bad || { test -e again || ! touch again; }";
    hub.worker(&rig, &["-j", "1", "--on-failure", "transfer"], line).wait().expect(0);
    let told = hub.told();
    assert_eq!(names(&told, "Transfer"), ["bad"]);
    let mut done = names(&told, "Complete");
    done.sort();
    assert_eq!(done, ["a", "bad", "c"]);
    assert_eq!(rig.sorted_lines("done"), ["a", "bad", "bad", "c"]);
}

#[test]
fn it_takes_as_many_as_it_has_slots_and_a_few_ahead_while_they_are_short() {
    let rig = Rig::new();
    let tasks: Vec<String> = (0..200).map(|number| format!("t{number}")).collect();
    let tasks: Vec<&str> = tasks.iter().map(String::as_str).collect();
    let mut hub = Original::start(&tasks);
    hub.worker(&rig, &["-j", "3"], "echo $0 >> done").wait().expect(0);
    let told = hub.told();
    assert_eq!(told[0]["n"], 3);
    let steals = told.iter().filter(|request| request["type"] == "Steal").count();
    // One by one there would be 200; what is taken ahead comes in larger parts.
    assert!(steals < 150, "{steals} steals");
    assert_eq!(rig.lines("done").len(), 200);
    assert_eq!(names(&told, "Complete").len(), 200);
}

#[test]
fn it_gives_back_what_it_has_when_it_is_told_to_go() {
    let rig = Rig::new();
    let mut hub = Original::start(&["a", "b", "c", "d,a"]);
    let options = ["-j", "2", "--drain", "0s", "--grace", "1s"];
    let worker = hub.worker(&rig, &options, "echo $0 >> begun; exec sleep 100");
    until("two run", || rig.lines("begun").len() == 2);
    worker.signal(Signal::TERM);
    worker.wait().expect(0);
    let told = hub.told();
    assert_eq!(names(&told, "Complete"), [""; 0]);
    let mut back = names(&told, "Transfer");
    back.sort();
    assert_eq!(back[..2], ["a", "b"]);
}

#[test]
fn it_stays_where_it_is_told_to_and_runs_what_comes_later() {
    let rig = Rig::new();
    let hub = super::Hub::start(&rig, ",patience_ms=50");
    let from = format!("dwork://{}", hub.address);
    let words = ["worker", "--from", &from, "--stay", "--", "sh", "-c", "echo $0 >> done"];
    let worker = rig.laboro(words).start();
    for name in ["a", "b"] {
        hub.prints(&["create", name], "");
        until("it has run", || rig.lines("done").last().is_some_and(|last| last == name));
        until("it is complete", || hub.dwork(&["lookup", name]).status.code() == Some(1));
    }
    worker.signal(Signal::TERM);
    worker.wait().expect(0);
    let told = rig.laboro(["worker", "--from", "fuq2+tcp://127.0.0.1:1", "--stay"]).run();
    told.expect(2).says("--stay: it is for --from dwork://");
}

#[test]
fn a_command_that_cannot_be_started_leaves_the_tasks_to_others() {
    let rig = Rig::new();
    let hub = super::Hub::start(&rig, "");
    rig.write("tasks.txt", "b,a\na\nc\nd\ne\n");
    hub.prints(&["addfile", "tasks.txt"], "");
    rig.write("data", "no program");
    std::fs::create_dir(rig.at("gone")).unwrap();
    let from = format!("dwork://{}", hub.address);
    let hidden = rig.laboro([
        "worker",
        "--from",
        &from,
        "--workdir",
        "gone",
        "--name",
        "w",
        "--",
        "rmdir",
        "../gone",
    ]);
    for (words, why) in [(&["./missing", "{}"][..], "./missing"), (&["./data", "{}"], "./data")] {
        let worker = ["worker", "--from", &from, "-j", "2", "--name", "w", "--"];
        let ran = rig.laboro([&worker[..], words].concat()).run();
        ran.expect(3).says("could not be started").says(why).says("check the command");
        hub.prints(&["status"], "dhub: 5 active tasks, 4 ready.\n");
    }
    // The first task takes the directory away that the others shall run in.
    let ran = hidden.run();
    ran.expect(3).says("could not be started");
    let status = hub.dwork(&["status"]).expect(0).out();
    assert!(!status.contains("dhub: 0 active"), "{status}");
}

#[test]
fn it_shows_what_tasks_print_where_that_is_asked_for() {
    let rig = Rig::new();
    let hub = super::Hub::start(&rig, "");
    hub.prints(&["create", "a"], "");
    let from = format!("dwork://{}", hub.address);
    let line = "echo one; printf two; echo wrong >&2";
    let worker = ["worker", "--from", &from, "--tee", "--name", "w", "--", "sh", "-c", line];
    let ran = rig.laboro(worker).run();
    ran.expect(0).says("a: wrong");
    assert_eq!(ran.out(), "a: one\na: two\n");
    assert!(!ran.err().contains("cgroup"), "nothing is limited here: {}", ran.err());
}

#[test]
fn it_takes_over_what_a_killed_one_of_its_name_had() {
    let rig = Rig::new();
    let hub = super::Hub::start(&rig, "");
    hub.prints(&["create", "a"], "");
    let from = format!("dwork://{}", hub.address);
    let line = "echo $0 >> begun; test -e go || exec sleep 100";
    let words = ["worker", "--from", &from, "--name", "w", "--", "sh", "-c", line];
    let worker = rig.laboro(words).start();
    until("it runs", || rig.lines("begun").len() == 1);
    worker.signal(Signal::KILL);
    worker.wait();
    rig.write("go", "");
    rig.laboro(words).run().expect(0);
    assert_eq!(rig.lines("begun"), ["a", "a"]);
    hub.prints(&["status"], "dhub: 0 active tasks, 0 ready.\n");
}

#[test]
fn an_original_hub_that_answers_no_lookups_is_not_taken_for_one_that_refuses_names() {
    let rig = Rig::new();
    let hub = Original::start(&["a"]);
    let address = hub.from.trim_start_matches("dwork://");
    let ran = rig.laboro(["dwork", "-s", address, "lookup", "a"]).run();
    ran.expect(1).says("this hub does not answer lookups");
}

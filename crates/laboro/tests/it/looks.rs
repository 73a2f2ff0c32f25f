//! A run looked at like a hub: while it lives, after it, and after it was killed.

use crate::rig::{Live, Rig, until};
use rustix::process::Signal;
use serde_json::Value;

const FLOW: &str = r#"
[[task]]
name = "prep"
command = "echo prepared"
[[task]]
name = "sim"
foreach = "1-3"
after = "prep"
command = "test {} != 2 || { echo bad seed >&2; exit 3; }"
[[task]]
name = "long"
command = "touch begun; until [ -e go ]; do sleep 0.01; done"
[[task]]
name = "join"
after = "sim"
command = "echo joined"
"#;

fn begun() -> (Rig, Live) {
    let rig = Rig::new();
    rig.write("flow.toml", FLOW);
    let live = rig.laboro(["run", "-j2", "flow.toml"]).start();
    until("it runs", || rig.at("begun").exists() && live.err().contains("bad seed"));
    (rig, live)
}

fn states(rig: &Rig) -> Vec<(String, String)> {
    let listed = rig.laboro(["tasks", "--json"]).run();
    let task = |line: &str| {
        let task: Value = serde_json::from_str(line).unwrap();
        let word = |key: &str| task[key].as_str().unwrap().to_owned();
        (word("name"), word("state"))
    };
    listed.expect(0).out().lines().map(task).collect()
}

fn expected(long: &str) -> Vec<(String, String)> {
    let all = [("sim.1", "done"), ("sim.2", "failed"), ("sim.3", "done"), ("prep", "done")];
    let all = all.into_iter().chain([("long", long), ("join", "blocked")]);
    all.map(|(name, state)| (name.to_owned(), state.to_owned())).collect()
}

#[test]
fn a_run_is_asked_like_a_hub_while_it_lives_and_after() {
    let (rig, live) = begun();
    until("all that can be is over", || states(&rig) == expected("running"));
    let says = |arguments: &[&str], words: &str| {
        let asked = rig.laboro(arguments).run();
        let text = asked.expect(0).out();
        assert!(text.contains(words), "{arguments:?}: {text}");
    };
    let both = |says: &dyn Fn(&[&str], &str)| {
        says(&["tasks", "failed"], "sim.2");
        says(&["show", "sim.2"], "exit code 3");
        says(&["show", "sim.2"], "test {} != 2");
        says(&["show"], "1 failed");
        says(&["explain", "join"], "blocked");
        says(&["graph"], "sim [3]");
        says(&["jobs"], "flow.toml");
        says(&["report"], "<html");
        says(&["logs", "prep"], "prepared");
    };
    both(&says);
    says(&["explain", "long"], "runs on local");
    says(&["status"], "1 worker connected");
    says(&["dashboard"], "http://127.0.0.1:");
    let events = rig.laboro(["events"]).start();
    // Who listens hears only what happens from then on.
    until("it is told", || {
        rig.laboro(["cancel", "join"]).run().expect(0);
        let is_told = events.out().contains("1/6 cancelled");
        if !is_told {
            rig.laboro(["retry", "join"]).run().expect(0);
        }
        is_told
    });
    let waiting = rig.laboro(["wait"]).start();
    rig.write("go", "");
    live.wait().expect(1);
    waiting
        .wait()
        .expect(1)
        .says("4 done, 1 failed, 1 cancelled")
        .says("laboro run --retry-failed");
    events.wait().expect(0).says("is over");
    assert!(!rig.run_dir().join("api.sock").exists());
    both(&|arguments, words| {
        // It was cancelled meanwhile.
        let words = if arguments[0] == "explain" { "cancelled" } else { words };
        says(arguments, words);
    });
    says(&["status"], "not running");
    rig.laboro(["wait"]).run().expect(1).says("4 done, 1 failed, 1 cancelled");
    rig.laboro(["events"]).run().expect(0).says("there are no more events");
    rig.laboro(["hold", "1"]).run().expect(4).says("is not running");
}

#[test]
fn a_run_that_is_just_ending_can_be_waited_for() {
    let rig = Rig::new();
    rig.write("jobs.txt", "touch begun; until [ -e go ]; do sleep 0.01; done\n");
    let live = rig.laboro(["run", "jobs.txt"]).start();
    until("it runs", || rig.at("begun").exists());
    let first = rig.laboro(["wait"]).start();
    rig.write("go", "");
    first.wait().expect(0).says("1 task done");
    // The first is answered while the process of the run still ends.
    rig.laboro(["wait"]).run().expect(0).says("1 task done");
    rig.laboro(["tasks"]).run().expect(0);
    live.wait().expect(0);
}

#[test]
fn of_a_run_that_was_killed_nothing_runs() {
    let (rig, live) = begun();
    until("all that can be is over", || states(&rig) == expected("running"));
    live.signal(Signal::KILL);
    live.wait();
    assert_eq!(states(&rig), expected("ready"));
    rig.laboro(["wait"])
        .run()
        .expect(1)
        .says("was interrupted; the same `laboro run` command resumes it");
}

#[test]
fn what_a_person_holds_waits_and_what_is_cancelled_ends() {
    let rig = Rig::new();
    rig.write("jobs.txt", "touch begun; sleep 1000\ntouch second\n");
    let live = rig.laboro(["run", "-j1", "jobs.txt"]).start();
    until("it runs", || rig.at("begun").exists());
    // At first it may have been given to the worker ahead of its turn.
    until("it is held", || rig.laboro(["hold", "2"]).run().out().contains("1 task held"));
    rig.laboro(["cancel", "1"]).run().expect(0);
    until("nothing runs", || !states(&rig).iter().any(|(_, state)| state == "running"));
    assert!(!rig.at("second").exists());
    rig.laboro(["release", "2"]).run().expect(0);
    live.wait().expect(1).says("1 of 2 tasks done, 1 cancelled");
    assert!(rig.at("second").exists());
}

#[test]
fn a_directory_too_deep_for_a_socket_has_one_elsewhere() {
    let rig = Rig::new();
    let deep = "a".repeat(60) + "/" + &"b".repeat(60);
    rig.write(&format!("{deep}/jobs.txt"), "until [ -e go ]; do sleep 0.01; done\n");
    let jobs = format!("{deep}/jobs.txt");
    let state = format!("{deep}/.laboro");
    let live = rig.laboro(["run", &jobs]).start();
    let running = || rig.laboro(["tasks", "--state", &state, "running"]).run().out();
    until("it is seen to run", || running().contains("running"));
    rig.write("go", "");
    live.wait().expect(0);
}

#[test]
fn a_dashboard_can_be_asked_for_with_the_run() {
    let rig = Rig::new();
    let ran = rig.run(["--dashboard", "--", "true"]);
    ran.expect(0).says("dashboard: http://127.0.0.1:");
}

#[test]
fn what_changes_something_does_not_guess_between_a_run_and_a_hub() {
    let rig = Rig::new();
    rig.run(["--", "true"]).expect(0);
    rig.write("hub/access.toml", "");
    let place = rig.at("hub").display().to_string();
    let asked = rig.laboro(["cancel", "1"]).env("LABORO_DIR", &place).run();
    asked.expect(2).says("--run").says("--hub");
}

#[test]
fn no_more_tasks_are_shown_as_running_than_there_are_slots() {
    let rig = Rig::new();
    // Short ones, so that the worker is given more of them than it has slots.
    let live = rig.laboro(["run", "-q", "-j2", "--array", "1-20000", "--", "true"]).start();
    until("there is a run", || rig.at(".laboro/latest").exists());
    let (mut looks, mut most) = (0, 0);
    until("it was looked at a few times", || {
        let shown = rig.laboro(["show", "--json"]).run();
        let Ok(job) = serde_json::from_slice::<Value>(&shown.out) else { return false };
        most = most.max(job["counts"]["running"].as_u64().unwrap_or(0));
        let tasks = rig.laboro(["tasks", "running", "--json"]).run().out();
        most = most.max(tasks.lines().count() as u64);
        looks += 1;
        looks == 10
    });
    assert!(most <= 2, "{most} at once");
    live.signal(Signal::KILL);
    live.wait();
}

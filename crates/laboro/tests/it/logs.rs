//! `laboro logs`: what a task printed, also while it runs.

use crate::rig::{Rig, until};
use rustix::process::Signal;
use serde_json::Value;

#[test]
fn one_stream_or_both_or_all_as_json() {
    let rig = Rig::new();
    rig.write("jobs.txt", "echo fine\necho out; echo err >&2; exit 4\n");
    rig.run(["jobs.txt"]).expect(1);
    let both = rig.laboro(["logs", "2"]).run();
    assert_eq!((both.expect(0).out(), both.err()), ("out\n".into(), "err\n".into()));
    let out = rig.laboro(["logs", "--stdout", "2"]).run();
    assert_eq!((out.out(), out.err()), ("out\n".into(), String::new()));
    let err = rig.laboro(["logs", "--stderr", "2"]).run();
    assert_eq!((err.out(), err.err()), ("err\n".into(), String::new()), "as it was asked for");
    let record: Value =
        serde_json::from_str(&rig.laboro(["logs", "--json", "2"]).run().out()).unwrap();
    assert_eq!(record["state"], "failed");
    assert_eq!(record["ended"]["outcome"]["code"], 4);
    assert_eq!(
        (record["stdout"].as_str(), record["stderr"].as_str()),
        (Some("out\n"), Some("err\n"))
    );
}

#[test]
fn attempts_are_kept_apart_also_over_several_runs() {
    let rig = Rig::new();
    rig.write("jobs.txt", "echo this is $LABORO_ATTEMPT; exit 1\n");
    rig.run(["--attempts", "2", "jobs.txt"]).expect(1);
    rig.run(["--retry-failed", "jobs.txt"]).expect(1);
    for attempt in ["1", "2", "3"] {
        let logs = rig.laboro(["logs", "--attempt", attempt, "1"]).run();
        assert_eq!(logs.expect(0).out(), format!("this is {attempt}\n"));
    }
    let last = rig.laboro(["logs", "1"]).run().out();
    assert!(last.starts_with("this is ") && last.lines().count() == 1, "{last}");
    let none = rig.laboro(["logs", "--attempt", "9", "1"]).run();
    none.expect(4).says("task 1/1 has no attempt 9; it has 4");
}

#[test]
fn following_shows_what_comes_and_ends_with_the_task() {
    let rig = Rig::new();
    rig.write("jobs.txt", "echo begun; until [ -e go ]; do :; done; echo ended\nsleep 0\n");
    let run = rig.laboro(["run", "-j1", "jobs.txt"]).start();
    until("there is a run", || rig.at(".laboro/latest").exists());
    until("the task has begun", || rig.laboro(["logs", "1"]).run().out() == "begun\n");
    let first = rig.laboro(["logs", "--follow", "1"]).start();
    let second = rig.laboro(["logs", "--follow", "2"]).start();
    until("it is shown at once", || first.out() == "begun\n");
    rig.write("go", "");
    assert_eq!(first.wait().expect(0).out(), "begun\nended\n");
    second.wait().expect(0);
    run.wait().expect(0);
}

#[test]
fn following_ends_when_the_run_is_killed() {
    let rig = Rig::new();
    rig.write("jobs.txt", "echo begun; sleep 1000\nsleep 1000\n");
    let run = rig.laboro(["run", "-j1", "jobs.txt"]).start();
    until("there is a run", || rig.at(".laboro/latest").exists());
    until("the task has begun", || rig.laboro(["logs", "1"]).run().out() == "begun\n");
    let first = rig.laboro(["logs", "--follow", "1"]).start();
    let second = rig.laboro(["logs", "--follow", "2"]).start();
    until("it is shown at once", || first.out() == "begun\n");
    run.signal(Signal::KILL);
    run.wait();
    first.wait().expect(0).says("the run was cut short");
    second.wait().expect(0).says("it has not run");
}

#[test]
fn tasks_that_are_not_there_are_named() {
    let rig = Rig::new();
    rig.write("flow.toml", "[[task]]\nname = \"many\"\nforeach = \"1-2\"\ncommand = \"echo {}\"\n");
    rig.run(["flow.toml"]).expect(0);
    rig.laboro(["logs", "nobody"]).run().expect(4).says("no task nobody");
    rig.laboro(["logs", "many.3"]).run().expect(4).says("no task many.3");
    assert_eq!(rig.laboro(["logs", "many.2"]).run().expect(0).out(), "2\n");
    assert_eq!(rig.laboro(["logs", "1/many"]).run().expect(0).out(), "1\n2\n");
}

#[test]
fn a_whole_run_is_shown_as_a_job_of_a_hub_is() {
    let rig = Rig::new();
    let line = "echo {}; echo why {} >&2; test {} != b";
    rig.run(["-q", "--", line, ":::", "a", "b"]).expect(1);
    // What was done before is in the run that did it.
    rig.run(["-q", "--", line, ":::", "c", "b", "a"]).expect(1);
    let logs = |words: &[&str]| rig.laboro(["logs"].iter().chain(words)).run();
    assert_eq!(logs(&["--stdout"]).expect(0).out(), "c\nb\na\n");
    assert_eq!(logs(&["2-3"]).expect(0).out(), "b\na\n");
    assert_eq!(logs(&["3"]).expect(0).out(), "a\n");
    let failed = logs(&["--failed", "--stderr"]);
    assert_eq!(failed.expect(0).says("==> 1/2 b (exit code 1) <==").out(), "why b\n");
    logs(&["--output-dir", "out"]).expect(0);
    assert_eq!(
        (rig.read("out/1-c.out"), rig.read("out/3-a.err")),
        ("c\n".into(), "why a\n".into())
    );
    let tasks = rig.laboro(["tasks", "--json"]).run().expect(0).out();
    let third: Value = serde_json::from_str(tasks.lines().last().unwrap()).unwrap();
    assert_eq!(third["attempts"][0]["outcome"]["kind"], "success", "{third}");
}

#[test]
fn why_a_task_printed_nothing_is_said() {
    let rig = Rig::new();
    rig.run(["-q", "--", "/no/such/prog", "{}", ":::", "a"]).expect(1);
    rig.laboro(["logs", "1"]).run().expect(0).says("program /no/such/prog not found");
}

#[test]
fn the_run_can_be_chosen() {
    let rig = Rig::new();
    rig.write("one.txt", "echo one\n");
    rig.write("two.txt", "echo two\n");
    let state = |name: &str| {
        let events = rig.run(["--json", name]).events();
        let path = events.last().unwrap()["dir"].as_str().unwrap().to_owned();
        path.rsplit('/').next().unwrap().to_owned()
    };
    let (one, two) = (state("one.txt"), state("two.txt"));
    assert_eq!(rig.laboro(["logs", "1"]).run().expect(0).out(), "two\n");
    assert_eq!(rig.laboro(["logs", "--run", &one[..6], "1"]).run().expect(0).out(), "one\n");
    assert_eq!(rig.laboro(["logs", "--run", &two, "1"]).run().expect(0).out(), "two\n");
    rig.laboro(["logs", "--run", "zzz", "1"]).run().expect(3).says("starts with zzz");
}

#[test]
fn the_hint_of_a_summary_works_as_it_is_typed() {
    let rig = Rig::new();
    rig.write(
        "else where/flow.toml",
        "[[task]]\nname = \"it's bad\"\ncommand = \"echo why >&2; exit 1\"\n",
    );
    let ran = rig.run(["else where/flow.toml"]);
    let err = ran.expect(1).err();
    let hint = err.lines().find_map(|line| line.strip_prefix("see one: laboro ")).unwrap();
    let typed = hint.split("   ").next().unwrap();
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", &format!("\"$0\" {typed}"), crate::rig::LABORO]);
    assert_eq!(rig.call(shell).run().expect(0).err(), "why\n");
}

//! What is shown: lists, one thing in full, an overview.

use super::place::Place;

#[test]
fn jobs_are_listed_newest_first_as_many_as_are_wanted() {
    let place = Place::new();
    for name in ["first", "second", "third"] {
        place.out(&["submit", "--name", name, "--array", "1-3", "--", "echo", "{}"]);
    }
    let text = place.out(&["jobs"]);
    let names: Vec<&str> =
        text.lines().skip(1).map(|line| line.split_whitespace().nth(1).unwrap()).collect();
    assert_eq!(names, ["third", "second", "first"]);
    let two = place.run(&["jobs", "--limit", "2"]);
    assert_eq!(two.expect(0).out().lines().count(), 3);
    two.says("and more");
    assert_eq!(place.json(&["jobs", "--json"]).len(), 3);
    place.worker("w", 9).work_off(&[]);
    assert_eq!(place.json(&["jobs", "--json", "--active"]).len(), 0);
}

#[test]
fn tasks_are_listed_by_state_and_by_number_over_many_pages() {
    let place = Place::new();
    place.out(&["submit", "--array", "1-2500", "--", "echo", "{}"]);
    place.worker("w", 4).work_off(&[2]);
    assert_eq!(place.json(&["tasks", "--json"]).len(), 2500);
    let failed = place.json(&["tasks", "--json", "last/failed"]);
    assert_eq!((failed.len(), &failed[0]["task"]), (1, &2.into()));
    let some = place.json(&["tasks", "--json", "1/5-7,1200"]);
    let numbers: Vec<i64> = some.iter().map(|task| task["task"].as_i64().unwrap()).collect();
    assert_eq!(numbers, [5, 6, 7, 1200]);
    assert!(place.out(&["tasks", "1/failed"]).contains("1/2"));
    assert_eq!(place.out(&["tasks", "--limit", "10"]).lines().count(), 11);
}

#[test]
fn a_failed_task_is_shown_with_its_last_words() {
    let place = Place::new();
    place.out(&[
        "submit",
        "--name",
        "night",
        "--attempts",
        "1",
        "--",
        "sh",
        "-c",
        "{}",
        ":::",
        "a",
        "b",
    ]);
    place.worker("w", 4).work_off(&[2]);
    place.prints(1, 2, "some output\n", "first\nsomething broke\n");
    let task = place.out(&["show", "last/2"]);
    for words in ["task 1/2", "failed", "sh -c {}", "value b", "exit code 3", "something broke"] {
        assert!(task.contains(words), "{words} is not in\n{task}");
    }
    let job = place.out(&["show", "night"]);
    for words in ["job 1 night failed", "1 done, 1 failed", "1 exit code 3", "something broke"] {
        assert!(job.contains(words), "{words} is not in\n{job}");
    }
    assert_eq!(place.json(&["show", "--json", "1"])[0]["counts"]["failed"], 1);
}

#[test]
fn the_status_is_one_screen_and_one_json_object() {
    let place = Place::new();
    assert!(place.out(&["status"]).contains("nothing was submitted yet"));
    place.out(&["submit", "--name", "good", "--", "true"]);
    place.out(&["submit", "--name", "bad", "--", "false"]);
    let worker = place.worker("w", 4);
    for grant in worker.take(2) {
        let bad = grant.task.job.0 == 2;
        worker.report(
            &grant,
            if bad { laboro_core::Outcome::Exit(1) } else { laboro_core::Outcome::Success },
        );
    }
    place.out(&["submit", "--name", "waiting", "--hold", "--", "true"]);
    let text = place.out(&["status"]);
    for words in ["1 worker connected", "default", "active", "waiting", "failed lately", "bad"] {
        assert!(text.contains(words), "{words} is not in\n{text}");
    }
    assert!(!text.contains("good"), "{text}");
    let json = &place.json(&["status", "--json"])[0];
    assert_eq!(
        (&json["workers"]["connected"], &json["jobs"][0]["name"]),
        (&1.into(), &"waiting".into())
    );
}

#[test]
fn the_tasks_of_a_job_can_be_drawn() {
    let place = Place::new();
    let flow = "[[task]]\nname = \"a\"\ncommand = \"true\"\n[[task]]\nname = \"b\"\nafter = \"a\"\ncommand = \"true\"\n";
    place.rig.write("flow.toml", flow);
    place.out(&["submit", "flow.toml"]);
    let dot = place.out(&["graph", "--format", "dot", "last"]);
    assert!(dot.contains("digraph") && dot.contains("->"), "{dot}");
    assert!(place.out(&["graph", "--format", "dot", "flow.toml"]).contains("->"));
}

#[test]
fn what_a_task_printed_comes_from_the_hub_where_no_run_is_here() {
    let place = Place::new();
    place.out(&["submit", "--", "true"]);
    place.worker("w", 1).work_off(&[]);
    place.prints(1, 1, "to out\n", "to err\n");
    let both = place.run(&["logs", "last/1"]);
    assert_eq!((both.expect(0).out(), both.err()), ("to out\n".into(), "to err\n".into()));
    assert_eq!(place.out(&["logs", "--stdout", "1/1"]), "to out");
    let json = &place.json(&["logs", "--json", "1/1"])[0];
    assert_eq!((&json["stdout"], &json["state"]), (&"to out\n".into(), &"done".into()));
    assert_eq!(
        (&json["attempt"], &json["ended"]["outcome"]["kind"]),
        (&1.into(), &"success".into())
    );
    assert_eq!(place.out(&["logs", "--stderr", "last/1"]), "to err", "as it was asked for");
    place.rig.run(["-q", "--", "echo", "from here"]).expect(0);
    // A hub that the environment names is meant, as everywhere.
    assert_eq!(place.out(&["logs", "--stdout", "1"]), "to out");
    assert_eq!(place.out(&["logs", "1", "--run"]), "from here");
    place.run(&["logs", "last/3", "--run"]).expect(4).says("no task 1/3");
    assert_eq!(place.out(&["logs", "--hub", "--stdout", "1/1"]), "to out");
}

/// Four parts, each after the one before, two of them arrays.
const CHAIN: &str = "[job]\nname = \"deep\"\n[[task]]\nname = \"d0\"\ncommand = \"true\"\n\
    [[task]]\nname = \"d1\"\nforeach = \"1-3\"\nafter = \"d0\"\ncommand = \"true {}\"\n\
    [[task]]\nname = \"d2\"\nforeach = \"1-3\"\nafter = \"each:d1\"\ncommand = \"true {}\"\n";

#[test]
fn what_arrays_come_after_is_shown_and_drawn() {
    let place = Place::new();
    place.rig.write("chain.toml", CHAIN);
    place.out(&["submit", "chain.toml"]);
    let dot = place.out(&["graph", "--format", "dot", "last"]);
    assert_eq!(dot.matches("->").count(), 2, "{dot}");
    let shown = place.json(&["show", "--json", "last/d2.3"]);
    assert_eq!(shown[0]["after"], serde_json::json!([{ "job": 1, "task": 3 }]));
    assert!(place.out(&["show", "last/d1.2"]).contains("1/7"));
}

#[test]
fn a_task_or_an_array_is_found_by_the_names_of_its_job_and_its_own() {
    let place = Place::new();
    place.rig.write("chain.toml", CHAIN);
    place.out(&["submit", "--name", "full", "chain.toml"]);
    for (typed, number) in [("full/d0", 7), ("full/d1.2", 2), ("last/d2.1", 4), ("d2.1", 4)] {
        let shown = place.json(&["show", "--json", typed]);
        assert_eq!(shown[0]["task"], number, "{typed}");
    }
    assert_eq!(place.out(&["hold", "full/d1"]), "job 1: 3 tasks held");
    assert_eq!(place.out(&["release", "last/d1"]), "job 1: 3 tasks released");
    place.run(&["show", "full/none"]).expect(4).says("there is no task none in job 1");
    place.run(&["logs", "--hub", "none/d0"]).expect(4).says("none/d0");
    place.run(&["submit", "--key", "", "--", "true"]).expect(2).says("--key ''");
    place.run(&["logs", "--hub", "--attempt", "7", "1/1"]).expect(4).says("no attempt 7; it has 1");
}

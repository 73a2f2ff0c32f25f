//! What can be submitted, and what is said about it.

use super::place::Place;
use laboro_core::{Program, Work};

#[test]
fn a_submit_prints_the_job_in_words_as_a_number_or_as_json() {
    let place = Place::new();
    assert_eq!(place.out(&["submit", "--", "echo", "{}", ":::", "a", "b"]), "job 1: 2 tasks");
    assert_eq!(place.out(&["submit", "--quiet", "--", "true"]), "2");
    let json = place.json(&["submit", "--json", "--array", "1-5", "--", "echo", "{}"]);
    assert_eq!(json[0], serde_json::json!({ "job": 3, "first": 1, "count": 5, "again": false }));
}

#[test]
fn ten_million_elements_and_a_hundred_thousand_lines_are_taken() {
    let place = Place::new();
    let array = ["submit", "--hold", "--array", "1-10000000", "--", "./sim", "{}"];
    assert_eq!(place.out(&array), "job 1: 10000000 tasks");
    let lines: String = (0..100_000).map(|n| format!("echo {n} and some more words\n")).collect();
    place.rig.write("jobs.txt", lines);
    assert_eq!(place.out(&["submit", "--hold", "jobs.txt"]), "job 2: 100000 tasks");
    let jobs = place.json(&["jobs", "--json"]);
    assert_eq!((&jobs[0]["name"], &jobs[0]["tasks"]), (&"jobs.txt".into(), &100_000.into()));
    let task = place.json(&["show", "--json", "2/99999"]);
    assert_eq!(task[0]["work"]["value"], "echo 99998 and some more words");
}

#[test]
fn many_json_tasks_are_sent_as_a_stream_whatever_their_order() {
    let place = Place::new();
    let mut lines = r#"{"name": "all", "command": "true", "after": ["t1", "t20000"]}"#.to_owned();
    for n in 1..=20_000 {
        lines += &format!(
            "\n{{\"name\": \"t{n}\", \"command\": \"echo some words that take room {n}\"}}"
        );
    }
    place.rig.write("tasks.jsonl", lines);
    assert_eq!(place.out(&["submit", "tasks.jsonl"]), "job 1: 20001 tasks");
    let all = place.json(&["show", "--json", "all"]);
    assert_eq!(all[0]["state"], "waiting");
}

#[test]
fn tasks_run_here_with_the_variables_that_were_asked_for() {
    let place = Place::new();
    place.out(&["submit", "--env", "MODE=fast", "--", "echo", "hello"]);
    let grant = place.worker("w", 1).take(1).remove(0);
    let Some(Work::Command(command)) = grant.work.as_deref() else { panic!("{grant:?}") };
    let here = place.rig.dir().canonicalize().unwrap();
    assert_eq!(command.setting.dir.as_deref(), Some(here.to_str().unwrap().as_bytes()));
    let env: Vec<(&[u8], &[u8])> = command.setting.env.iter().map(|(n, v)| (&**n, &**v)).collect();
    assert_eq!(env, [(&b"MODE"[..], &b"fast"[..])]);
    assert!(matches!(&command.program, Program::Argv(words) if words.len() == 2));
}

#[test]
fn a_key_makes_a_second_submit_the_first_one() {
    let place = Place::new();
    let submit = ["submit", "--key", "night", "--", "true"];
    assert_eq!(place.out(&submit), "job 1: 1 task");
    assert_eq!(place.out(&submit), "job 1 already exists: 1 task");
}

#[test]
fn a_flow_may_be_submitted_again_and_its_names_belong_to_each_job() {
    let place = Place::new();
    place.rig.write("flow.toml", "[[task]]\nname = \"prepare\"\ncommand = \"true\"\n");
    assert_eq!(place.out(&["submit", "flow.toml"]), "job 1: 1 task");
    assert_eq!(place.out(&["submit", "--prefix", "b-", "flow.toml"]), "job 2: 1 task");
    assert_eq!(place.out(&["submit", "flow.toml"]), "job 3: 1 task");
    let number = |task: &str| place.json(&["show", task, "--json"])[0]["job"].as_u64();
    assert_eq!((number("1/prepare"), number("prepare")), (Some(1), Some(3)));
    assert_eq!(number("b-prepare"), Some(2));
    place.run(&["forget", "1"]).expect(4).says("not finished");
    place.worker("w", 4).work_off(&[]);
    assert_eq!(place.out(&["forget", "1"]), "job 1 is forgotten");
    assert_eq!(place.out(&["submit", "flow.toml"]), "job 4: 1 task");
}

#[test]
fn an_open_job_takes_more_until_it_is_closed() {
    let place = Place::new();
    place.out(&["submit", "--open", "--name", "growing", "--", "true"]);
    let add = ["submit", "--add", "growing", "--array", "1-3", "--", "echo", "{}"];
    assert_eq!(place.out(&add), "job 1: 3 tasks added");
    assert_eq!(place.out(&["close", "growing"]), "job 1 is closed");
    place.run(&add).expect(4).says("closed");
}

#[test]
fn a_check_and_a_dry_run_need_no_hub() {
    let place = Place::new();
    let rig = &place.rig;
    rig.laboro(["submit", "--check", "--", "true"]).run().expect(0).says("1 task, nothing wrong");
    let dry = rig.laboro(["submit", "--dry-run", "--", "echo", "{}", ":::", "a"]).run();
    assert!(dry.expect(0).out().contains("echo a"));
}

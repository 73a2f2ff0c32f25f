//! What keys do, and that every view fits on a small screen.

use super::draw;
use super::keyboard::Key;
use super::model::{Model, View, Wish};
use super::news::{JobNews, OverviewNews, TaskNews, ViewNews};
use crate::hub_client::{Verb, WorkerVerb};
use laboro_api::{Job, JobHistory, Task};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use serde_json::json;

fn job(number: u32, name: &str) -> Job {
    let counts = json!({"done": 3, "failed": 1, "running": 2});
    let job = json!({"job": number, "group": "default", "name": name, "state": "running",
        "tasks": 6, "counts": counts, "submitted_ms": 0});
    serde_json::from_value(job).unwrap()
}

fn task(number: u32) -> Task {
    let attempt = json!({"worker": 1, "started_ms": 0, "ended_ms": 1500,
        "outcome": {"kind": "exit", "code": 3}});
    let task = json!({"job": 7, "task": number, "name": "a\u{1b}[31mb", "state": "failed",
        "attempts": [attempt]});
    serde_json::from_value(task).unwrap()
}

fn model() -> Model {
    let mut model = Model::new("hub:7910".to_owned());
    let jobs = vec![job(8, "newer"), job(7, "older")];
    model.hear(ViewNews::Overview(Box::new(OverviewNews { jobs, ..OverviewNews::default() })));
    model
}

fn shown(model: &mut Model) -> String {
    shown_at(80, model)
}

fn shown_at(columns: u16, model: &mut Model) -> String {
    let mut terminal = Terminal::new(TestBackend::new(columns, 24)).unwrap();
    terminal.draw(|frame| draw::screen(frame, model)).unwrap();
    terminal.backend().to_string()
}

#[test]
fn resources_in_use_are_shown_by_kind() {
    let mut model = model();
    let resources =
        json!([{"name": "gpu", "count": 8, "used": 3.5}, {"name": "l", "count": 200, "used": 0.0}]);
    let workers = json!({"connected": 2, "slots": 4, "slots_used": 2, "memory_bytes": 2_u64 << 30,
        "memory_used_bytes": 512 << 20, "resources": resources});
    let seen = serde_json::from_value(json!({ "workers": workers })).unwrap();
    model.hear(ViewNews::Overview(Box::new(OverviewNews { seen, ..OverviewNews::default() })));
    let screen = shown(&mut model);
    assert!(
        screen.contains("2 of 4 slots in use, memory 512.0 MiB/2.0 GiB, gpu 3.5/8, l"),
        "{screen}"
    );
}

#[test]
fn keys_lead_from_the_overview_to_an_output_and_back() {
    let mut model = model();
    model.press(Key::Down);
    model.press(Key::Open);
    assert_eq!(model.view, View::Job(7, None));
    let (job, past, tasks) = (job(7, "older"), JobHistory::default(), vec![task(1), task(2)]);
    model.hear(ViewNews::Job(Box::new(JobNews { job, past, tasks })));
    let screen = shown(&mut model);
    assert!(screen.contains("older") && screen.contains("exit code 3"), "{screen}");
    model.press(Key::Down);
    model.press(Key::Open);
    assert_eq!(model.view, View::Task(7, 2));
    let output = (1..100).map(|line| format!("line {line}\n")).collect();
    model.hear(ViewNews::Task(Box::new(TaskNews { task: task(2), explanation: None, output })));
    let screen = shown(&mut model);
    assert!(screen.contains("line 99") && !screen.contains('\u{1b}'), "{screen}");
    model.press(Key::PageUp);
    assert!(!shown(&mut model).contains("line 99"));
    model.press(Key::Back);
    model.press(Key::Back);
    assert_eq!(model.view, View::Overview);
}

#[test]
fn a_cancel_is_asked_about_first() {
    let mut model = model();
    assert_eq!(model.press(Key::Letter('c')), Wish::Nothing);
    assert!(shown(&mut model).contains("cancel job 8?"));
    assert_eq!(model.press(Key::Letter('n')), Wish::Nothing);
    model.press(Key::Letter('c'));
    assert_eq!(model.press(Key::Letter('y')), Wish::Change(Verb::Cancel, 8, None));
    assert_eq!(model.press(Key::Letter('h')), Wish::Change(Verb::Hold, 8, None));
}

#[test]
fn trouble_is_told_and_what_was_seen_stays() {
    let mut model = model();
    model.hear(ViewNews::Trouble("the hub does not answer".to_owned()));
    let screen = shown(&mut model);
    assert!(screen.contains("the hub does not answer") && screen.contains("newer"), "{screen}");
}

fn among_workers() -> Model {
    let mut model = model();
    model.press(Key::Letter('3'));
    let worker = |number: u32, name: &str| {
        json!({"worker": number, "name": name, "group": "default", "dialect": "native",
        "connected": true, "slots": 128, "slots_used": 127, "succeeded": 123_456, "failed": 12,
        "conduct": {"standing": "on_probation"}})
    };
    let workers =
        [worker(12, "node-017"), worker(30, "a-node-with-a-name-as-long-as-can-be.example")];
    let workers = workers.map(|worker| serde_json::from_value(worker).unwrap());
    model.hear(ViewNews::Workers(workers.into()));
    model
}

#[test]
fn what_is_done_to_a_worker_is_asked_about_first() {
    let verbs = [
        ('d', WorkerVerb::Drain, "drain"),
        ('s', WorkerVerb::Stop(None), "stop"),
        ('e', WorkerVerb::Eject("ejected with laboro top".to_owned()), "eject"),
        ('p', WorkerVerb::Pardon, "pardon"),
        ('l', WorkerVerb::Lift, "lift"),
    ];
    for (letter, verb, word) in verbs {
        let mut model = among_workers();
        assert!(shown(&mut model).contains(&format!("{letter} {word}")), "the keys are shown");
        assert_eq!(model.press(Key::Letter(letter)), Wish::Nothing);
        assert!(shown(&mut model).contains(&format!("{word} node-017")));
        assert_eq!(model.press(Key::Back), Wish::Nothing);
        model.press(Key::Down);
        model.press(Key::Letter(letter));
        let screen = shown(&mut model);
        assert!(screen.contains(&format!("{word} a-node-with-a-")), "{screen}");
        assert!(screen.contains("y: yes, other keys: no"), "it fits in one line: {screen}");
        assert_eq!(model.press(Key::Letter('y')), Wish::Tell(verb, 30));
    }
}

#[test]
fn letters_for_workers_do_nothing_elsewhere() {
    let mut model = model();
    for letter in "dsepl".chars() {
        assert_eq!(model.press(Key::Letter(letter)), Wish::Nothing);
        assert!(model.asks.is_none());
    }
}

#[test]
fn jobs_fit_in_60_columns() {
    let mut model = model();
    let screen = shown_at(60, &mut model);
    let heads = ["job", "name", "state", "finished", "failed", "took"];
    for words in heads.into_iter().chain(["newer", "running", "4/6", "q quit", "t retry"]) {
        assert!(screen.contains(words), "{words} is not in {screen}");
    }
    model.press(Key::Open);
    let (job, past, tasks) = (job(8, "newer"), JobHistory::default(), vec![task(1)]);
    model.hear(ViewNews::Job(Box::new(JobNews { job, past, tasks })));
    let screen = shown_at(60, &mut model);
    for words in ["3 done", "2 running", "1 failed", "2 to go", "exit code 3"] {
        assert!(screen.contains(words), "{words} is not in {screen}");
    }
}

#[test]
fn workers_fit_on_a_small_screen() {
    let mut model = among_workers();
    let screen = shown(&mut model);
    for words in ["node-017", "default", "native", "on probation", "127/128", "123456", "now"] {
        assert!(screen.contains(words), "{words} is not in {screen}");
    }
}

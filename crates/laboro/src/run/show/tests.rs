//! How speed is said.

use super::*;

#[test]
fn what_is_slow_is_told_by_the_minute() {
    let said = [412.3, 9.96, 0.5, 0.09].map(|rate| per_second(rate, " tasks"));
    assert_eq!(said, ["412 tasks/s", "10.0 tasks/s", "0.5 tasks/s", "5.4 tasks/min"]);
    assert_eq!(per_second(25.0, ""), "25/s");
}

/// Whoever can read the API can read the events of a run.
#[test]
fn an_end_is_told_in_the_words_of_the_api() {
    let end = EndView {
        started_ms: 0,
        printed: 0,
        name: "fit.3".to_owned(),
        label: "fit.3 seed=7".to_owned(),
        index: 3,
        attempt: 2,
        outcome: Outcome::Exit(4),
        message: None,
        again: true,
        truncated: false,
        used: Used { wall_us: 1, user_us: 2, system_us: 3, peak_kib: 4 },
        stderr_tail: Vec::new(),
    };
    let told = end.json();
    let outcome: api::Outcome = serde_json::from_value(told["outcome"].clone()).unwrap();
    assert_eq!(outcome, api::Outcome::from(Outcome::Exit(4)));
    let attempt = api::Attempt {
        attempt: 2,
        worker: 0,
        worker_name: Default::default(),
        started_ms: 0,
        ended_ms: Some(1),
        outcome: Some(outcome),
        used: Some(used(&end.used)),
        output_lost_bytes: 0,
        output_truncated_bytes: 0,
    };
    let attempt = serde_json::to_value(attempt).unwrap();
    for word in ["attempt", "outcome", "used"] {
        assert_eq!(told[word], attempt[word], "{word}");
    }
    let task: api::Task =
        serde_json::from_value(json!({"job": 1, "task": 3, "state": "failed"})).unwrap();
    let task = serde_json::to_value(task).unwrap();
    for word in ["job", "task"] {
        assert_eq!(told[word], task[word], "{word}");
    }
    assert!(task.get("name").is_some() && task.get("message").is_some());
}

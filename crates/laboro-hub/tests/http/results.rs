//! Calls that are submitted, and what tasks gave back, in bulk.

use crate::rig::{Rig, json_of};
use laboro_api::client::Download;
use laboro_core::{Outcome, Work};
use laboro_dialects::session::Stream;
use serde_json::{Value, json};

const CALLS: &str = r#"{"tasks": [{"call": {"base64": "AP8="}, "values": ["a", {"base64": "AAE="}, "c", "d"],
    "runner": {"command": ["python3", "-m", "serve"], "max_calls": 5}}]}"#;

async fn begin(rig: &Rig, path: &str) -> Download {
    rig.client("admin").download(path, None).await.unwrap()
}

/// The lines of an answer.
async fn read(mut download: Download) -> Vec<Value> {
    let mut bytes = Vec::new();
    while let Some(piece) = download.next().await.unwrap() {
        bytes.extend_from_slice(&piece);
    }
    let text = String::from_utf8(bytes).unwrap();
    text.lines().filter(|line| !line.is_empty()).map(json_of).collect()
}

async fn lines(rig: &Rig, path: &str) -> Vec<Value> {
    read(begin(rig, path).await).await
}

#[tokio::test]
async fn calls_go_to_workers_with_their_bytes_and_results_come_back() {
    let rig = Rig::start().await;
    let job = rig.submit(CALLS).await.job;
    let worker = rig.join("w", "default", 4).await;
    let grants = rig.take(&worker, 4).await;
    let Some(Work::Call(call)) = grants[0].work.as_deref() else { panic!("{grants:?}") };
    assert_eq!(call.payload[..], [0, 255]);
    assert_eq!(call.setting.runner.as_ref().unwrap().calls_max, Some(5));

    rig.print(job, 2, 1, Stream::Result, b"two").await;
    rig.print(job, 4, 1, Stream::Result, &[0, 255]).await;
    rig.print(job, 3, 1, Stream::Err, b"it broke").await;
    rig.end_output(job, 3, 1, Outcome::Signal(9)).await;
    rig.report(&worker, &grants[1..2], Outcome::Success).await;
    rig.report(&worker, &grants[3..4], Outcome::Success).await;
    rig.report(&worker, &grants[2..3], Outcome::Signal(9)).await;
    let path = format!("jobs/{job}/results");
    let two = json!({"task": 2, "state": "done", "result": "two"});
    let three = json!({"task": 3, "state": "failed", "message": "it broke",
        "outcome": {"kind": "signal", "code": 9}});
    let four = json!({"task": 4, "state": "done", "result": {"base64": "AP8="}});
    assert_eq!(lines(&rig, &path).await, [two.clone(), three.clone(), four.clone()]);
    assert_eq!(lines(&rig, &format!("{path}?from=3&to=3")).await, std::slice::from_ref(&three));
    assert_eq!(lines(&rig, &format!("{path}?from=2&to=4&follow=1")).await.len(), 3);

    // Whoever follows gets what has ended, then the rest as it ends, and then the end of the stream.
    let following = format!("{path}?follow=1&order=end");
    let ended = begin(&rig, &following).await;
    let ordered = begin(&rig, &format!("{path}?follow=1")).await;
    rig.print(job, 1, 1, Stream::Result, b"one").await;
    rig.report(&worker, &grants[..1], Outcome::Success).await;
    let one = json!({"task": 1, "state": "done", "result": "one"});
    assert_eq!(read(ordered).await, [&one, &two, &three, &four].map(Clone::clone));
    // One that has ended before the reader looks is among those by number.
    let ended = read(ended).await;
    assert!(ended.last() == Some(&one) || ended.first() == Some(&one), "{ended:?}");
    assert_eq!(ended.len(), 4);
    assert_eq!(lines(&rig, &following).await.len(), 4);
}

#[tokio::test]
async fn a_call_that_makes_no_sense_is_refused() {
    let rig = Rig::start().await;
    for (task, reason) in [
        (r#"{"call": "x"}"#, "needs a `runner`"),
        (r#"{"call": "x", "runner": {"command": []}}"#, "a `runner` is for a `call`"),
        (r#"{"command": "x", "runner": {"command": ["r"]}}"#, "a `runner` is for a `call`"),
        (r#"{"command": "x", "call": "y"}"#, "one of `command`, `script` and `call`"),
        (r#"{"call": "x", "stdin": "y", "runner": {"command": ["r"]}}"#, "`stdin` is for programs"),
    ] {
        let body = format!(r#"{{"tasks": [{task}]}}"#);
        let (_, answer) = rig.raw("POST /api/v1/jobs", "", &body).await;
        assert!(answer.contains(reason), "{task}: {answer}");
    }
    let large = "x".repeat((1 << 20) + 1);
    let body = format!(r#"{{"tasks": [{{"call": "{large}", "runner": {{"command": ["r"]}}}}]}}"#);
    let (_, answer) = rig.raw("POST /api/v1/jobs", "", &body).await;
    assert!(answer.contains("task_too_large"), "{answer}");
}

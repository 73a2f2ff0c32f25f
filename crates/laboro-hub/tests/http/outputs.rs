//! What tasks printed: whole, in part, as it comes.

use crate::rig::{Rig, json_of};
use laboro_api as api;
use laboro_api::client::{Client, Download};
use laboro_core::Outcome;
use laboro_dialects::session::Stream;
use std::time::Duration;

async fn all(mut download: Download) -> String {
    let mut bytes = Vec::new();
    while let Some(piece) = download.next().await.unwrap() {
        bytes.extend_from_slice(&piece);
    }
    String::from_utf8(bytes).unwrap()
}

async fn read(client: &Client, path: &str, from: Option<i64>) -> String {
    all(client.download(path, from).await.unwrap()).await
}

const OUTPUT: &str = "jobs/1/tasks/1/output";

#[tokio::test]
async fn output_is_read_by_stream_and_attempt() {
    let rig = Rig::start().await;
    rig.submit(r#"{"tasks":[{"name":"t","command":"true"}]}"#).await;
    let client = rig.client("watch");
    assert_eq!(read(&client, OUTPUT, None).await, "");
    rig.print(1, 1, 1, Stream::Out, b"first\n").await;
    rig.print(1, 1, 2, Stream::Out, b"one ").await;
    rig.print(1, 1, 2, Stream::Err, b"two ").await;
    rig.print(1, 1, 2, Stream::Out, b"three").await;
    assert_eq!(read(&client, OUTPUT, None).await, "one two three");
    assert_eq!(read(&client, "groups/default/tasks/t/output", None).await, "one two three");
    assert_eq!(read(&client, &format!("{OUTPUT}?stream=out"), None).await, "one three");
    assert_eq!(read(&client, &format!("{OUTPUT}?stream=err"), None).await, "two ");
    assert_eq!(read(&client, &format!("{OUTPUT}?attempt=1"), None).await, "first\n");
    let (head, _) = rig.raw(&format!("GET /api/v1/{OUTPUT}"), "", "").await;
    assert!(head.contains("laboro-attempt: 2") && head.contains("accept-ranges: bytes"), "{head}");
    for attempt in [0, 3, 7] {
        let path = format!("{OUTPUT}?attempt={attempt}");
        let missing = client.download(&path, None).await.unwrap_err();
        assert_eq!(missing.reason(), Some("no_such_attempt"), "{attempt}");
        assert!(missing.to_string().contains("it has 2"), "{missing}");
    }
    let missing = client.download("jobs/1/tasks/2/output", None).await.unwrap_err();
    assert_eq!(missing.reason(), Some("no_such_task"));
}

#[tokio::test]
async fn a_range_of_output_is_given_as_asked() {
    let rig = Rig::start().await;
    rig.submit(r#"{"tasks":[{"command":"true"}]}"#).await;
    for piece in ["01234", "56789"] {
        rig.print(1, 1, 1, Stream::Out, piece.as_bytes()).await;
    }
    let client = rig.client("watch");
    let tail = client.download(OUTPUT, Some(-3)).await.unwrap();
    assert_eq!(tail.content_range(), Some("bytes 7-9/10"));
    assert_eq!(all(tail).await, "789");
    assert_eq!(read(&client, OUTPUT, Some(4)).await, "456789");
    let request = format!("GET /api/v1/{OUTPUT}");
    let (head, body) = rig.raw(&request, "range: bytes=3-6\r\n", "").await;
    assert!(head.starts_with("HTTP/1.1 206") && head.contains("content-length: 4"), "{head}");
    assert_eq!(body, "3456");
    let (head, body) = rig.raw(&request, "range: bytes=10-\r\n", "").await;
    assert!(head.starts_with("HTTP/1.1 416") && body.contains("bad_range"), "{head}{body}");
    assert!(head.contains("content-range: bytes */"), "{head}");
    // Several ranges at once may be ignored, and are.
    let (head, _) = rig.raw(&request, "range: bytes=0-1,3-4\r\n", "").await;
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    rig.end_output(1, 1, 1, Outcome::Success).await;
    assert_eq!(read(&client, OUTPUT, Some(-1)).await, "9");
}

#[tokio::test]
async fn whoever_follows_sees_output_as_it_comes_until_the_attempt_ends() {
    let rig = Rig::start().await;
    rig.submit(r#"{"tasks":[{"command":"true"}]}"#).await;
    let client = rig.client("watch");
    let mut follow = client.download(&format!("{OUTPUT}?follow=1"), None).await.unwrap();
    for piece in ["a", "b", "c"] {
        rig.print(1, 1, 1, Stream::Out, piece.as_bytes()).await;
        let seen = tokio::time::timeout(Duration::from_secs(10), follow.next()).await;
        assert_eq!(seen.unwrap().unwrap().unwrap(), piece);
    }
    rig.end_output(1, 1, 1, Outcome::Success).await;
    assert_eq!(follow.next().await.unwrap(), None);
    assert_eq!(read(&client, &format!("{OUTPUT}?follow=1&from=1"), None).await, "bc");
}

#[tokio::test]
async fn whoever_follows_a_silent_task_is_let_go_when_it_ends() {
    let rig = Rig::start().await;
    rig.submit(r#"{"tasks":[{"command":"true"}]}"#).await;
    let client = rig.client("watch");
    let follow = client.download(&format!("{OUTPUT}?follow=1"), None).await.unwrap();
    let worker = rig.join("w", "default", 1).await;
    let grants = rig.take(&worker, 1).await;
    rig.report(&worker, &grants, Outcome::Success).await;
    let seen = tokio::time::timeout(Duration::from_secs(20), all(follow)).await;
    assert_eq!(seen.unwrap(), "");
}

#[tokio::test]
async fn a_large_output_is_read_whole() {
    let rig = Rig::start().await;
    rig.submit(r#"{"tasks":[{"command":"true"}]}"#).await;
    let line = "0123456789abcdef".repeat(4096);
    for _ in 0..64 {
        rig.print(1, 1, 1, Stream::Out, line.as_bytes()).await;
    }
    let client = rig.client("watch");
    assert_eq!(read(&client, OUTPUT, None).await.len(), 64 * line.len());
    assert_eq!(read(&client, OUTPUT, Some(-70_000)).await.len(), 70_000);
}

#[tokio::test]
async fn what_attempts_used_is_shown_also_of_elements_without_a_record() {
    let rig = Rig::start().await;
    rig.submit(r#"{"tasks":[{"command":"true","count":3},{"command":"true"}]}"#).await;
    let worker = rig.join("node-1", "default", 4).await;
    let grants = rig.take(&worker, 4).await;
    for task in [1, 2, 4] {
        rig.end_output(1, task, 1, Outcome::Success).await;
    }
    rig.report(&worker, &grants, Outcome::Success).await;
    let client = rig.client("watch");
    let page: api::Tasks = client.get("jobs/1/tasks").await.unwrap();
    let one: api::Task = client.get("jobs/1/tasks/2").await.unwrap();
    assert_eq!(one.attempts, page.tasks[1].attempts);
    let attempt = &one.attempts[0];
    assert_eq!((attempt.attempt, attempt.worker), (1, 0));
    assert_eq!(attempt.worker_name, "node-1");
    assert_eq!((attempt.started_ms, attempt.ended_ms), (7_500, Some(10_000)));
    assert_eq!(attempt.outcome.map(|outcome| outcome.kind), Some(api::OutcomeKind::Success));
    let used = attempt.used.unwrap();
    assert_eq!((used.wall_us, used.user_us, used.system_us), (2_500_000, 1_000, 500));
    assert_eq!(used.peak_memory_bytes, 2 << 20);
    assert_eq!(page.tasks[2].attempts, [], "nothing was told of this one");
    assert_eq!(page.tasks[3].attempts.len(), 1, "the hub's record and the store's are one");
    assert_eq!(page.tasks[3].attempts[0].used, Some(used));
}

#[tokio::test]
async fn attempts_are_counted_on_when_a_person_has_a_task_tried_again() {
    let rig = Rig::start().await;
    rig.submit(r#"{"tasks":[{"command":"true"}]}"#).await;
    let worker = rig.join("node-1", "default", 1).await;
    let client = rig.client("submit");
    let shown = async || {
        let task: api::Task = client.get("jobs/1/tasks/1").await.unwrap();
        let of = |one: &api::Attempt| (one.attempt, one.used.is_some());
        task.attempts.iter().map(of).collect::<Vec<_>>()
    };
    for (number, text, outcome) in [(1, "first", Outcome::Exit(1)), (2, "second", Outcome::Success)]
    {
        let grants = rig.take(&worker, 1).await;
        assert_eq!(grants[0].attempt, number);
        assert_eq!(shown().await.last(), Some(&(number, false)));
        rig.print(1, 1, number, Stream::Out, text.as_bytes()).await;
        rig.end_output(1, 1, number, outcome).await;
        rig.report(&worker, &grants, outcome).await;
        if number == 1 {
            assert_eq!(shown().await, [(1, true)]);
            let changed: api::Changed = client.post("jobs/1/retry", &json_of("{}")).await.unwrap();
            assert_eq!(changed.tasks, 1);
            assert_eq!(shown().await, [(1, true)]);
        }
    }
    assert_eq!(shown().await, [(1, true), (2, true)]);
    let output = |attempt: u16| format!("{OUTPUT}?attempt={attempt}");
    assert_eq!(read(&client, &output(1), None).await, "first");
    assert_eq!(read(&client, &output(2), None).await, "second");
    for attempt in [0, 3] {
        let refused = client.download(&output(attempt), None).await.unwrap_err();
        assert_eq!(refused.reason(), Some("no_such_attempt"));
    }
}

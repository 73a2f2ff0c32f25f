//! Submits of any size, and what becomes of those that break off.

use crate::rig::{Rig, eventually, json_of};
use bytes::Bytes;
use laboro_api::client::{ClientError, Upload};
use laboro_api::{self as api, JobState};
use std::fmt::Write;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

/// Sends a text as one stream.
async fn send(rig: &Rig, text: String) -> Result<api::Submitted, ClientError> {
    let (pieces, upload) = Upload::new();
    let feeding = tokio::spawn(async move {
        // Cut where no line ends.
        for piece in text.as_bytes().chunks(60_001) {
            if pieces.send(Bytes::copy_from_slice(piece)).await.is_err() {
                return;
            }
        }
    });
    let answer = rig.client("submit").upload("jobs/stream", upload).await;
    feeding.abort();
    answer
}

fn tasks(count: u32) -> String {
    (1..=count).fold(String::new(), |mut text, number| {
        writeln!(text, r#"{{"name":"t{number}","command":"echo {number}"}}"#).unwrap();
        text
    })
}

/// Says the beginning of a stream and hangs up in the middle of a line.
async fn break_off(rig: &Rig, text: &str) {
    let mut stream = TcpStream::connect(rig.address).await.unwrap();
    let head = "POST /api/v1/jobs/stream HTTP/1.1\r\nhost: hub\r\nauthorization: Bearer submit\r\n\
                transfer-encoding: chunked\r\n\r\n";
    let length = text.len();
    let said = format!("{head}{length:x}\r\n{text}\r\n1\r\n{{\r\n");
    stream.write_all(said.as_bytes()).await.unwrap();
    stream.flush().await.unwrap();
    stream.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_hundred_thousand_tasks_come_as_a_stream() {
    let rig = Rig::start().await;
    let text = format!("{{\"name\":\"big\"}}\n{}", tasks(100_000));
    let submitted = send(&rig, text).await.unwrap();
    assert_eq!(submitted, api::Submitted { job: 1, first: 1, count: 100_000, again: false });
    let job: api::Job = rig.client("watch").get("jobs/1").await.unwrap();
    assert_eq!((job.counts.ready, job.open, job.held), (100_000, false, false));
    let task: api::Task = rig.client("watch").get("groups/default/tasks/t99999").await.unwrap();
    assert_eq!(task.work.unwrap().command, Some(api::Line::Shell("echo 99999".into())));
}

#[tokio::test]
async fn the_last_line_needs_no_end_and_blank_ones_do_not_count() {
    let rig = Rig::start().await;
    let text = "{\"open\":true,\"held\":true}\n\n{\"command\":\"a\"}\r\n \n{\"command\":\"b\",\"count\":3}";
    let submitted = send(&rig, text.to_owned()).await.unwrap();
    assert_eq!(submitted.count, 4);
    let job: api::Job = rig.client("watch").get("jobs/1").await.unwrap();
    assert!(job.open && job.held);
}

#[tokio::test]
async fn a_stream_without_a_key_that_breaks_off_is_cancelled() {
    let rig = Rig::start().await;
    break_off(&rig, &format!("{{}}\n{}", tasks(12_000))).await;
    let client = rig.client("watch");
    eventually(async || {
        let job = client.get::<api::Job>("jobs/1").await;
        job.is_ok_and(|job| job.state == JobState::Cancelled)
    })
    .await;
    let job: api::Job = client.get("jobs/1").await.unwrap();
    assert_eq!((job.counts.done, job.counts.ready, job.open), (0, 0, false));
    assert!(job.counts.cancelled >= 5000, "{job:?}");
}

#[tokio::test]
async fn a_stream_with_a_key_goes_on_where_it_broke_off() {
    let rig = Rig::start().await;
    let head = "{\"key\":\"k\"}\n{\"name\":\"s\",\"count\":1000}\n";
    break_off(&rig, &format!("{head}{}", tasks(12_000))).await;
    let client = rig.client("watch");
    eventually(async || client.get::<api::Job>("jobs/1").await.is_ok_and(|job| job.tasks >= 5000))
        .await;
    let whole = format!("{head}{}", tasks(20_000));
    let submitted = send(&rig, whole.clone()).await.unwrap();
    assert_eq!(submitted, api::Submitted { job: 1, first: 1, count: 21_000, again: false });
    let job: api::Job = client.get("jobs/1").await.unwrap();
    assert_eq!((job.tasks, job.counts.ready, job.open), (21_000, 21_000, false));
    // Once more: it is all there.
    let again = send(&rig, whole).await.unwrap();
    assert_eq!(again, api::Submitted { job: 1, first: 1, count: 21_000, again: true });
}

#[tokio::test]
async fn whoever_sends_the_stream_again_takes_it_over() {
    let rig = Rig::start().await;
    let (pieces, upload) = Upload::new();
    let client = rig.client("submit");
    let first =
        tokio::spawn(async move { client.upload::<api::Submitted>("jobs/stream", upload).await });
    let beginning = format!("{{\"key\":\"k\"}}\n{}", tasks(6000));
    pieces.send(Bytes::from(beginning.clone())).await.unwrap();
    let client = rig.client("watch");
    eventually(async || client.get::<api::Job>("jobs/1").await.is_ok_and(|job| job.tasks >= 5000))
        .await;
    let submitted = send(&rig, beginning).await.unwrap();
    assert_eq!(submitted.count, 6000);
    drop(pieces);
    let refused = first.await.unwrap().unwrap_err();
    assert_eq!(refused.reason(), Some("taken_over"));
}

#[tokio::test]
async fn another_stream_with_the_same_key_is_refused() {
    let rig = Rig::start().await;
    break_off(&rig, &format!("{{\"key\":\"k\"}}\n{}", tasks(6000))).await;
    let client = rig.client("watch");
    eventually(async || client.get::<api::Job>("jobs/1").await.is_ok_and(|job| job.tasks >= 5000))
        .await;
    for other in [
        "{\"key\":\"k\"}\n{\"command\":\"a\"}\n",
        "{\"key\":\"k\"}\n{\"name\":\"n\",\"count\":70000}\n",
    ] {
        let refused = send(&rig, other.to_owned()).await.unwrap_err();
        assert_eq!(refused.reason(), Some("other_stream"), "{other}");
    }
}

#[tokio::test]
async fn a_mistake_is_told_with_its_line_and_leaves_nothing() {
    let rig = Rig::start().await;
    let many = tasks(5500);
    for (text, reason, words) in [
        (String::new(), "empty_stream", "no lines"),
        ("{\"nam\":1}\n".to_owned(), "unknown_field", "line 1"),
        ("{\"if_taken\":\"merge\"}\n".to_owned(), "bad_value", "if_taken"),
        ("{\"tasks\":[{}]}\n".to_owned(), "bad_value", "one per line"),
        (format!("{{\"key\":\"k\"}}\n{many}{{\"comand\":1}}\n"), "unknown_field", "line 5502"),
        (format!("{{\"key\":\"k\"}}\n{many}{{\"command\":[]}}\n"), "bad_task", "line 5502"),
        (format!("{{\"key\":\"k\"}}\n{many}{{\"name\":\"t1\"}}\n"), "name_taken", "up to 5502"),
        (format!("{{}}\n{many}{many}"), "name_taken", "t1"),
    ] {
        match send(&rig, text).await {
            Err(ClientError::Refused(problem)) => {
                assert_eq!(problem.reason, reason, "{problem:?}");
                assert!(problem.detail.contains(words), "{problem:?}");
            }
            other => panic!("{reason}: {other:?}"),
        }
    }
    let jobs: api::Jobs = rig.client("watch").get("jobs").await.unwrap();
    assert!(jobs.jobs.is_empty(), "{jobs:?}");
    // The key is free again.
    let right = send(&rig, format!("{{\"key\":\"k\"}}\n{many}")).await.unwrap();
    assert_eq!((right.count, right.again), (5500, false));
}

#[tokio::test]
async fn a_line_without_end_is_refused() {
    let limits = laboro_hub::http::Limits { line_bytes: 100_000, ..Default::default() };
    let rig = Rig::with(limits).await;
    let text = format!("{{}}\n{{\"command\":\"{}\"}}\n", "x".repeat(1_000_000));
    let refused = send(&rig, text).await.unwrap_err();
    assert_eq!(refused.reason(), Some("line_too_long"));
}

#[tokio::test]
async fn a_body_that_is_too_large_is_refused_with_what_to_do() {
    let limits = laboro_hub::http::Limits { body_bytes: 100_000, ..Default::default() };
    let rig = Rig::with(limits).await;
    let text = format!(r#"{{"tasks":[{{"command":"{}"}}]}}"#, "x".repeat(300_000));
    let refused = rig.client("submit").post::<_, api::Submitted>("jobs", &json_of(&text)).await;
    match refused {
        Err(ClientError::Refused(problem)) => {
            assert_eq!((problem.status, problem.reason.as_str()), (413, "too_large"));
            assert!(problem.hint.unwrap().contains("jobs/stream"));
        }
        other => panic!("{other:?}"),
    }
}

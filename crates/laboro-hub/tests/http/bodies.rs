//! Bodies that arrive at once: all of them have a bound, and it is the token that takes most of it that gives way.

use crate::rig::{Rig, json_of};
use laboro_hub::http::Limits;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Half of a body, by this token.
async fn half_sent(rig: &Rig, token: &str, bytes: usize) -> TcpStream {
    let mut stream = TcpStream::connect(rig.address).await.unwrap();
    let head = format!(
        "POST /api/v1/jobs HTTP/1.1\r\nhost: hub\r\nauthorization: Bearer {token}\r\n\
         connection: close\r\ncontent-length: {}\r\n\r\n",
        2 * bytes
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(&vec![b' '; bytes]).await.unwrap();
    stream
}

#[tokio::test]
async fn half_sent_bodies_give_way_to_who_sends_little() {
    let limits = Limits { body_bytes: 400_000, bodies_bytes: 1_000_000, ..Limits::default() };
    let rig = Rig::with(limits).await;
    let mut uploads = Vec::new();
    for _ in 0..20 {
        uploads.push(half_sent(&rig, "submit@hostile", 200_000).await);
    }
    for number in 0..20 {
        let body = json_of(&format!(r#"{{"tasks":[{{"name":"t{number}"}}]}}"#));
        let submitted: laboro_api::Submitted =
            rig.client("submit@innocent").post("jobs", &body).await.unwrap();
        assert_eq!(submitted.count, 1);
    }
    // Those that gave way are told so when they have said the rest.
    let mut refused = 0;
    for upload in &mut uploads {
        drop(upload.write_all(&vec![b' '; 199_998]).await);
        drop(upload.write_all(b"{}").await);
        let mut answer = String::new();
        drop(upload.read_to_string(&mut answer).await);
        let is_refused =
            answer.starts_with("HTTP/1.1 503") && answer.contains(r#""reason":"busy""#);
        assert!(is_refused || answer.starts_with("HTTP/1.1 200"), "{answer}");
        refused += usize::from(is_refused);
    }
    assert!(refused > 0, "there was no room for all of them");
}

#[tokio::test]
async fn the_first_task_too_many_ends_a_submit() {
    let rig = Rig::with(Limits { body_tasks: 3, body_after: 2, ..Limits::default() }).await;
    let (head, body) = rig
        .raw(
            "POST /api/v1/jobs",
            "",
            r#"{"tasks":[
        {"name":"a"},{"name":"b"},{"name":"c"},{"name":"d"},{"no":1}]}"#,
        )
        .await;
    assert!(head.starts_with("HTTP/1.1 422"), "{head}{body}");
    assert_eq!(json_of(&body)["detail"], "more than 3 tasks and arrays in one request");
    let (head, body) = rig
        .raw(
            "POST /api/v1/jobs",
            "",
            r#"{"tasks":[
        {"name":"a"},{"name":"b","after":["a"]},{"name":"c","after":["a","b"]}]}"#,
        )
        .await;
    assert!(head.starts_with("HTTP/1.1 422"), "{head}{body}");
    assert_eq!(json_of(&body)["detail"], "more than 2 predecessors in one request");
    rig.submit(r#"{"tasks":[{"name":"a"},{"name":"b"},{"name":"c","after":["a","b"]}]}"#).await;
    // In a stream there is no such bound.
    let lines = "{}\n{\"name\":\"d\"}\n{\"name\":\"e\"}\n{\"name\":\"f\"}\n{\"name\":\"g\"}\n";
    let (head, body) = rig.raw("POST /api/v1/jobs/stream", "", lines).await;
    assert!(head.starts_with("HTTP/1.1 200"), "{head}{body}");
}

#[tokio::test]
async fn settings_after_the_tasks_count_as_those_before() {
    let rig = Rig::start().await;
    let body = r#"{"tasks":[{"name":"a","command":"x"}],"group":"g","defaults":{"env":{"A":"1"}}}"#;
    let job = rig.submit(body).await.job;
    let task: serde_json::Value =
        rig.client("admin").get(&format!("jobs/{job}/tasks/1")).await.unwrap();
    assert_eq!(task["work"]["env"]["A"], "1");
}

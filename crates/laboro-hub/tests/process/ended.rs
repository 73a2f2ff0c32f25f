//! Those whose token ends while the hub has an answer or a body of theirs under way.

use crate::rig::*;
use bytes::Bytes;
use hyper_util::rt::{TokioExecutor, TokioIo};
use laboro_api::access::Role;
use laboro_api::client::{Client, ClientError, EventStream, Upload};
use laboro_api::{self as api, JobState};
use laboro_hub::process::{RunningHub, start};
use laboro_hub::security::{NewToken, TokenBook};
use laboro_net::Clock;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tempfile::TempDir;
use tokio::sync::mpsc::Sender;

/// Looks often whether tokens are still good.
fn watchful_hub(dir: &TempDir) -> RunningHub {
    let mut settings = settings(dir);
    settings.limits.admission_ms = 50;
    start(&settings).unwrap()
}

fn guest(hub: &RunningHub, dir: &TempDir, role: Role, expires_ms: Option<u64>) -> Client {
    let new = NewToken { name: Some("guest".into()), role, owner: None, group: None, expires_ms };
    let (secret, _) = TokenBook::of(dir.path()).add(new, Clock::start().now()).unwrap();
    client(hub, &secret)
}

fn revoke(dir: &TempDir) {
    TokenBook::of(dir.path()).revoke("guest").unwrap();
}

async fn in_time<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(30), what).await.expect("it ended in time")
}

/// So many watch events or wait for some.
async fn has_viewers(hub: &RunningHub, count: usize) -> bool {
    let mut metrics = client(hub, &hub.access.token).download("metrics", None).await.unwrap();
    let mut text = Vec::new();
    while let Some(piece) = metrics.next().await.unwrap() {
        text.extend_from_slice(&piece);
    }
    String::from_utf8_lossy(&text).contains(&format!("laboro_event_viewers {count}\n"))
}

/// An answer that stays open ends, and not as if all had been said.
async fn is_cut_off(mut events: EventStream) {
    let told = in_time(async {
        loop {
            if let Err(told) = events.next().await {
                return told;
            }
        }
    });
    let told = told.await;
    assert!(matches!(told, ClientError::Broken { .. }), "{told}");
}

#[test]
fn a_revoked_token_ends_its_events_its_followed_output_and_its_waits() {
    let dir = dir();
    let hub = watchful_hub(&dir);
    let watch = guest(&hub, &dir, Role::Watch, None);
    visit(async {
        submit(&hub.handle, 1).await;
        let events = watch.events("events", None).await.unwrap();
        let mut output = watch.download("jobs/1/tasks/1/output?follow=1", None).await.unwrap();
        let waiting = watch.get_within::<api::Waited>("wait?jobs=1", Duration::from_secs(60));
        let revoking = async {
            eventually(async || has_viewers(&hub, 2).await).await;
            revoke(&dir);
        };
        let (waited, ()) = tokio::join!(in_time(waiting), revoking);
        assert_eq!(waited.unwrap_err().reason(), Some("token_ended"));
        is_cut_off(events).await;
        let told = in_time(output.next()).await.unwrap_err();
        assert!(matches!(told, ClientError::Broken { .. }), "{told}");
    });
    stop(hub);
}

#[test]
fn a_token_that_runs_out_ends_its_events() {
    let dir = dir();
    let hub = watchful_hub(&dir);
    let watch = guest(&hub, &dir, Role::Watch, Some(1500));
    visit(async { is_cut_off(watch.events("events", None).await.unwrap()).await });
    stop(hub);
}

async fn say(pieces: &Sender<Bytes>, text: &'static str) {
    pieces.send(Bytes::from_static(text.as_bytes())).await.unwrap();
}

async fn jobs(hub: &RunningHub) -> Vec<api::Job> {
    client(hub, &hub.access.token).get::<api::Jobs>("jobs").await.unwrap().jobs
}

#[test]
fn an_upload_whose_token_ends_is_refused_and_makes_no_job() {
    let dir = dir();
    let hub = watchful_hub(&dir);
    let submitter = guest(&hub, &dir, Role::Submit, None);
    visit(async {
        let (stream, upload) = Upload::new();
        let streamed = submitter.upload::<api::Submitted>("jobs/stream", upload);
        let (body, upload) = Upload::new();
        let posted = submitter.upload::<api::Submitted>("jobs", upload);
        let saying = async {
            say(&body, "{\"tasks\":[").await;
            say(&stream, "{\"name\":\"late\"}\n{\"command\":\"true\"}\n").await;
            eventually(async || jobs(&hub).await.len() == 1).await;
            revoke(&dir);
        };
        // Neither says its end: they are refused while they are silent.
        let (streamed, posted, ()) =
            in_time(async { tokio::join!(streamed, posted, saying) }).await;
        assert_eq!(streamed.unwrap_err().reason(), Some("token_ended"));
        assert_eq!(posted.unwrap_err().reason(), Some("token_ended"));
        assert!(jobs(&hub).await.is_empty(), "nothing was submitted");
    });
    stop(hub);
}

/// The first line of a stream, and then silence.
struct Half(Option<Bytes>);

impl hyper::body::Body for Half {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<hyper::body::Frame<Bytes>, Self::Error>>> {
        match self.0.take() {
            Some(line) => Poll::Ready(Some(Ok(hyper::body::Frame::data(line)))),
            None => Poll::Pending,
        }
    }
}

#[test]
fn an_upload_over_http_2_ends_with_its_token_too() {
    let dir = dir();
    let hub = watchful_hub(&dir);
    let token = guest(&hub, &dir, Role::Submit, None).target().token.clone().unwrap();
    visit(async {
        let stream = connect_to(&hub.access, hub.access.http.as_ref().unwrap()).await.unwrap();
        let (executor, stream) = (TokioExecutor::new(), TokioIo::new(stream));
        let (mut sender, connection) =
            hyper::client::conn::http2::handshake(executor, stream).await.unwrap();
        let connection = tokio::spawn(connection);
        let request = hyper::Request::post("https://hub/api/v1/jobs/stream")
            .header("authorization", format!("Bearer {token}"))
            .body(Half(Some(Bytes::from_static(b"{}\n"))));
        let answered = sender.send_request(request.unwrap());
        let revoking = async {
            eventually(async || jobs(&hub).await.len() == 1).await;
            revoke(&dir);
        };
        let (answer, ()) = in_time(async { tokio::join!(answered, revoking) }).await;
        assert_eq!(answer.unwrap().status().as_u16(), 401);
        assert!(jobs(&hub).await.is_empty(), "nothing was submitted");
        connection.abort();
    });
    stop(hub);
}

#[test]
fn an_upload_that_ends_right_after_its_token_is_refused_too() {
    let dir = dir();
    let mut settings = settings(&dir);
    settings.limits.admission_ms = 3_600_000;
    let hub = start(&settings).unwrap();
    let submitter = guest(&hub, &dir, Role::Submit, None);
    visit(async {
        let (stream, upload) = Upload::new();
        let streamed = submitter.upload::<api::Submitted>("jobs/stream", upload);
        let saying = async {
            say(&stream, "{}\n{\"command\":\"true\"}\n").await;
            eventually(async || jobs(&hub).await.len() == 1).await;
            revoke(&dir);
            say(&stream, "{\"command\":\"true\"}\n").await;
            drop(stream);
        };
        let (streamed, ()) = in_time(async { tokio::join!(streamed, saying) }).await;
        assert_eq!(streamed.unwrap_err().reason(), Some("token_ended"));
        assert!(jobs(&hub).await.is_empty(), "nothing was submitted");
    });
    stop(hub);
}

#[test]
fn an_upload_with_a_key_goes_on_with_another_token() {
    let dir = dir();
    let hub = watchful_hub(&dir);
    let submitter = guest(&hub, &dir, Role::Submit, None);
    visit(async {
        let (stream, upload) = Upload::new();
        let streamed = submitter.upload::<api::Submitted>("jobs/stream", upload);
        let saying = async {
            say(&stream, "{\"key\":\"k\"}\n{\"command\":\"true\"}\n").await;
            eventually(async || jobs(&hub).await.len() == 1).await;
            revoke(&dir);
        };
        let (streamed, ()) = in_time(async { tokio::join!(streamed, saying) }).await;
        assert_eq!(streamed.unwrap_err().reason(), Some("token_ended"));
        let left = jobs(&hub).await;
        assert!(left[0].open && left[0].held, "nothing of it runs: {left:?}");
        let (stream, upload) = Upload::new();
        say(&stream, "{\"key\":\"k\"}\n{\"command\":\"true\"}\n{\"command\":\"true\"}\n").await;
        drop(stream);
        // Of the same owner: a key is not for others.
        let owner = guest(&hub, &dir, Role::Submit, None);
        let whole = owner.upload::<api::Submitted>("jobs/stream", upload).await.unwrap();
        assert_eq!((whole.job, whole.count), (left[0].job, 2));
        assert_ne!(jobs(&hub).await[0].state, JobState::Held);
    });
    stop(hub);
}

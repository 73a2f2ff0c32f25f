//! Connections: TLS, limits, slow peers, versions.

use crate::rig::{Rig, eventually};
use bytes::Bytes;
use laboro_api as api;
use laboro_api::client::{Client, ClientError, Target};
use laboro_dialects::session::Stream;
use laboro_hub::http::Limits;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

#[tokio::test]
async fn every_answer_says_its_version() {
    let rig = Rig::start().await;
    for request in ["GET /api/v1/version", "GET /api/v1/jobs/9", "GET /nowhere", "PUT /api/v1/jobs"]
    {
        let (head, _) = rig.raw(request, "", "").await;
        assert!(head.contains(&format!("laboro-version: {}", api::VERSION)), "{head}");
        assert!(head.contains("laboro-api: 1."), "{head}");
    }
}

#[tokio::test]
async fn what_is_not_there_is_told_as_a_problem() {
    let rig = Rig::start().await;
    let (head, body) = rig.raw("GET /api/v2/jobs", "", "").await;
    assert!(head.starts_with("HTTP/1.1 404") && body.contains("no_such_path"), "{head}{body}");
    let (head, body) = rig.raw("PUT /api/v1/jobs", "", "").await;
    assert!(head.starts_with("HTTP/1.1 405") && body.contains("no_such_method"), "{head}{body}");
}

#[tokio::test]
async fn one_connection_serves_many_requests() {
    let rig = Rig::start().await;
    let client = rig.client("watch");
    for _ in 0..50 {
        client.get::<api::Jobs>("jobs").await.unwrap();
    }
    assert_eq!(rig.stats.connections_total(), 1);
}

#[tokio::test]
async fn http_2_is_spoken_too() {
    let rig = Rig::start().await;
    let stream = hyper_util::rt::TokioIo::new(TcpStream::connect(rig.address).await.unwrap());
    let executor = hyper_util::rt::TokioExecutor::new();
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(executor, stream).await.unwrap();
    tokio::spawn(connection);
    let request = hyper::Request::get("http://hub/api/v1/jobs")
        .header("authorization", "Bearer watch")
        .body(String::new())
        .unwrap();
    let response = sender.send_request(request).await.unwrap();
    assert_eq!((response.status().as_u16(), response.version()), (200, hyper::Version::HTTP_2));
}

/// A body in pieces that counts those nobody has taken yet.
struct Pieces(Arc<AtomicUsize>);

impl hyper::body::Body for Pieces {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<hyper::body::Frame<Bytes>, Self::Error>>> {
        let left =
            self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        let piece = hyper::body::Frame::data(Bytes::from_static(&[b' '; 16 * 1024]));
        Poll::Ready(left.ok().map(|_| Ok(piece)))
    }
}

#[tokio::test]
async fn over_http_2_an_answer_waits_for_the_end_of_the_body() {
    let rig = Rig::start().await;
    let stream = hyper_util::rt::TokioIo::new(TcpStream::connect(rig.address).await.unwrap());
    let executor = hyper_util::rt::TokioExecutor::new();
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(executor, stream).await.unwrap();
    tokio::spawn(connection);
    // More than may be on its way unread, to one who is refused before anything is read.
    let left = Arc::new(AtomicUsize::new(200));
    let request = hyper::Request::post("http://hub/api/v1/jobs").body(Pieces(left.clone()));
    let response = sender.send_request(request.unwrap()).await.unwrap();
    assert_eq!(response.status().as_u16(), 401);
    assert_eq!(left.load(Ordering::SeqCst), 0, "the body was cut off");
}

#[tokio::test]
async fn a_connection_that_the_hub_closed_is_opened_anew() {
    let limits = Limits { head: Duration::from_millis(50), ..Limits::default() };
    let rig = Rig::with(limits).await;
    let client = rig.client("watch");
    client.get::<api::Jobs>("jobs").await.unwrap();
    eventually(async || rig.stats.connections() == 0).await;
    client.get::<api::Jobs>("jobs").await.unwrap();
    assert_eq!(rig.stats.connections_total(), 2);
}

#[tokio::test]
async fn a_head_that_never_ends_or_is_too_large_is_cut_off() {
    let limits = Limits { head: Duration::from_millis(200), ..Limits::default() };
    let rig = Rig::with(limits).await;
    let mut slow = TcpStream::connect(rig.address).await.unwrap();
    slow.write_all(b"GET /api/v1/version HTTP/1.1\r\nx: ").await.unwrap();
    let mut rest = Vec::new();
    slow.read_to_end(&mut rest).await.unwrap();
    let mut large = TcpStream::connect(rig.address).await.unwrap();
    let head = format!("GET /api/v1/version HTTP/1.1\r\nx: {}\r\n\r\n", "x".repeat(200_000));
    // The hub may hang up before it has all of it.
    drop(large.write_all(head.as_bytes()).await);
    let mut answer = Vec::new();
    drop(large.read_to_end(&mut answer).await);
    assert!(!answer.starts_with(b"HTTP/1.1 200"));
}

/// An end that comes, and not after minutes.
async fn in_time<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(30), what).await.expect("it ended in time")
}

#[tokio::test]
async fn whoever_says_nothing_or_half_a_word_is_cut_off() {
    let (head, stall) = (Duration::from_millis(200), Duration::from_millis(200));
    let rig = Rig::with(Limits { head, stall, ..Limits::default() }).await;
    for word in ["", "P", "PRI * HT", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "GET /"] {
        let mut stream = TcpStream::connect(rig.address).await.unwrap();
        stream.write_all(word.as_bytes()).await.unwrap();
        let mut rest = Vec::new();
        // Closed in order or not: it is closed.
        drop(in_time(stream.read_to_end(&mut rest)).await);
    }
    eventually(async || rig.stats.connections() == 0).await;
}

#[tokio::test]
async fn a_connection_of_http_2_that_asks_nothing_more_is_closed() {
    let rig = Rig::with(Limits { head: Duration::from_millis(300), ..Limits::default() }).await;
    let stream = hyper_util::rt::TokioIo::new(TcpStream::connect(rig.address).await.unwrap());
    let executor = hyper_util::rt::TokioExecutor::new();
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(executor, stream).await.unwrap();
    // It answers every sign of life.
    let connection = tokio::spawn(connection);
    let request = hyper::Request::get("http://hub/api/v1/version").body(String::new()).unwrap();
    assert_eq!(sender.send_request(request).await.unwrap().status().as_u16(), 200);
    in_time(connection).await.unwrap().unwrap();
    eventually(async || rig.stats.connections() == 0).await;
}

#[tokio::test]
async fn an_answer_may_take_longer_than_a_head() {
    let rig = Rig::with(Limits { head: Duration::from_millis(300), ..Limits::default() }).await;
    rig.submit(r#"{"tasks":[{"command":"true"}]}"#).await;
    let longer = Duration::from_secs(30);
    let waited = rig.client("watch").get_within("wait?jobs=1&timeout_ms=1000", longer).await;
    let waited: api::Waited = waited.unwrap();
    assert!(!waited.finished);
}

#[tokio::test]
async fn silent_connections_give_way_to_new_ones_and_busy_ones_stay() {
    let limits = Limits { connections_per_address: 2, ..Limits::default() };
    let rig = Rig::with(limits).await;
    rig.submit(r#"{"tasks":[{"command":"true"}]}"#).await;
    eventually(async || rig.stats.connections() == 0).await;
    let mut silent = TcpStream::connect(rig.address).await.unwrap();
    eventually(async || rig.stats.connections() == 1).await;
    let waits = "GET /api/v1/wait?jobs=1&timeout_ms=60000 HTTP/1.1\r\nhost: hub\r\n\
                 authorization: Bearer watch\r\n\r\n";
    let busy = async || {
        let mut busy = TcpStream::connect(rig.address).await.unwrap();
        busy.write_all(waits.as_bytes()).await.unwrap();
        busy
    };
    let _busy = busy().await;
    eventually(async || rig.stats.connections() == 2).await;
    // There is no room for a third one but that of the silent one.
    rig.client("watch").get::<api::Jobs>("jobs").await.unwrap();
    assert_eq!(silent.read(&mut [0]).await.unwrap_or(0), 0, "it was closed");
    assert_eq!(rig.stats.refused(), 1);
    eventually(async || rig.stats.connections() == 1).await;
    let _other = busy().await;
    eventually(async || rig.stats.connections() == 2).await;
    let refused = async || rig.client("watch").get::<api::Jobs>("jobs").await.is_err();
    eventually(refused).await;
    assert_eq!(rig.stats.connections(), 2, "requests under way are not ended for others");
}

#[tokio::test]
async fn a_peer_that_does_not_read_is_cut_off_and_holds_up_nobody() {
    let limits = Limits { stall: Duration::from_millis(300), ..Limits::default() };
    let rig = Rig::with(limits).await;
    rig.submit(r#"{"tasks":[{"command":"true"}]}"#).await;
    for _ in 0..48 {
        rig.print(1, 1, 1, Stream::Out, &vec![b'x'; 1 << 20]).await;
    }
    let follower = "GET /api/v1/jobs/1/tasks/1/output?follow=1 HTTP/1.1\r\nhost: hub\r\n\
                    authorization: Bearer watch\r\n\r\n";
    let mut deaf_follower = TcpStream::connect(rig.address).await.unwrap();
    deaf_follower.write_all(follower.as_bytes()).await.unwrap();
    let mut deaf = TcpStream::connect(rig.address).await.unwrap();
    let request = "GET /api/v1/jobs/1/tasks/1/output HTTP/1.1\r\nhost: hub\r\n\
                   authorization: Bearer watch\r\n\r\n";
    deaf.write_all(request.as_bytes()).await.unwrap();
    eventually(async || rig.stats.connections_total() >= 3).await;
    let client = rig.client("watch");
    client.get::<api::Jobs>("jobs").await.unwrap();
    drop(client);
    eventually(async || rig.stats.connections() == 0).await;
    let mut got = Vec::new();
    drop(deaf.read_to_end(&mut got).await);
    assert!(got.len() < 48 << 20, "{}", got.len());
}

#[tokio::test]
async fn tls_with_a_pinned_certificate_is_spoken_and_others_are_not_trusted() {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let made = || rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let (ours, other) = (made(), made());
    let key = rustls::pki_types::PrivateKeyDer::try_from(ours.signing_key.serialize_der()).unwrap();
    let server = rustls::ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![ours.cert.der().clone()], key)
        .unwrap();
    let trusting = |certificate: &rcgen::Certificate| {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(certificate.der().clone()).unwrap();
        let config = rustls::ClientConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        Some(Arc::new(config))
    };
    let port = Rig::start_tls(Arc::new(server)).await;
    let target = Target::new("localhost", port);
    let client = Client::new(Target { tls: trusting(&ours.cert), ..target.clone() });
    let version: api::Version = client.get("version").await.unwrap();
    assert_eq!(version.api, api::API_VERSION);
    let client = Client::new(Target { tls: trusting(&other.cert), ..target.clone() });
    let error = client.get::<api::Version>("version").await.unwrap_err();
    assert!(matches!(error, ClientError::Stranger { .. }), "{error}");
    let plain = Client::new(target).get::<api::Version>("version").await.unwrap_err();
    assert!(matches!(plain, ClientError::Broken { .. }), "{plain}");
}

#[tokio::test]
async fn metrics_count_tasks_workers_doors_and_requests() {
    let rig = Rig::start().await;
    rig.submit(r#"{"group":"a\"b","tasks":[{"command":"true","count":7}]}"#).await;
    rig.join("w", "default", 3).await;
    let (_, body) = rig.raw("GET /api/v1/metrics", "", "").await;
    for line in [
        r#"laboro_tasks{group="a\"b",state="ready"} 7"#,
        r#"laboro_workers{group="default",connected="true"} 1"#,
        r#"laboro_worker_slots{group="default",connected="true"} 3"#,
        r#"laboro_door_malformed_total{dialect="dwork",address="127.0.0.1:6125"} 3"#,
        r#"laboro_http_requests_total{method="POST",route="/api/v1/jobs",status="200"} 1"#,
        "laboro_http_connections 1",
        "# TYPE laboro_door_received_bytes counter",
        "laboro_attempts_started_total 0",
        "laboro_output_bytes_lost_total 0",
        "laboro_inbox_turns_max 65536",
        "laboro_start_time_seconds ",
        "# EOF",
    ] {
        assert!(body.contains(line), "{line}\n{body}");
    }
    let mut bound = rig.client("watch@default").download("metrics", None).await.unwrap();
    let text = bound.next().await.unwrap().unwrap();
    let text = String::from_utf8_lossy(&text);
    assert!(!text.contains("a\\\"b") && !text.contains("door_malformed"), "{text}");
}

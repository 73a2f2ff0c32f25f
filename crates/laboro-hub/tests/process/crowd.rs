//! Many at once, and those who have no business here.

use crate::rig::*;
use laboro_dialects::fuq2::WorkerSettings;
use laboro_hub::config::Settings;
use laboro_hub::process::start;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

#[test]
fn a_thousand_idle_workers_hold_up_nobody() {
    let dir = dir();
    let hub = hub(&dir);
    visit(async {
        let mut idle = Vec::new();
        for number in 0..1000 {
            // A test does not show signs of life, and a thousand handshakes take their time.
            let settings = WorkerSettings {
                period_ms: 600_000,
                ..WorkerSettings::new(format!("idle{number}"), 1)
            };
            let mut worker = Worker::with(&hub.access, &hub.access.token, settings).await;
            worker.is_welcome().await;
            idle.push(worker);
        }
        assert_eq!(hub.doors[0].stats.counts().connections, 1000);
        let job = submit(&hub.handle, 1000).await;
        for worker in &mut idle {
            let task = worker.task().await;
            worker.finish(&task, "").await;
        }
        assert_eq!(done(&hub.handle, job).await, 1000);
    });
    stop(hub);
}

#[test]
fn those_beyond_the_limit_and_those_not_on_the_list_are_turned_away() {
    let dir = dir();
    let mut settings = settings(&dir);
    settings.limits.connections_per_door = 2;
    settings.door.push("fuq2=127.0.0.1:0,allow=10.0.0.0/8".parse().unwrap());
    let hub = start(&settings).unwrap();
    visit(async {
        let mut first = Worker::connect(&hub.access, &hub.access.token, "a").await;
        let mut second = Worker::connect(&hub.access, &hub.access.token, "b").await;
        first.is_welcome().await;
        second.is_welcome().await;
        assert!(connect(&hub.access).await.is_err());
        let mut stranger = TcpStream::connect(hub.doors[1].address).await.unwrap();
        assert!(matches!(stranger.read(&mut [0; 10]).await, Ok(0) | Err(_)));
    });
    assert_eq!(hub.doors[0].stats.counts().refused, 1);
    assert_eq!(hub.doors[1].stats.counts().refused, 1);
    stop(hub);
}

#[test]
fn whoever_speaks_no_tls_or_nothing_at_all_is_counted_and_gone() {
    let dir = dir();
    let mut settings: Settings = settings(&dir);
    settings.limits.handshake_ms = 200;
    let hub = start(&settings).unwrap();
    visit(async {
        let mut browser = TcpStream::connect(hub.native.unwrap()).await.unwrap();
        browser.write_all(b"GET / HTTP/1.1\r\nHost: hub\r\n\r\n").await.unwrap();
        let mut silent = TcpStream::connect(hub.native.unwrap()).await.unwrap();
        for stream in [&mut browser, &mut silent] {
            let mut heard = Vec::new();
            let _ = stream.read_to_end(&mut heard).await;
        }
    });
    let stats = hub.doors[0].stats.clone();
    stop(hub);
    let counts = stats.counts();
    assert_eq!((counts.malformed, counts.silent), (1, 1), "{counts:?}");
}

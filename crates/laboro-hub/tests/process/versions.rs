//! Clients and workers of other versions: what they say is kept as data, and goes on being understood.

use crate::rig::*;
use laboro_api as api;
use laboro_api::access::client_config;
use laboro_hub::process::RunningHub;
use laboro_journal::outputs::{Key, Streams};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::PathBuf;
use std::sync::Arc;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

fn data(name: &str) -> String {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../spec/golden/native");
    fs::read_to_string(root.join(name)).unwrap()
}

/// A hub that knows the token of the recorded clients.
fn frozen_hub() -> (TempDir, RunningHub, String) {
    let parent = dir();
    let place = parent.path().join("hub");
    fs::DirBuilder::new().mode(0o700).create(&place).unwrap();
    let tokens = data("tokens.toml");
    let mut options = fs::OpenOptions::new();
    let file = options.write(true).create_new(true).mode(0o600).open(place.join("tokens.toml"));
    std::io::Write::write_all(&mut file.unwrap(), tokens.as_bytes()).unwrap();
    let settings = laboro_hub::config::Settings { dir: place, ..settings(&parent) };
    let hub = laboro_hub::process::start(&settings).unwrap();
    let token = tokens.split_once("show: ").unwrap().1.lines().next().unwrap().to_owned();
    (parent, hub, token)
}

/// Sends a request as it stands, and gives status and body.
async fn ask(hub: &RunningHub, token: &str, request: &str) -> (u16, Vec<u8>) {
    let mut words = request.splitn(3, ' ');
    let (method, path) = (words.next().unwrap(), words.next().unwrap());
    let body = words.next().unwrap_or_default();
    let config = Arc::new(client_config(&hub.access).unwrap());
    let stream = TcpStream::connect(hub.http.unwrap()).await.unwrap();
    let name = rustls::pki_types::ServerName::try_from("hub.invalid").unwrap();
    let mut stream = TlsConnector::from(config).connect(name, stream).await.unwrap();
    let length = body.len();
    let text = format!(
        "{method} {path} HTTP/1.1\r\nhost: hub\r\nauthorization: Bearer {token}\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    stream.write_all(text.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    let end = answer.windows(4).position(|window| window == b"\r\n\r\n").unwrap();
    let head = String::from_utf8_lossy(&answer[..end]).into_owned();
    assert!(head.contains("laboro-version"), "every answer says the version: {head}");
    (head.split(' ').nth(1).unwrap().parse().unwrap(), answer[end + 4..].to_vec())
}

#[test]
fn an_old_client_finds_all_that_it_looks_for() {
    let (_dir, hub, token) = frozen_hub();
    visit(async {
        let script = data("client-0.1.http");
        let mut request = "";
        for line in script.lines() {
            if let Some(said) = line.strip_prefix("> ") {
                request = said;
            } else if let Some(wanted) = line.strip_prefix("< ") {
                let (status, body) = ask(&hub, &token, request).await;
                let text = String::from_utf8_lossy(&body);
                let mut wanted = wanted.split(' ');
                assert_eq!(wanted.next(), Some(status.to_string().as_str()), "{request}: {text}");
                let answer: Value = serde_json::from_slice(&body).unwrap();
                for key in wanted {
                    let pointer = format!("/{}", key.replace('.', "/"));
                    assert!(answer.pointer(&pointer).is_some(), "{request}: no {key} in {text}");
                }
            }
        }
    });
    stop(hub);
}

/// Says what was recorded, each message when the one before it was answered.
async fn replay(hub: &RunningHub, script: &str) {
    let mut stream = connect(&hub.access).await.unwrap();
    let lines = script.lines().filter(|line| !line.starts_with('#'));
    for (at, line) in lines.enumerate() {
        let pairs = (0..line.len()).step_by(2).map(|at| u8::from_str_radix(&line[at..at + 2], 16));
        let message: Vec<u8> = pairs.map(Result::unwrap).collect();
        stream.write_all(&message).await.unwrap();
        stream.flush().await.unwrap();
        // An OK to the HELLO and then the JOB; to the others an OK, and to an OK nothing.
        let answers: &[u8] = match at {
            0 => &[1, 3],
            1 => &[],
            _ => &[1],
        };
        for &kind in answers {
            let mut header = [0; 16];
            stream.read_exact(&mut header).await.unwrap();
            assert_eq!((header[..2].to_vec(), header[2]), (vec![0x47, 0xC0], kind), "message {at}");
            if kind == 3 {
                let length = u32::from_le_bytes(header[12..].try_into().unwrap());
                let mut body = vec![0; length as usize];
                stream.read_exact(&mut body).await.unwrap();
            }
        }
    }
}

#[test]
fn workers_of_an_older_and_a_newer_version_do_their_work() {
    for (script, used) in [("worker-0.1.hex", None), ("worker-newer.hex", Some(1500))] {
        let (_dir, hub, token) = frozen_hub();
        visit(async {
            let job = submit(&hub.handle, 1).await;
            replay(&hub, &data(script)).await;
            assert_eq!(done(&hub.handle, job).await, 1, "{script}");
            let key = Key { job: job.0, index: 1, attempt: 1 };
            let mut cursor = hub.outputs.cursor(key, Streams::Both).await.unwrap();
            assert_eq!(cursor.next().await.unwrap(), "frozen words\n");
            let (_, body) = ask(&hub, &token, "GET /api/v1/jobs/1/tasks/1").await;
            let task: api::Task = serde_json::from_slice(&body).unwrap();
            let wall_us = task.attempts[0].used.map(|used| used.wall_us).filter(|&us| us > 0);
            assert_eq!(
                (task.attempts[0].worker_name.to_string().as_str(), wall_us),
                ("frozen", used)
            );
        });
        stop(hub);
    }
}

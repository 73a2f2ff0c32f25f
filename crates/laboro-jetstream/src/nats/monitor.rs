//! Asks the servers' monitoring how they are set up: a plain connection cannot see whether a server writes to
//! disk before it acknowledges.

use super::NatsError;
use super::connect::is_new_enough;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

const PATIENCE: Duration = Duration::from_secs(3);
const ANSWER_BYTES_MAX: u64 = 4 << 20;

/// Refuses if any server that answers is not safe, or none answers. One that does not may be down, and a hub has
/// to be able to start then too.
pub(super) async fn check(monitors: &[String]) -> Result<(), NatsError> {
    let mut reason = String::new();
    let mut is_known = false;
    for monitor in monitors {
        match timeout(PATIENCE, ask(monitor)).await {
            Ok(Ok(server)) => {
                is_known = true;
                server.judge()?;
            }
            Ok(Err(error)) => reason = format!(" ({monitor}: {error})"),
            Err(_) => reason = format!(" ({monitor}: no answer)"),
        }
    }
    match is_known {
        true if reason.is_empty() => Ok(()),
        true => {
            tracing::warn!("one NATS server could not be asked how it is set up{reason}");
            Ok(())
        }
        false => Err(NatsError::Unknown { reason }),
    }
}

#[derive(serde::Deserialize)]
struct Server {
    server_name: String,
    version: String,
    #[serde(default)]
    jetstream: JetStream,
}

#[derive(Default, serde::Deserialize)]
struct JetStream {
    config: Option<Config>,
}

#[derive(serde::Deserialize)]
struct Config {
    #[serde(default)]
    sync_always: bool,
}

impl Server {
    fn judge(self) -> Result<(), NatsError> {
        if !is_new_enough(&self.version) {
            return Err(NatsError::Old { server: self.server_name, version: self.version });
        }
        match self.jetstream.config {
            // It keeps nothing for us.
            None => Ok(()),
            Some(config) if config.sync_always => Ok(()),
            Some(_) => Err(NatsError::Unsynced { server: self.server_name }),
        }
    }
}

async fn ask(monitor: &str) -> Result<Server, String> {
    let host =
        monitor.strip_prefix("http://").ok_or("expected an address such as http://host:8222")?;
    let host = host.trim_end_matches('/');
    let words = |error: std::io::Error| error.to_string();
    let mut stream = TcpStream::connect(host).await.map_err(words)?;
    let request = format!("GET /varz HTTP/1.0\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.map_err(words)?;
    let mut answer = Vec::new();
    stream.take(ANSWER_BYTES_MAX).read_to_end(&mut answer).await.map_err(words)?;
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n");
    let body = &answer[end.ok_or("no HTTP answer")? + 4..];
    serde_json::from_slice(body).map_err(|error| error.to_string())
}

//! The way of a worker to a foreman by websocket.

use laboro_clients::fuq::{Foreman, Trouble, open_websocket};
use laboro_worker::agent::{ByteStream, Connect, ConnectError, Connecting};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

pub(super) struct Persistent(pub(super) Arc<Foreman>);

/// For a name to be found, a connection to stand, and everything said before the websocket is open.
pub(super) const PATIENCE: Duration = Duration::from_secs(15);

impl Connect for Persistent {
    fn connect(&self) -> Connecting {
        let foreman = Arc::clone(&self.0);
        Box::pin(async move {
            let opened = timeout(PATIENCE, open_websocket(&foreman)).await;
            let opened = opened.unwrap_or_else(|_| Err(late()));
            let stream = opened.map_err(|trouble| told(&foreman, trouble))?;
            Ok(Box::new(stream) as Box<dyn ByteStream>)
        })
    }

    fn target(&self) -> String {
        self.0.address.clone()
    }
}

pub(super) fn late() -> Trouble {
    Trouble::Link(io::Error::new(io::ErrorKind::TimedOut, "no answer in time"))
}

/// What the agent is told of it.
pub(super) fn told(foreman: &Foreman, trouble: Trouble) -> ConnectError {
    let target = foreman.address.clone();
    match trouble {
        Trouble::Link(source) => ConnectError::from_io(target, source),
        Trouble::Denied(why) => ConnectError::Denied { target, why },
        other => ConnectError::Unreachable { target, source: io::Error::other(other) },
    }
}

//! The way to a foreman by websocket: log in, ask for it, and hand over the stream that it becomes.

use crate::fuq::{Foreman, Login, Trouble, Wire};
use hyper::StatusCode;
use hyper_util::rt::TokioIo;
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
            let opened = timeout(PATIENCE, open(&foreman)).await;
            opened.unwrap_or_else(|_| Err(late())).map_err(|trouble| told(&foreman, trouble))
        })
    }

    fn target(&self) -> String {
        self.0.address.clone()
    }
}

pub(crate) async fn open(foreman: &Foreman) -> Result<Box<dyn ByteStream>, Trouble> {
    let mut wire = foreman.dial().await?;
    let login = foreman.log_in(&mut wire).await?;
    match ask(foreman, &mut wire, &login).await {
        Err(Trouble::Denied(_)) => {
            let login = foreman.log_in_again(&mut wire, &login).await?;
            ask(foreman, &mut wire, &login).await
        }
        opened => opened,
    }
}

async fn ask(
    foreman: &Foreman,
    wire: &mut Wire,
    login: &Login,
) -> Result<Box<dyn ByteStream>, Trouble> {
    let key = laboro_hub::fuq::new_key().map_err(|error| Trouble::Answer(error.to_string()))?;
    let answer = foreman.upgrade(wire, login, &key).await?;
    let accept = laboro_hub::fuq::accept_of(&key);
    let said = answer.headers().get("Sec-WebSocket-Accept");
    match answer.status() {
        StatusCode::SWITCHING_PROTOCOLS if said.is_some_and(|said| said == accept.as_str()) => {
            let stream = hyper::upgrade::on(answer).await?;
            Ok(Box::new(TokioIo::new(stream)))
        }
        StatusCode::SWITCHING_PROTOCOLS => {
            Err(Trouble::Answer("the foreman opens a websocket that was not asked for".into()))
        }
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            Err(Trouble::Denied("the foreman does not know the cookie it gave".into()))
        }
        status => Err(Trouble::Answer(format!("no websocket: the foreman answers {status}"))),
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

//! The way to a foreman by websocket: log in, ask for it, and hand over the stream that it becomes.

use super::{Foreman, Login, Trouble, Wire};
use hyper::StatusCode;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use laboro_net::websocket::{accept_of, new_key};

/// Bytes of frames, both ways.
pub type WebsocketStream = TokioIo<Upgraded>;

/// Logs in, again if the foreman has forgotten the login, and opens the websocket.
pub async fn open_websocket(foreman: &Foreman) -> Result<WebsocketStream, Trouble> {
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
) -> Result<WebsocketStream, Trouble> {
    let key = new_key().map_err(|error| Trouble::Answer(error.to_string()))?;
    let answer = foreman.upgrade(wire, login, &key).await?;
    let accept = accept_of(&key);
    let said = answer.headers().get("Sec-WebSocket-Accept");
    match answer.status() {
        StatusCode::SWITCHING_PROTOCOLS if said.is_some_and(|said| said == accept.as_str()) => {
            let stream = hyper::upgrade::on(answer).await?;
            Ok(TokioIo::new(stream))
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

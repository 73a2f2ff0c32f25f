//! The websocket of a node: opened by a request, then driven like any other connection of the hub, on the same
//! thread, with the dialect's session inside.

use super::answer::{FuqAnswer, FuqRefused};
use super::pace::Paced;
use super::register::Node;
use super::serve::FuqConnection;
use crate::transport::{Parting, drive_known};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{
    CONNECTION, HOST, HeaderMap, HeaderName, HeaderValue, ORIGIN, SEC_WEBSOCKET_ACCEPT,
    SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use hyper::upgrade::OnUpgrade;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use laboro_core::Name;
use laboro_dialects::fuq2::{Foreman, Mode, Plain, SeqNumbers};
use laboro_dialects::websocket;
use laboro_net::websocket::accept_of;
use std::sync::Arc;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

/// The answer to a request that opens a websocket, and what it becomes.
pub(super) fn open(mut request: Request<Incoming>) -> Result<(FuqAnswer, OnUpgrade), FuqRefused> {
    let headers = request.headers();
    let bad = |why: &str| Err(FuqRefused::Malformed(format!("no websocket: {why}")));
    if !has_word(headers, CONNECTION, "upgrade") || !has_word(headers, UPGRADE, "websocket") {
        return bad("the request does not ask for an upgrade to one");
    }
    if !has_word(headers, SEC_WEBSOCKET_VERSION, "13") {
        return bad("only version 13 is spoken");
    }
    let Some(key) = headers.get(SEC_WEBSOCKET_KEY).and_then(|key| key.to_str().ok()) else {
        return bad("the key is missing");
    };
    if STANDARD.decode(key).is_ok_and(|key| key.len() != 16) {
        return bad("the key is not 16 bytes");
    }
    // Nodes have no origin. A browser has, and pages of others must not act for it.
    if let Some(origin) = headers.get(ORIGIN)
        && !is_of_host(origin, headers.get(HOST))
    {
        return Err(FuqRefused::Forbidden("the request comes from another site's page"));
    }
    let accept = accept_of(key);
    let mut answer = Response::new(Full::<Bytes>::default());
    *answer.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = answer.headers_mut();
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    let accept = HeaderValue::from_str(&accept).map_err(|_| FuqRefused::NotFound)?;
    headers.insert(SEC_WEBSOCKET_ACCEPT, accept);
    Ok((answer, hyper::upgrade::on(&mut request)))
}

fn has_word(headers: &HeaderMap, name: HeaderName, word: &str) -> bool {
    let values = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|part| part.trim().eq_ignore_ascii_case(word))
}

fn is_of_host(origin: &HeaderValue, host: Option<&HeaderValue>) -> bool {
    let origin = origin.to_str().ok().and_then(|origin| origin.split_once("://"));
    let host = host.and_then(|host| host.to_str().ok());
    origin.zip(host).is_some_and(|((_, origin), host)| origin.eq_ignore_ascii_case(host))
}

impl FuqConnection {
    /// The conversation, to its end.
    pub(super) async fn persist(
        self: &Arc<FuqConnection>,
        upgrade: OnUpgrade,
        node: Node,
    ) -> Parting {
        let Ok(upgraded) = upgrade.await else { return Parting::Left };
        let Ok(parts) = upgraded.downcast::<TokioIo<Paced<TlsStream<TcpStream>>>>() else {
            return Parting::Left;
        };
        if !parts.read_buf.is_empty() {
            crate::listen::stats::count(&self.reception.door.stats.malformed, 1);
            return Parting::Malformed("it speaks before the websocket is open".into());
        }
        let mut stream = parts.io.into_inner().into_inner();
        // The answer may still be in the cipher's buffer, and a session that is silent would leave it there.
        if stream.flush().await.is_err() {
            return Parting::Left;
        }
        let Ok(subscription) = self.reception.handle.open_session().await else {
            return Parting::Stopped;
        };
        let _connected = Connected::new(self, subscription.session.0, &node);
        let context = self.reception.context(&subscription, self.peer, None);
        let message_max = context.message_max;
        let numbers = self.message_numbers(&node.name);
        let leaves = self.door.register().leaves(&node.name);
        let plain = Plain {
            slots: node.slots,
            leaves,
            numbering: self.door.numbering,
            numbers,
            ..Plain::websocket(
                Name::from(node.name.as_str()),
                node.tags.iter().map(|tag| Name::from(tag.as_str())).collect(),
            )
        };
        let foreman = Foreman::new(context, Mode::Plain(plain));
        let session = websocket::Server::new(foreman, message_max, format!("f2w_{}", node.name));
        // A node that comes back says nothing until something ends there.
        drive_known(stream, session, subscription, &self.reception.hall).await
    }

    /// Kept with the login, so that a hub that was killed knows where a node is that waits for its answer.
    fn message_numbers(&self, name: &str) -> SeqNumbers {
        let Some((place, is_new)) = self.door.register().place(name) else {
            return SeqNumbers::default();
        };
        let reached = if is_new { 0 } else { self.door.numbers.reached(place) };
        let door = Arc::clone(&self.door);
        let note = move |reached| door.numbers.note(place, reached);
        SeqNumbers { reached, note: Some(Arc::new(note)) }
    }
}

/// The node is in the list for as long as this is kept.
struct Connected<'a> {
    desk: &'a FuqConnection,
    number: u64,
}

impl<'a> Connected<'a> {
    fn new(desk: &'a FuqConnection, number: u64, node: &Node) -> Connected<'a> {
        desk.door.connected().insert(number, node.clone());
        Connected { desk, number }
    }
}

impl Drop for Connected<'_> {
    fn drop(&mut self) {
        self.desk.door.connected().remove(&self.number);
    }
}

//! One connection: TLS, then requests one after the other, until it becomes a websocket or ends. Which path means
//! what is said here, and what it does elsewhere.

use super::answer::{FuqAnswer, FuqRefused};
use super::message::Message;
use super::pace::{Pace, Paced};
use super::poller::Poller;
use super::register::Node;
use super::{FuqState, client, nodes, persistent};
use crate::listen::Reception;
use crate::listen::stats::count;
use crate::transport::Parting;
use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::{Body, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::upgrade::OnUpgrade;
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use std::collections::HashMap;
use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

/// A request is small: the largest is a list of jobs.
const BODY_BYTES_MAX: usize = 1 << 20;
const HEAD_BYTES_MAX: usize = 16 << 10;
const HEADERS_MAX: usize = 64;

/// What whoever answers on one connection knows.
pub(super) struct FuqConnection {
    pub door: Arc<FuqState>,
    pub reception: Reception,
    pub peer: IpAddr,
    pace: Pace,
    at_hand: Mutex<AtHand>,
}

#[derive(Default)]
struct AtHand {
    /// Nodes that poll on this connection, which is their sign of life.
    pollers: HashMap<String, Arc<Poller>>,
    /// A cookie was good: this is no stranger.
    is_known: bool,
    upgrade: Option<(OnUpgrade, Node)>,
}

/// Serves the connection to its end, and counts how it ended.
pub(crate) async fn receive(
    reception: &Reception,
    door: &Arc<FuqState>,
    stream: TcpStream,
    peer: IpAddr,
) -> Parting {
    let stats = &reception.door.stats;
    let limit = Duration::from_millis(reception.hall.limits.handshake_ms);
    let stream = match tokio::time::timeout(limit, door.tls.accept(stream)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => {
            count(&stats.malformed, 1);
            return Parting::Malformed(format!("TLS: {error}"));
        }
        Err(_) => {
            count(&stats.silent, 1);
            return Parting::Silent;
        }
    };
    let pace = Pace::new();
    let stream = Paced::new(stream, pace.clone(), limit, Arc::clone(stats));
    let desk = Arc::new(FuqConnection {
        door: Arc::clone(door),
        reception: reception.clone(),
        peer,
        pace,
        at_hand: Mutex::default(),
    });
    if let Err(parting) = desk.converse(stream).await {
        return parting;
    }
    let upgrade = desk.at_hand().upgrade.take();
    match upgrade {
        Some((upgrade, node)) => desk.persist(upgrade, node).await,
        None => Parting::Finished,
    }
}

impl FuqConnection {
    /// Requests, until there are no more.
    async fn converse(
        self: &Arc<FuqConnection>,
        stream: Paced<TlsStream<TcpStream>>,
    ) -> Result<(), Parting> {
        let desk = Arc::clone(self);
        let service = service_fn(move |request| {
            let desk = Arc::clone(&desk);
            async move { Ok::<FuqAnswer, Infallible>(desk.answer(request).await) }
        });
        let connection = http1::Builder::new()
            .max_buf_size(HEAD_BYTES_MAX)
            .max_headers(HEADERS_MAX)
            .header_read_timeout(None)
            .serve_connection(TokioIo::new(stream), service)
            .with_upgrades();
        tokio::pin!(connection);
        let stop = &self.reception.hall.stop;
        let ended = tokio::select! {
            ended = &mut connection => ended,
            () = stop.cancelled() => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        let stats = &self.reception.door.stats;
        ended.map_err(|error| {
            if error.is_parse() || error.is_user() {
                count(&stats.malformed, 1);
                Parting::Malformed(format!("HTTP: {error}"))
            } else if is_late(&error) {
                count(&stats.silent, 1);
                Parting::Silent
            } else {
                Parting::Left
            }
        })
    }

    async fn answer(self: &Arc<FuqConnection>, request: Request<Incoming>) -> FuqAnswer {
        self.pace.busy();
        let stats = &self.reception.door.stats;
        let answered = self.route(request).await;
        let answer = answered.unwrap_or_else(|refused| {
            match &refused {
                FuqRefused::Malformed(why) => {
                    count(&stats.malformed, 1);
                    let (door, peer) = (&self.reception.door, self.peer);
                    let complaints = &self.reception.complaints;
                    complaints.warn(format_args!("{door}: {peer} sent malformed data: {why}"));
                }
                FuqRefused::TooLarge(_) => count(&stats.malformed, 1),
                FuqRefused::Forbidden(why) => {
                    count(&stats.denied, 1);
                    let (door, peer) = (&self.reception.door, self.peer);
                    let complaints = &self.reception.complaints;
                    complaints.warn(format_args!("{door}: {peer} was denied: {why}"));
                }
                FuqRefused::TooMany(_) => count(&stats.denied, 1),
                FuqRefused::Trouble(why) => tracing::error!("{}: {why}", self.reception.door),
                _ => {}
            }
            refused.answer()
        });
        count(&stats.messages_out, 1);
        self.pace.next(self.at_hand().is_known);
        answer
    }

    async fn route(
        self: &Arc<FuqConnection>,
        request: Request<Incoming>,
    ) -> Result<FuqAnswer, FuqRefused> {
        let path = request.uri().path().trim_start_matches('/').to_owned();
        if path == "node/persistent" && request.method() == Method::GET {
            let node = self.known(request.headers(), None)?;
            let (answer, upgrade) = persistent::open(request)?;
            self.at_hand().upgrade = Some((upgrade, node));
            return Ok(answer);
        }
        let (head, body) = request.into_parts();
        // Also where nobody looks at it: else the connection could not go on.
        let body = self.whole(body).await?;
        let is_clients = client::PATHS.contains(&path.as_str());
        if !is_clients && !nodes::PATHS.contains(&path.as_str()) && path != "node/persistent" {
            return Err(FuqRefused::NotFound);
        }
        if head.method != Method::POST || path == "node/persistent" {
            return Err(FuqRefused::Method(head.method));
        }
        let said = Message::parse(&body)?;
        match is_clients {
            true => self.client(&path, &said).await,
            false => self.node(&path, &head.headers, &said).await,
        }
    }

    /// All of a body, if it is not too large and comes in time.
    async fn whole(&self, body: Incoming) -> Result<Bytes, FuqRefused> {
        let too_large = FuqRefused::TooLarge(BODY_BYTES_MAX as u64);
        if body.size_hint().lower() > BODY_BYTES_MAX as u64 {
            return Err(too_large);
        }
        let limit = Duration::from_millis(self.reception.hall.limits.handshake_ms);
        let collected = Limited::new(body, BODY_BYTES_MAX).collect();
        match tokio::time::timeout(limit, collected).await {
            Ok(Ok(body)) => Ok(body.to_bytes()),
            Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_large),
            Ok(Err(error)) => Err(FuqRefused::Malformed(format!("the body broke off: {error}"))),
            Err(_) => Err(FuqRefused::Malformed("the body did not come in time".into())),
        }
    }

    pub(super) fn note_known(&self) {
        self.at_hand().is_known = true;
    }

    /// The node as a worker, for as long as one of its connections stands.
    pub(super) fn poller(self: &Arc<FuqConnection>, node: &Node) -> Arc<Poller> {
        let mut at_hand = self.at_hand();
        if let Some(poller) = at_hand.pollers.get(&node.name).filter(|poller| !poller.has_ended()) {
            return Arc::clone(poller);
        }
        let poller = Poller::of(&self.door, &self.reception, node);
        at_hand.pollers.insert(node.name.clone(), Arc::clone(&poller));
        poller
    }

    fn at_hand(&self) -> MutexGuard<'_, AtHand> {
        self.at_hand.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The peer was too slow.
fn is_late(error: &hyper::Error) -> bool {
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<std::io::Error>() {
            return error.kind() == std::io::ErrorKind::TimedOut;
        }
        cause = error.source();
    }
    false
}

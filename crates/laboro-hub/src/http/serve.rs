//! Carries the routes: accepts connections within limits, does TLS, speaks HTTP/1.1 and HTTP/2, and lets
//! requests end when the hub stops. What is asked is not its business.

use super::entry::Peer;
use super::limits::Limits;
use super::places::{ConnectionPlace, ServeStats};
use super::quiet::Quiet;
use crate::transport::Stall;
use axum::Router;
use hyper::Request;
use hyper::body::Incoming;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use rustls::ServerConfig;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

/// Serves until `stop` comes, then lets requests end for a little while. Without `tls` it speaks plainly, which
/// is for loopback only. Its counters go to `stats`.
pub async fn serve(
    listener: TcpListener,
    tls: Option<Arc<ServerConfig>>,
    router: Router,
    limits: Limits,
    stats: Arc<ServeStats>,
    stop: impl Future<Output = ()>,
) {
    let closing = CancellationToken::new();
    let desk = Arc::new(HttpService { tls: tls.map(acceptor), router, limits, closing });
    let mut connections = JoinSet::new();
    tokio::pin!(stop);
    loop {
        let accepted = tokio::select! {
            () = &mut stop => break,
            accepted = listener.accept() => accepted,
            Some(_) = connections.join_next(), if !connections.is_empty() => continue,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                // Mostly too many open files: others will close some.
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        if let Some(place) = stats.admit(peer.ip(), &desk.limits) {
            connections.spawn(desk.clone().keep(stream, peer, place));
        }
    }
    drop(listener);
    desk.end(connections).await;
}

pub(super) const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Enough for a fast upload over a near network.
const WINDOW_BYTES: u32 = 128 << 10;

fn acceptor(tls: Arc<ServerConfig>) -> TlsAcceptor {
    let mut config = ServerConfig::clone(&tls);
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    TlsAcceptor::from(Arc::new(config))
}

pub(super) struct HttpService {
    pub(super) tls: Option<TlsAcceptor>,
    pub(super) router: Router,
    pub(super) limits: Limits,
    /// The hub stops.
    pub(super) closing: CancellationToken,
}

impl HttpService {
    /// Until it ends, or has to make room for another one.
    async fn keep(
        self: Arc<HttpService>,
        stream: TcpStream,
        peer: SocketAddr,
        place: ConnectionPlace,
    ) {
        tokio::select! {
            () = self.receive(stream, peer, &place.quiet) => {}
            () = place.must_go() => tracing::debug!(%peer, "an idle connection was closed to make room"),
        }
    }

    async fn receive(&self, stream: TcpStream, peer: SocketAddr, quiet: &Quiet) {
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, %peer, "no TCP_NODELAY");
        }
        let stream = Stall::new(stream, self.limits.stall);
        let Some(tls) = &self.tls else {
            return self.converse(stream, peer, quiet).await;
        };
        match tokio::time::timeout(self.limits.handshake, tls.accept(stream)).await {
            Ok(Ok(secured)) => self.converse(secured, peer, quiet).await,
            Ok(Err(error)) => tracing::debug!(%error, %peer, "no TLS"),
            Err(_) => tracing::debug!(%peer, "the TLS handshake took too long"),
        }
    }

    /// Without TLS, over whatever keeps strangers out.
    pub(super) async fn converse_plainly<S>(
        &self,
        stream: S,
        peer: SocketAddr,
        place: ConnectionPlace,
    ) where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let stream = Stall::new(stream, self.limits.stall);
        tokio::select! {
            () = self.converse(stream, peer, &place.quiet) => {}
            () = place.must_go() => tracing::debug!("an idle local connection was closed to make room"),
        }
    }

    /// Nobody new comes: lets requests end for a little while.
    pub(super) async fn end(&self, mut connections: JoinSet<()>) {
        self.closing.cancel();
        let all_gone = async { while connections.join_next().await.is_some() {} };
        drop(tokio::time::timeout(self.limits.farewell, all_gone).await);
        connections.shutdown().await;
    }

    async fn converse<S>(&self, stream: S, peer: SocketAddr, quiet: &Quiet)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let requests = quiet.clone();
        let router = TowerToHyperService::new(self.router.clone());
        let service = service_fn(move |mut request: Request<Incoming>| {
            request.extensions_mut().insert(Peer(peer));
            let under_way = requests.interrupt();
            let answer = router.call(request);
            async move { answer.await.map(|answer| answer.map(|body| under_way.until_sent(body))) }
        });
        let mut builder = Builder::new(TokioExecutor::new());
        builder
            .http1()
            .timer(TokioTimer::new())
            .header_read_timeout(self.limits.head)
            .max_buf_size(self.limits.head_bytes.max(8192))
            .max_headers(self.limits.headers);
        builder
            .http2()
            .timer(TokioTimer::new())
            .max_concurrent_streams(64)
            // What a body has sent and nobody has read yet is kept by the connection.
            .initial_stream_window_size(WINDOW_BYTES)
            .initial_connection_window_size(2 * WINDOW_BYTES)
            .max_header_list_size(u32::try_from(self.limits.head_bytes).unwrap_or(u32::MAX))
            .keep_alive_interval(self.limits.head)
            .keep_alive_timeout(self.limits.head);
        let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
        let ended = tokio::select! {
            ended = connection.as_mut() => ended,
            () = self.farewell(quiet) => {
                connection.as_mut().graceful_shutdown();
                // What was handed over may still be on its way, and so may be a request.
                tokio::select! {
                    ended = connection => ended,
                    () = quiet.lasts(self.limits.stall) => Ok(()),
                }
            }
        };
        if let Err(error) = ended {
            tracing::debug!(%error, %peer, "a connection broke");
        }
    }

    /// Comes when a connection has to end. The builder has no limit of its own for the bytes that tell HTTP/1 from
    /// HTTP/2, nor for a connection of HTTP/2 that asks nothing.
    async fn farewell(&self, quiet: &Quiet) {
        tokio::select! {
            () = self.closing.cancelled() => {}
            () = quiet.lasts(self.limits.head) => {}
        }
    }
}

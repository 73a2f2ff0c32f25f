//! The same routes on a unix socket, for the user who runs the hub and for root: no TLS, no port. Who is at the other end is
//! known from the kernel; what they may do is still said by their token.

use super::limits::Limits;
use super::places::ServeStats;
use super::serve::{ACCEPT_PAUSE, HttpService};
use axum::Router;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// Serves until `stop` comes, as `serve` does. Its counters go to the same `stats`.
pub async fn serve_local(
    listener: UnixListener,
    router: Router,
    limits: Limits,
    stats: Arc<ServeStats>,
    stop: impl Future<Output = ()>,
) {
    // The list is for networks.
    let limits = Limits { allow: Vec::new(), ..limits };
    let desk =
        Arc::new(HttpService { tls: None, router, limits, closing: CancellationToken::new() });
    // Counted as what it is: somebody on this machine.
    let peer = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let mut connections = JoinSet::new();
    tokio::pin!(stop);
    loop {
        let accepted = tokio::select! {
            () = &mut stop => break,
            accepted = listener.accept() => accepted,
            Some(_) = connections.join_next(), if !connections.is_empty() => continue,
        };
        match accepted {
            Ok((stream, _)) if !is_own(&stream) => stats.refuse(),
            Ok((stream, _)) => {
                if let Some(place) = stats.admit(peer.ip(), &desk.limits) {
                    let desk = desk.clone();
                    let kept = async move { desk.converse_plainly(stream, peer, place).await };
                    connections.spawn(kept);
                }
            }
            Err(error) => {
                // Mostly too many open files: others will close some.
                tracing::warn!(%error, "a local connection could not be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    drop(listener);
    desk.end(connections).await;
}

/// One connection, made within this process.
pub async fn serve_within(
    stream: UnixStream,
    router: Router,
    limits: Limits,
    stats: Arc<ServeStats>,
) {
    let service = HttpService { tls: None, router, limits, closing: CancellationToken::new() };
    let peer = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    if let Some(place) = stats.admit(peer.ip(), &service.limits) {
        service.converse_plainly(stream, peer, place).await;
    }
}

/// The mode of the file says the same, but not everywhere and not from the first moment.
fn is_own(stream: &UnixStream) -> bool {
    let own = rustix::process::geteuid().as_raw();
    stream.peer_cred().is_ok_and(|peer| peer.uid() == own || peer.uid() == 0)
}

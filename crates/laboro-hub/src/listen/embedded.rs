//! A door of a hub that lives inside another program: sessions of one dialect, made by that program, which also
//! keeps what tasks print. No tokens and no lists; whoever opens it chooses the address.

use super::stats::{self, DoorStats};
use crate::clock::Clock;
use crate::inbox::Handle;
use crate::process::HubError;
use crate::process::bind;
use crate::transport::{Hall, Limits, Parting, drive};
use laboro_core::Name;
use laboro_dialects::session::{OpenGate, Place, Session};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

#[derive(Debug, Clone)]
pub struct Embedded {
    pub dialect: &'static str,
    pub handle: Handle,
    pub clock: Clock,
    pub group: String,
    pub connections_max: u64,
    pub stats: Arc<DoorStats>,
    pub stop: CancellationToken,
}

impl Embedded {
    /// The socket, and where it really listens.
    pub fn bind(&self, address: SocketAddr) -> Result<(TcpListener, SocketAddr), HubError> {
        bind::listener(self.dialect, address)
    }
}

const LIMITS: Limits = Limits {
    message_bytes: 1 << 20,
    handshake_ms: 10_000,
    write_ms: 60_000,
    admission_ms: u64::MAX,
    lost_ms: 120_000,
};

const OUT_OF_SOCKETS: Duration = Duration::from_millis(100);

/// Receives until it is stopped, then waits for those who are inside. Only within a runtime.
pub async fn receive_all<S, M>(
    listener: TcpListener,
    door: Embedded,
    make: M,
) -> std::io::Result<()>
where
    S: Session + 'static,
    M: Fn(Place) -> S + Clone + Send + Sync + 'static,
{
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let mut inside = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            Some(_) = inside.join_next() => continue,
            () = door.stop.cancelled() => break,
        };
        match accepted {
            Ok(_) if door.stats.connections.load(Ordering::Relaxed) >= door.connections_max => {
                stats::count(&door.stats.refused, 1);
            }
            Ok((stream, peer)) => {
                stats::count(&door.stats.connections, 1);
                stats::count(&door.stats.connections_total, 1);
                inside.spawn(converse(door.clone(), stream, peer, make.clone()));
            }
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionAborted => {}
            Err(error) => {
                tracing::error!("{}: cannot take connections: {error}", door.dialect);
                tokio::time::sleep(OUT_OF_SOCKETS).await;
            }
        }
    }
    drop(listener);
    while inside.join_next().await.is_some() {}
    Ok(())
}

async fn converse<S: Session>(
    door: Embedded,
    stream: TcpStream,
    peer: SocketAddr,
    make: impl Fn(Place) -> S,
) {
    // Small messages shall not wait for each other. Without it everything is only slower.
    let _ = stream.set_nodelay(true);
    super::watch_over(&stream, LIMITS.lost_ms);
    if let Ok(subscription) = door.handle.open_session().await {
        let session = make(Place {
            session: subscription.session,
            group: Name::from(door.group.as_str()),
            peer: Some(peer.ip()),
            message_max: LIMITS.message_bytes,
            grace_ms: 0,
            gate: Arc::new(OpenGate),
        });
        let hall = Hall {
            clock: door.clock,
            outputs: None,
            stats: Arc::clone(&door.stats),
            limits: LIMITS,
            stop: door.stop.clone(),
        };
        match drive(stream, session, subscription, None, &hall).await {
            Parting::Malformed(why) => {
                tracing::warn!("{}: {peer} makes no sense: {why}", door.dialect);
            }
            Parting::Denied(why) => tracing::warn!("{}: {peer} was denied: {why}", door.dialect),
            other => tracing::debug!("{}: {peer} has gone: {other:?}", door.dialect),
        }
    }
    door.stats.connections.fetch_sub(1, Ordering::Relaxed);
}

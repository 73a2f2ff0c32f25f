//! Doors: a dialect listening at an address, bound to a group. Whoever comes is counted, turned away when
//! there are too many or they are not on the list, and else gets a session of the door's dialect.

mod allow;
mod complaints;
mod dialect;
pub(crate) mod fill;
mod own;
mod rrmq;
pub(crate) mod stats;

#[cfg(test)]
mod tests;

pub(crate) use allow::allows;
pub use allow::{BadNetwork, Network};
pub(crate) use complaints::Complaints;
pub use dialect::Dialect;
pub use own::{OwnDoor, listen_own};
pub(crate) use rrmq::BrokerSettings;
pub use stats::{DoorCounts, DoorStats};

use crate::fuq;
use crate::inbox::{Handle, Subscription};
use crate::mq::Observer;
pub use crate::process::bind::listener;
use crate::security::{CurveKey, TokenAdmission, Tokens};
use crate::transport::{Hall, Parting, drive};
use crate::tunnel;
use laboro_core::Name;
use laboro_dialects::fuq2::{Foreman, Mode, Numbering, Plain};
use laboro_dialects::session::{Admission, OpenAdmission, SessionContext};
use laboro_dialects::{dwork, fuq1, runexp};
use laboro_net::set_keepalive;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

/// One door of a running hub.
#[derive(Debug)]
pub struct OpenDoor {
    pub dialect: Dialect,
    /// As it is bound: never port 0.
    pub address: SocketAddr,
    pub group: String,
    pub allow: Vec<Network>,
    /// How a ZeroMQ door calls itself, if not by its address.
    pub identity: Option<String>,
    /// The hub's public key, where peers have to speak CURVE.
    pub curve: Option<CurveKey>,
    /// Of an rrmq door, once it serves.
    pub broker: OnceLock<Observer>,
    pub stats: Arc<DoorStats>,
}

impl std::fmt::Display for OpenDoor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} on {}", self.dialect.word(), self.address)?;
        match self.dialect {
            // Its workers say which group they are in, or their token does.
            Dialect::Native => {}
            // Requests are not tasks, and are in no group.
            Dialect::Rrmq => {}
            Dialect::Fuq | Dialect::Fuq2 | Dialect::Fuq1 | Dialect::Dwork | Dialect::Runexp => {
                write!(f, ", group {}", self.group)?;
            }
        }
        self.curve.map_or(Ok(()), |key| write!(f, ", curve {key}"))
    }
}

/// What a door needs to receive whoever comes.
#[derive(Clone)]
pub(crate) struct Reception {
    pub door: Arc<OpenDoor>,
    pub handle: Handle,
    pub hall: Hall,
    pub complaints: Arc<Complaints>,
    /// All doors of this hub, for those who come through a tunnel.
    pub doors: Arc<[Arc<OpenDoor>]>,
    pub tokens: Arc<Tokens>,
    pub tls: TlsAcceptor,
    pub grace_ms: u64,
    pub state: DoorState,
    /// At this door.
    pub connections_max: u64,
    /// At all doors together.
    pub connections: Arc<Semaphore>,
}

/// What the conversations at a door of each dialect have in common.
#[derive(Clone)]
pub(crate) enum DoorState {
    Native,
    Fuq(Arc<fuq::FuqState>),
    Fuq2(Numbering),
    Fuq1,
    Dwork(Arc<dwork::HubDoor>),
    Rrmq(BrokerSettings),
    Runexp(runexp::ManagerDoor),
}

/// When the system has no more sockets to give, this long until the next try.
const OUT_OF_SOCKETS: Duration = Duration::from_millis(100);

/// Receives until the hub stops, then waits for those who are inside.
pub(crate) async fn listen(listener: TcpListener, reception: Reception) {
    if let DoorState::Rrmq(broker) = &reception.state {
        let broker = broker.clone();
        return rrmq::listen(listener, reception, broker).await;
    }
    if let DoorState::Fuq(door) = &reception.state {
        door.watch(&reception);
    }
    let stop = reception.hall.stop.clone();
    accept_each(listener, &stop, &reception.door, |stream, peer, inside| {
        if let Some(place) = reception.admit(peer) {
            inside.spawn(reception.clone().receive(stream, peer, place));
        }
    })
    .await;
    if let DoorState::Fuq(door) = &reception.state {
        door.ended().await;
    }
}

/// Takes connections until told to stop, then waits until those that were let in have ended.
async fn accept_each(
    listener: TcpListener,
    stop: &CancellationToken,
    door: impl std::fmt::Display,
    mut let_in: impl FnMut(TcpStream, IpAddr, &mut JoinSet<()>),
) {
    let mut inside = JoinSet::new();
    let mut was_short = false;
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            Some(_) = inside.join_next() => continue,
            () = stop.cancelled() => break,
        };
        match accepted {
            Ok((stream, peer)) => {
                was_short = false;
                let_in(stream, peer.ip(), &mut inside);
            }
            // Whoever gave up while waiting in line is no trouble; anything else will not pass at once.
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionAborted => {}
            Err(error) => {
                if !std::mem::replace(&mut was_short, true) {
                    tracing::error!("{door}: cannot accept connections: {error}");
                }
                tokio::time::sleep(OUT_OF_SOCKETS).await;
            }
        }
    }
    drop(listener);
    while inside.join_next().await.is_some() {}
}

impl Reception {
    /// A place inside, if there is one for this peer.
    fn admit(&self, peer: IpAddr) -> Option<Inside> {
        let stats = &self.door.stats;
        stats::count(&stats.connections_total, 1);
        let is_full = stats.connections.load(Ordering::Relaxed) >= self.connections_max;
        let permit = Arc::clone(&self.connections).try_acquire_owned();
        match permit {
            Ok(permit) if !is_full && allows(&self.door.allow, peer) => {
                Some(Inside::enter(stats, permit))
            }
            _ => {
                stats::count(&stats.refused, 1);
                tracing::debug!("{}: {peer} was refused", self.door);
                None
            }
        }
    }

    async fn receive(self, stream: TcpStream, peer: IpAddr, inside: Inside) {
        let door = Arc::clone(&self.door);
        let span = tracing::debug_span!("session", door = %door, %peer);
        self.host(stream, peer, inside).instrument(span).await;
    }

    async fn host(self, stream: TcpStream, peer: IpAddr, _inside: Inside) {
        // Small messages shall not wait for each other. Without it everything is only slower.
        let _ = stream.set_nodelay(true);
        // Where that cannot be set, it takes as long as the system says.
        let _ = set_keepalive(&stream, Duration::from_millis(self.hall.limits.lost_ms));
        let parting = match &self.state {
            DoorState::Rrmq(_) => unreachable!("its door receives everyone on a thread of its own"),
            DoorState::Native => self.receive_native(stream, peer).await,
            DoorState::Fuq(door) => fuq::receive(&self, door, stream, peer).await,
            DoorState::Fuq2(numbering) => {
                let plain = Plain { numbering: *numbering, ..Plain::tcp() };
                self.converse(stream, peer, None, |context| {
                    Foreman::new(context, Mode::Plain(plain))
                })
                .await
            }
            DoorState::Fuq1 => self.converse(stream, peer, None, fuq1::Server::new).await,
            DoorState::Dwork(door) => {
                let door = Arc::clone(door);
                self.converse(stream, peer, None, |context| dwork::HubSide::new(context, door))
                    .await
            }
            DoorState::Runexp(door) => {
                self.converse(stream, peer, None, |context| door.session(context)).await
            }
        };
        match parting {
            Parting::Malformed(why) => {
                self.complaints
                    .warn(format_args!("{}: {peer} sent malformed data: {why}", self.door));
            }
            Parting::Denied(why) => {
                self.complaints.warn(format_args!("{}: {peer} was denied: {why}", self.door));
            }
            other => tracing::debug!("{}: {peer} has gone: {other:?}", self.door),
        }
    }

    async fn receive_native(&self, stream: TcpStream, peer: IpAddr) -> Parting {
        let limit = Duration::from_millis(self.hall.limits.handshake_ms);
        let stream = match tokio::time::timeout(limit, self.tls.accept(stream)).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => {
                stats::count(&self.door.stats.malformed, 1);
                return Parting::Malformed(format!("TLS: {error}"));
            }
            Err(_) => {
                stats::count(&self.door.stats.silent, 1);
                return Parting::Silent;
            }
        };
        if stream.get_ref().1.alpn_protocol() == Some(laboro_api::tunnel::PROTOCOL) {
            return tunnel::receive(stream, peer, self).await;
        }
        let admission = Arc::new(TokenAdmission::new(Arc::clone(&self.tokens)));
        self.converse(stream, peer, Some(admission), |context| Foreman::new(context, Mode::Native))
            .await
    }

    async fn converse<I, S>(
        &self,
        stream: I,
        peer: IpAddr,
        admission: Option<Arc<TokenAdmission>>,
        session: impl FnOnce(SessionContext) -> S,
    ) -> Parting
    where
        I: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send,
        S: laboro_dialects::session::Session,
    {
        let Ok(subscription) = self.handle.open_session().await else { return Parting::Stopped };
        let session = session(self.context(&subscription, peer, admission.clone()));
        drive(stream, session, subscription, admission.as_deref(), &self.hall).await
    }

    pub(crate) fn context(
        &self,
        subscription: &Subscription,
        peer: IpAddr,
        admission: Option<Arc<TokenAdmission>>,
    ) -> SessionContext {
        SessionContext {
            session: subscription.session,
            group: Name::from(self.door.group.as_str()),
            peer: Some(peer),
            message_max: self.hall.limits.message_bytes,
            grace_ms: self.grace_ms,
            admission: match admission {
                Some(admission) => admission as Arc<dyn Admission>,
                None => Arc::new(OpenAdmission),
            },
        }
    }
}

/// Someone is inside for as long as this is kept.
struct Inside {
    stats: Arc<DoorStats>,
    _permit: OwnedSemaphorePermit,
}

impl Inside {
    fn enter(stats: &Arc<DoorStats>, permit: OwnedSemaphorePermit) -> Inside {
        stats::count(&stats.connections, 1);
        Inside { stats: Arc::clone(stats), _permit: permit }
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        self.stats.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

//! A door whose sessions another program makes, such as the manager of runexp, which writes results to files of its
//! own. No tokens, no tunnels, no store of outputs: only connections, up to a number, on the ring like all others.

use super::stats::{self, DoorStats};
use super::{Complaints, Inside, accept_each};
use crate::inbox::Handle;
use crate::transport::{ConnectionLimits, Hall, Parting, drive};
use laboro_core::Name;
use laboro_dialects::session::{OpenAdmission, Session, SessionContext};
use laboro_net::{Clock, set_keepalive};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

/// What such a door needs.
#[derive(Debug)]
pub struct OwnDoor<F> {
    pub handle: Handle,
    pub clock: Clock,
    pub group: Name,
    /// Whoever comes when so many are there is turned away.
    pub connections_max: usize,
    pub stats: Arc<DoorStats>,
    /// Ends all conversations and the door.
    pub stop: CancellationToken,
    pub session: F,
}

const MESSAGE_BYTES_MAX: usize = 1 << 20;

/// A peer whose machine does not answer for so long is gone.
const LOST_MS: u64 = 120_000;

/// How long a peer may take nothing of what is said to it.
const WRITE_MS: u64 = 60_000;

const HANDSHAKE_MS: u64 = 10_000;

/// Receives until it is told to stop, then waits for those who are inside.
pub async fn listen_own<F, S>(listener: TcpListener, door: OwnDoor<F>)
where
    F: Fn(SessionContext) -> S + Clone + Send + Sync + 'static,
    S: Session + 'static,
{
    let limits = ConnectionLimits {
        message_bytes: MESSAGE_BYTES_MAX,
        handshake_ms: HANDSHAKE_MS,
        write_ms: WRITE_MS,
        admission_ms: u64::MAX,
        lost_ms: LOST_MS,
    };
    let (stats, stop) = (Arc::clone(&door.stats), door.stop.clone());
    let hall = Hall {
        clock: door.clock,
        outputs: None,
        stats,
        limits,
        // The machine has scripts to run.
        lingers: false,
        stop: stop.clone(),
    };
    let room = Arc::new(Semaphore::new(door.connections_max));
    let host = Arc::new(Host { door, hall, complaints: Complaints::default() });
    let mut is_told_full = false;
    accept_each(listener, &stop, "the door", |stream, peer, inside| {
        stats::count(&host.door.stats.connections_total, 1);
        match Arc::clone(&room).try_acquire_owned() {
            Ok(permit) => {
                let seat = Inside::enter(&host.door.stats, permit);
                inside.spawn(Arc::clone(&host).receive(stream, peer, seat));
            }
            Err(_) => {
                stats::count(&host.door.stats.refused, 1);
                if !std::mem::replace(&mut is_told_full, true) {
                    let most = host.door.connections_max;
                    tracing::warn!(
                        "at most {most} connections may be open, and more are refused; `ulimit -n` sets the limit"
                    );
                }
            }
        }
    })
    .await;
}

struct Host<F> {
    door: OwnDoor<F>,
    hall: Hall,
    complaints: Complaints,
}

impl<F, S> Host<F>
where
    F: Fn(SessionContext) -> S + Send + Sync,
    S: Session,
{
    async fn receive(self: Arc<Self>, stream: TcpStream, peer: IpAddr, _seat: Inside) {
        // Small messages shall not wait for each other. Without it everything is only slower.
        let _ = stream.set_nodelay(true);
        let _ = set_keepalive(&stream, Duration::from_millis(LOST_MS));
        let Ok(subscription) = self.door.handle.open_session().await else { return };
        let context = SessionContext {
            session: subscription.session,
            group: self.door.group.clone(),
            peer: Some(peer),
            message_max: MESSAGE_BYTES_MAX,
            grace_ms: 0,
            admission: Arc::new(OpenAdmission),
        };
        let session = (self.door.session)(context);
        match drive(stream, session, subscription, None, &self.hall).await {
            Parting::Malformed(why) => {
                self.complaints.warn(format_args!("{peer} sent malformed data: {why}"));
            }
            Parting::Denied(why) => self.complaints.warn(format_args!("{peer} was denied: {why}")),
            Parting::Slow => {
                self.complaints.warn(format_args!("{peer} did not read what it was sent"));
            }
            other => tracing::debug!("{peer} has gone: {other:?}"),
        }
    }
}

//! Who comes to a manager: each gets a conversation on a thread of its own, up to a limit. What is said in it is not
//! this file's business.

use super::conversation::{Parting, converse};
use super::direct::DirectHub;
use super::recorder::{Recorder, Shared};
use laboro_core::{Name, SessionId};
use laboro_dialects::runexp::Door;
use laboro_dialects::session::{HangUp, OpenGate, Place};
use laboro_net::set_keepalive;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::collections::HashMap;
use std::io::ErrorKind;
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::net::TcpListener;

/// Whoever comes when so many are there is turned away.
const RUNNERS_MAX: u32 = 4096;

/// Of each runner: its connection, and a long result that is on its way or, while it waits for work, its mailbox.
const FILES_A_RUNNER: u64 = 2;

/// Kept for the manager itself: the table, results in one piece, and who is turned away.
const FILES_OWN: u64 = 32;

/// Scripts and results pass through in pieces that are not kept on it.
const STACK_BYTES: usize = 512 << 10;

const MESSAGE_BYTES_MAX: usize = 1 << 20;

/// A runner whose machine does not answer for so long is gone.
const LOST_AFTER: Duration = Duration::from_secs(120);

const OUT_OF_SOCKETS: Duration = Duration::from_millis(100);

#[derive(Clone)]
pub(super) struct Reception {
    pub(super) hub: DirectHub,
    pub(super) group: &'static str,
    pub(super) door: Door,
    pub(super) files: Shared,
    pub(super) inside: Inside,
}

/// Those who are there.
#[derive(Clone)]
pub(super) struct Inside(Arc<Mutex<Runners>>);

struct Runners {
    streams: HashMap<u64, Arc<TcpStream>>,
    most: usize,
    came: u64,
    is_closed: bool,
    /// People know that some are turned away.
    is_told_full: bool,
}

impl Inside {
    /// As many as may have open files, besides `others`.
    pub(super) fn new(others: u64) -> Inside {
        let needed = FILES_OWN + others + FILES_A_RUNNER * u64::from(RUNNERS_MAX);
        let files = allowed_files(needed);
        let most = files.saturating_sub(FILES_OWN + others) / FILES_A_RUNNER;
        let most = most.clamp(1, RUNNERS_MAX.into()) as usize;
        let streams = HashMap::new();
        let runners = Runners { streams, most, came: 0, is_closed: false, is_told_full: false };
        Inside(Arc::new(Mutex::new(runners)))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lock().streams.is_empty()
    }

    /// How many are there, and how many have come.
    pub(super) fn counts(&self) -> (u64, u64) {
        let runners = self.lock();
        (runners.streams.len() as u64, runners.came)
    }

    /// Ends every conversation, and lets nobody in any more.
    pub(super) fn close(&self) {
        let mut runners = self.lock();
        runners.is_closed = true;
        for stream in runners.streams.values() {
            // Some are gone already.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// `None`: there is no room.
    fn enter(&self, stream: &Arc<TcpStream>) -> Option<Seat> {
        let mut runners = self.lock();
        if runners.streams.len() >= runners.most {
            if !std::mem::replace(&mut runners.is_told_full, true) {
                tracing::warn!(
                    "{} connections are open, and more are turned away; `ulimit -n` tells how many files may be open, \
                     and {RUNNERS_MAX} runners is the most",
                    runners.most
                );
            }
            return None;
        }
        if runners.is_closed {
            return None;
        }
        runners.came += 1;
        let number = runners.came;
        runners.streams.insert(number, Arc::clone(stream));
        Some(Seat { number, inside: self.clone() })
    }

    fn lock(&self) -> MutexGuard<'_, Runners> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How many files may be open: as many as are needed, or what the system allows.
fn allowed_files(needed: u64) -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let current = limit.current.unwrap_or(u64::MAX);
    let raised = limit.maximum.unwrap_or(u64::MAX).min(needed);
    let wanted = Rlimit { current: Some(raised), maximum: limit.maximum };
    if raised > current && setrlimit(Resource::Nofile, wanted).is_ok() { raised } else { current }
}

/// Given back when dropped.
struct Seat {
    number: u64,
    inside: Inside,
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.inside.lock().streams.remove(&self.number);
    }
}

impl Reception {
    /// Without an end.
    pub(super) async fn receive_all(self, listener: TcpListener) {
        loop {
            match listener.accept().await {
                Ok((stream, peer)) => {
                    if let Err(error) =
                        stream.into_std().and_then(|stream| self.receive(stream, peer))
                    {
                        tracing::error!("{peer} is turned away: {error}");
                    }
                }
                Err(error) if error.kind() == ErrorKind::ConnectionAborted => {}
                Err(error) => {
                    tracing::error!("no connections can be taken: {error}");
                    tokio::time::sleep(OUT_OF_SOCKETS).await;
                }
            }
        }
    }

    fn receive(&self, stream: TcpStream, peer: SocketAddr) -> std::io::Result<()> {
        stream.set_nonblocking(false)?;
        // Small messages shall not wait for each other. Without it everything is only slower.
        let _ = stream.set_nodelay(true);
        let _ = set_keepalive(&stream, LOST_AFTER);
        let stream = Arc::new(stream);
        let Some(seat) = self.inside.enter(&stream) else { return Ok(()) };
        let reception = self.clone();
        std::thread::Builder::new()
            .name("laboro-runner".into())
            .stack_size(STACK_BYTES)
            .spawn(move || reception.serve(&stream, peer, &seat))?;
        Ok(())
    }

    fn serve(&self, stream: &TcpStream, peer: SocketAddr, seat: &Seat) {
        let place = Place {
            session: SessionId(seat.number),
            group: Name::from(self.group),
            peer: Some(peer.ip()),
            message_max: MESSAGE_BYTES_MAX,
            grace_ms: 0,
            gate: Arc::new(OpenGate),
        };
        let session = Recorder::new(self.door.session(place), seat.number, self.files.clone());
        match converse(seat.number, stream, session, &self.hub) {
            // There is no word for errors, so what a runner did wrong stands here only.
            Parting::HungUp(HangUp::Malformed(why)) => {
                tracing::warn!("{peer} makes no sense: {why}");
            }
            Parting::HungUp(HangUp::Denied(why)) => tracing::warn!("{peer} was denied: {why}"),
            Parting::Deaf => tracing::warn!("{peer} took nothing of what it was sent for a minute"),
            other => tracing::debug!("{peer} has gone: {other:?}"),
        }
    }
}

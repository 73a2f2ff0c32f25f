//! The rrmq door: one round-robin server for all connections of a listener, on a thread of its own. A request
//! is read, decided and written by that thread alone, without a hop; it shares nothing with the hub's engine,
//! so neither waits for the other.

mod door;
mod notes;
mod peer;
mod peers;
mod poll;
mod report;
mod table;

#[cfg(test)]
mod tests;

pub use table::TABLE_ADDRESS;

use crate::listen::DoorStats;
use bytes::Bytes;
use door::BrokerDoor;
use laboro_api::BrokerTable;
use laboro_core::BrokerConfig;
use laboro_dialects::zmtp;
use laboro_net::Clock;
use poll::PollBell;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;

pub struct MqSettings {
    /// How the server calls itself. Clients of the original route to the string they connected to, so this
    /// must be that string.
    pub identity: Bytes,
    pub mechanism: zmtp::Mechanism,
    pub limits: zmtp::Limits,
    pub broker: BrokerConfig,
    pub connections_max: usize,
    /// A peer that leaves more than this unread is cut off.
    pub unsent_bytes_max: usize,
    /// All peers together; beyond it the one that has left the most unread is cut off.
    pub unsent_bytes_all_max: usize,
    /// A peer that takes nothing for so long is cut off.
    pub write_ms: u64,
    /// Who may come in; what it gives is dropped when they have left.
    pub admit: Admit,
    pub stats: Arc<DoorStats>,
}

pub type Admit = Box<dyn FnMut(IpAddr) -> Option<Box<dyn Send>> + Send>;

impl MqSettings {
    /// Everyone may come in, nobody has to prove anything.
    pub fn new(identity: impl Into<Bytes>) -> MqSettings {
        MqSettings {
            identity: identity.into(),
            mechanism: zmtp::Mechanism::Null,
            limits: zmtp::Limits::default(),
            broker: BrokerConfig::default(),
            connections_max: 10_000,
            unsent_bytes_max: 64 << 20,
            unsent_bytes_all_max: 256 << 20,
            write_ms: 30_000,
            admit: Box::new(|_| Some(Box::new(()))),
            stats: Arc::default(),
        }
    }
}

impl std::fmt::Debug for MqSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MqSettings")
            .field("identity", &self.identity)
            .field("mechanism", &self.mechanism)
            .field("broker", &self.broker)
            .finish_non_exhaustive()
    }
}

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MqError {
    #[error("identity of {bytes} bytes is too long: ZeroMQ has room for 255")]
    LongIdentity { bytes: usize },
    #[error("the rrmq server cannot begin: {0}")]
    Begin(io::Error),
    #[error("the rrmq server cannot wait for its sockets: {0}")]
    Poll(io::Error),
    #[error("the rrmq server ended unexpectedly; see its log")]
    Died,
}

/// What other threads ask of the door's.
enum Ask {
    Table(SyncSender<BrokerTable>),
    Stop,
}

/// Sees what goes on at a server, from any thread, for as long as it runs.
#[derive(Clone, Debug)]
pub struct Observer {
    asks: Sender<Ask>,
    bell: Arc<PollBell>,
}

/// A server that runs. Dropped, it stops.
#[derive(Debug)]
pub struct RunningBroker {
    pub address: SocketAddr,
    observer: Observer,
    thread: Option<JoinHandle<Result<(), MqError>>>,
}

/// Starts to serve whoever comes to this listener.
pub fn serve(listener: TcpListener, settings: MqSettings) -> Result<RunningBroker, MqError> {
    serve_then(listener, settings, || {})
}

/// The same; `ended` is called when the server has ended, however it did.
pub fn serve_then(
    listener: TcpListener,
    settings: MqSettings,
    ended: impl FnOnce() + Send + 'static,
) -> Result<RunningBroker, MqError> {
    if settings.identity.len() > 255 {
        return Err(MqError::LongIdentity { bytes: settings.identity.len() });
    }
    let address = listener.local_addr().map_err(MqError::Begin)?;
    let (asks, asked): (Sender<Ask>, Receiver<Ask>) = channel();
    let door =
        BrokerDoor::new(listener, settings, Clock::start(), asked).map_err(MqError::Begin)?;
    let observer = Observer { asks, bell: door.bell() };
    let run = move || {
        let ran = door.run();
        if let Err(error) = &ran {
            tracing::error!("{error}");
        }
        ended();
        ran
    };
    let builder = std::thread::Builder::new().name("laboro-rrmq".into());
    let thread = builder.spawn(run).map_err(MqError::Begin)?;
    Ok(RunningBroker { address, observer, thread: Some(thread) })
}

impl Observer {
    /// The workers and what was counted, now. `None` when the server has ended. Blocks for a moment.
    pub fn table(&self) -> Option<BrokerTable> {
        let (reply, table) = sync_channel(1);
        self.ask(Ask::Table(reply));
        table.recv().ok()
    }

    fn ask(&self, ask: Ask) {
        // A door that has ended hears nothing, which is what its caller will see.
        let _ = self.asks.send(ask);
        self.bell.ring();
    }
}

impl RunningBroker {
    pub fn observer(&self) -> Observer {
        self.observer.clone()
    }

    /// As its observer's.
    pub fn table(&self) -> Option<BrokerTable> {
        self.observer.table()
    }

    /// What was said goes out as far as peers take it at once, then everyone is left. Returns at once.
    pub fn stop(&self) {
        self.observer.ask(Ask::Stop);
    }

    /// Blocks until the server has ended.
    pub fn wait(mut self) -> Result<(), MqError> {
        let thread = self.thread.take().expect("it is taken only here");
        thread.join().unwrap_or(Err(MqError::Died))
    }
}

impl Drop for RunningBroker {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            self.observer.ask(Ask::Stop);
            let _ = thread.join();
        }
    }
}

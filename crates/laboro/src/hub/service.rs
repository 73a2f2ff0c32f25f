//! What systemd, or anything that speaks its protocol, is told: ready, reloading, stopping, and that the engine still
//! answers. Without NOTIFY_SOCKET nothing is told.

use laboro_core::{Command, Query};
use laboro_hub::Handle;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

#[derive(Debug)]
pub(super) struct Notifier(Option<UnixDatagram>);

impl Notifier {
    pub(super) fn from_environment() -> Notifier {
        let open = || {
            let path = std::env::var("NOTIFY_SOCKET").ok()?;
            let address = match path.strip_prefix('@') {
                Some(name) => SocketAddr::from_abstract_name(name).ok()?,
                None => SocketAddr::from_pathname(&path).ok()?,
            };
            let socket = UnixDatagram::unbound().ok()?;
            socket.connect_addr(&address).ok()?;
            Some(socket)
        };
        Notifier(open())
    }

    pub(super) fn ready(&self, status: &str) {
        self.tell(&format!("READY=1\nSTATUS={status}"));
    }

    pub(super) fn reloading(&self) {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        let micros = Duration::try_from(now).unwrap_or_default().as_micros();
        self.tell(&format!("RELOADING=1\nMONOTONIC_USEC={micros}"));
    }

    pub(super) fn stopping(&self) {
        self.tell("STOPPING=1");
    }

    /// For ever: as often as was asked for, and only while the hub's engine answers.
    pub(super) async fn keep_alive(&self, hub: &Handle) {
        let Some(period) = watchdog_period().filter(|_| self.0.is_some()) else {
            return std::future::pending().await;
        };
        loop {
            let asked = hub.ask(Command::Query(Query::Groups));
            if let Ok(Ok(_)) = tokio::time::timeout(period, asked).await {
                self.tell("WATCHDOG=1");
            }
            tokio::time::sleep(period / 3).await;
        }
    }

    fn tell(&self, state: &str) {
        if let Some(socket) = &self.0
            && let Err(error) = socket.send(state.as_bytes())
        {
            tracing::warn!(event = "notify_failed", "the service manager cannot be told: {error}");
        }
    }
}

fn watchdog_period() -> Option<Duration> {
    let is_meant = match std::env::var("WATCHDOG_PID") {
        Ok(pid) => pid.parse() == Ok(std::process::id()),
        Err(_) => true,
    };
    let micros = std::env::var("WATCHDOG_USEC").ok()?.parse().ok()?;
    (is_meant && micros > 0).then(|| Duration::from_micros(micros))
}

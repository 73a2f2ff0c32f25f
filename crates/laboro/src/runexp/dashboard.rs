//! The dashboard of a manager: the hub's own HTTP API and pages, for looking on, on a thread and a runtime of their own
//! so that a page never holds up a runner. Speaks plainly, and therefore to this machine only.

use crate::exit::usage;
use anyhow::Context;
use laboro_api as api;
use laboro_hub::Handle;
use laboro_hub::history::{History, Recorder};
use laboro_hub::http::{Limits, Services, router, serve};
use laboro_hub::listen::{Dialect, DoorStats, listener};
use laboro_hub::security::OneToken;
use laboro_net::Clock;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// More than a few browsers need.
const CONNECTIONS_MAX: usize = 64;

/// What it may open.
pub(super) const FILES: u64 = CONNECTIONS_MAX as u64 + 8;

/// For pages that are open when all is done: nobody waits for them.
const FAREWELL: Duration = Duration::from_millis(300);

/// Open as long as this is kept.
pub(super) struct ManagerDashboard {
    stop: CancellationToken,
    thread: Option<JoinHandle<()>>,
    /// Signs a browser in.
    pub(super) link: String,
}

/// Where runners come in, to which group, and where what they bring goes.
pub(super) struct Entrance {
    pub(super) outputs: PathBuf,
    pub(super) address: SocketAddr,
    pub(super) group: &'static str,
    pub(super) stats: Arc<DoorStats>,
}

/// An address of this machine, or a port on it.
pub(super) fn parse_address(text: &str) -> Result<SocketAddr, String> {
    let address = match text.parse() {
        Ok(port) => SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port),
        Err(_) => {
            text.parse().map_err(|_| format!("`{text}` is neither a port nor ADDRESS:PORT"))?
        }
    };
    match address.ip().is_loopback() {
        true => Ok(address),
        false => Err(format!(
            "{address}: it is open to this machine only; from another one reach it through `ssh -L`, or use `laboro hub --door runexp=ADDRESS:PORT`, whose dashboard has TLS"
        )),
    }
}

impl ManagerDashboard {
    pub(super) fn open(
        address: SocketAddr,
        (hub, clock): (&Handle, Clock),
        (history, recorder): (History, Recorder),
        entrance: Entrance,
    ) -> anyhow::Result<ManagerDashboard> {
        let (listener, address) = listener("the dashboard", address).map_err(usage)?;
        let (doorman, secret) = OneToken::make()?;
        let services = Services {
            history: Some(history),
            results_dir: Some(entrance.outputs.clone()),
            doors: Arc::new(move || vec![entrance.view()]),
            limits: Limits {
                farewell: FAREWELL,
                connections: CONNECTIONS_MAX,
                ..Limits::default()
            },
            ..Services::new(hub.for_people(), clock, Arc::new(doorman))
        };
        let stop = CancellationToken::new();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let stopped = stop.clone();
        let run = move || {
            let served = runtime.block_on(attend(listener, services, recorder, stopped));
            if let Err(error) = served {
                tracing::error!("the dashboard has ended: {error}");
            }
        };
        let thread = std::thread::Builder::new().name("laboro-http".into()).spawn(run);
        let thread = Some(thread.context("no thread for the dashboard")?);
        let link = format!("http://{address}/#token={}", secret.expose());
        Ok(ManagerDashboard { stop, thread, link })
    }
}

impl Drop for ManagerDashboard {
    fn drop(&mut self) {
        self.stop.cancel();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Entrance {
    fn view(&self) -> api::DoorStatus {
        let counts = self.stats.counts();
        api::DoorStatus {
            dialect: Dialect::Runexp.word().into(),
            address: self.address.to_string(),
            group: Some(self.group.into()),
            connections: counts.connections,
            connections_total: counts.connections_total,
            ..api::DoorStatus::default()
        }
    }
}

async fn attend(
    listener: TcpListener,
    services: Services,
    recorder: Recorder,
    stop: CancellationToken,
) -> std::io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let recording = tokio::spawn(recorder.run(services.handle.clone(), services.clock));
    let (limits, stats) = (services.limits.clone(), Arc::clone(&services.serving));
    serve(listener, None, router(services), limits, stats, stop.cancelled()).await;
    recording.abort();
    Ok(())
}

//! The HTTP API of a running hub, on a thread and a runtime of its own, so that a page that is slow to make
//! never holds up a worker.

use super::HubError;
use super::socket::LocalSocket;
use crate::history::Recorder;
use crate::http::{Audit, AuditOptions, Limits, ServeStats, Services, router, serve, serve_local};
use crate::inbox::Handle;
use crate::keep::Outputs;
use crate::listen::OpenDoor;
use crate::security::Tokens;
use axum::Router;
use laboro_api::{self as api, Text};
use laboro_net::Clock;
use rustls::ServerConfig;
use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use tokio::runtime::Builder;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// What the API is made of, beside the defaults.
pub(super) struct Web {
    pub listener: TcpListener,
    pub local: Option<LocalSocket>,
    pub tls: Arc<ServerConfig>,
    pub services: Services,
    pub recorder: Recorder,
    pub stop: CancellationToken,
}

pub(super) fn services(
    dir: &Path,
    handle: Handle,
    clock: Clock,
    tokens: Arc<Tokens>,
    outputs: Outputs,
    doors: Vec<Arc<OpenDoor>>,
) -> Result<Services, HubError> {
    let audit = Audit::open(dir, AuditOptions::default())?;
    let brokers = doors.clone();
    Ok(Services {
        outputs: Some(outputs),
        audit: Some(Arc::new(audit)),
        doors: Arc::new(move || doors.iter().map(|door| view(door)).collect()),
        dir: Some(dir.to_owned()),
        brokers: Arc::new(move || {
            let each = brokers.iter();
            each.filter_map(|door| Some((door.address, door.broker.get()?.clone()))).collect()
        }),
        ..Services::new(handle, clock, tokens)
    })
}

/// Starts the thread. What it gives is told when the last request has ended.
pub(super) fn start(web: Web) -> Result<oneshot::Receiver<()>, HubError> {
    let (done, ended) = oneshot::channel();
    let runtime = Builder::new_current_thread().enable_all().build().map_err(HubError::Thread)?;
    let run = move || {
        runtime.block_on(async move {
            let Web { listener, local, tls, services, recorder, stop } = web;
            let (limits, stats) = (services.limits.clone(), Arc::clone(&services.serving));
            match tokio::net::TcpListener::from_std(listener) {
                Ok(listener) => {
                    let mut helpers = JoinSet::new();
                    helpers.spawn(recorder.run(services.handle.clone(), services.clock));
                    let routes = router(services);
                    let own = local_routes(local, &routes, &limits, &stats, &stop);
                    let open = serve(listener, Some(tls), routes, limits, stats, stop.cancelled());
                    tokio::join!(own, open);
                }
                Err(error) => tracing::error!("http: cannot listen: {error}"),
            }
        });
        // Nobody waits any more only when the hub has ended already.
        let _ = done.send(());
    };
    std::thread::Builder::new().name("laboro-http".into()).spawn(run).map_err(HubError::Thread)?;
    Ok(ended)
}

/// What is served on the local socket, if there is one.
fn local_routes(
    local: Option<LocalSocket>,
    routes: &Router,
    limits: &Limits,
    stats: &Arc<ServeStats>,
    stop: &CancellationToken,
) -> impl Future<Output = ()> + use<> {
    let (routes, limits, stats) = (routes.clone(), limits.clone(), Arc::clone(stats));
    let stop = stop.clone();
    async move {
        let Some(LocalSocket { listener, file }) = local else { return };
        match tokio::net::UnixListener::from_std(listener) {
            Ok(listener) => serve_local(listener, routes, limits, stats, stop.cancelled()).await,
            Err(error) => tracing::error!("the local socket: cannot listen: {error}"),
        }
        drop(file);
    }
}

fn view(door: &OpenDoor) -> api::DoorStatus {
    let counts = door.stats.counts();
    api::DoorStatus {
        dialect: door.dialect.word().into(),
        address: door.address.to_string(),
        group: Some(Text::from(door.group.as_str())),
        connections: counts.connections,
        connections_total: counts.connections_total,
        messages_in: counts.messages_in,
        messages_out: counts.messages_out,
        bytes_in: counts.bytes_in,
        bytes_out: counts.bytes_out,
        tunnels: counts.tunnels,
        refused: counts.refused,
        dropped: counts.dropped,
        malformed: counts.malformed,
        denied: counts.denied,
        silent: counts.silent,
        slow: counts.slow,
    }
}

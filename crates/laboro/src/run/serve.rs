//! A run that can be looked at while it lives: the API of a hub on a unix socket in the run's directory, for its own
//! user. Costs a socket until somebody looks; then a thread of its own, so that a page never holds up the work.

use super::earlier::{self, Carried};
use crate::exit::usage;
use anyhow::Context;
use laboro_hub::Handle;
use laboro_hub::history::{History, Recorder};
use laboro_hub::http::{Limits, Services, router, serve, serve_local};
use laboro_hub::keep::{Elsewhere, Outputs};
use laboro_hub::listen::listener;
use laboro_hub::process::{LocalSocket, SocketFile, socket_places};
use laboro_hub::security::{OneToken, OwnUser};
use laboro_net::Clock;
use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::io::unix::AsyncFd;
use tokio_util::sync::CancellationToken;

/// For pages that are open when all is done: nobody waits for them longer.
const FAREWELL: Duration = Duration::from_millis(300);

/// More than a few browsers and commands need.
const CONNECTIONS_MAX: usize = 64;

/// In the directory of a run.
const SOCKET: &str = "api.sock";

/// Where the socket of the run in this directory may be.
pub(crate) fn sockets(dir: &Path) -> Vec<PathBuf> {
    let whole = std::fs::canonicalize(dir).unwrap_or_else(|_| dir.to_owned());
    let hash = blake3::hash(whole.as_os_str().as_encoded_bytes()).to_hex();
    socket_places(dir, SOCKET, &format!("laboro-run-{}.sock", &hash[..16]))
}

/// What those who look are shown.
pub(crate) struct ServedRun {
    pub(crate) handle: Handle,
    pub(crate) clock: Clock,
    pub(crate) dir: PathBuf,
    pub(crate) history: Option<History>,
    /// What tasks have printed, also those that an earlier run did.
    pub(crate) outputs: Outputs,
}

impl ServedRun {
    pub(crate) fn outputs(dir: &Path) -> Outputs {
        Outputs::reading(&dir.join("outputs"))
    }
}

/// Has the outputs of a run lead to those of earlier ones, where they did its tasks.
pub(crate) fn look_elsewhere(outputs: &Outputs, dir: &Path) {
    let root = dir.parent().unwrap_or(dir);
    let mut stores: HashMap<String, Outputs> = HashMap::new();
    let ranges = earlier::carried(dir).into_iter().filter_map(|one| {
        let Carried { first, last, from, run } = one;
        // Somebody may have removed it.
        let dir = Some(root.join(&run)).filter(|dir| dir.join("outputs").is_dir())?;
        let store = stores.entry(run).or_insert_with(|| ServedRun::outputs(&dir)).clone();
        Some(Elsewhere { first, last, from, store })
    });
    outputs.look_elsewhere(ranges.collect());
}

/// Whoever looks at this run, as long as this is kept.
pub(crate) struct Watchers {
    socket: Option<(AsyncFd<OwnedFd>, LocalSocket)>,
    services: Services,
    dashboards: Arc<Dashboards>,
    recorder: Option<Recorder>,
    stop: CancellationToken,
    thread: Option<JoinHandle<()>>,
}

impl Watchers {
    /// A run without a socket is a run all the same.
    pub(crate) fn listen(shown: ServedRun, recorder: Option<Recorder>) -> Watchers {
        let services = services(&shown);
        let dashboards = Arc::new(Dashboards {
            services: services.clone(),
            opened: Mutex::default(),
            waiting: Mutex::default(),
            news: tokio::sync::Notify::new(),
        });
        let opener = Arc::clone(&dashboards);
        let services =
            Services { open_dashboard: Some(Arc::new(move || opener.open())), ..services };
        let socket = LocalSocket::open(&sockets(&shown.dir)).and_then(|socket| {
            let descriptor = OwnedFd::from(socket.listener.try_clone()?);
            // SAFETY: an `OwnedFd` is open and stays the same until it is dropped, which `AsyncFd` does last.
            let ready = unsafe { AsyncFd::register(descriptor) };
            Ok((ready.map_err(|error| error.into_parts().1)?, socket))
        });
        Watchers {
            socket: socket.ok(),
            services,
            dashboards,
            recorder,
            stop: CancellationToken::new(),
            thread: None,
        }
    }

    /// Opens a dashboard at once.
    pub(crate) fn open_dashboard(&mut self) -> anyhow::Result<String> {
        let link = self.dashboards.open().map_err(usage)?;
        self.start()?;
        Ok(link)
    }

    /// Serves from the first who comes. Never ends by itself.
    pub(crate) async fn attend(&mut self) {
        if self.thread.is_none()
            && let Some((ready, _)) = &self.socket
            && ready.readable().await.is_ok()
            && let Err(error) = self.start()
        {
            tracing::warn!("other commands cannot see this run: {error:#}");
        }
        std::future::pending::<()>().await;
    }

    fn start(&mut self) -> anyhow::Result<()> {
        let socket = self.socket.take().map(|(_, socket)| socket);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (services, dashboards) = (self.services.clone(), Arc::clone(&self.dashboards));
        let (stop, recorder) = (self.stop.clone(), self.recorder.take());
        let run = move || runtime.block_on(attend(socket, services, dashboards, recorder, stop));
        let thread = std::thread::Builder::new().name("laboro-http".into()).spawn(run);
        self.thread = Some(thread.context("no thread to serve clients of this run")?);
        Ok(())
    }
}

impl Drop for Watchers {
    fn drop(&mut self) {
        self.stop.cancel();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

pub(crate) fn services(shown: &ServedRun) -> Services {
    Services {
        outputs: Some(shown.outputs.clone()),
        history: shown.history.clone(),
        dir: Some(shown.dir.clone()),
        limits: Limits { farewell: FAREWELL, connections: CONNECTIONS_MAX, ..Limits::default() },
        ..Services::new(shown.handle.for_people(), shown.clock, Arc::new(OwnUser))
    }
}

/// Dashboards for browsers: on this machine only, with a token that lets its holder look on.
pub(crate) struct Dashboards {
    services: Services,
    /// The link of the one that is open.
    opened: Mutex<Option<String>>,
    /// To be served.
    waiting: Mutex<Option<(TcpListener, Services)>>,
    news: tokio::sync::Notify,
}

impl Dashboards {
    pub(crate) fn new(services: Services) -> Dashboards {
        let news = tokio::sync::Notify::new();
        Dashboards { services, opened: Mutex::default(), waiting: Mutex::default(), news }
    }

    pub(crate) fn open(&self) -> Result<String, String> {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(link) = &*opened {
            return Ok(link.clone());
        }
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let (listener, address) =
            listener("the dashboard", address).map_err(|error| error.to_string())?;
        let (doorman, secret) = OneToken::make().map_err(|error| error.to_string())?;
        let services = Services { doorman: Arc::new(doorman), ..self.services.clone() };
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        *waiting = Some((listener, services));
        self.news.notify_one();
        let link = format!("http://{address}/#token={}", secret.expose());
        Ok(opened.insert(link).clone())
    }

    pub(crate) async fn serve(&self, stop: CancellationToken) {
        loop {
            let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner).take();
            match waiting {
                None => self.news.notified().await,
                Some((listener, services)) => {
                    let (limits, stats) = (services.limits.clone(), Arc::clone(&services.serving));
                    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
                    serve(listener, None, router(services), limits, stats, stop.cancelled()).await;
                    return;
                }
            }
        }
    }
}

async fn attend(
    socket: Option<LocalSocket>,
    services: Services,
    dashboards: Arc<Dashboards>,
    recorder: Option<Recorder>,
    stop: CancellationToken,
) {
    let recording = recorder
        .map(|recorder| tokio::spawn(recorder.run(services.handle.clone(), services.clock)));
    let shown = {
        let stop = stop.clone();
        tokio::spawn(async move { dashboards.serve(stop).await })
    };
    if let Some(LocalSocket { listener, file }) = socket {
        converse(listener, file, services, &stop).await;
    }
    stop.cancelled().await;
    let _ = tokio::time::timeout(2 * FAREWELL, shown).await;
    if let Some(recording) = recording {
        recording.abort();
    }
}

async fn converse(
    listener: std::os::unix::net::UnixListener,
    file: SocketFile,
    services: Services,
    stop: &CancellationToken,
) {
    let (limits, stats) = (services.limits.clone(), Arc::clone(&services.serving));
    match tokio::net::UnixListener::from_std(listener) {
        Ok(listener) => {
            serve_local(listener, router(services), limits, stats, stop.cancelled()).await;
        }
        Err(error) => tracing::warn!("other commands cannot see this run: {error}"),
    }
    drop(file);
}

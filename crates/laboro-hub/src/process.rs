//! A whole hub: everything is opened in order, then runs until it is told to stop or its journal fails. The
//! program, tests and measurements all start it here.

mod addresses;
pub(crate) mod bind;
mod claim;
mod curve;
mod door;
mod engine;
mod helpers;
mod http;
mod journal;
mod own_access;
mod shared_identity;
mod socket;
mod standby_redirect;
mod version;

pub use helpers::read_kept;
pub use own_access::prepare;
pub use socket::{LocalSocket, SocketFile, socket_places};

use crate::config::{BadDoor, ChangeJobs, DoorSettings, Durability, Listen, Settings};
use crate::documents::DocumentError;
use crate::history::History;
use crate::http::Services;
use crate::inbox::{Handle, server};
use crate::keep::{KeepError, Keeper, Outputs};
use crate::listen::{Dialect, DoorState, DoorStats, OpenDoor, Reception};
use crate::pools::PoolRefusal;
use crate::security::{Access, Identity, SecurityError, Tokens, make_dir};
use crate::traces::{self, TraceCounts, TraceNotes};
use crate::transport::{ConnectionLimits, Hall};
use claim::Claim;
use engine::Engine;
use helpers::Helpers;
use journal::HubJournal;
use laboro_api::tunnel::PROTOCOL as TUNNEL_PROTOCOL;
use laboro_core::Hub;
use laboro_dialects::fuq2::WORKER_PROTOCOL;
use laboro_dialects::runexp;
use laboro_dialects::zmtp::Mechanism;
use laboro_journal::{JournalError, outputs};
use laboro_net::Clock;
use ring::rand::{SecureRandom, SystemRandom};
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HubError {
    #[error(transparent)]
    Door(#[from] BadDoor),
    #[error(transparent)]
    Security(#[from] SecurityError),
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error(transparent)]
    Keep(#[from] KeepError),
    #[error(
        "{door} cannot listen on {address}: {source}; choose another address, or port 0 for a free one"
    )]
    Bind { door: &'static str, address: SocketAddr, source: std::io::Error },
    #[error(
        "the hub of {} runs on {host} (process {pid}): stop it there, or choose another directory with --dir",
        .dir.display()
    )]
    Elsewhere { dir: std::path::PathBuf, host: String, pid: u32 },
    #[error("every door is off, so nothing could connect: leave http or native on, or add a door")]
    NoDoor,
    #[error("cannot open the audit log: {0}")]
    Audit(#[from] crate::http::AuditError),
    #[error(transparent)]
    Documents(#[from] DocumentError),
    #[error(transparent)]
    Pools(#[from] PoolRefusal),
    #[error(transparent)]
    Runexp(#[from] runexp::Unsayable),
    #[error("output of tasks cannot be written: {0}; make room and start the hub again")]
    Outputs(String),
    #[error("cannot start a thread: {0}")]
    Thread(std::io::Error),
    #[error("the hub ended unexpectedly; see its log")]
    Died,
}

/// A hub that runs. Dropped, it is told to stop, and nobody waits for it.
#[derive(Debug)]
pub struct RunningHub {
    pub http: Option<SocketAddr>,
    pub native: Option<SocketAddr>,
    /// All of them, the native one too.
    pub doors: Vec<Arc<OpenDoor>>,
    /// As it stands in the hub's directory.
    pub access: Access,
    pub handle: Handle,
    pub outputs: Outputs,
    /// What it was started with.
    settings: Settings,
    identity: Identity,
    /// On which it serves its own user.
    socket: Option<String>,
    clock: Clock,
    stop: CancellationToken,
    ended: CancellationToken,
    thread: Option<JoinHandle<Result<(), HubError>>>,
}

impl RunningHub {
    /// Nobody new comes in, conversations end, the journal is closed. Returns at once.
    pub fn stop(&self) {
        self.stop.cancel();
    }

    /// Looks at the hub's certificate again. A new one is shown to all who connect from now on, and stands in the hub's own
    /// access file; access files that were made before name the old one. Says whether there was a new one.
    pub fn reload_certificate(&mut self) -> Result<bool, HubError> {
        let found = Identity::open(&self.settings.dir, &self.settings.names)?;
        if found.certificate_pem() == self.access.certificate {
            return Ok(false);
        }
        self.identity.show(&found);
        let places = (self.socket.clone(), self.http, self.native);
        self.access = own_access::write(&self.settings, &found, places, self.clock.now())?;
        Ok(true)
    }

    /// Waits until the hub has ended, by itself or because it was told to.
    pub async fn ended(&self) {
        self.ended.cancelled().await;
    }

    /// Blocks until the hub has ended, and says how.
    pub fn wait(mut self) -> Result<(), HubError> {
        let thread = self.thread.take().expect("it is taken only here");
        thread.join().unwrap_or(Err(HubError::Died))
    }
}

impl Drop for RunningHub {
    fn drop(&mut self) {
        if self.thread.is_some() {
            self.stop.cancel();
        }
    }
}

/// Opens everything and starts. When this returns, every door listens.
pub fn start(settings: &Settings) -> Result<RunningHub, HubError> {
    let doors = doors(settings);
    for door in &doors {
        door.check()?;
    }
    if doors.is_empty() && settings.http == Listen::Off {
        return Err(HubError::NoDoor);
    }
    make_dir(&settings.dir)?;
    // First of all: it is what two hubs must not share.
    claim::check(&settings.dir)?;
    let (mut journal, ledger, front) = HubJournal::open(settings)?;
    let claim = Claim::take(&settings.dir)?;
    version::note(&settings.dir);

    let clock = Clock::start();
    let identity = Identity::open(&settings.dir, &settings.names)?;
    let server_config = Arc::new(identity.server_config()?);
    // Clients that offer nothing in particular are workers.
    let mut native_config = rustls::ServerConfig::clone(&server_config);
    native_config.alpn_protocols = [TUNNEL_PROTOCOL, WORKER_PROTOCOL].map(<[u8]>::to_vec).into();
    let tls = TlsAcceptor::from(Arc::new(native_config));
    let sync_results = settings.durability == Durability::Sync;
    let store = outputs::Config { sync_results, ..settings.outputs.store() };
    let on_error = settings.outputs.on_write_error;
    let keeper = Keeper::open(&settings.outputs_dir(), store, ledger.life() + 1, on_error)?;
    journal.copy_outputs();
    let web = match (front.http, settings.http) {
        (Some(bound), _) => Some(bound),
        (None, Listen::Off) => None,
        (None, Listen::At(address)) => Some(bind::listener("http", address)?),
    };
    let http = web.as_ref().map(|(_, address)| *address);
    let mechanisms = curve::mechanisms(&doors, &settings.dir)?;
    let states = doors.iter().zip(&mechanisms).enumerate().map(|(at, (door, mechanism))| {
        let number = doors[..=at].iter().filter(|door| door.dialect() == Dialect::Fuq).count();
        door::state(door, mechanism, settings, number, &identity)
    });
    let states: Vec<DoorState> = states.collect::<Result<_, HubError>>()?;
    let (doors, listeners) = bind(&doors, &mechanisms, settings, front.native)?;
    let (mut hub, first) = Hub::begin(ledger, settings.core(), clock.now(), seed()?);
    journal.commit_blocking(first)?;

    let native = doors.iter().find(|door| door.dialect == Dialect::Native).map(|door| door.address);
    // Of several hubs one leads. A socket takes a request also while its hub stands still, so that nobody would look for
    // the one that has taken over.
    let is_alone = http.is_some() && settings.journal.is_none();
    let local = if is_alone { socket::open(&settings.dir, &identity.socket_name()) } else { None };
    let socket = local.as_ref().and_then(|local| local.file.text());
    let places = (socket.clone(), http, native);
    let access = own_access::write(settings, &identity, places, clock.now())?;
    let tokens = Tokens::open(&settings.dir)?.with_logins(settings.logins.limits());
    let tokens = Arc::new(tokens);
    let (server, handle) = server(&settings.server(), clock);
    let people = handle.for_people();
    let helpers = match web {
        None => None,
        Some(_) => {
            Some(Helpers::open(settings, &access, &people, clock, (&mut hub, &mut journal))?)
        }
    };
    let (history, mut journal, recorder) = History::new(journal);
    keeper.outputs().tell_times(&history);
    let recorder = recorder.keeping(settings.dir.join("charts.jsonl"), clock.now());
    let stop = CancellationToken::new();
    let connections = Arc::new(Semaphore::new(settings.limits.connections));
    let all_doors: Arc<[Arc<OpenDoor>]> = doors.clone().into();
    let reception = |(door, state): (&Arc<OpenDoor>, DoorState)| Reception {
        door: Arc::clone(door),
        handle: handle.clone(),
        hall: Hall {
            clock,
            outputs: Some(keeper.outputs()),
            stats: Arc::clone(&door.stats),
            limits: limits(settings),
            lingers: true,
            stop: stop.clone(),
        },
        complaints: Arc::default(),
        doors: Arc::clone(&all_doors),
        tokens: Arc::clone(&tokens),
        tls: tls.clone(),
        grace_ms: settings.grace_ms,
        state,
        connections_max: settings.limits.connections_per_door,
        connections: Arc::clone(&connections),
    };
    let receptions: Vec<_> =
        listeners.into_iter().zip(doors.iter().zip(states).map(reception)).collect();
    let outputs = keeper.outputs();
    let http_ended = match web {
        None => None,
        Some((listener, _)) => {
            let (tokens, doors) = (Arc::clone(&tokens), doors.clone());
            let services = http::services(
                &settings.dir,
                handle.for_people(),
                clock,
                tokens,
                outputs.clone(),
                doors,
            )?;
            let dashboard_dir = settings.dashboard_dir.clone();
            let allow = settings.http_allow.clone();
            let admission = Duration::from_millis(settings.limits.admission_ms);
            let body_profiles = settings.tasks.classes;
            let own = settings.http_limits.limits();
            let limits = crate::http::Limits { allow, admission, body_profiles, ..own };
            let helpers = helpers.expect("they are opened where there is an API");
            journal.tell_hooks(helpers.start(&stop).map_err(HubError::Thread)?);
            let traces = match settings.traces.target() {
                Ok(Some(target)) => {
                    let counts = TraceCounts::default();
                    let (notes, heard) = TraceNotes::new(counts.clone());
                    journal.tell_traces(notes);
                    let instance = format!("{}@{}", settings.name, settings.dir.display());
                    let told = (heard, counts.clone());
                    let people = handle.for_people();
                    traces::start(
                        &settings.traces,
                        target,
                        instance,
                        people,
                        clock,
                        told,
                        stop.clone(),
                    )
                    .map_err(HubError::Thread)?;
                    Some(counts)
                }
                // What makes no sense was refused when the settings were read.
                Ok(None) | Err(_) => None,
            };
            let services = Services {
                schedules: Some(helpers.schedules),
                hooks: Some(helpers.hooks),
                history: Some(history),
                pools: Some(helpers.pools),
                traces,
                dashboard_dir,
                change_all_jobs: settings.owners.change_jobs == ChangeJobs::All,
                limits,
                ..services
            };
            let web = http::Web {
                listener,
                local,
                tls: server_config,
                services,
                recorder,
                stop: stop.clone(),
            };
            Some(http::start(web)?)
        }
    };
    let engine = Engine {
        hub,
        server,
        journal,
        keeper,
        handle: handle.clone(),
        receptions,
        doors_thread: settings.doors_thread,
        http_ended,
        stop: stop.clone(),
        stop_ms: settings.stop_ms,
        dir: settings.dir.clone(),
        claim,
    };
    let ended = CancellationToken::new();
    let at_end = ended.clone().drop_guard();
    let thread = std::thread::Builder::new()
        .name("laboro-hub".into())
        .spawn(move || {
            let _at_end = at_end;
            engine.run()
        })
        .map_err(HubError::Thread)?;
    Ok(RunningHub {
        http,
        native,
        doors,
        access,
        handle,
        outputs,
        settings: settings.clone(),
        identity,
        socket,
        clock,
        stop,
        ended,
        thread: Some(thread),
    })
}

/// Those that were asked for, with the hub's own first.
fn doors(settings: &Settings) -> Vec<DoorSettings> {
    let native = match settings.native {
        Listen::Off => None,
        Listen::At(address) => Some(DoorSettings::native(address, settings.native_allow.clone())),
    };
    native.into_iter().chain(settings.door.iter().cloned()).collect()
}

type OpenDoors = (Vec<Arc<OpenDoor>>, Vec<TcpListener>);

fn bind(
    doors: &[DoorSettings],
    mechanisms: &[Mechanism],
    settings: &Settings,
    mut native: Option<bind::BoundSocket>,
) -> Result<OpenDoors, HubError> {
    let mut bound = (Vec::new(), Vec::new());
    for (door, mechanism) in doors.iter().zip(mechanisms) {
        let bound_before = native.take_if(|_| door.dialect() == Dialect::Native);
        let (listener, address) = match bound_before {
            Some(bound) => bound,
            None => bind::listener(door.dialect().word(), door.address.at())?,
        };
        bound.0.push(Arc::new(OpenDoor {
            dialect: door.dialect(),
            address,
            group: door.group.clone().unwrap_or_else(|| settings.group.clone()),
            allow: door.allow.clone(),
            identity: identity(door, address.port()),
            curve: curve::public_key(mechanism),
            broker: OnceLock::new(),
            stats: Arc::new(DoorStats::default()),
        }));
        bound.1.push(listener);
    }
    Ok(bound)
}

/// A client of rrmq sends to the very name that it connected to.
fn identity(door: &DoorSettings, port: u16) -> Option<String> {
    let typed = || format!("tcp://{}", door.address.typed(port));
    door.kind.identity().cloned().or_else(|| (door.dialect() == Dialect::Rrmq).then(typed))
}

fn limits(settings: &Settings) -> ConnectionLimits {
    ConnectionLimits {
        message_bytes: settings.limits.message_bytes,
        handshake_ms: settings.limits.handshake_ms,
        write_ms: settings.limits.write_ms,
        admission_ms: settings.limits.admission_ms,
        lost_ms: settings.limits.lost_ms,
    }
}

/// For the tables of names that come from peers.
fn seed() -> Result<u64, SecurityError> {
    let mut bytes = [0; 8];
    SystemRandom::new().fill(&mut bytes).map_err(|_| SecurityError::NoRandom)?;
    Ok(u64::from_le_bytes(bytes))
}

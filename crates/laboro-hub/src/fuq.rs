//! The door of fuq as its programs know it: HTTPS, with a websocket for nodes that stay connected, requests for
//! nodes that poll, and requests for the command line. What is said inside the websocket is the dialect's affair.

mod absence;
mod answer;
mod client;
mod jobs;
mod message;
mod nodes;
mod numbers;
mod pace;
mod password;
mod persistent;
mod poller;
mod register;
mod serve;

#[cfg(test)]
mod tests;

pub(crate) use serve::receive;

use crate::listen::Reception;
use crate::security::{Failures, Identity, LoginLimits, SecurityError, hash_of};
use absence::Absence;
use answer::{ACCESS, FuqRefused};
use laboro_core::Time;
use laboro_dialects::fuq2::Numbering;
use numbers::NumberBook;
use password::Password;
use poller::Poller;
use register::{Node, NodeRegister};
use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio_rustls::TlsAcceptor;
use tokio_util::task::TaskTracker;

/// What can be said of a door of this kind.
#[derive(Debug, Clone, Default)]
pub(crate) struct FuqSettings {
    /// The file with the password. `None`: one of the hub's own, made when it is not there.
    pub auth: Option<PathBuf>,
    /// Certificate and key. `None`: the hub's.
    pub tls: Option<(PathBuf, PathBuf)>,
    pub numbering: Numbering,
    /// How long a login is good. `None`: as long as the original says.
    pub cookie_ms: Option<u64>,
    /// How long a polling node that should have asked may be silent before it counts as gone. `None`: the default.
    pub quiet_ms: Option<u64>,
    /// `client/shutdown` is refused.
    pub stays: bool,
    /// How many wrong passwords an address may show.
    pub logins: LoginLimits,
}

/// What the connections of one door share.
pub(crate) struct FuqState {
    password: Password,
    failures: Mutex<Failures>,
    tls: TlsAcceptor,
    numbering: Numbering,
    cookie_ms: u64,
    quiet_ms: u64,
    stays: bool,
    register: Mutex<NodeRegister>,
    /// Nodes that are connected by websocket, by the number of their connection.
    connected: Mutex<BTreeMap<u64, Node>>,
    /// Nodes that poll, by name, for as long as one of their connections stands.
    pollers: Mutex<HashMap<String, Weak<Poller>>>,
    absence: Mutex<Absence>,
    numbers: NumberBook,
    tasks: TaskTracker,
}

/// As the original's cookies.
const COOKIE_LIFE: Duration = Duration::from_secs(14 * 24 * 3600);
const QUIET_MS: u64 = 300_000;

impl FuqState {
    /// `number` tells the doors of one hub apart, from 1.
    pub fn open(
        dir: &Path,
        number: usize,
        identity: &Identity,
        settings: &FuqSettings,
    ) -> Result<FuqState, SecurityError> {
        let password = match &settings.auth {
            Some(path) => Password::read(path)?,
            None => Password::read_or_make(&dir.join("fuq.auth"))?,
        };
        let config = match &settings.tls {
            Some((certificate, key)) => Identity::read(certificate, key)?.web_config()?,
            None => identity.web_config()?,
        };
        let name = match number {
            1 => "fuq".to_owned(),
            number => format!("fuq-{number}"),
        };
        let file = |kind: &str| dir.join(format!("{name}.{kind}"));
        let cookie_ms = settings.cookie_ms.unwrap_or(COOKIE_LIFE.as_millis() as u64);
        Ok(FuqState {
            password,
            failures: Mutex::new(Failures::new(settings.logins)),
            tls: TlsAcceptor::from(Arc::new(config)),
            numbering: settings.numbering,
            cookie_ms,
            quiet_ms: settings.quiet_ms.unwrap_or(QUIET_MS),
            stays: settings.stays,
            register: Mutex::new(NodeRegister::open(&file("nodes"), cookie_ms)?),
            connected: Mutex::default(),
            pollers: Mutex::default(),
            absence: Mutex::default(),
            numbers: NumberBook::open(&file("numbers"))?,
            tasks: TaskTracker::new(),
        })
    }

    /// Looks after nodes that nobody hears of any more.
    pub fn watch(self: &Arc<FuqState>, reception: &Reception) {
        self.tasks.spawn(absence::watch(Arc::clone(self), reception.clone()));
    }

    /// The right password is accepted, also after wrong ones from the same address.
    fn admit(&self, shown: &str, peer: IpAddr, now: Time) -> Result<(), FuqRefused> {
        if self.password.is(shown) {
            return Ok(());
        }
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(seconds) = failures.wait_s(Some(peer), now) {
            return Err(FuqRefused::TooMany(seconds));
        }
        failures.note(Some(peer), hash_of(shown.as_bytes()), now);
        Err(FuqRefused::Forbidden(ACCESS))
    }

    /// Until nobody works for this door any more.
    pub async fn ended(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }

    fn register(&self) -> MutexGuard<'_, NodeRegister> {
        self.register.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn connected(&self) -> MutexGuard<'_, BTreeMap<u64, Node>> {
        self.connected.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pollers(&self) -> MutexGuard<'_, HashMap<String, Weak<Poller>>> {
        self.pollers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn absence(&self) -> MutexGuard<'_, Absence> {
        self.absence.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A connection of the node stands.
    fn polls(&self, name: &str) -> bool {
        self.pollers().get(name).is_some_and(|poller| poller.strong_count() > 0)
    }

    /// Unless the node has come again meanwhile.
    fn forget_poller(&self, name: &str) {
        let mut pollers = self.pollers();
        let standing = pollers.get(name).and_then(Weak::upgrade);
        if standing.is_none_or(|poller| poller.has_ended()) {
            pollers.remove(name);
        }
    }
}

impl std::fmt::Debug for FuqState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FuqState").field("numbering", &self.numbering).finish_non_exhaustive()
    }
}

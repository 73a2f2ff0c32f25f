//! The door of fuq as its programs know it: HTTPS, with a websocket for nodes that stay connected, requests for
//! nodes that poll, and requests for the command line. What is said inside the websocket is the dialect's affair.

mod answer;
mod client;
mod jobs;
mod nodes;
mod pace;
mod password;
mod persistent;
mod poller;
mod register;
mod said;
mod serve;

#[cfg(test)]
mod tests;

pub use password::read_password;
pub use persistent::{accept_of, new_key};
pub(crate) use serve::receive;

use crate::security::{Identity, SecurityError};
use laboro_dialects::fuq2::Numbering;
use password::Password;
use poller::Poller;
use register::{Node, Register};
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio_rustls::TlsAcceptor;
use tokio_util::task::TaskTracker;

/// What can be said of a door of this kind.
#[derive(Debug, Clone, Default)]
pub(crate) struct Settings {
    /// The file with the password. `None`: one of the hub's own, made when it is not there.
    pub auth: Option<PathBuf>,
    /// Certificate and key. `None`: the hub's.
    pub tls: Option<(PathBuf, PathBuf)>,
    pub numbering: Numbering,
    /// How long a login is good. `None`: as long as the original says.
    pub cookie_ms: Option<u64>,
    /// `client/shutdown` is refused.
    pub stays: bool,
}

/// What the connections of one door share.
pub(crate) struct Door {
    password: Password,
    tls: TlsAcceptor,
    numbering: Numbering,
    cookie_ms: u64,
    stays: bool,
    register: Mutex<Register>,
    /// Nodes that are connected by websocket, by the number of their connection.
    connected: Mutex<BTreeMap<u64, Node>>,
    /// Nodes that poll, by name, for as long as one of their connections stands.
    pollers: Mutex<HashMap<String, Weak<Poller>>>,
    tasks: TaskTracker,
}

/// As the original's cookies.
const COOKIE_LIFE: Duration = Duration::from_secs(14 * 24 * 3600);

impl Door {
    /// `number` tells the doors of one hub apart, from 1.
    pub fn open(
        dir: &Path,
        number: usize,
        identity: &Identity,
        settings: &Settings,
    ) -> Result<Door, SecurityError> {
        let password = match &settings.auth {
            Some(path) => Password::read(path)?,
            None => Password::read_or_make(&dir.join("fuq.auth"))?,
        };
        let config = match &settings.tls {
            Some((certificate, key)) => Identity::read(certificate, key)?.web_config()?,
            None => identity.web_config()?,
        };
        let file = match number {
            1 => "fuq.nodes".to_owned(),
            number => format!("fuq-{number}.nodes"),
        };
        let cookie_ms = settings.cookie_ms.unwrap_or(COOKIE_LIFE.as_millis() as u64);
        Ok(Door {
            password,
            tls: TlsAcceptor::from(Arc::new(config)),
            numbering: settings.numbering,
            cookie_ms,
            stays: settings.stays,
            register: Mutex::new(Register::open(&dir.join(file), cookie_ms)?),
            connected: Mutex::default(),
            pollers: Mutex::default(),
            tasks: TaskTracker::new(),
        })
    }

    /// Until nobody works for this door any more.
    pub async fn ended(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }

    fn register(&self) -> MutexGuard<'_, Register> {
        self.register.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn connected(&self) -> MutexGuard<'_, BTreeMap<u64, Node>> {
        self.connected.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pollers(&self) -> MutexGuard<'_, HashMap<String, Weak<Poller>>> {
        self.pollers.lock().unwrap_or_else(PoisonError::into_inner)
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

impl std::fmt::Debug for Door {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Door").field("numbering", &self.numbering).finish_non_exhaustive()
    }
}

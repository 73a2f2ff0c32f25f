//! How a journal in NATS is reached and kept. Secrets are here and not on the command line, where everybody on
//! the machine can read them.

use laboro_jetstream::{Login, Options, Tls};
use std::path::PathBuf;
use std::time::Duration;

#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NatsSettings {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password: Option<String>,
    /// A file with the seed of an nkey.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nkey: Option<PathBuf>,
    /// A file of credentials: a JWT and its seed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credentials: Option<PathBuf>,
    /// Never without TLS.
    pub tls: bool,
    /// Who vouches for the servers, beside those that the system trusts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authority: Option<PathBuf>,
    /// Our own certificate and its key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certificate: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<PathBuf>,
    /// How many servers keep each message.
    pub replicas: usize,
    /// Where the servers say how they are set up: `http://host:8222` each.
    pub monitors: Vec<String>,
    /// Go on although the servers may acknowledge before they write to disk.
    pub accept_unsynced: bool,
    /// A hub that was not heard of for so long may be replaced by another one.
    pub lease_ms: u64,
    /// A hub that gets no answer for so long stops.
    pub patience_ms: u64,
}

impl Default for NatsSettings {
    fn default() -> NatsSettings {
        let usual = Options::new("", "");
        NatsSettings {
            token: None,
            user: None,
            password: None,
            nkey: None,
            credentials: None,
            tls: false,
            authority: None,
            certificate: None,
            key: None,
            replicas: usual.replicas,
            monitors: Vec::new(),
            accept_unsynced: usual.accept_unsynced,
            lease_ms: usual.lease.as_millis() as u64,
            patience_ms: usual.patience.as_millis() as u64,
        }
    }
}

impl NatsSettings {
    pub fn options(&self, servers: &str, name: &str) -> Options {
        Options {
            login: self.login(),
            tls: Tls {
                is_required: self.tls,
                authority: self.authority.clone(),
                certificate: self.certificate.clone().zip(self.key.clone()),
            },
            replicas: self.replicas,
            monitors: self.monitors.clone(),
            accept_unsynced: self.accept_unsynced,
            lease: Duration::from_millis(self.lease_ms.max(300)),
            patience: Duration::from_millis(self.patience_ms.max(self.lease_ms)),
            ..Options::new(servers, name)
        }
    }

    fn login(&self) -> Login {
        match self {
            NatsSettings { credentials: Some(file), .. } => Login::Credentials(file.clone()),
            NatsSettings { nkey: Some(file), .. } => Login::Nkey(file.clone()),
            NatsSettings { user: Some(name), password, .. } => {
                Login::User { name: name.clone(), password: password.clone().unwrap_or_default() }
            }
            NatsSettings { token: Some(token), .. } => Login::Token(token.clone()),
            _ => Login::None,
        }
    }
}

//! What a journal in NATS has to be told. Everything but the servers has a default.

use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Clone)]
pub struct Options {
    /// As `nats://host:port` or `tls://host:port`; any of them will do.
    pub servers: Vec<String>,
    /// Of the hub. Its streams are named after it.
    pub name: String,
    pub login: Login,
    pub tls: Tls,
    /// How many servers keep each message.
    pub replicas: usize,
    /// `http://host:port` of the servers' monitoring, where they say how they are set up.
    pub monitors: Vec<String>,
    /// Go on although it is not known that the servers write to disk before they acknowledge.
    pub accept_unsynced: bool,
    /// A hub that has written nothing for so long may be replaced. It writes three times as often.
    pub lease: Duration,
    /// A hub that gets no clear answer for so long stops. Longer than NATS takes to elect a leader.
    pub patience: Duration,
    /// A snapshot is made when so much was written, or twice as much as the last one has.
    pub condense_after_bytes: u64,
    pub condense_after_messages: u64,
    /// What other hubs and people are told of this one.
    pub about: About,
}

/// Empty: it has no such door.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct About {
    pub host: String,
    /// Where others reach it: host and port.
    pub http: String,
    pub native: String,
}

#[derive(Debug, Clone, Default)]
pub enum Login {
    /// None, or in the addresses.
    #[default]
    None,
    Token(String),
    User {
        name: String,
        password: String,
    },
    /// A file with the seed of an nkey.
    Nkey(PathBuf),
    /// A file with a JWT and its seed.
    Credentials(PathBuf),
}

#[derive(Debug, Clone, Default)]
pub struct Tls {
    pub is_required: bool,
    /// Who vouches for the servers, beside those that the system trusts.
    pub authority: Option<PathBuf>,
    /// Our own certificate and its key.
    pub certificate: Option<(PathBuf, PathBuf)>,
}

impl About {
    /// In the form in which other hubs read it.
    pub(crate) fn text(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("three strings have a form in JSON")
    }
}

impl Options {
    /// `servers` as people write them: `nats://h1,h2:4223,h3`.
    pub fn new(servers: &str, name: &str) -> Options {
        let (scheme, hosts) = servers.split_once("://").unwrap_or(("nats", servers));
        let each = hosts.split(',').map(|host| host.trim().trim_end_matches('/'));
        let each = each.filter(|host| !host.is_empty());
        Options {
            servers: each.map(|host| format!("{scheme}://{host}")).collect(),
            name: name.to_owned(),
            login: Login::None,
            tls: Tls::default(),
            replicas: 3,
            monitors: Vec::new(),
            accept_unsynced: false,
            lease: Duration::from_secs(3),
            patience: Duration::from_secs(20),
            condense_after_bytes: 64 << 20,
            condense_after_messages: 100_000,
            about: About::default(),
        }
    }
}

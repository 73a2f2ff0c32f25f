//! Whom to connect to, and as whom: addresses, identities and keys as they are typed.

use bytes::Bytes;
use laboro_dialects::zmtp::{Limits, Mechanism, Options, SocketType};
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

/// A server, and who we are to it.
#[derive(Clone, Debug)]
pub struct Target {
    /// Host and port.
    pub(super) host: String,
    /// As ZeroMQ writes it, which is what identities begin with.
    url: String,
    identity: Option<String>,
    mechanism: Mechanism,
}

impl Target {
    /// `tcp://HOST:PORT` or `HOST:PORT`, without CURVE and with a name of its own for each connection.
    pub fn at(address: &str) -> Result<Target, String> {
        let host = Target::host(address)?;
        let url = format!("tcp://{host}");
        Ok(Target { host, url, identity: None, mechanism: Mechanism::Null })
    }

    /// With this name, if there is one, and this kind of security.
    pub fn named(self, identity: Option<String>, mechanism: Mechanism) -> Target {
        Target { identity, mechanism, ..self }
    }

    /// How the connection is secured.
    pub fn mechanism(&self) -> &Mechanism {
        &self.mechanism
    }

    /// Host and port of an address.
    pub fn host(address: &str) -> Result<String, String> {
        let host = address.strip_prefix("tcp://").unwrap_or(address);
        let has_port = host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        match has_port && !host.contains("//") {
            true => Ok(host.to_owned()),
            false => Err(format!("{address} is not an address: write tcp://HOST:PORT")),
        }
    }

    /// A new identity for each, in the form that the original gives its portals.
    pub fn options(&self) -> Options {
        let identity = match &self.identity {
            Some(identity) => identity.clone(),
            None => format!("{}:{}", self.url, random() % 1_000_000 + 1),
        };
        Options {
            identity: Bytes::from(identity),
            mechanism: self.mechanism.clone(),
            // Portals of this protocol ask each other whether they are alive by messages of their own.
            limits: Limits { heartbeat_ms: 0, ..Limits::default() },
            ..Options::new(SocketType::Router)
        }
    }

    /// For those that come beside the first: they need names of their own.
    pub fn child(&self, number: usize) -> Target {
        let identity = self.identity.as_ref().map(|name| format!("{name}.{number}"));
        Target { identity, ..self.clone() }
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.url)
    }
}

/// Good enough to tell peers apart; nothing depends on nobody guessing it.
fn random() -> u64 {
    RandomState::new().hash_one(std::process::id())
}

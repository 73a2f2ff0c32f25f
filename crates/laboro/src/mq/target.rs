//! Whom to connect to, and as whom: addresses, identities and keys as they are typed.

use super::args::To;
use crate::exit::usage;
use bytes::Bytes;
use laboro_dialects::zmtp::{Limits, Mechanism, Options, SocketType};
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

#[derive(Clone, Debug)]
pub(crate) struct Target {
    /// Host and port.
    pub(super) host: String,
    /// As ZeroMQ writes it, which is what identities begin with.
    url: String,
    identity: Option<String>,
    mechanism: Mechanism,
}

impl Target {
    pub(super) fn of(to: &To) -> anyhow::Result<Target> {
        let mut target = Target::at(&to.server)?;
        if to.identity.as_ref().is_some_and(|name| name.is_empty() || name.len() > 240) {
            return Err(usage("--identity: a name has 1 to 240 bytes"));
        }
        target.identity = to.identity.clone();
        target.mechanism = to.curve.mechanism()?;
        Ok(target)
    }

    pub(crate) fn at(address: &str) -> anyhow::Result<Target> {
        let host = host(address)?;
        let url = format!("tcp://{host}");
        Ok(Target { host, url, identity: None, mechanism: Mechanism::Null })
    }

    /// A new identity for each, in the form that the original gives its portals.
    pub(crate) fn options(&self) -> Options {
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
    pub(super) fn child(&self, number: usize) -> Target {
        let identity = self.identity.as_ref().map(|name| format!("{name}.{number}"));
        Target { identity, ..self.clone() }
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.url)
    }
}

/// `tcp://HOST:PORT` or `HOST:PORT`, without the first part.
pub(super) fn host(address: &str) -> anyhow::Result<String> {
    let host = address.strip_prefix("tcp://").unwrap_or(address);
    let has_port = host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    match has_port && !host.contains("//") {
        true => Ok(host.to_owned()),
        false => Err(usage(format!("{address} is no address; write it as tcp://HOST:PORT"))),
    }
}

/// Good enough to tell peers apart; nothing depends on nobody guessing it.
fn random() -> u64 {
    RandomState::new().hash_one(std::process::id())
}

//! Who may do what. Tokens carry a role and a group; doors and the HTTP API ask here and nowhere else.

use laboro_core::{Name, Time};
use std::net::IpAddr;

/// What a token allows. Every role may also watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    Watch,
    Submit,
    Work,
    Admin,
}

/// Whoever showed a good token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Who {
    /// The token's own name, for the audit log. Never the secret.
    pub token: String,
    pub role: Role,
    /// `None`: every group.
    pub group: Option<Name>,
}

/// Why someone was turned away, in words for them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    #[error("no such token: make one with `laboro access` on the hub's machine")]
    Unknown,
    #[error("the token {0} has expired: make a new one with `laboro access` on the hub's machine")]
    Expired(String),
    #[error("too many wrong tokens from this address: try again in {0} seconds")]
    TooMany(u64),
}

/// Knows the tokens.
pub trait Doorman: Send + Sync {
    fn identify(&self, secret: &[u8], peer: Option<IpAddr>, now: Time) -> Result<Who, Denied>;
}

//! Who may do what. Tokens carry a role and a group; doors and the HTTP API ask here and nowhere else.

mod certificate;
mod curve;
mod failures;
mod job_keys;
mod one_token;
mod own_user;
mod tokens;

#[cfg(test)]
mod tests;

pub use certificate::Identity;
pub use curve::{CurveKey, curve_keys, make_curve_keys, read_curve_keys};
pub use laboro_api::access::host_name;
pub use one_token::OneToken;
pub use own_user::{OwnUser, user_name};
pub use tokens::{NewToken, Token, TokenBook, Tokens};

pub(crate) use failures::{Failures, LoginLimits};
pub(crate) use laboro_api::access::{Access, Role, Secret, hash_of, in_line};
pub(crate) use laboro_net::SecurityError;
pub(crate) use laboro_net::secret_file::{make_dir, read as read_secret, replace as write_secret};
pub(crate) use tokens::TokenAdmission;

use laboro_core::{JobId, Name, Time};
use std::net::IpAddr;

/// Whoever showed a good token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Who {
    /// Which token exactly: the name of one that was revoked can be given to another.
    pub id: String,
    /// The token's own name, for the audit log. Never the secret.
    pub token: String,
    /// Whose jobs are those that it submits: one person may have several tokens.
    pub owner: String,
    pub role: Role,
    /// `None`: every group.
    pub group: Option<Name>,
    /// It is a task of this job, and the token is good while the job lives, in the job's group.
    pub job: Option<JobId>,
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

    /// False once the token was revoked or has expired.
    fn still_holds(&self, who: &Who, now: Time) -> bool;
}

//! Why a hub gave no answer, and which of the reasons may pass by themselves.

use crate::Problem;
use std::io;

/// Why a hub gave no answer, or none that helps.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// Nobody answers there.
    #[error("no hub at {address}: {source}")]
    Unreachable {
        /// The hub.
        address: String,
        /// What the system says.
        source: io::Error,
    },
    /// The certificate is not that of the access file.
    #[error("the server at {address} is not the hub of the access file: {why}")]
    Stranger {
        /// The hub.
        address: String,
        /// What was wrong.
        why: String,
    },
    /// It takes too long.
    #[error("the hub at {address} did not answer within {seconds} seconds")]
    Silent {
        /// The hub.
        address: String,
        /// How long it was waited for.
        seconds: u64,
    },
    /// The connection broke.
    #[error("the connection to {address} broke: {why}")]
    Broken {
        /// The hub.
        address: String,
        /// What was wrong.
        why: String,
    },
    /// The hub refuses.
    #[error("{0}")]
    Refused(Box<Problem>),
    /// The answer is not that of a hub.
    #[error("{address} answered {status}, not as a hub does: is it a hub?")]
    Strange {
        /// The hub.
        address: String,
        /// The HTTP status.
        status: u16,
    },
    /// The answer cannot be read.
    #[error("the answer of {address} cannot be understood: {why}")]
    Malformed {
        /// The hub.
        address: String,
        /// What was wrong.
        why: String,
    },
    /// The request cannot be written.
    #[error("{what} cannot be part of a request")]
    BadRequest {
        /// The part that cannot be sent.
        what: String,
    },
}

impl ClientError {
    /// Whether the same may go well once the hub is back.
    pub fn is_away(&self) -> bool {
        use ClientError::{Broken, Silent, Unreachable};
        matches!(self, Unreachable { .. } | Silent { .. } | Broken { .. }) || self.is_following()
    }

    /// The hub that was asked only follows another, and nobody has looked at the request.
    pub(super) fn is_following(&self) -> bool {
        matches!(self.reason(), Some("no_leader" | "not_leader"))
    }

    /// The stable word of a refusal.
    pub fn reason(&self) -> Option<&str> {
        match self {
            ClientError::Refused(problem) => Some(&problem.reason),
            _ => None,
        }
    }
}

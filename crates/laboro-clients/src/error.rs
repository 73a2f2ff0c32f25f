//! Why a ZeroMQ server could not be asked.

use laboro_dialects::dwork::ClientError;
use laboro_dialects::zmtp::ZmtpError;
use std::io;
use std::time::Duration;

/// Every kind names the server.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LinkError {
    /// No connection stands.
    #[error("{address}: {source}")]
    Unreachable {
        /// The server.
        address: String,
        /// What the system says.
        source: io::Error,
    },
    /// It may be busy, or something else than it was taken for.
    #[error("{address} did not answer within {patience:?}")]
    Silent {
        /// The server.
        address: String,
        /// How long it was waited for.
        patience: Duration,
    },
    /// It hung up.
    #[error("{address} closed the connection")]
    Closed {
        /// The server.
        address: String,
    },
    /// The two sides do not agree on how to speak.
    #[error("{address}: {source}")]
    Zmtp {
        /// The server.
        address: String,
        /// What was wrong.
        source: ZmtpError,
    },
    /// It speaks ZeroMQ, and not the dialect.
    #[error("{address}: {source}")]
    Dialect {
        /// The server.
        address: String,
        /// What was wrong.
        source: ClientError,
    },
    /// It speaks out of turn.
    #[error("{address} answers before it is asked")]
    Unasked {
        /// The server.
        address: String,
    },
}

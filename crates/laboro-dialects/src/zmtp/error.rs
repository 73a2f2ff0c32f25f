//! Why a connection ends. Every one of these is final: the bytes after it mean nothing.

use super::SocketType;

/// Why a connection ended. The words are for the log.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum ZmtpError {
    #[error("peer does not speak zmtp: it began with \"{0}\"")]
    NotZmtp(String),
    #[error("peer speaks zmtp {0}, which is too old: 3.0 is needed, as in libzmq 4 and newer")]
    TooOld(&'static str),
    #[error("peer wants the mechanism {peer:?}, this side wants {ours}")]
    OtherMechanism { ours: &'static str, peer: String },
    #[error("both sides are servers of CURVE")]
    TwoServers,
    #[error("peer sent a message before the handshake was over")]
    EarlyMessage,
    #[error("frame has flags {0:#04x}, of which some have no meaning")]
    Flags(u8),
    #[error("frame of {bytes} bytes is over the limit of {max}")]
    LongFrame { bytes: u64, max: usize },
    #[error("command of {bytes} bytes is over the limit of {max}")]
    LongCommand { bytes: u64, max: usize },
    #[error("message of at least {bytes} bytes is over the limit of {max}")]
    LongMessage { bytes: usize, max: usize },
    #[error("message has more than {max} frames")]
    ManyFrames { max: usize },
    #[error("command \"{name}\" came where {wanted} belongs")]
    OtherCommand { name: String, wanted: &'static str },
    #[error("{command} is malformed: {why}")]
    Malformed { command: &'static str, why: &'static str },
    #[error("peer has a socket of the unknown type \"{0}\"")]
    UnknownSocket(String),
    #[error("a {peer} socket cannot talk to a {ours} socket")]
    OtherSocket { ours: SocketType, peer: SocketType },
    #[error("peer refused the connection: \"{0}\"")]
    Refused(String),
    #[error("{command} does not open: a side has another key than the other thinks")]
    Box { command: &'static str },
    #[error("nonce {number} came after {last}: something was sent twice")]
    Nonce { number: u64, last: u64 },
    #[error("client with the key {key} is not allowed here")]
    Denied { key: String },
    #[error("handshake was not over after {ms} ms")]
    SlowHandshake { ms: u64 },
    #[error("peer was silent for {ms} ms")]
    Silent { ms: u64 },
}

impl ZmtpError {
    /// The peer has not proven that it may come in; else it does not speak as it should.
    pub fn is_denial(&self) -> bool {
        match self {
            ZmtpError::Denied { .. } | ZmtpError::Box { .. } => true,
            // Whoever brings no key, or another proof than the one that is asked for.
            ZmtpError::OtherMechanism { ours, .. } => *ours != "NULL",
            _ => false,
        }
    }
}

/// Bytes of a stranger, short and safe for a log.
pub(super) fn shown(bytes: &[u8]) -> String {
    const SHOWN_MAX: usize = 32;
    let mut text = bytes[..bytes.len().min(SHOWN_MAX)].escape_ascii().to_string();
    if bytes.len() > SHOWN_MAX {
        text.push_str("...");
    }
    text
}

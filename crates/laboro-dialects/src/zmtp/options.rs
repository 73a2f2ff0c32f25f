//! What one side of a connection wants: its socket, how it proves who it is, and how much it will take.

use super::key::{KeyBytes, to_text};
use super::{KeyPair, SocketType};
use bytes::Bytes;
use std::fmt;
use std::sync::Arc;

/// How one side of a connection behaves.
#[derive(Clone, Debug)]
pub struct Options {
    /// What kind of socket this side is.
    pub socket: SocketType,
    /// Told to the peer by REQ, DEALER and ROUTER sockets, at most 255 bytes. Empty: the peer makes one up.
    pub identity: Bytes,
    /// How this side proves who it is.
    pub mechanism: Mechanism,
    /// This side listened and the other connected. The side that connected is the one that sends PINGs.
    pub as_server: bool,
    /// How much and how long it takes.
    pub limits: Limits,
}

impl Options {
    /// No identity, no authentication, the default limits, connecting.
    pub fn new(socket: SocketType) -> Options {
        Options {
            socket,
            identity: Bytes::new(),
            mechanism: Mechanism::Null,
            as_server: false,
            limits: Limits::default(),
        }
    }
}

/// How the two sides prove who they are.
#[derive(Clone)]
#[allow(missing_docs)]
pub enum Mechanism {
    /// Not at all.
    Null,
    /// CURVE, as the side that clients have to know the public key of.
    CurveServer {
        secret: KeyBytes,
        public: KeyBytes,
        /// Which clients may come in.
        allow: Allow,
    },
    /// CURVE, as the side that knows the server's public key.
    CurveClient { server_public: KeyBytes, secret: KeyBytes, public: KeyBytes },
}

/// Which public keys a CURVE server lets in.
pub type Allow = Arc<dyn Fn(&KeyBytes) -> bool + Send + Sync>;

impl Mechanism {
    /// CURVE with these keys, for clients that are allowed.
    pub fn curve_server(keys: &KeyPair, allow: Allow) -> Mechanism {
        Mechanism::CurveServer { secret: keys.secret, public: keys.public, allow }
    }

    /// CURVE with these keys, towards the server with this public key.
    pub fn curve_client(server_public: KeyBytes, keys: &KeyPair) -> Mechanism {
        Mechanism::CurveClient { server_public, secret: keys.secret, public: keys.public }
    }

    /// As the greeting says it.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Mechanism::Null => "NULL",
            Mechanism::CurveServer { .. } | Mechanism::CurveClient { .. } => "CURVE",
        }
    }

    /// As the greeting says it. NULL knows no server.
    pub(super) fn is_server(&self) -> bool {
        matches!(self, Mechanism::CurveServer { .. })
    }
}

/// Secrets stay out of logs.
impl fmt::Debug for Mechanism {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Mechanism::Null => f.write_str("Null"),
            Mechanism::CurveServer { public, .. } => write!(f, "CurveServer({})", to_text(public)),
            Mechanism::CurveClient { server_public, public, .. } => {
                write!(f, "CurveClient({} to {})", to_text(public), to_text(server_public))
            }
        }
    }
}

/// Reaching one ends the connection with an error that names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Of one frame.
    pub frame_bytes: usize,
    /// A longer frame does not end the connection if it is the last of several, where nothing is sealed:
    /// its message comes without it, so that it can be answered.
    pub leaves_out_long: bool,
    /// Frames of one message.
    pub frames_a_message: usize,
    /// All frames of a message together.
    pub message_bytes: usize,
    /// READY with its metadata is the only command that is ever long.
    pub command_bytes: usize,
    /// From `open` until both sides are ready.
    pub handshake_ms: u64,
    /// A PING after so long without a word from the peer, where this side connected. 0: never.
    pub heartbeat_ms: u64,
    /// How long the peer may leave a PING without any word at all.
    pub silence_ms: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            frame_bytes: 16 << 20,
            leaves_out_long: false,
            frames_a_message: 1024,
            message_bytes: 32 << 20,
            command_bytes: 4096,
            handshake_ms: 10_000,
            heartbeat_ms: 30_000,
            silence_ms: 30_000,
        }
    }
}

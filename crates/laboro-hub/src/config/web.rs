//! The bounds of the HTTP door and of wrong tokens, in a form for files.

use crate::http::Limits;
use crate::security::LoginLimits;
use std::time::Duration;

/// See `http::Limits`.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HttpSettings {
    pub connections: usize,
    #[serde(alias = "connections_an_address")]
    pub connections_per_address: usize,
    /// How long a TLS handshake may take.
    pub handshake_ms: u64,
    /// How long the head of a request may take, and a connection be without one.
    pub head_ms: u64,
    /// How long a body may take to arrive, or a piece of a stream.
    pub body_ms: u64,
    /// How long a peer may take none of what is sent to it.
    pub stall_ms: u64,
    /// A JSON body. What is larger comes as a stream.
    pub body_bytes: usize,
    /// Of all bodies that arrive or are worked on at once.
    pub bodies_bytes: usize,
    /// Tasks and arrays in one JSON body, and what all of them come after.
    pub body_tasks: usize,
    #[serde(alias = "body_preds")]
    pub body_after: usize,
    /// One line of a stream.
    pub line_bytes: usize,
    /// Viewers of events, and outputs followed, at once.
    pub viewers: usize,
}

impl Default for HttpSettings {
    fn default() -> HttpSettings {
        let usual = Limits::default();
        let ms = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        HttpSettings {
            connections: usual.connections,
            connections_per_address: usual.connections_per_address,
            handshake_ms: ms(usual.handshake),
            head_ms: ms(usual.head),
            body_ms: ms(usual.body),
            stall_ms: ms(usual.stall),
            body_bytes: usual.body_bytes,
            bodies_bytes: usual.bodies_bytes,
            body_tasks: usual.body_tasks,
            body_after: usual.body_after,
            line_bytes: usual.line_bytes,
            viewers: usual.viewers,
        }
    }
}

impl HttpSettings {
    pub(crate) fn limits(&self) -> Limits {
        Limits {
            connections: self.connections,
            connections_per_address: self.connections_per_address,
            handshake: Duration::from_millis(self.handshake_ms),
            head: Duration::from_millis(self.head_ms),
            body: Duration::from_millis(self.body_ms),
            stall: Duration::from_millis(self.stall_ms),
            body_bytes: self.body_bytes,
            bodies_bytes: self.bodies_bytes,
            body_tasks: self.body_tasks,
            body_after: self.body_after,
            line_bytes: self.line_bytes,
            viewers: self.viewers,
            ..Limits::default()
        }
    }
}

/// Whoever shows many different wrong tokens has to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LoginSettings {
    /// So many different wrong tokens of one address in one window.
    pub wrong_tokens: u32,
    pub window_ms: u64,
}

impl Default for LoginSettings {
    fn default() -> LoginSettings {
        let LoginLimits { wrong_max, window_ms } = LoginLimits::default();
        LoginSettings { wrong_tokens: wrong_max, window_ms }
    }
}

impl LoginSettings {
    pub(crate) fn limits(self) -> LoginLimits {
        LoginLimits { wrong_max: self.wrong_tokens, window_ms: self.window_ms }
    }
}

//! Every bound of the HTTP door, with its default. Reaching one is a clear refusal or a closed connection.

use crate::listen::Network;
use std::time::Duration;

#[derive(Clone, Debug)]
pub struct Limits {
    /// Who may come. Empty: everyone who reaches it.
    pub allow: Vec<Network>,
    /// Connections at once, and from one address.
    pub connections: usize,
    pub connections_per_address: usize,
    /// How long a TLS handshake may take.
    pub handshake: Duration,
    /// How long the head of a request may take, and a connection be without one.
    pub head: Duration,
    /// How long a body may take to arrive, or a piece of a stream.
    pub body: Duration,
    /// How long a peer may take none of what is sent to it.
    pub stall: Duration,
    /// How often what takes long is asked whether its token is still good.
    pub admission: Duration,
    /// How long requests may go on once the hub stops.
    pub farewell: Duration,
    pub head_bytes: usize,
    pub headers: usize,
    /// A JSON body. What is larger comes as a stream.
    pub body_bytes: usize,
    /// Of all that arrive or are worked on at once.
    pub bodies_bytes: usize,
    /// Tasks and arrays in a JSON body, and what they come after: the hub takes them in one step.
    pub body_tasks: usize,
    pub body_after: usize,
    /// Different settings of those tasks: the hub has a limit for them, too.
    pub body_profiles: usize,
    /// One line of a stream.
    pub line_bytes: usize,
    /// Tasks and bytes of a stream that go to the hub in one piece.
    pub batch_tasks: usize,
    pub batch_bytes: usize,
    /// The longest wait of `GET wait`.
    pub wait: Duration,
    /// Viewers of events, and outputs followed, at once.
    pub viewers: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            allow: Vec::new(),
            connections: 2048,
            connections_per_address: 512,
            handshake: Duration::from_secs(10),
            head: Duration::from_secs(30),
            body: Duration::from_secs(60),
            stall: Duration::from_secs(60),
            admission: Duration::from_secs(5),
            farewell: Duration::from_secs(3),
            head_bytes: 64 << 10,
            headers: 64,
            // The longest line, and what a client sends with it.
            body_bytes: laboro_api::LINE_BYTES_MAX + (4 << 20),
            bodies_bytes: 64 << 20,
            body_tasks: 50_000,
            body_after: 300_000,
            body_profiles: 4096,
            line_bytes: laboro_api::LINE_BYTES_MAX,
            batch_tasks: 2000,
            batch_bytes: 4 << 20,
            wait: Duration::from_secs(60),
            viewers: 1000,
        }
    }
}

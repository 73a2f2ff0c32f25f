//! Websockets around a conversation: each message of the dialect travels in one binary message. A layer over either
//! side of a session, so that the driver of a connection drives this the same way. The HTTP request that opens a
//! websocket is made and answered elsewhere; extensions and text there are none.

mod client;
mod frame;
mod messages;
mod server;

#[cfg(test)]
mod tests;

pub use client::Client;
pub use server::Server;

/// Both sides say so often that they are alive.
const PING_MS: u64 = 60_000;
/// How long a peer may take to answer the close of a websocket.
const CLOSE_MS: u64 = 2_000;
/// A peer that says nothing for so long, though it is asked, is gone.
const SILENT_MS: u64 = 3 * PING_MS;

//! fuq version 1: 12-byte headers, no numbers, no names. The hub is the server; the connection is all a client
//! is known by. Bodies are those of version 2. See `spec/fuq.md`.

mod client;
mod codec;
mod probe;
mod server;

#[cfg(test)]
mod tests;

pub use client::{Client, ClientSettings};
pub use probe::probe;
pub use server::Server;

//! ZMTP 3.0 and 3.1: the protocol that ZeroMQ sockets speak over a byte stream, one connection at a time.
//! Bytes in, messages out, and back; time is an argument. No sockets, and no envelopes: the empty frame that
//! a REQ socket puts before its message is a frame like any other here.

mod command;
mod connection;
mod curve;
mod error;
mod frame;
mod greeting;
mod handshake;
mod key;
mod message;
mod options;
mod socket;

#[cfg(test)]
mod tests;

pub use connection::Connection;
pub use error::ZmtpError;
pub use key::{KeyBytes, KeyError, KeyPair, from_text as key_from_text, to_text as key_to_text};
pub use message::Message;
pub use options::{Allow, Limits, Mechanism, Options};
pub use socket::SocketType;

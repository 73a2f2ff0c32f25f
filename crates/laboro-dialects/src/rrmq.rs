//! rrmq: a round-robin server between clients and workers, on ZeroMQ's ROUTER sockets. The codec, the server
//! around the core's broker, and both other sides; no sockets, and ZMTP is next door.

mod client;
mod codec;
pub mod example;
mod pulse;
mod server;
mod stream;
mod worker;

#[cfg(test)]
mod tests;

pub use client::{Answer, Client, Failure, RequestNo};
pub use codec::{App, Command, Envelope, EnvelopeError, Parts, Status};
pub use server::{Effect, Server};
pub use stream::{Pack, Packet, PacketError, StreamReader, StreamState, Writer};
pub use worker::{Worker, WorkerOptions, WorkerTally};

//! Remembers elsewhere: the hub's journal in a NATS JetStream stream, which survives the hub's machine. The
//! events are those of `laboro_journal`; here they become messages, of which at most one is under way, and
//! each is taken only if it comes right after the last one its writer knows. So there is one writer at a
//! time, whatever was paused or cut off. What NATS does itself, replication above all, is not done here.

#![forbid(unsafe_code)]

mod message;
mod stream;

mod pen;
mod read;
mod snapshot;

mod lead;
mod nats;

mod check;
mod hubs;
mod journal;
mod mirror;
mod options;

#[cfg(test)]
mod tests;

pub use check::{Check, check};
pub use hubs::{HubView, ask_to_leave, hubs};
pub use journal::{JetStreamJournal, Opening, Recovery, SharedIdentity, Sharer, StreamError};
pub use lead::{Following, Wish};
pub use mirror::Mirror;
pub use options::{About, Login, Options, Tls};

//! Connects: the engine loop and what stands around it. The core decides, the journal remembers, and the
//! world is whatever brings commands and takes effects; `ring` turns them round. `process` starts all of it:
//! doors, their transports and sessions, tokens, and the store of what tasks print.

#![forbid(unsafe_code)]

pub mod config;
mod documents;
pub mod fuq;
pub mod history;
pub mod hooks;
pub mod http;
mod inbox;
pub mod keep;
pub mod listen;
mod measures;
pub mod mq;
mod outbox;
pub mod pools;
pub mod process;
mod ring;
pub mod schedules;
pub mod security;
pub mod traces;
mod transport;
mod tunnel;
mod underway;

pub use self::ring::{World, run};
pub use inbox::{Asker, Handle, Lost, Server, ServerOptions, Subscription, server};
pub use laboro_dialects::session::Delivery;
pub use underway::Underway;

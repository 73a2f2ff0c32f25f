//! Connects: the engine loop and what stands around it. The core decides, the journal remembers, and the
//! world is whatever brings commands and takes effects; `ring` turns them round.

pub mod api;
pub mod client;
mod clock;
pub mod http;
mod inbox;
mod outbox;
mod ring;
pub mod security;

pub use clock::Clock;
pub use inbox::{Handle, Lost, Server, ServerOptions, Subscription, server};
pub use laboro_dialects::session::Delivery;
pub use ring::{World, run};

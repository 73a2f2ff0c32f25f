//! What everything that speaks to a peer needs, once: the clock, dialling, keepalive, the pauses between tries, waiting
//! awake for the next word, whom a client trusts and the files that hold its secrets. Knows no dialect and serves nobody.

#![forbid(unsafe_code)]

mod backoff;
mod clock;
mod dial;
pub mod hex;
pub mod http;
mod keepalive;
mod linger;
pub mod secret_file;
pub mod trace;
pub mod trust;
pub mod websocket;

pub use backoff::Backoff;
pub use clock::Clock;
pub use dial::{LOST_AFTER, dial, within};
pub use keepalive::set_keepalive;
pub use linger::Linger;
pub use secret_file::SecurityError;
pub use trust::{Trust, web_client_config};

//! `laboro worker` at a real hub: what becomes of tasks when links, hubs and workers fail or leave.

mod days;
mod failures;
pub mod hub;
mod nodes;
mod poison;
mod proxy;
mod ssh;

pub use ssh::SSH;

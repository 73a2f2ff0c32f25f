//! The HTTP API over real connections, against a real hub in this process: what clients are promised.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod bodies;
mod control;
mod dashboard;
mod document;
mod events;
mod history;
mod hostile;
mod outputs;
mod reference;
mod results;
mod rig;
mod roles;
mod streams;
mod submits;
mod wire;

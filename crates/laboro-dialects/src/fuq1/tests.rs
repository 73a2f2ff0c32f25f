//! The messages of the originals both ways, and the state tables: one test a row.

mod client;
mod golden;
mod server;

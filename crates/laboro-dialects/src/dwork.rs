//! dwork: workers steal tasks by name from a hub that knows which come after which. Both sides of the conversation,
//! over ZMTP. The wire format is in `spec/dwork.md`.

mod client;
mod codec;
mod door;
mod hub;
mod wire;
mod worker;

#[cfg(test)]
mod tests;

pub use client::{Client, ClientError, Reply};
pub use codec::{Dep, Kind, Log, Note, Query, QueryWriter, Task, decode, notes};
pub use door::{HubDoor, Settings};
pub use hub::HubSide;
pub use wire::WireError;
pub use worker::{OnFailure, Template, TemplateError, Worker, WorkerSettings};

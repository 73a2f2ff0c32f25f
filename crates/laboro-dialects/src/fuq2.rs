//! fuq version 2, and Laboro's own worker protocol, which is the same conversation with more fields: 16-byte headers,
//! msgpack bodies, requests and responses paired by number. The hub is the foreman. The wire format is in
//! `spec/fuq.md`; nothing here opens a connection.

mod frame;
mod header;
mod naming;
mod pack;
mod payload;
mod status;

mod native;
mod talk;

mod foreman;
mod worker;

mod probe;

#[cfg(test)]
mod tests;

pub(crate) use foreman::connection_period_ms;
pub use foreman::{Foreman, Mode, Plain, SeqNumbers};
pub use header::Numbering;
pub use naming::{assignment, task_id, task_of};
pub use native::{STANDBY_REDIRECT_PROTOCOL, WORKER_PROTOCOL};
pub use payload::{JobDescription, Task};
pub use probe::{probe_bodies, probe_frames, probe_native};
pub use status::{outcome_of, status_of};
pub use worker::{NativeWorker, PlainSettings, PlainWorker, WorkerSettings};

// Version 1 has other headers and the same bodies.
pub(crate) use frame::FrameError;
pub(crate) use header::{AT_ONCE, MAGIC};
pub(crate) use naming::{HeldTask, held_by, held_of};
pub(crate) use pack::{PackError, PackReader};
pub(crate) use payload::JobStatusUpdate;

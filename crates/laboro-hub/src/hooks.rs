//! Hooks: what the outside is told when a job ends, a worker is lost, the disk is nearly full. A thread of its own finds out,
//! writes down what is due and delivers it; the engine never waits for it.
//!
//! Jobs are found by their place in the order of their ends, and that place is kept in the same file as the deliveries: a
//! job that ended while nobody looked, or just before the hub was killed, is found again, and none is told anew. What is
//! due is in that file and not in the journal, because most of it is not about jobs, and none of it decides anything: so
//! hubs that share a journal in NATS do not share deliveries.

mod allowed;
mod happening;
mod keeper;
mod notes;
mod send;
mod store;
mod target;

#[cfg(test)]
mod tests;

pub(crate) use allowed::{Requester, refusal};
pub use happening::job_envelope;
pub(crate) use keeper::start;
pub use keeper::{HookError, Hooks};
pub(crate) use notes::HookNotes;
pub use send::{Envelope, Sending, send};
pub use target::Target;

/// Targets that one job may have.
pub(crate) const TARGETS_MAX: usize = 16;

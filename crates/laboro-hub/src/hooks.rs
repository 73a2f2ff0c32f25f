//! Hooks: what the outside is told when a job ends, a worker is lost, the disk is nearly full. A thread of its own finds out,
//! writes down what is due and delivers it; the engine never waits for it.
//!
//! Jobs are found by their place in the order of their ends, and that place is written to the journal together with the
//! deliveries that are due: a job that ended while nobody looked, or just before the hub was killed, is found again, and
//! none is told anew. A hub that takes over a journal in NATS delivers what is left.

mod allowed;
mod happening;
mod keeper;
mod notes;
mod old_file;
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
pub(crate) use send::post_json;
pub use send::{Envelope, Sending, send};
pub use target::{IF_FAILED, Target, target_for};

use crate::documents::{DocumentError, Opening};
use laboro_core::Time;
use std::path::Path;

/// Targets that one job may have.
pub(crate) const TARGETS_MAX: usize = 16;

const OLD_FILE: &str = "hooks.jsonl";

/// Nothing but the reading.
pub(crate) fn read_kept(opening: &mut Opening<'_>, dir: &Path) -> Result<(), DocumentError> {
    store::Store::open(opening, &dir.join(OLD_FILE), Time(0)).map(drop)
}

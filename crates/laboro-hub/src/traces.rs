//! Spans for who looks at traces: one for each job, and one for each attempt below it, sent as OTLP by HTTP in JSON. Off
//! unless the settings name a receiver. The engine only puts notes into a queue with an end; what does not fit there, or
//! cannot be sent for long, is left out and counted. Nothing of it is journaled but what a job's variables say.

mod exporter;
mod note;
mod otlp;
mod spans;

#[cfg(test)]
mod tests;

pub(crate) use exporter::start;
pub(crate) use note::TraceNotes;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Spans that were sent, and that nobody will see. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct TraceCounts(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    sent: AtomicU64,
    dropped: AtomicU64,
    failures: AtomicU64,
}

impl TraceCounts {
    pub(crate) fn sent(&self) -> u64 {
        self.0.sent.load(Ordering::Relaxed)
    }

    pub(crate) fn dropped(&self) -> u64 {
        self.0.dropped.load(Ordering::Relaxed)
    }

    /// Requests that the receiver did not take.
    pub(crate) fn failures(&self) -> u64 {
        self.0.failures.load(Ordering::Relaxed)
    }

    fn drop_some(&self, count: usize) {
        self.0.dropped.fetch_add(count as u64, Ordering::Relaxed);
    }
}

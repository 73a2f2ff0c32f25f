//! A journal without a disk, for tests and simulation. It keeps every batch, so it grows without end.

use crate::journal::{Journal, JournalError};
use laboro_core::{Archive, Batch, Effect, Event, Ledger, Time};

/// Keeps batches in memory, for tests and for runs that leave nothing behind.
#[derive(Debug, Default)]
pub struct MemoryJournal {
    batches: Vec<(Time, Vec<Event>)>,
}

impl MemoryJournal {
    /// All that was committed.
    pub fn batches(&self) -> &[(Time, Vec<Event>)] {
        &self.batches
    }

    /// What a hub that starts on this journal finds.
    pub fn replayed(&self) -> Ledger {
        let mut ledger = Ledger::default();
        for (at, events) in &self.batches {
            events.iter().for_each(|event| ledger.apply(*at, event));
        }
        ledger
    }
}

impl Archive for MemoryJournal {}

impl Journal for MemoryJournal {
    async fn commit(&mut self, mut batch: Batch) -> Result<Vec<Effect>, JournalError> {
        let events = std::mem::take(&mut batch.events);
        if !events.is_empty() {
            self.batches.push((batch.at, events));
        }
        Ok(batch.release(self.receipt()))
    }
}

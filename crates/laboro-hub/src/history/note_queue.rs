//! Where notes lie until somebody takes them: bounded, and without a bell. Waking another thread for each batch
//! would cost the engine more than most batches do.

use super::Notes;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Notes that may lie here; what comes beyond them is left out and counted.
const NOTES_MAX: usize = 1_000_000;

#[derive(Debug, Default)]
pub(super) struct NoteQueue {
    pile: Mutex<Pile>,
    missed: AtomicU64,
    is_deserted: AtomicBool,
}

#[derive(Debug, Default)]
struct Pile {
    batches: Vec<Notes>,
    notes: usize,
}

impl NoteQueue {
    pub(super) fn put(&self, notes: Notes) {
        let count = notes.list.len();
        let mut pile = self.pile.lock().unwrap_or_else(PoisonError::into_inner);
        if pile.notes >= NOTES_MAX {
            self.missed.fetch_add(count as u64, Ordering::Relaxed);
            return;
        }
        pile.notes += count;
        pile.batches.push(notes);
    }

    /// Everything that lies here, in order.
    pub(super) fn take(&self) -> Vec<Notes> {
        let mut pile = self.pile.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *pile).batches
    }

    pub(super) fn missed(&self) -> u64 {
        self.missed.load(Ordering::Relaxed)
    }

    /// Nobody takes anything any more.
    pub(super) fn desert(&self) {
        self.is_deserted.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_deserted(&self) -> bool {
        self.is_deserted.load(Ordering::Relaxed)
    }
}

//! Where notes lie until somebody takes them: bounded, and with a bell that rings only for one who sleeps because
//! nothing happened. Waking another thread for each batch would cost the engine more than most batches do.

use super::Notes;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// Notes that may lie here; what comes beyond them is left out and counted.
const NOTES_MAX: usize = 1_000_000;

#[derive(Debug, Default)]
pub(super) struct NoteQueue {
    pile: Mutex<Pile>,
    missed: AtomicU64,
    is_deserted: AtomicBool,
    /// Batches that changed something, noted or not.
    changes: AtomicU64,
    sleeps: AtomicBool,
    bell: Notify,
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

    /// Something has changed, or somebody wants to know what is.
    pub(super) fn ring(&self) {
        // Each side writes its own word before it reads the other's: one of them sees.
        self.changes.fetch_add(1, Ordering::SeqCst);
        if self.sleeps.load(Ordering::SeqCst) {
            self.bell.notify_one();
        }
    }

    pub(super) fn changes(&self) -> u64 {
        self.changes.load(Ordering::SeqCst)
    }

    /// Waits for a change after that many, at most for `most`.
    pub(super) async fn sleep(&self, changes: u64, most: Duration) {
        self.sleeps.store(true, Ordering::SeqCst);
        if self.changes() == changes {
            let _ = tokio::time::timeout(most, self.bell.notified()).await;
        }
        self.sleeps.store(false, Ordering::SeqCst);
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

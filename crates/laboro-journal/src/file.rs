//! The journal in a directory: batches become records of a `Log`, and opening it adds them up again.

mod desk;
mod fold;
mod scribe;

use crate::journal::{Journal, JournalError};
use crate::log::{Durability, FoldMaker, Log, Options, Recovery};
use crate::replay::Replay;
use crate::wait::wait;
use desk::Desk;
use fold::LedgerFold;
pub(crate) use fold::condense;
use laboro_core::{Archive, Batch, Effect, Ledger};
use scribe::Scribe;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// Events of a batch that may be written and synced without another thread.
const LITTLE: usize = 16;

/// A journal in a directory.
#[derive(Debug)]
pub struct FileJournal {
    desk: Desk,
    /// Someone stopped waiting for the last commit, so how it went is not known here.
    is_unsettled: bool,
    failed: Option<JournalError>,
    warnings: Arc<Mutex<Vec<String>>>,
}

impl FileJournal {
    /// Opens the journal in `dir`, or makes one, and gives the ledger that it adds up to.
    pub fn open(
        dir: &Path,
        options: Options,
    ) -> Result<(FileJournal, Ledger, Recovery), JournalError> {
        let durability = options.durability;
        let maker: FoldMaker = Arc::new(|| Box::new(LedgerFold::default()));
        let mut replay = Replay::default();
        let (log, recovery) =
            Log::open(dir, options, Some(maker), &mut |_, _, payload| replay.absorb(payload))?;
        let warnings = Arc::default();
        let scribe = Scribe::new(log, Arc::clone(&warnings));
        let desk = match durability {
            // A sync takes as long as a thousand commands; others can be served meanwhile.
            Durability::Sync => Desk::in_thread(scribe)?,
            // Here a write costs less than handing it over.
            Durability::Os | Durability::None => Desk::here(scribe),
        };
        let journal = FileJournal { desk, is_unsettled: false, failed: None, warnings };
        Ok((journal, replay.ledger, recovery))
    }

    /// For callers without a runtime.
    pub fn commit_blocking(&mut self, batch: Batch) -> Result<Vec<Effect>, JournalError> {
        wait(self.commit(batch))
    }

    /// What went wrong in the background since this was last asked. Nothing of it concerns what was
    /// committed.
    pub fn take_warnings(&mut self) -> Vec<String> {
        std::mem::take(&mut *self.warnings.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Condenses now, and waits for it. Without this it is done in the background when it pays.
    pub fn condense_blocking(&mut self) -> Result<(), JournalError> {
        wait(self.desk.run(false, Scribe::condense))?
    }

    /// Writes what is pending. Dropping a journal does the same, but cannot say that it failed.
    pub fn close(self) -> Result<(), JournalError> {
        self.desk.close()
    }
}

impl Archive for FileJournal {}

impl Journal for FileJournal {
    async fn commit(&mut self, mut batch: Batch) -> Result<Vec<Effect>, JournalError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let (at, events) = (batch.at, std::mem::take(&mut batch.events));
        // Effects without events may still tell of an earlier batch.
        if !events.is_empty() || self.is_unsettled {
            self.is_unsettled = true;
            let is_little = events.len() <= LITTLE;
            let done = self.desk.run(is_little, move |scribe| scribe.commit(at, &events)).await;
            self.is_unsettled = false;
            if let Err(error) = done.flatten() {
                self.failed = Some(error.clone());
                return Err(error);
            }
        }
        Ok(batch.release(self.receipt()))
    }
}

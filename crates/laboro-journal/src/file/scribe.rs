//! Writes batches to a log, one after the other, wherever its desk stands.

use crate::journal::JournalError;
use crate::log::Log;
use crate::record::Encoder;
use laboro_core::{Event, Time};
use std::sync::{Arc, Mutex, PoisonError};

/// Warnings that nobody takes do not pile up.
const WARNINGS_MAX: usize = 100;

#[derive(Debug)]
pub(super) struct Scribe {
    log: Log,
    encoder: Encoder,
    failed: Option<JournalError>,
    warnings: Arc<Mutex<Vec<String>>>,
}

impl Scribe {
    pub fn new(log: Log, warnings: Arc<Mutex<Vec<String>>>) -> Scribe {
        Scribe { log, encoder: Encoder::default(), failed: None, warnings }
    }

    pub fn commit(&mut self, at: Time, events: &[Event]) -> Result<(), JournalError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        if events.is_empty() {
            return Ok(());
        }
        // Also a refusal is final: the hub has already counted on this batch.
        let written = self.log.commit(self.encoder.batch(at, events));
        written.map_err(|error| self.failed.insert(error.into()).clone())?;
        self.pass_warnings();
        Ok(())
    }

    pub fn condense(&mut self) -> Result<(), JournalError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        self.log.condense().map_err(|error| self.failed.insert(error.into()).clone())?;
        self.log.wait_for_condensing();
        self.pass_warnings();
        Ok(())
    }

    pub fn close(self) -> Result<(), JournalError> {
        match self.failed {
            Some(error) => Err(error),
            None => Ok(self.log.close()?),
        }
    }

    fn pass_warnings(&mut self) {
        let new = self.log.take_warnings();
        if !new.is_empty() {
            let mut warnings = self.warnings.lock().unwrap_or_else(PoisonError::into_inner);
            warnings.extend(new);
            warnings.truncate(WARNINGS_MAX);
        }
    }
}

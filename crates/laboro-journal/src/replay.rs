//! From payloads to a ledger: what opening, condensing and checking have in common.

use crate::file::condense;
use crate::journal::JournalError;
use crate::log;
use crate::record::Decoder;
use laboro_core::{Ledger, Time};
use std::any::Any;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// The ledger that a journal adds up to, without touching it. A hub may be writing meanwhile.
pub fn read_ledger(dir: &Path) -> Result<Ledger, JournalError> {
    let mut replay = Replay::default();
    log::read(dir, &mut |_, _, payload| replay.absorb(payload))?;
    Ok(replay.ledger)
}

/// Adds records up, wherever they come from.
#[derive(Debug, Default)]
#[allow(missing_docs)]
pub struct Replay {
    pub ledger: Ledger,
    /// When the newest batch happened.
    pub at: Time,
    pub events: u64,
    decoder: Decoder,
}

impl Replay {
    /// What a ledger comes to that was read elsewhere, and when its newest batch happened.
    pub fn of(ledger: Ledger, at: Time) -> Replay {
        Replay { ledger, at, ..Replay::default() }
    }

    /// Applies one record. After an error the ledger is half changed and of no use.
    pub fn absorb(&mut self, payload: &[u8]) -> Result<(), String> {
        // The ledger takes it for a broken promise of ours when an event does not fit, and panics. A
        // journal that was tampered with, or written by a faulty hub, has to be an error all the same.
        catch_unwind(AssertUnwindSafe(|| self.apply(payload)))
            .unwrap_or_else(|panic| Err(format!("an event does not fit: {}", words(&*panic))))
    }

    /// Gives what all of it comes to, in records of bounded size. Absorbed in this order by another one,
    /// they come to the same.
    pub fn condense(&self, sink: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        condense(&self.ledger, self.at, sink)
    }

    fn apply(&mut self, payload: &[u8]) -> Result<(), String> {
        let events = self.decoder.record(payload).map_err(|error| error.to_string())?;
        self.at = events.at();
        for event in events {
            let event = event.map_err(|error| error.to_string())?;
            self.ledger.apply(self.at, &event);
            self.events += 1;
        }
        self.ledger.forget_wakeups();
        Ok(())
    }
}

fn words(panic: &(dyn Any + Send)) -> &str {
    match (panic.downcast_ref::<String>(), panic.downcast_ref::<&str>()) {
        (Some(words), _) => words,
        (None, Some(words)) => words,
        (None, None) => "no reason given",
    }
}

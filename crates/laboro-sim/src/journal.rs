//! The real journal in a directory, with the world around it: a commit takes time, the process or the power
//! may go before it is done, the disk may refuse. What is left then is decided in `disk`.

use crate::clock::HubClock;
use crate::dice::Dice;
use crate::disk::{Disk, Ending, Refusal};
use crate::plan::Sabotage;
use crate::promise::{Broken, Promise};
use crate::tap::{Seen, Tap};
use laboro_core::{Archive, Batch, Effect, Event, Ledger, Time};
use laboro_journal::log::{Durability, Options};
use laboro_journal::{FileJournal, Journal, JournalError};
use std::future::poll_fn;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

/// Shared by the hub, which commits, and the world, which takes the power away.
#[derive(Clone, Debug)]
pub(crate) struct SimJournal(Arc<Mutex<JournalStore>>);

#[derive(Debug)]
struct JournalStore {
    disk: Disk,
    file: Option<FileJournal>,
    clock: HubClock,
    tap: Tap,
    dice: Dice,
    sync_ms_max: u64,
    sabotage: Option<Sabotage>,
    in_flight: Option<Batch>,
    ready_at: Time,
    /// Of the batch in flight: whether it is kept is known when the journal is next opened.
    in_doubt: Option<Doubt>,
    commits: u64,
}

pub(crate) const CALM_SYNC_MS: u64 = 2;

/// A batch that nobody was told about. It may be kept as a whole, or not at all.
#[derive(Clone, Debug)]
pub(crate) struct Doubt {
    pub at: Time,
    pub events: Vec<Event>,
}

/// How the journal behaves in this run.
#[derive(Clone, Debug)]
pub(crate) struct Disposition {
    pub sync_ms_max: u64,
    pub segment_bytes_min: u64,
    pub sabotage: Option<Sabotage>,
}

/// What a crash left.
#[derive(Debug, Default)]
pub(crate) struct Remains {
    pub doubt: Option<Doubt>,
    pub words: &'static str,
}

fn ending(dice: &mut Dice) -> Ending {
    if dice.one_in(3) { Ending::Process } else { Ending::Power }
}

fn trouble(error: std::io::Error) -> Broken {
    Broken::new(Promise::StartsAgain, format!("the simulated disk: {error}"))
}

impl SimJournal {
    pub fn open(
        dir: &Path,
        disk: &Disk,
        clock: HubClock,
        tap: Tap,
        disposition: &Disposition,
        mut dice: Dice,
    ) -> Result<(SimJournal, Ledger), Broken> {
        // Condensing goes on in the background where it is due; here it is done when the dice say so.
        let options = Options {
            durability: Durability::Sync,
            segment_bytes_min: disposition.segment_bytes_min,
            segment_bytes_max: disposition.segment_bytes_min * 4,
            condense_after_bytes: u64::MAX,
            ..Options::default()
        };
        disk.recover();
        if disposition.sabotage == Some(Sabotage::NeverSyncs) {
            disk.lie();
        }
        // Now and then the end comes while it is opened, and it is opened once more.
        for _ in 0..dice.below(3).saturating_sub(1) {
            disk.end_after(dice.below(8), ending(&mut dice), dice.split());
            drop(FileJournal::open(dir, options.clone()));
            disk.restore().map_err(trouble)?;
        }
        let (file, ledger, _) = FileJournal::open(dir, options)
            .map_err(|error| Broken::new(Promise::StartsAgain, error.to_string()))?;
        let store = JournalStore {
            disk: disk.clone(),
            file: Some(file),
            clock,
            tap,
            dice,
            sync_ms_max: disposition.sync_ms_max,
            sabotage: disposition.sabotage,
            in_flight: None,
            ready_at: Time(0),
            in_doubt: None,
            commits: 0,
        };
        Ok((SimJournal(Arc::new(Mutex::new(store))), ledger))
    }

    fn store(&self) -> MutexGuard<'_, JournalStore> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// When the commit under way is done.
    pub fn due(&self) -> Option<Time> {
        let store = self.store();
        store.in_flight.as_ref().map(|_| store.ready_at)
    }

    /// Soon the disk refuses.
    pub fn refuse(&self) {
        let mut store = self.store();
        let operations = store.dice.below(6);
        let refusal = if store.dice.one_in(2) { Refusal::NoSpace } else { Refusal::Failure };
        store.disk.refuse_after(operations, refusal);
    }

    /// From now on the disk is quick and takes everything.
    pub fn calm_down(&self) {
        let mut store = self.store();
        store.sync_ms_max = CALM_SYNC_MS;
        store.disk.recover();
    }

    /// The process or the machine ends, at any moment of what is under way.
    pub fn crash(&self) -> Result<Remains, Broken> {
        let mut store = self.store();
        let (doubt, batch, file) =
            (store.in_doubt.take(), store.in_flight.take(), store.file.take());
        store.disk.recover();
        let ending = ending(&mut store.dice);
        let makes_snapshot = store.dice.one_in(6);
        let dice = store.dice.split();
        if let Some(mut file) = file {
            match batch {
                Some(batch) => {
                    let operations = store.dice.below(6);
                    store.disk.end_after(operations, ending, dice);
                    // Nobody hears what became of it.
                    drop(file.commit_blocking(batch));
                }
                None if makes_snapshot => {
                    let operations = store.dice.below(12);
                    store.disk.end_after(operations, ending, dice);
                    drop(file.condense_blocking());
                }
                None => store.disk.end_after(0, ending, dice),
            }
        }
        store.disk.restore().map_err(trouble)?;
        let words = match ending {
            Ending::Process => "the process ends",
            Ending::Power => "the machine ends",
        };
        Ok(Remains { doubt, words })
    }

    /// The hub stops in order. That a disk refuses now is no loss: nothing is pending.
    pub fn close(&self) {
        drop(self.store().file.take().map(FileJournal::close));
    }
}

/// An archive that breaks its promise.
struct Liar;

impl Archive for Liar {}

impl JournalStore {
    fn finish(&mut self) -> Result<Vec<Effect>, JournalError> {
        let batch = self.in_flight.take().ok_or(JournalError::Died)?;
        let Some(file) = &mut self.file else { return Err(JournalError::Died) };
        self.commits += 1;
        let (at, events) = (batch.at, batch.events.clone());
        let forgets =
            self.sabotage == Some(Sabotage::AcksUnwritten) && self.commits.is_multiple_of(7);
        let effects =
            if forgets { batch.release(Liar.receipt()) } else { file.commit_blocking(batch)? };
        self.in_doubt = None;
        self.tap.note(Seen::Kept { at, events });
        if self.dice.one_in(60) {
            // The batch is safe. If this fails, the next commit says so.
            let _ = file.condense_blocking();
        }
        Ok(effects)
    }
}

impl Journal for SimJournal {
    async fn commit(&mut self, batch: Batch) -> Result<Vec<Effect>, JournalError> {
        {
            let mut store = self.store();
            let wait = if batch.events.is_empty() {
                0
            } else {
                let most = store.sync_ms_max;
                store.in_doubt = Some(Doubt { at: batch.at, events: batch.events.clone() });
                store.dice.mostly_short(most)
            };
            store.ready_at = store.clock.now().after_ms(wait);
            store.in_flight = Some(batch);
        }
        poll_fn(|_| {
            let mut store = self.store();
            if store.clock.now() < store.ready_at {
                return Poll::Pending;
            }
            Poll::Ready(store.finish())
        })
        .await
    }
}

//! The real journal in a directory, with the world around it: a commit takes time, the power may go before it
//! is done, the disk may refuse. What is torn then is decided in `disk`.

use crate::clock::HubClock;
use crate::dice::Dice;
use crate::disk::Files;
use crate::plan::Sabotage;
use crate::promise::{Broken, Promise};
use crate::tap::{Seen, Tap};
use laboro_core::{Batch, Effect, Event, Ledger, Time};
use laboro_journal::log::{Durability, LogError, Options};
use laboro_journal::{FileJournal, Journal, JournalError};
use std::future::poll_fn;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

/// Shared by the hub, which commits, and the world, which takes the power away.
#[derive(Clone, Debug)]
pub(crate) struct SimJournal(Arc<Mutex<Store>>);

#[derive(Debug)]
struct Store {
    dir: PathBuf,
    file: Option<FileJournal>,
    clock: HubClock,
    tap: Tap,
    dice: Dice,
    sync_ms_max: u64,
    sabotage: Option<Sabotage>,
    /// The next commit meets a disk that refuses.
    is_refusing: bool,
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
    pub words: Option<&'static str>,
}

impl SimJournal {
    pub fn open(
        dir: &Path,
        clock: HubClock,
        tap: Tap,
        disposition: &Disposition,
        dice: Dice,
    ) -> Result<(SimJournal, Ledger), Broken> {
        // Condensing goes on in the background where it is due; here it is done when the dice say so.
        let options = Options {
            durability: Durability::Sync,
            segment_bytes_min: disposition.segment_bytes_min,
            segment_bytes_max: disposition.segment_bytes_min * 4,
            condense_after_bytes: u64::MAX,
            ..Options::default()
        };
        let (file, ledger, _) = FileJournal::open(dir, options)
            .map_err(|error| Broken::new(Promise::StartsAgain, error.to_string()))?;
        let store = Store {
            dir: dir.to_owned(),
            file: Some(file),
            clock,
            tap,
            dice,
            sync_ms_max: disposition.sync_ms_max,
            sabotage: disposition.sabotage,
            is_refusing: false,
            in_flight: None,
            ready_at: Time(0),
            in_doubt: None,
            commits: 0,
        };
        Ok((SimJournal(Arc::new(Mutex::new(store))), ledger))
    }

    fn store(&self) -> MutexGuard<'_, Store> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// When the commit under way is done.
    pub fn due(&self) -> Option<Time> {
        let store = self.store();
        store.in_flight.as_ref().map(|_| store.ready_at)
    }

    /// From now on the disk refuses.
    pub fn refuse(&self) {
        self.store().is_refusing = true;
    }

    /// From now on the disk is quick and takes everything.
    pub fn calm_down(&self) {
        let mut store = self.store();
        store.sync_ms_max = CALM_SYNC_MS;
        store.is_refusing = false;
    }

    /// The power goes. What was under way is torn.
    pub fn crash(&self) -> Result<Remains, Broken> {
        let mut store = self.store();
        if store.sabotage == Some(Sabotage::LosesTail) {
            return store.lose_tail();
        }
        let doubt = store.in_doubt.take();
        let batch = store.in_flight.take();
        let tears_snapshot = store.dice.one_in(6);
        let words = match (batch, store.file.take()) {
            (_, None) => None,
            (Some(batch), Some(mut file)) => store.tear(|| drop(file.commit_blocking(batch)))?,
            (None, Some(mut file)) if tears_snapshot => {
                store.tear(|| drop(file.condense_blocking()))?
            }
            (None, Some(file)) => {
                drop(file);
                None
            }
        };
        Ok(Remains { doubt, words })
    }

    /// The hub stops in order.
    pub fn close(&self) -> Result<(), Broken> {
        let file = self.store().file.take();
        match file.map(FileJournal::close) {
            Some(Err(error)) => Err(Broken::new(Promise::NothingLost, error.to_string())),
            Some(Ok(())) | None => Ok(()),
        }
    }
}

impl Store {
    /// Does it, and leaves something between before and after.
    fn tear(&mut self, work: impl FnOnce()) -> Result<Option<&'static str>, Broken> {
        let trouble = |error: std::io::Error| {
            Broken::new(Promise::StartsAgain, format!("the simulated disk: {error}"))
        };
        let before = Files::read(&self.dir).map_err(trouble)?;
        // The journal goes with the closure: nothing writes after this.
        work();
        let after = Files::read(&self.dir).map_err(trouble)?;
        let (left, words) = before.torn(&after, &mut self.dice);
        left.write(&self.dir).map_err(trouble)?;
        Ok(Some(words))
    }

    /// A disk that lies about its syncs.
    fn lose_tail(&mut self) -> Result<Remains, Broken> {
        let doubt = self.in_doubt.take();
        (self.file, self.in_flight) = (None, None);
        let trouble = |error: std::io::Error| Broken::new(Promise::StartsAgain, error.to_string());
        let files = Files::read(&self.dir).map_err(trouble)?;
        files.without_tail().write(&self.dir).map_err(trouble)?;
        Ok(Remains { doubt, words: Some("without its newest records") })
    }

    fn finish(&mut self) -> Result<Vec<Effect>, JournalError> {
        let batch = self.in_flight.take().ok_or(JournalError::Died)?;
        let Some(file) = &mut self.file else { return Err(JournalError::Died) };
        self.commits += 1;
        if std::mem::take(&mut self.is_refusing) {
            let Some(mut file) = self.file.take() else { return Err(JournalError::Died) };
            let _ = self.tear(|| drop(file.commit_blocking(batch)));
            return Err(LogError::DiskFull { dir: self.dir.clone() }.into());
        }
        let (at, events) = (batch.at, batch.events.clone());
        let forgets =
            self.sabotage == Some(Sabotage::AcksUnwritten) && self.commits.is_multiple_of(7);
        let effects = if forgets { batch.release() } else { file.commit_blocking(batch)? };
        self.in_doubt = None;
        self.tap.note(Seen::Kept { at, events });
        if self.dice.one_in(60) {
            file.condense_blocking()?;
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

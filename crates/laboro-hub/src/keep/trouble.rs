//! That output cannot be written: since when, why, what it has cost, and what the hub does about it. Told once when it begins
//! and once when it is over.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// What happens to tasks whose output cannot be written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnWriteError {
    /// Their results are not accepted until it can be: a task that is done has its output.
    #[default]
    Wait,
    /// They count, and the tasks are marked.
    Mark,
    /// The hub stops.
    Stop,
}

impl OnWriteError {
    pub(crate) fn words(self) -> &'static str {
        match self {
            OnWriteError::Wait => "results of tasks with output wait until there is room",
            OnWriteError::Mark => "tasks that lose output are marked output_lost",
            OnWriteError::Stop => "the hub stops",
        }
    }
}

/// A disk on which a little becomes free again and again fills no log.
const TELL_EVERY: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(super) struct WriteTrouble {
    pub(super) on_error: OnWriteError,
    now: Mutex<Option<String>>,
    told: Mutex<Option<Instant>>,
    attempts: AtomicU64,
    fatal: CancellationToken,
}

impl WriteTrouble {
    pub fn new(on_error: OnWriteError) -> WriteTrouble {
        WriteTrouble {
            on_error,
            now: Mutex::default(),
            told: Mutex::default(),
            attempts: AtomicU64::new(0),
            fatal: CancellationToken::new(),
        }
    }

    pub fn now(&self) -> Option<String> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn begin(&self, error: &dyn std::error::Error) {
        let mut now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        if now.is_some() {
            return;
        }
        *now = Some(error.to_string());
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.is_none_or(|told| told.elapsed() >= TELL_EVERY) {
            *told = Some(Instant::now());
            let then = self.on_error.words();
            tracing::error!("output of tasks cannot be written: {error}; {then}");
        }
        if self.on_error == OnWriteError::Stop {
            self.fatal.cancel();
        }
    }

    pub fn end(&self) {
        if self.now.lock().unwrap_or_else(PoisonError::into_inner).take().is_some() {
            tracing::info!("output of tasks is written again");
        }
    }

    pub fn count_attempt(&self) {
        self.attempts.fetch_add(1, Ordering::Relaxed);
    }

    pub fn attempts(&self) -> u64 {
        self.attempts.load(Ordering::Relaxed)
    }

    pub async fn fatal(&self) -> String {
        self.fatal.cancelled().await;
        self.now().unwrap_or_default()
    }
}

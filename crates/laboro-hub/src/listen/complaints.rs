//! Complaints about peers for the log: the first few of a while one by one, the rest as a number. A peer that
//! comes again and again with nonsense shall not fill a disk; the door counts every one of them.

use std::fmt::Display;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// So many in each while are told one by one.
const TOLD_MAX: u32 = 10;
const WHILE: Duration = Duration::from_secs(60);

#[derive(Debug, Default)]
pub(crate) struct Complaints(Mutex<Counted>);

#[derive(Debug, Default)]
struct Counted {
    since: Option<Instant>,
    told: u32,
    untold: u64,
}

impl Complaints {
    pub(crate) fn warn(&self, words: impl Display) {
        let (is_told, untold) = self.count(Instant::now());
        if untold > 0 {
            tracing::warn!("{untold} more messages like these were left out");
        }
        if is_told {
            tracing::warn!("{words}");
        }
    }

    /// For what is no fault but can be said as often as a peer likes.
    pub(crate) fn info(&self, words: impl Display) {
        let (is_told, untold) = self.count(Instant::now());
        if untold > 0 {
            tracing::info!("{untold} more lines like these were left out");
        }
        if is_told {
            tracing::info!("{words}");
        }
    }

    /// Whether this one is told, and how many were not in the while before.
    fn count(&self, now: Instant) -> (bool, u64) {
        let mut counted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_over = |since| now.saturating_duration_since(since) >= WHILE;
        let mut untold = 0;
        if counted.since.is_none_or(is_over) {
            untold = counted.untold;
            *counted = Counted { since: Some(now), ..Counted::default() };
        }
        let is_told = counted.told < TOLD_MAX;
        counted.told += u32::from(is_told);
        counted.untold += u64::from(!is_told);
        (is_told, untold)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_few_of_a_while_are_told_and_the_rest_as_a_number() {
        let complaints = Complaints::default();
        let start = Instant::now();
        let told = (0..500).filter(|_| complaints.count(start).0).count();
        assert_eq!(told, TOLD_MAX as usize);
        assert_eq!(complaints.count(start + WHILE), (true, 500 - u64::from(TOLD_MAX)));
        assert_eq!(complaints.count(start + WHILE), (true, 0));
    }
}

//! How many requests a worker gets, all together and lately. Two windows, not a list of times: what it costs
//! does not depend on how many there are.

use crate::id::Time;

/// A rate looks back over so much time.
const WINDOW_MS: u64 = 10_000;

/// How many requests came in the last time, smoothed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Rate {
    pub total: u64,
    began: Time,
    /// In the window that began then, and in the one before it.
    now: u64,
    before: u64,
}

impl Rate {
    pub(super) fn begin(now: Time) -> Rate {
        Rate { total: 0, began: now, now: 0, before: 0 }
    }

    pub(super) fn count(&mut self, now: Time) {
        self.roll(now);
        self.total += 1;
        self.now += 1;
    }

    /// The old window counts for as much of it as the look back still covers.
    pub fn per_s(mut self, now: Time) -> f64 {
        self.roll(now);
        let left = WINDOW_MS - now.since_ms(self.began).min(WINDOW_MS);
        let counted = self.before as f64 * left as f64 / WINDOW_MS as f64 + self.now as f64;
        counted * 1000.0 / WINDOW_MS as f64
    }

    fn roll(&mut self, now: Time) {
        let windows = now.since_ms(self.began) / WINDOW_MS;
        if windows > 0 {
            self.before = if windows == 1 { self.now } else { 0 };
            self.now = 0;
            self.began = self.began.after_ms(windows * WINDOW_MS);
        }
    }
}

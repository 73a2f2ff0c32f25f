//! Pauses between tries to connect: each about twice as long as the one before, and never the same for two
//! workers, so that a thousand of them do not all come back to a hub in the same moment.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

const FIRST: Duration = Duration::from_millis(100);
const STEADY: Duration = Duration::from_millis(800);
/// A hub that begins anew waits 10 s and more for whoever has tasks of it, unless it was told otherwise.
const MOST: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub struct Backoff {
    tries: u32,
    most: Duration,
}

impl Default for Backoff {
    fn default() -> Backoff {
        Backoff { tries: 0, most: MOST }
    }
}

impl Backoff {
    /// Its tasks are given to others after so long without a sign of it: at least two tries come before that.
    pub fn within(&mut self, patience: Duration) {
        self.most = MOST.min(patience / 3);
    }

    /// The last connection was a good one.
    pub fn reset(&mut self) {
        self.tries = 0;
    }

    /// For a connection that was lost: the first new try comes almost at once.
    pub fn soon(&mut self) -> Duration {
        if self.tries == 0 {
            self.tries = 1;
            return jittered(FIRST / 2);
        }
        self.later()
    }

    /// For as long as somebody answers that it will not be long.
    pub fn steady(&mut self) -> Duration {
        self.reset();
        jittered(STEADY)
    }

    pub fn later(&mut self) -> Duration {
        let pause = FIRST.saturating_mul(1 << self.tries.min(16)).min(self.most);
        self.tries = self.tries.saturating_add(1);
        jittered(pause)
    }
}

/// Between half of it and all of it.
fn jittered(pause: Duration) -> Duration {
    let random = RandomState::new().build_hasher().finish();
    let share = (random >> 40) as f64 / (1_u64 << 24) as f64;
    pause.mul_f64(0.5 + share / 2.0)
}

#[cfg(test)]
mod tests;

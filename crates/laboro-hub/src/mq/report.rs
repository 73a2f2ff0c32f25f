//! Says in the log what was dropped and why, once a second at most: whoever sends nonsense shall not fill a
//! disk with it.

use laboro_core::{Counters, Dropped, Time};

const EVERY_MS: u64 = 1000;

#[derive(Debug, Default)]
pub(super) struct Report {
    said: [u64; Dropped::ALL.len()],
    said_at: Time,
    is_wanted: bool,
}

impl Report {
    /// Something was dropped.
    pub fn want(&mut self) {
        self.is_wanted = true;
    }

    pub fn deadline(&self) -> Option<Time> {
        self.is_wanted.then(|| self.said_at.after_ms(EVERY_MS))
    }

    pub fn say_if_due(&mut self, now: Time, counters: &Counters) {
        if self.deadline().is_none_or(|at| now < at) {
            return;
        }
        for (said, why) in self.said.iter_mut().zip(Dropped::ALL) {
            let (total, more) = (counters.dropped(why), counters.dropped(why) - *said);
            if more > 0 {
                tracing::warn!("dropped {more} ({}), {total} in all", why.name());
                *said = total;
            }
        }
        self.said_at = now;
        self.is_wanted = false;
    }
}

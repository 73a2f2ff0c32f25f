//! How much work to ask for beyond what the slots hold: enough that no slot waits for the hub while tasks are
//! short, nothing when they are long, since what waits here could run elsewhere.

use std::time::Duration;

/// Work for so long is kept at hand. Longer than any answer of a hub takes that is well.
const AT_HAND: Duration = Duration::from_millis(50);

/// However short tasks are: each costs memory here and a lease at the hub.
pub(super) const AHEAD_MAX: u32 = 8192;

/// A new duration counts for an eighth, so that a change is noticed within a dozen tasks and one odd task
/// is not.
const WEIGHT: f64 = 1.0 / 8.0;

#[derive(Debug, Default)]
pub(super) struct Pace {
    /// In seconds.
    mean: Option<f64>,
    told: u32,
}

impl Pace {
    /// The hub sends so many before anything is known.
    pub(super) fn new(told: u32) -> Pace {
        Pace { mean: None, told }
    }

    /// A task took so long.
    pub(super) fn took(&mut self, wall: Duration) {
        let wall = wall.as_secs_f64();
        self.mean = Some(self.mean.map_or(wall, |mean| mean + (wall - mean) * WEIGHT));
    }

    /// The number to tell the hub, if it is not about the one it knows.
    pub(super) fn news(&mut self, slots: u32) -> Option<u32> {
        self.mean?;
        let ahead = self.ahead(slots);
        let (less, more) = (ahead.min(self.told), ahead.max(self.told));
        // Half as much again is worth a message, a little more is not.
        let is_news = more - less > less / 2;
        is_news.then(|| {
            self.told = ahead;
            ahead
        })
    }

    /// What was kept at hand waits behind something long.
    pub(super) fn stop(&mut self) {
        self.mean = Some(AT_HAND.as_secs_f64());
        self.told = 0;
    }

    pub(super) fn told(&self) -> u32 {
        self.told
    }

    fn ahead(&self, slots: u32) -> u32 {
        match self.mean {
            Some(mean) if mean < AT_HAND.as_secs_f64() => {
                let each = AT_HAND.as_secs_f64() / mean.max(1e-6);
                // The cast saturates, and the limit is far below.
                ((each * f64::from(slots)) as u32).min(AHEAD_MAX)
            }
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests;

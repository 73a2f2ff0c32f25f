//! The time of day as the core wants it: milliseconds since the epoch that never run backwards, whatever
//! happens to the machine's clock.

use laboro_core::Time;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

#[derive(Debug, Clone, Copy)]
pub struct Clock {
    started: Instant,
    epoch_ms: u64,
}

impl Clock {
    /// The wall clock is read once; from then on only the monotonic clock counts.
    pub fn start() -> Clock {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        let epoch_ms = u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX);
        Clock { started: Instant::now(), epoch_ms }
    }

    pub fn now(&self) -> Time {
        let passed = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        Time(self.epoch_ms.saturating_add(passed))
    }

    /// How long until then; nothing when it is past. Rounded up, so that who waits so long is not early.
    pub fn until(&self, then: Time) -> Duration {
        let at = Duration::from_millis(then.0.saturating_sub(self.epoch_ms));
        at.saturating_sub(self.started.elapsed())
    }

    /// The same moment as timers count it; `None` if it is too far off to be met.
    pub fn instant(&self, then: Time) -> Option<Instant> {
        let at = Duration::from_millis(then.0.saturating_sub(self.epoch_ms));
        self.started.checked_add(at)
    }
}

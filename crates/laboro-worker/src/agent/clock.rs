//! The time as conversations want it: milliseconds since the epoch that never run backwards, and the same
//! moments as the runtime's timers count them.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use laboro_core::Time;

#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    started: Instant,
    epoch_ms: u64,
}

impl Clock {
    /// The wall clock is read once; from then on only the monotonic clock counts.
    pub(super) fn start() -> Clock {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        let epoch_ms = u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX);
        Clock { started: Instant::now(), epoch_ms }
    }

    pub(super) fn now(&self) -> Time {
        let passed = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        Time(self.epoch_ms.saturating_add(passed))
    }

    /// Not before that moment; `None` if it is too far off to be met.
    pub(super) fn instant(&self, then: Time) -> Option<Instant> {
        let at = Duration::from_millis(then.0.saturating_sub(self.epoch_ms));
        self.started.checked_add(at)
    }
}

//! The hub's clock: set by the world, read by the hub. It never runs backwards during one life, as the real
//! one does not; between two lives it may jump.

use laboro_core::Time;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Clone, Debug, Default)]
pub(crate) struct HubClock(Arc<AtomicU64>);

impl HubClock {
    pub fn now(&self) -> Time {
        Time(self.0.load(Ordering::Relaxed))
    }

    pub fn set(&self, now: Time) {
        self.0.store(now.0, Ordering::Relaxed);
    }
}

/// How far a clock is from the world's own time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Offset(pub u64);

impl Offset {
    /// About where real clocks are, so that nothing is near zero.
    pub const USUAL: Offset = Offset(1_794_769_000_000);

    pub fn time(self, now: u64) -> Time {
        Time(self.0 + now)
    }

    /// When that is in the world's time; never for what is never.
    pub fn world(self, time: Time) -> u64 {
        if time == Time::NEVER { u64::MAX } else { time.0.saturating_sub(self.0) }
    }
}

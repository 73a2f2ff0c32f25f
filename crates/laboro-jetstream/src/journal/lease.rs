//! Until when nobody else can have taken over, as far as this hub knows: what was read from its memory is true
//! until then. The other side of the rule is in `open`: nobody takes over before a hub was silent for so long.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::Instant;

/// Clocks that run at slightly different speeds must not matter.
const CAUTION: u32 = 10;

#[derive(Debug)]
pub(crate) struct Lease {
    base: Instant,
    /// Microseconds after `base`.
    held_until: AtomicU64,
    length: Duration,
}

impl Lease {
    pub fn new(length: Duration) -> Lease {
        let length = length - length / CAUTION;
        Lease { base: Instant::now(), held_until: AtomicU64::new(0), length }
    }

    /// A message that was sent at this time is stored.
    pub fn renew(&self, sent: Instant) {
        let until = (sent + self.length).saturating_duration_since(self.base);
        self.held_until.store(until.as_micros() as u64, Ordering::Release);
    }

    pub fn is_held(&self) -> bool {
        (self.base.elapsed().as_micros() as u64) < self.held_until.load(Ordering::Acquire)
    }
}

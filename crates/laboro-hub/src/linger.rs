//! What an engine does in the moment after its last batch. A peer in lock step has its next word ready some tens of
//! microseconds after an answer, and going to sleep and being woken takes both sides longer than that: so it is
//! waited for awake, as long as that pays. It never takes a core from anyone who wants it, and decides nothing about
//! what is done.

use std::time::{Duration, Instant};

/// Longer than a peer on the same machine needs for its next word, shorter than anyone would notice.
const MOMENT: Duration = Duration::from_micros(100);
/// So often in a row it may have been right; then as often wrong before it sleeps at once.
const TRUST_MAX: i8 = 4;
/// While it sleeps at once, it tries again every so often.
const TRY_EVERY: u8 = 32;

#[derive(Debug, Default)]
pub(crate) struct Linger {
    /// Below zero: it did not pay.
    trust: i8,
    slept: u8,
}

impl Linger {
    /// Until something is there or the moment is over, in which everyone else on this thread goes on.
    pub(crate) async fn until(&mut self, is_there: impl Fn() -> bool) {
        if is_there() || !self.pays() {
            return;
        }
        let end = Instant::now() + MOMENT;
        let came = loop {
            // Connections are looked at meanwhile.
            tokio::task::yield_now().await;
            if is_there() {
                break true;
            }
            if Instant::now() >= end {
                break false;
            }
            // The peer may be waiting for this very core.
            std::thread::yield_now();
        };
        self.learn(came);
    }

    fn pays(&mut self) -> bool {
        if self.trust >= 0 {
            return true;
        }
        self.slept += 1;
        let tries = self.slept >= TRY_EVERY;
        if tries {
            self.slept = 0;
        }
        tries
    }

    fn learn(&mut self, came: bool) {
        self.trust = if came { (self.trust + 1).min(TRUST_MAX) } else { (self.trust - 1).max(-1) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_in_vain_soon_sleeps_at_once() {
        let mut linger = Linger::default();
        let mut tried = 0;
        for _ in 0..1000 {
            if linger.pays() {
                tried += 1;
                linger.learn(false);
            }
        }
        assert_eq!(tried, 1 + 999 / u32::from(TRY_EVERY));
    }

    #[test]
    fn who_was_right_is_not_put_off_by_a_few_misses() {
        let mut linger = Linger::default();
        (0..10).for_each(|_| linger.learn(true));
        for _ in 0..TRUST_MAX {
            linger.learn(false);
            assert!(linger.pays());
        }
        linger.learn(false);
        assert!(!linger.pays());
        linger.learn(true);
        assert!(linger.pays());
    }

    #[tokio::test]
    async fn what_comes_in_the_moment_is_seen_and_nothing_is_waited_for_longer() {
        let mut linger = Linger::default();
        let (send, receive) = tokio::sync::mpsc::channel(1);
        tokio::spawn(async move { send.send(()).await.unwrap() });
        linger.until(|| !receive.is_empty()).await;
        assert_eq!((receive.len(), linger.trust), (1, 1));
        linger.until(|| false).await;
        assert_eq!(linger.trust, 0);
    }
}

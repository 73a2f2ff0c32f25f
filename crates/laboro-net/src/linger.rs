//! What one side of a conversation does in the moment after it said something. A peer in lock step has its next word
//! ready some tens of microseconds later, and going to sleep and being woken takes both sides longer than that: so the
//! word is waited for awake, where that paid before. It never takes a core from anyone who wants it, and knows nothing
//! of what is said.

use bytes::BufMut;
use std::io;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::io::AsyncRead;
use tokio_util::io::poll_read_buf;

/// As long as a peer on the same machine needs for its next word, also one that sleeps itself: were it shorter, two who
/// could both be awake would never find out. Where answers are known to come sooner, they are given up sooner.
const MOMENT: Duration = Duration::from_micros(100);
/// How much later a word is heard where both have slept.
const WAKING: Duration = Duration::from_micros(60);
/// Whoever gave the core away for longer let somebody else work: the machine is busy, and to sleep costs little there.
const BUSY: Duration = Duration::from_micros(10);
/// So many in one process; with more of them, somebody has always something to say.
const AWAKE_MAX: usize = 4;
/// How many of the last words tell what comes next. Conversations go in rounds: a question, a body, a pause.
const PAST: u32 = 4;
/// After so many in a row it takes as many of the other kind to think otherwise.
const SURE: i8 = 2;
/// Who does not wait awake tries it again every so often: asleep, it is hard to tell.
const TRY_EVERY: u8 = 32;

static AWAKE: AtomicUsize = AtomicUsize::new(0);

/// One for each connection.
#[derive(Debug, Default)]
pub struct Linger {
    /// A bit for each of the last words: whether it was answered at once. The newest is the lowest.
    past: u8,
    /// For each such past.
    habits: [Habit; 1 << PAST],
    /// How often in a row it was not tried.
    slept: u8,
    said_at: Option<Instant>,
    is_awake: bool,
    is_off: bool,
}

/// What comes after a certain past.
#[derive(Clone, Copy, Debug)]
struct Habit {
    /// Below zero, waiting did not pay.
    trust: i8,
    /// The longest that an answer took of late of those that came at once; it fades.
    usual_us: u8,
}

impl Default for Habit {
    fn default() -> Habit {
        Habit { trust: 0, usual_us: MOMENT.as_micros() as u8 }
    }
}

impl Habit {
    fn patience(self) -> Duration {
        match self.trust >= 0 {
            true => MOMENT.min(2 * Duration::from_micros(self.usual_us.into())),
            // It is tried in order to learn.
            false => MOMENT,
        }
    }

    fn took(&mut self, time: Duration) {
        let us = time.min(MOMENT).as_micros() as u8;
        self.usual_us = us.max(self.usual_us - self.usual_us / 8);
    }
}

impl Linger {
    /// Waits asleep, whatever the past says: for a conversation beside which others have better use for the core.
    pub fn never() -> Linger {
        Linger { is_off: true, ..Linger::default() }
    }

    /// Something was said: the answer may come at once.
    pub fn said(&mut self) {
        if self.is_off {
            return;
        }
        if self.said_at.is_some() {
            self.learn(false);
        }
        self.said_at = Some(Instant::now());
        if !self.pays() {
            self.sleep();
        } else if !self.is_awake {
            self.is_awake = AWAKE
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |awake| {
                    (awake < AWAKE_MAX).then_some(awake + 1)
                })
                .is_ok();
        }
    }

    pub fn heard(&mut self) {
        let Some(said_at) = self.said_at.take() else { return };
        let waking = if self.is_awake { Duration::ZERO } else { WAKING };
        let took = said_at.elapsed().saturating_sub(waking);
        let is_at_once = took <= MOMENT;
        if is_at_once {
            self.habit().took(took);
        }
        self.learn(is_at_once);
        self.sleep();
    }

    /// What is there to be read, if anything.
    pub fn poll_read(
        &mut self,
        context: &mut Context<'_>,
        stream: &mut (impl AsyncRead + Unpin),
        input: &mut impl BufMut,
    ) -> Poll<io::Result<usize>> {
        let read = poll_read_buf(Pin::new(stream), context, input);
        match read {
            Poll::Ready(_) => self.heard(),
            Poll::Pending => self.poll(context),
        }
        read
    }

    /// Nothing is there yet: asks for this task to be polled again soon, after everyone else and after a look at the
    /// sockets, while the moment lasts.
    pub fn poll(&mut self, context: &mut Context<'_>) {
        if !self.is_awake {
            return;
        }
        let Some(waited) = self.said_at.map(|at| at.elapsed()) else { return };
        if waited >= self.habit().patience() {
            return self.sleep();
        }
        // The peer may be waiting for this very core.
        std::thread::yield_now();
        if self.said_at.is_some_and(|at| at.elapsed() - waited > BUSY) {
            self.sleep();
        }
        // Once more in any case: something may have come while others had the core.
        let _ = pin!(tokio::task::yield_now()).poll(context);
    }

    fn habit(&mut self) -> &mut Habit {
        &mut self.habits[usize::from(self.past)]
    }

    fn pays(&mut self) -> bool {
        let pays = self.habit().trust >= 0 || self.slept >= TRY_EVERY;
        self.slept = if pays { 0 } else { self.slept + 1 };
        pays
    }

    fn learn(&mut self, at_once: bool) {
        let trust = &mut self.habit().trust;
        *trust = if at_once { (*trust + 1).min(SURE - 1) } else { (*trust - 1).max(-SURE) };
        self.past = (self.past << 1 | u8::from(at_once)) & ((1 << PAST) - 1);
    }

    fn sleep(&mut self) {
        if std::mem::take(&mut self.is_awake) {
            AWAKE.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Drop for Linger {
    fn drop(&mut self) {
        self.sleep();
    }
}

#[cfg(test)]
mod tests;

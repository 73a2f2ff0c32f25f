//! When the worker speaks. Results of short tasks wait for each other a moment, and share a message and a write to
//! the hub's disk; whatever the worker or somebody else might wait for is said at once.

use std::time::{Duration, Instant};

use super::Agent;
use super::link::Link;
use super::stages::Stage;

/// The longest time that something waits for more to go with it: far less than the work at hand lasts.
const TOGETHER: Duration = Duration::from_millis(3);

/// So much is worth a message by itself.
const ENOUGH: usize = 16 << 10;

impl Agent {
    pub(super) fn speak(&mut self, link: &mut Link) {
        if self.orders.say.is_empty() {
            return;
        }
        let since = *self.unsaid_since.get_or_insert_with(Instant::now);
        if !self.may_wait_to_speak() || since.elapsed() >= TOGETHER {
            self.unsaid_since = None;
            link.say(self.orders.take_bytes());
        }
    }

    /// What was not said over a connection that is gone is no beginning for the next one.
    pub(super) fn forget_unsaid(&mut self) {
        self.unsaid_since = None;
        self.orders.take_bytes();
    }

    pub(super) fn speak_at(&self) -> Option<Instant> {
        self.unsaid_since.map(|since| since + TOGETHER)
    }

    /// With half of what it asked for ahead still here, more results come soon and no slot waits for the hub. Of a
    /// single task, a chain or the last ones of a job nothing is left here, so they never wait.
    fn may_wait_to_speak(&self) -> bool {
        let at_hand = self.waiting.len() + self.unbegun as usize;
        let ahead = self.pace.told() as usize;
        self.stage == Stage::Working
            && self.orders.hang_up.is_none()
            && self.orders.say.len() < ENOUGH
            && ahead > 0
            && at_hand * 2 >= ahead
    }
}

//! Says in the log what was dropped and why, once a second at most: whoever sends nonsense shall not fill a
//! disk with it.

use super::peer::BrokerPeer;
use laboro_core::{Counters, Dropped, Time};

const EVERY_MS: u64 = 1000;

#[derive(Debug, Default)]
pub(super) struct Report {
    said: [u64; Dropped::ALL.len()],
    said_at: Time,
    is_wanted: bool,
    /// Of what was not said yet, the first that a peer's word was dropped for, and who that was.
    first: Option<(Dropped, String)>,
}

impl Report {
    /// A word of this peer was dropped.
    pub fn blame(&mut self, why: Dropped, peer: &BrokerPeer) {
        self.want();
        self.first.get_or_insert_with(|| (why, peer.shown()));
    }

    /// Something may have been dropped.
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
                let who = self.first.as_ref().filter(|(first, _)| *first == why);
                let who =
                    who.map_or(String::new(), |(_, who)| format!("; from {who}, maybe others"));
                tracing::warn!("dropped {more} ({}), {total} in all{who}", why.name());
                *said = total;
            }
        }
        self.said_at = now;
        self.is_wanted = false;
        self.first = None;
    }
}

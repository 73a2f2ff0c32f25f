//! Connections that delay, split, merge and lose bytes. What the bytes mean is not known here.

use crate::dice::Dice;
use bytes::{Bytes, BytesMut};
use std::collections::VecDeque;

/// How the network is just now.
#[derive(Clone, Debug)]
pub(crate) struct Weather {
    pub delay_ms_max: u64,
    /// A write arrives in up to so many pieces.
    pub pieces_max: u64,
}

/// One direction of a connection. Bytes arrive in order or not at all.
#[derive(Debug, Default)]
pub(crate) struct Pipe {
    pieces: VecDeque<(u64, Bytes)>,
    bytes: usize,
    last_at: u64,
    /// When the receiver sees that nothing more will come.
    end_at: Option<u64>,
}

/// What a connection holds between its ends; more has to wait with the sender.
pub(crate) const PIPE_BYTES: usize = 64 << 10;

impl Pipe {
    pub fn room(&self) -> usize {
        PIPE_BYTES.saturating_sub(self.bytes)
    }

    pub fn send(&mut self, now: u64, bytes: Bytes, weather: &Weather, dice: &mut Dice) {
        if self.end_at.is_some() {
            return;
        }
        self.bytes += bytes.len();
        let mut rest = bytes;
        let mut left = dice.between(1, weather.pieces_max);
        while !rest.is_empty() {
            let len = if left > 1 { 1 + dice.index(rest.len()) } else { rest.len() };
            left -= 1;
            let at = (now + dice.mostly_short(weather.delay_ms_max)).max(self.last_at);
            self.last_at = at;
            self.pieces.push_back((at, rest.split_to(len)));
        }
    }

    /// All that has arrived, as one piece.
    pub fn take(&mut self, now: u64, to: &mut BytesMut) -> bool {
        let before = to.len();
        while self.pieces.front().is_some_and(|(at, _)| *at <= now) {
            let (_, piece) = self.pieces.pop_front().expect("looked at just now");
            self.bytes -= piece.len();
            to.extend_from_slice(&piece);
        }
        to.len() > before
    }

    /// The sender has said everything and closes.
    pub fn finish(&mut self, now: u64) {
        self.end_at.get_or_insert(now.max(self.last_at));
    }

    /// The line breaks: of what is under way only a beginning arrives, and the end is seen later.
    pub fn cut(&mut self, now: u64, seen_after_ms: u64, dice: &mut Dice) {
        let kept = dice.index(self.pieces.len() + 1);
        self.pieces.truncate(kept);
        self.bytes = self.pieces.iter().map(|(_, piece)| piece.len()).sum();
        let last = self.pieces.back().map_or(now, |(at, _)| *at);
        let end = (now + seen_after_ms).max(last);
        self.end_at = Some(self.end_at.map_or(end, |at| at.min(end)).max(last));
    }

    pub fn has_ended(&self, now: u64) -> bool {
        self.pieces.is_empty() && self.end_at.is_some_and(|at| at <= now)
    }

    /// When there is something new to see.
    pub fn due(&self) -> Option<u64> {
        self.pieces.front().map(|(at, _)| *at).or(self.end_at)
    }
}

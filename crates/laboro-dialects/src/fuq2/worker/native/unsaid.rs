//! What the hub was not sent yet, and what it was sent and has not answered, in order. A task's output always stands
//! before its result, and what is said again comes first.

use crate::fuq2::native::{Item, Wishes};
use std::collections::VecDeque;

/// Things that one UPDATE says at most.
const ITEMS_MAX: usize = 4096;
/// And the bytes of output and words in it, about: far below what a hub takes.
const BYTES_MAX: usize = 512 << 10;
/// Output is cut into pieces of this size, so that no message becomes larger than anyone takes.
const CHUNK_MAX: usize = 256 << 10;

#[derive(Debug, Default)]
pub(super) struct Unsaid {
    waiting: VecDeque<Item>,
    said: Vec<Item>,
    wishes: Wishes,
    said_wishes: Wishes,
    bytes: usize,
}

impl Unsaid {
    pub(super) fn push(&mut self, item: Item) {
        self.bytes += size(&item);
        let Item::Chunk(mut chunk) = item else {
            self.waiting.push_back(item);
            return;
        };
        while chunk.bytes.len() > CHUNK_MAX {
            let bytes = chunk.bytes.split_to(CHUNK_MAX);
            let after = chunk.offset.map(|offset| offset + bytes.len() as u64);
            let piece = crate::session::Chunk { bytes, ..chunk.clone() };
            chunk.offset = after;
            self.waiting.push_back(Item::Chunk(piece));
        }
        self.waiting.push_back(Item::Chunk(chunk));
    }

    pub(super) fn wish(&mut self, wishes: Wishes) {
        merge(&mut self.wishes, wishes);
    }

    /// There is something to say.
    pub(super) fn is_due(&self) -> bool {
        !self.waiting.is_empty() || self.wishes != Wishes::default()
    }

    /// What the next UPDATE says. Things about tasks that nobody wants to hear of any more are left out.
    pub(super) fn take(&mut self, is_wanted: impl Fn(&Item) -> bool) -> (&[Item], Wishes) {
        debug_assert!(self.said.is_empty(), "one UPDATE is under way at a time");
        let mut bytes = 0;
        while self.said.len() < ITEMS_MAX
            && bytes < BYTES_MAX
            && let Some(item) = self.waiting.pop_front()
        {
            if is_wanted(&item) {
                bytes += size(&item);
                self.said.push(item);
            } else {
                self.bytes -= size(&item);
            }
        }
        // Goodbye is said last.
        let leaves = self.wishes.leaves && self.waiting.is_empty();
        self.said_wishes = Wishes { leaves, ..self.wishes };
        self.wishes = Wishes { leaves: self.wishes.leaves && !leaves, ..Wishes::default() };
        (&self.said, self.said_wishes)
    }

    /// It was heard. Gives what it was.
    pub(super) fn answered(&mut self) -> (std::vec::Drain<'_, Item>, Wishes) {
        self.bytes -= self.said.iter().map(size).sum::<usize>();
        (self.said.drain(..), std::mem::take(&mut self.said_wishes))
    }

    /// What has no answer is said again, before everything else.
    pub(super) fn say_again(&mut self) {
        for item in self.said.drain(..).rev() {
            self.waiting.push_front(item);
        }
        let said = std::mem::take(&mut self.said_wishes);
        let later = std::mem::replace(&mut self.wishes, said);
        merge(&mut self.wishes, later);
    }

    /// Bytes of output without an answer.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The hub knows what became of every task. Wishes do not count: who goes need not wait until a hub
    /// that is away has heard that it wants no more work.
    pub(super) fn is_settled(&self) -> bool {
        self.waiting.is_empty() && self.said.is_empty()
    }
}

fn merge(wishes: &mut Wishes, later: Wishes) {
    wishes.ahead = later.ahead.or(wishes.ahead);
    wishes.drains |= later.drains;
    wishes.leaves |= later.leaves;
}

fn size(item: &Item) -> usize {
    match item {
        Item::Chunk(chunk) => chunk.bytes.len(),
        Item::Ended { how, .. } => how.message.as_ref().map_or(0, String::len),
        Item::Back { reason, .. } => reason.as_ref().map_or(0, |words| words.len()),
    }
}

//! The entries of a segment that has no index file, held in memory so that a key is found quickly
//! while more keep coming.

use super::Key;
use super::index::Entry;

#[derive(Debug, Default)]
pub(super) struct Table {
    /// By key, then by offset.
    sorted: Vec<Entry>,
    /// In order of arrival; all of them came after those that are sorted.
    fresh: Vec<Entry>,
}

impl Table {
    pub fn push(&mut self, entry: Entry) {
        self.fresh.push(entry);
    }

    /// To be called when a batch is in. Sorting waits until it pays: few enough are left unsorted
    /// to be gone through, and a little growth at a time does not sort everything every time.
    pub fn sort_if_due(&mut self) {
        if self.fresh.len() > 1024 + self.sorted.len() / 64 {
            self.sorted.append(&mut self.fresh);
            // The stable sort takes advantage of the long run that is sorted already.
            self.sorted.sort_by_key(|entry| (entry.key(), entry.offset));
        }
    }

    /// The entries of some keys. In order of arrival within a key.
    pub fn find(&self, first: Key, last: Key) -> impl Iterator<Item = &Entry> {
        let from = self.sorted.partition_point(|entry| entry.key() < first);
        let sorted = self.sorted[from..].iter().take_while(move |entry| entry.key() <= last);
        let wanted = move |entry: &&Entry| (first..=last).contains(&entry.key());
        sorted.chain(self.fresh.iter().filter(wanted))
    }
}

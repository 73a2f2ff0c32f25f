//! Tasks of this store whose outputs another one has: those that a resumed run did not run again were kept by the run that
//! did them, under other numbers. Only reads, and only what was there when it was told.

use super::Outputs;
use laboro_journal::outputs::Key;

/// Tasks with these numbers are in that store, under numbers from `from` on.
#[derive(Debug)]
pub struct Elsewhere {
    pub first: u32,
    pub last: u32,
    pub from: u32,
    pub store: Outputs,
}

impl Outputs {
    /// Ranges that are apart from each other, ascending. Counts once.
    pub fn look_elsewhere(&self, ranges: Vec<Elsewhere>) {
        let _ = self.shared.elsewhere.set(ranges);
    }

    /// The store that has the outputs of the task with this number, and the number it has there.
    pub(super) fn of(&self, index: u32) -> (&Outputs, u32) {
        match self.range_of(index) {
            Some(range) => (&range.store, range.from + (index - range.first)),
            None => (self, index),
        }
    }

    pub(super) fn of_key(&self, key: Key) -> (&Outputs, Key) {
        let (store, index) = self.of(key.index);
        (store, Key { index, ..key })
    }

    /// How many tasks from this one on are in one store, one after the other: at least it alone.
    pub(super) fn together_from(&self, index: u32) -> u32 {
        let ranges = self.shared.elsewhere.get().map_or(&[][..], Vec::as_slice);
        match self.range_of(index) {
            Some(range) => range.last - index + 1,
            None => match ranges.get(ranges.partition_point(|range| range.last < index)) {
                Some(next) => next.first - index,
                None => u32::MAX - index,
            },
        }
    }

    fn range_of(&self, index: u32) -> Option<&Elsewhere> {
        let ranges = self.shared.elsewhere.get()?;
        let at = ranges.partition_point(|range| range.last < index);
        ranges.get(at).filter(|range| range.first <= index)
    }
}

//! The queues of a class in the order of their turns: a sorted set that is quick where many owners take turns. What moves
//! goes mostly behind all others with as many slots in use, because stamps only grow. So each load has a row, which
//! grows and shrinks at its ends; what is taken out of its middle leaves a gap, and what comes in between stands in a tree
//! beside it. The first of all stands apart: where there is one, nothing else is touched.

use super::Place;
use crate::ledger::handle::QueueHandle;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

#[derive(Debug, Default)]
pub(in crate::ledger::lanes) struct Rota {
    /// Smaller than all others.
    first: Option<(Place, QueueHandle)>,
    by_load: BTreeMap<u64, Row>,
    /// An empty one: the last of a load goes, and the next comes, with every task.
    spare: Option<Row>,
}

/// Those with one load.
#[derive(Debug, Default)]
struct Row {
    /// In order; its ends are no gaps.
    places: VecDeque<RowPlace>,
    gaps: usize,
    between: BTreeSet<(u64, QueueHandle)>,
}

#[derive(Debug)]
struct RowPlace {
    stamp: u64,
    queue: QueueHandle,
    is_gap: bool,
}

impl Rota {
    pub(in crate::ledger::lanes) fn first(&self) -> Option<&(Place, QueueHandle)> {
        self.first.as_ref()
    }

    pub(in crate::ledger::lanes) fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    pub(in crate::ledger::lanes) fn iter(&self) -> impl Iterator<Item = (Place, QueueHandle)> {
        let rest = self.by_load.iter().flat_map(|(&load, row)| {
            row.iter().map(move |(stamp, queue)| (Place { load, stamp }, queue))
        });
        self.first.iter().copied().chain(rest)
    }

    pub(in crate::ledger::lanes) fn insert(&mut self, item: (Place, QueueHandle)) {
        let behind = match &mut self.first {
            None => {
                self.first = Some(item);
                return;
            }
            Some(first) if item < *first => std::mem::replace(first, item),
            Some(_) => item,
        };
        let (Place { load, stamp }, queue) = behind;
        let spare = &mut self.spare;
        let row = self.by_load.entry(load).or_insert_with(|| spare.take().unwrap_or_default());
        row.insert(stamp, queue);
    }

    pub(in crate::ledger::lanes) fn remove(&mut self, item: &(Place, QueueHandle)) {
        if self.first.as_ref() == Some(item) {
            self.first = self.pop_first();
            return;
        }
        let (Place { load, stamp }, queue) = *item;
        if let Some(row) = self.by_load.get_mut(&load) {
            row.remove(stamp, queue);
            if row.is_empty() {
                self.spare = self.by_load.remove(&load);
            }
        }
    }

    fn pop_first(&mut self) -> Option<(Place, QueueHandle)> {
        let mut entry = self.by_load.first_entry()?;
        let load = *entry.key();
        let (stamp, queue) = entry.get_mut().pop_first()?;
        if entry.get().is_empty() {
            self.spare = Some(entry.remove());
        }
        Some((Place { load, stamp }, queue))
    }
}

impl Row {
    fn is_empty(&self) -> bool {
        self.places.is_empty() && self.between.is_empty()
    }

    fn insert(&mut self, stamp: u64, queue: QueueHandle) {
        let (key, place) = ((stamp, queue), RowPlace { stamp, queue, is_gap: false });
        if self.places.back().is_none_or(|back| back.key() < key) {
            self.places.push_back(place);
        } else if self.places.front().is_some_and(|front| key < front.key()) {
            self.places.push_front(place);
        } else {
            self.between.insert(key);
        }
    }

    fn remove(&mut self, stamp: u64, queue: QueueHandle) {
        let key = (stamp, queue);
        let found = match self.places.front() {
            Some(front) if front.key() == key => Ok(0),
            _ => self.places.binary_search_by_key(&key, RowPlace::key),
        };
        match found {
            Ok(at) if !self.places[at].is_gap => {
                self.places[at].is_gap = true;
                self.gaps += 1;
                self.close_gaps();
            }
            _ => {
                self.between.remove(&key);
            }
        }
    }

    fn pop_first(&mut self) -> Option<(u64, QueueHandle)> {
        let front = self.places.front().map(RowPlace::key);
        if let Some(&other) = self.between.first()
            && front.is_none_or(|front| other < front)
        {
            return self.between.pop_first();
        }
        self.places.pop_front();
        self.close_gaps();
        front
    }

    /// At its ends, and everywhere when most of it is gaps.
    fn close_gaps(&mut self) {
        while self.places.front().is_some_and(|place| place.is_gap) {
            self.places.pop_front();
            self.gaps -= 1;
        }
        while self.places.back().is_some_and(|place| place.is_gap) {
            self.places.pop_back();
            self.gaps -= 1;
        }
        if 2 * self.gaps > self.places.len() {
            self.places.retain(|place| !place.is_gap);
            self.gaps = 0;
        }
    }

    fn iter(&self) -> impl Iterator<Item = (u64, QueueHandle)> + '_ {
        let places = self.places.iter().filter(|place| !place.is_gap).map(RowPlace::key);
        let (mut places, mut between) =
            (places.peekable(), self.between.iter().copied().peekable());
        std::iter::from_fn(move || match (places.peek(), between.peek()) {
            (Some(one), Some(other)) if other < one => between.next(),
            (Some(_), _) => places.next(),
            (None, _) => between.next(),
        })
    }
}

impl RowPlace {
    fn key(&self) -> (u64, QueueHandle) {
        (self.stamp, self.queue)
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::Slab;
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_is_a_sorted_set(steps in prop::collection::vec((0u8..3, 0u64..3, 0u64..12, 0usize..4), 1..200)) {
            let mut slab = Slab::<QueueHandle, ()>::default();
            let queues: Vec<QueueHandle> = (0..4).map(|_| slab.insert(())).collect();
            let (mut rota, mut model) = (Rota::default(), BTreeSet::new());
            for (step, load, stamp, queue) in steps {
                let item = (Place { load, stamp }, queues[queue]);
                if step > 0 && model.insert(item) {
                    rota.insert(item);
                } else if step == 0 {
                    let item = if queue == 0 { model.first().copied().unwrap_or(item) } else { item };
                    model.remove(&item);
                    rota.remove(&item);
                }
                prop_assert!(rota.iter().eq(model.iter().copied()));
                prop_assert_eq!((rota.first(), rota.is_empty()), (model.first(), model.is_empty()));
            }
        }
    }
}

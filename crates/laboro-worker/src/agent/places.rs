//! Numbers for what runs at once, from 1: the lowest that is free. While no more tasks run than there are slots, none is
//! above their number.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

#[derive(Debug, Default)]
pub(super) struct Places {
    /// Given back, below `most`.
    free: BinaryHeap<Reverse<u32>>,
    /// The highest that was ever taken.
    most: u32,
}

impl Places {
    /// The one that is taken next.
    pub(super) fn next(&self) -> u32 {
        self.free.peek().map_or(self.most + 1, |Reverse(place)| *place)
    }

    pub(super) fn take(&mut self) -> u32 {
        match self.free.pop() {
            Some(Reverse(place)) => place,
            None => {
                self.most += 1;
                self.most
            }
        }
    }

    pub(super) fn give_back(&mut self, place: u32) {
        self.free.push(Reverse(place));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_free_number_is_next() {
        let mut places = Places::default();
        assert_eq!([places.take(), places.take(), places.take()], [1, 2, 3]);
        places.give_back(2);
        places.give_back(1);
        assert_eq!((places.next(), places.take(), places.take(), places.take()), (1, 1, 2, 4));
    }
}

//! The values of an array in one piece of memory, however many there are: a list of ten million short values takes
//! little more room than their bytes. It is made once, where a request is read, so that the hub's own step need
//! not look at each of them.

use crate::argv::{Argv, ArgvWords};
use std::fmt;

/// Of so many values one has its place noted; the others are counted from there.
const STRIDE: usize = 32;

/// Values in order, each found by its position.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ValueList {
    words: Argv,
    /// Where values 0, STRIDE, 2 * STRIDE and so on begin among the bytes.
    marks: Box<[usize]>,
    len: usize,
    longest: usize,
}

impl ValueList {
    /// The same as collecting them, for many: looks at them twice and moves none while others come.
    pub fn of_many<W: AsRef<[u8]>>(values: impl Iterator<Item = W> + Clone) -> ValueList {
        let room = values.clone().map(|value| Argv::room_of(value.as_ref().len())).sum();
        Argv::in_room(room, values).into()
    }

    /// How many values there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Has it no values?
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many bytes the longest has.
    pub fn longest(&self) -> usize {
        self.longest
    }

    /// How many bytes it takes.
    pub fn weight(&self) -> usize {
        self.words.weight() + self.marks.len() * size_of::<usize>()
    }

    /// The value at this position, from 0.
    pub fn get(&self, position: usize) -> Option<&[u8]> {
        let mark = *self.marks.get(position / STRIDE)?;
        self.words.iter_from(mark).nth(position % STRIDE)
    }

    /// All values, each after its length as in [`Argv`].
    pub fn packed(&self) -> &[u8] {
        self.words.packed()
    }

    /// The values in order.
    pub fn iter(&self) -> ArgvWords<'_> {
        self.words.iter()
    }
}

impl From<Argv> for ValueList {
    fn from(words: Argv) -> ValueList {
        let (mut marks, mut len, mut longest) = (Vec::new(), 0, 0);
        let mut left = words.iter();
        loop {
            let place = words.weight() - left.bytes_left();
            let Some(value) = left.next() else { break };
            if len % STRIDE == 0 {
                marks.push(place);
            }
            len += 1;
            longest = longest.max(value.len());
        }
        ValueList { words, marks: marks.into_boxed_slice(), len, longest }
    }
}

impl<W: AsRef<[u8]>> FromIterator<W> for ValueList {
    fn from_iter<I: IntoIterator<Item = W>>(values: I) -> ValueList {
        values.into_iter().collect::<Argv>().into()
    }
}

impl fmt::Debug for ValueList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.words.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn each_value_is_found_by_its_position(
            values in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 0..200)
        ) {
            let list: ValueList = values.iter().collect();
            prop_assert_eq!(&list, &ValueList::of_many(values.iter()));
            prop_assert_eq!(list.len(), values.len());
            prop_assert_eq!(list.is_empty(), values.is_empty());
            prop_assert_eq!(list.longest(), values.iter().map(Vec::len).max().unwrap_or(0));
            for (position, value) in values.iter().enumerate() {
                prop_assert_eq!(list.get(position), Some(&value[..]));
            }
            prop_assert_eq!(list.get(values.len()), None);
            prop_assert_eq!(list.get(values.len() + STRIDE), None);
            prop_assert!(list.iter().eq(values.iter().map(|value| &value[..])));
        }
    }

    #[test]
    fn short_values_take_little_more_than_their_bytes() {
        let list: ValueList = (0..100_000).map(|number| format!("{number:07}")).collect();
        assert!(list.weight() < 100_000 * 9, "{}", list.weight());
    }
}

//! The words of a command in one allocation, however many there are: tasks with commands of their own come by
//! the million. It can be read from the front only, which is all that anybody does with a command.

use std::fmt;

/// Each word after its length, seven bits a byte, the lowest first, all but the last with the top bit set.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Argv(Box<[u8]>);

impl Argv {
    /// How many words there are.
    pub fn len(&self) -> usize {
        self.iter().count()
    }

    /// Has it no words?
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many bytes it takes.
    pub fn weight(&self) -> usize {
        self.0.len()
    }

    /// The words in order.
    pub fn iter(&self) -> ArgvWords<'_> {
        ArgvWords(&self.0)
    }

    /// The words as they lie in memory.
    pub(crate) fn packed(&self) -> &[u8] {
        &self.0
    }

    /// The words from the one on that begins after so many bytes.
    pub(crate) fn iter_from(&self, place: usize) -> ArgvWords<'_> {
        ArgvWords(&self.0[place..])
    }
}

impl<W: AsRef<[u8]>> FromIterator<W> for Argv {
    fn from_iter<I: IntoIterator<Item = W>>(words: I) -> Argv {
        Argv::in_room(0, words)
    }
}

impl Argv {
    /// How many bytes a word of this length takes.
    pub(crate) fn room_of(length: usize) -> usize {
        length + (usize::BITS - length.leading_zeros()).div_ceil(7).max(1) as usize
    }

    /// Words of which is known how many bytes they take: none is moved while others come.
    pub(crate) fn in_room<W: AsRef<[u8]>>(room: usize, words: impl IntoIterator<Item = W>) -> Argv {
        let mut packed = Vec::with_capacity(room);
        for word in words {
            let word = word.as_ref();
            let mut length = word.len();
            while length >= 0x80 {
                packed.push(length as u8 | 0x80);
                length >>= 7;
            }
            packed.push(length as u8);
            packed.extend_from_slice(word);
        }
        Argv(packed.into_boxed_slice())
    }
}

impl<'a> IntoIterator for &'a Argv {
    type Item = &'a [u8];
    type IntoIter = ArgvWords<'a>;

    fn into_iter(self) -> ArgvWords<'a> {
        self.iter()
    }
}

impl fmt::Debug for Argv {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self).finish()
    }
}

/// What is left to read.
#[derive(Clone, Debug)]
pub struct ArgvWords<'a>(&'a [u8]);

impl ArgvWords<'_> {
    pub(crate) fn bytes_left(&self) -> usize {
        self.0.len()
    }
}

impl<'a> Iterator for ArgvWords<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let (mut length, mut shift) = (0, 0);
        loop {
            let (&byte, rest) = self.0.split_first()?;
            self.0 = rest;
            length |= usize::from(byte & 0x7f) << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                break;
            }
        }
        let (word, rest) = self.0.split_at(length);
        self.0 = rest;
        Some(word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::{Program, Work};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn words_come_back_as_they_were(
            words in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 0..6)
        ) {
            let argv: Argv = words.iter().collect();
            prop_assert_eq!(argv.len(), words.len());
            prop_assert_eq!(argv.weight(), words.iter().map(|word| Argv::room_of(word.len())).sum::<usize>());
            prop_assert_eq!(argv.is_empty(), words.is_empty());
            prop_assert_eq!(argv.iter().map(<[u8]>::to_vec).collect::<Vec<_>>(), words);
        }
    }

    #[test]
    fn a_long_word_is_read_whole() {
        let long = vec![b'x'; 70_000];
        let argv: Argv = [&b"cat"[..], &long, b""].into_iter().collect();
        assert!(argv.iter().eq([&b"cat"[..], &long, b""]));
    }

    #[test]
    fn a_command_fits_in_32_bytes_beside_its_words() {
        assert_eq!(size_of::<Program>(), 24);
        assert_eq!(size_of::<Work>(), 32);
    }
}

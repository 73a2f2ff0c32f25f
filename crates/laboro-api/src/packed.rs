//! Long lists in one piece of memory each. A list of a million short texts takes no more room than it took in the
//! request: a hub accepts such lists from every client that may submit.

use super::reference::After;
use super::text::Text;
use laboro_core::{Argv, JobId, TaskId};
use serde::de::{self, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

/// What a list can be made of.
pub trait Packed: Sized {
    /// Appends its bytes.
    fn pack(&self, into: &mut Vec<u8>);
    /// Reads what `pack` wrote.
    fn unpack(packed: &[u8]) -> Self;
}

/// Can be read from the front only.
#[derive(Clone, PartialEq, Eq)]
pub struct List<T> {
    words: Argv,
    len: usize,
    of: PhantomData<T>,
}

impl<T> Default for List<T> {
    fn default() -> List<T> {
        List { words: Argv::default(), len: 0, of: PhantomData }
    }
}

impl<T: Packed> List<T> {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Says how many there are, so that whoever collects them takes as much room as they need.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = T> + '_ {
        let mut words = self.words.iter();
        (0..self.len).map(move |_| T::unpack(words.next().expect("as many words as were packed")))
    }
}

impl List<Text> {
    /// As the words of a command.
    pub fn words(&self) -> &Argv {
        &self.words
    }

    /// As the words of a command.
    pub fn into_words(self) -> Argv {
        self.words
    }
}

impl<T: Packed> FromIterator<T> for List<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> List<T> {
        let mut len = 0;
        let packed = items.into_iter().map(|item| {
            len += 1;
            let mut word = Vec::new();
            item.pack(&mut word);
            word
        });
        let words = packed.collect();
        List { words, len, of: PhantomData }
    }
}

impl<T: Packed> From<Vec<T>> for List<T> {
    fn from(items: Vec<T>) -> List<T> {
        items.into_iter().collect()
    }
}

impl<T: Packed + PartialEq, const N: usize> PartialEq<[T; N]> for List<T> {
    fn eq(&self, other: &[T; N]) -> bool {
        self.len == N && self.iter().zip(other).all(|(own, other)| own == *other)
    }
}

impl<T: Packed + fmt::Debug> fmt::Debug for List<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<T: Packed + Serialize> Serialize for List<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl<'de, T: Packed + Deserialize<'de>> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<List<T>, D::Error> {
        deserializer.deserialize_seq(ListVisitor(PhantomData))
    }
}

struct ListVisitor<T>(PhantomData<T>);

impl<'de, T: Packed + Deserialize<'de>> Visitor<'de> for ListVisitor<T> {
    type Value = List<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a sequence")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<List<T>, A::Error> {
        collected(&mut list)
    }
}

/// What is left of a sequence.
pub(super) fn collected<'de, T, A>(list: &mut A) -> Result<List<T>, A::Error>
where
    T: Packed + Deserialize<'de>,
    A: SeqAccess<'de>,
{
    let mut wrong = None;
    let items = std::iter::from_fn(|| match list.next_element() {
        Ok(item) => item,
        Err(error) => {
            wrong = Some(error);
            None
        }
    });
    let packed = items.collect();
    match wrong {
        None => Ok(packed),
        Some(error) => Err(error),
    }
}

/// A list that is short.
pub(super) fn few<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    deserializer.deserialize_seq(Few(PhantomData))
}

/// Names with values, and not many.
pub(super) fn few_named<'de, D, T>(deserializer: D) -> Result<BTreeMap<String, T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    deserializer.deserialize_map(FewNamed(PhantomData))
}

struct Few<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Few<T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a sequence")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<T>, A::Error> {
        let (mut found, mut left) = (Vec::new(), FEW_MAX);
        while let Some(item) = list.next_element()? {
            left = one_less(left)?;
            found.push(item);
        }
        Ok(found)
    }
}

struct FewNamed<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for FewNamed<T> {
    type Value = BTreeMap<String, T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<BTreeMap<String, T>, M::Error> {
        let (mut found, mut left) = (BTreeMap::new(), FEW_MAX);
        while let Some((name, value)) = map.next_entry()? {
            left = one_less(left)?;
            found.insert(name, value);
        }
        Ok(found)
    }
}

/// Resources, tags, exit codes and variables of one task: more than anybody has, and little in memory.
const FEW_MAX: usize = 4096;

fn one_less<E: de::Error>(left: usize) -> Result<usize, E> {
    left.checked_sub(1).ok_or_else(|| E::custom(format!("more than {FEW_MAX} entries")))
}

impl Packed for Text {
    fn pack(&self, into: &mut Vec<u8>) {
        into.extend_from_slice(self.bytes());
    }

    fn unpack(packed: &[u8]) -> Text {
        Text::new(packed)
    }
}

/// A name after a zero, or two numbers of four bytes after their kind.
impl Packed for After {
    fn pack(&self, into: &mut Vec<u8>) {
        let (job, number) = match self {
            After::Name(name) => {
                into.push(0);
                into.extend_from_slice(name.bytes());
                return;
            }
            After::Task { job, task } => (job, TaskId::new(JobId(*job), *task)),
            After::Array { job, first } => (job, TaskId::whole(JobId(*job), *first)),
        };
        into.push(1);
        into.extend_from_slice(&job.to_le_bytes());
        into.extend_from_slice(&number.index.to_le_bytes());
    }

    fn unpack(packed: &[u8]) -> After {
        match packed {
            [1, a, b, c, d, e, f, g, h] => {
                let job = JobId(u32::from_le_bytes([*a, *b, *c, *d]));
                After::from(TaskId { job, index: u32::from_le_bytes([*e, *f, *g, *h]) })
            }
            name => After::Name(Text::new(name.get(1..).unwrap_or_default())),
        }
    }
}

//! The values an array runs over: ranges of numbers, lists, and their combinations. A range takes no
//! memory, a list is packed, and a combination is computed for the one element asked for.

use std::borrow::Cow;

use thiserror::Error;

/// An array larger than this is a slip of the hand, not a job.
pub const ELEMENTS_MAX: u64 = 1_000_000_000;

/// All values of one list together. A list comes from a file or a pipe, which may be endless.
pub const LIST_BYTES_MAX: usize = 1 << 30;

/// Why there are no such values.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum ValuesError {
    #[error("no values: the list is empty")]
    Empty,
    #[error(
        "`{0}` is not a range of numbers: write 1-100, 1-100:2 for every second, or several: 1,2,50-100"
    )]
    NotARange(String),
    #[error("range {0}: the last number is below the first")]
    Backwards(String),
    #[error("range {0}: the step is zero")]
    NoStep(String),
    #[error("{0} elements are more than the {ELEMENTS_MAX} an array may have")]
    TooMany(u128),
    #[error(
        "{0} numbers in several ranges are more than {SET_MAX}: submit each range as an array of its own"
    )]
    LargeSet(u128),
    #[error("{1}: {0} is there twice")]
    Twice(u64, String),
    #[error("a list of values is larger than {LIST_BYTES_MAX} bytes")]
    TooLarge,
    #[error("a value holds a zero byte, which no program argument can carry")]
    ZeroByte,
    #[error("lists of {0} and {1} values cannot be paired one to one")]
    Unequal(u64, u64),
}

/// Numbers of several ranges are a list, and a list is written out.
const SET_MAX: u64 = 10_000_000;

/// `first, first + step, ... <= last`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Numbers {
    first: u64,
    last: u64,
    step: u64,
}

impl Numbers {
    /// From `first` on in steps, as far as `last` reaches.
    pub fn new(first: u64, last: u64, step: u64) -> Result<Numbers, ValuesError> {
        let shown = || match step {
            1 => format!("{first}-{last}"),
            step => format!("{first}-{last}:{step}"),
        };
        if step == 0 {
            return Err(ValuesError::NoStep(shown()));
        }
        if last < first {
            return Err(ValuesError::Backwards(shown()));
        }
        let count = u128::from((last - first) / step) + 1;
        if count > u128::from(ELEMENTS_MAX) {
            return Err(ValuesError::TooMany(count));
        }
        Ok(Numbers { first, last, step })
    }

    /// `7`, `1-100` or `1-100:2`.
    pub fn parse(text: &str) -> Result<Numbers, ValuesError> {
        let number = |part: &str| {
            let digits = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
            digits.then(|| part.parse::<u64>().ok()).flatten()
        };
        let (range, step) = match text.split_once(':') {
            Some((range, step)) => (range, number(step)),
            None => (text, Some(1)),
        };
        let (first, last) = match range.split_once('-') {
            Some((first, last)) => (number(first), number(last)),
            None => (number(range), number(range)),
        };
        match (first, last, step) {
            (Some(first), Some(last), Some(step)) => Numbers::new(first, last, step),
            _ => Err(ValuesError::NotARange(text.to_owned())),
        }
    }

    /// The first of them.
    pub fn first(&self) -> u64 {
        self.first
    }

    /// None is higher.
    pub fn last(&self) -> u64 {
        self.last
    }

    /// From one to the next.
    pub fn step(&self) -> u64 {
        self.step
    }

    /// How many they are.
    pub fn count(&self) -> u64 {
        (self.last - self.first) / self.step + 1
    }

    fn item(&self, i: u64) -> u64 {
        self.first + i * self.step
    }
}

/// A list of byte strings in two allocations, whatever its length.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct List {
    bytes: Vec<u8>,
    ends: Vec<u32>,
}

/// What one command gets of a list that is shared: words, and their bytes on the average. A system takes more.
const WORDS_MAX: usize = 4096;
const WORDS_BYTES_MAX: usize = 100_000;

impl List {
    /// For values that take so many bytes together: they need not be moved while others come.
    pub fn with_room(bytes: usize) -> List {
        List { bytes: Vec::with_capacity(bytes.min(LIST_BYTES_MAX)), ends: Vec::new() }
    }

    /// Adds one value at the end.
    pub fn push(&mut self, value: &[u8]) -> Result<(), ValuesError> {
        if value.contains(&0) {
            return Err(ValuesError::ZeroByte);
        }
        if self.bytes.len() + value.len() > LIST_BYTES_MAX {
            return Err(ValuesError::TooLarge);
        }
        if self.ends.len() as u64 >= ELEMENTS_MAX {
            return Err(ValuesError::TooMany(u128::from(ELEMENTS_MAX) + 1));
        }
        self.bytes.extend_from_slice(value);
        self.ends.push(self.bytes.len() as u32);
        Ok(())
    }

    /// How many values it has.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Value `i`, counted from 0.
    pub fn item(&self, i: usize) -> &[u8] {
        let start = if i == 0 { 0 } else { self.ends[i - 1] as usize };
        &self.bytes[start..self.ends[i] as usize]
    }

    /// The same values in an order that looks random and is always the same for them: a run that is typed again finds
    /// what it has done.
    pub(crate) fn shuffled(&self) -> Result<List, ValuesError> {
        let mut order: Vec<u32> = (0..self.len() as u32).collect();
        let mut state = 0x9e37_79b9_7f4a_7c15_u64 ^ self.bytes.len() as u64;
        for left in (1..order.len()).rev() {
            // SplitMix64.
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut mixed = state;
            mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            order.swap(left, ((mixed ^ (mixed >> 31)) % (left as u64 + 1)) as usize);
        }
        let mut list = List::default();
        order.iter().try_for_each(|&at| list.push(self.item(at as usize)))?;
        Ok(list)
    }

    /// How many values each of so many commands gets, where they share all of them: no more than a command line holds.
    pub(crate) fn share_of(&self, commands: usize) -> usize {
        let even = self.len().div_ceil(commands.max(1));
        let longest = self.bytes.len() / self.len().max(1) + 1;
        even.min(WORDS_BYTES_MAX / longest).clamp(1, WORDS_MAX)
    }

    /// What the list occupies, for those who promise a bound.
    pub fn memory_bytes(&self) -> usize {
        self.bytes.capacity() + self.ends.capacity() * size_of::<u32>()
    }
}

/// The values of one list, as they are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Items {
    Numbers(Numbers),
    List(List),
}

/// One list of values; a matrix gives it a key to be called by.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Column {
    pub key: Option<String>,
    pub items: Items,
    /// Goes side by side with the list before it, as far as the shorter of them reaches.
    pub is_linked: bool,
}

impl Column {
    /// A range without a key.
    pub fn numbers(numbers: Numbers) -> Column {
        Column { key: None, items: Items::Numbers(numbers), is_linked: false }
    }

    /// A list without a key.
    pub fn list(list: List) -> Column {
        Column { key: None, items: Items::List(list), is_linked: false }
    }

    /// `7`, `1-100`, `1-100:2`, or several of these: `1,2,50-100`. One range stays a range; several are a list of their
    /// numbers in the order in which they are written, each once.
    pub fn parse_numbers(text: &str) -> Result<Column, ValuesError> {
        if !text.contains(',') {
            return Numbers::parse(text).map(Column::numbers);
        }
        let ranges = text.split(',').map(|part| Numbers::parse(part.trim()));
        let ranges = ranges.collect::<Result<Vec<Numbers>, _>>()?;
        let all: u128 = ranges.iter().map(|range| u128::from(range.count())).sum();
        if all > u128::from(SET_MAX) {
            return Err(ValuesError::LargeSet(all));
        }
        let numbers = || ranges.iter().flat_map(|range| (0..range.count()).map(|i| range.item(i)));
        let mut sorted: Vec<u64> = numbers().collect();
        sorted.sort_unstable();
        if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(ValuesError::Twice(pair[0], text.to_owned()));
        }
        let mut list = List::default();
        numbers().try_for_each(|number| list.push(number.to_string().as_bytes()))?;
        Ok(Column::list(list))
    }

    /// How many values it has.
    pub fn count(&self) -> u64 {
        match &self.items {
            Items::Numbers(numbers) => numbers.count(),
            Items::List(list) => list.len() as u64,
        }
    }

    /// Value `i`, counted from 0.
    pub fn item(&self, i: u64) -> Cow<'_, [u8]> {
        match &self.items {
            Items::Numbers(numbers) => Cow::Owned(numbers.item(i).to_string().into_bytes()),
            Items::List(list) => Cow::Borrowed(list.item(i as usize)),
        }
    }
}

/// How several lists become elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Pairing {
    /// Every combination, linked lists counting as one; the first list changes slowest.
    #[default]
    Product,
    /// The i-th of each; lists of different lengths are refused.
    Zip,
    /// The i-th of each, as far as the shortest list goes.
    ZipShortest,
    /// The i-th of each, as far as the longest list goes; at the end elements have fewer values.
    ZipLongest,
}

/// Lists and how they go together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Values {
    columns: Vec<Column>,
    pairing: Pairing,
    count: u64,
    /// For each column.
    turns: Vec<Turn>,
}

/// Which item of a column an element has: the column moves on every `stride` elements and begins again after
/// `count` of its items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Turn {
    stride: u64,
    count: u64,
}

impl Values {
    /// Refuses lists that make no elements, or too many.
    pub fn new(columns: Vec<Column>, pairing: Pairing) -> Result<Values, ValuesError> {
        let counts: Vec<u64> = columns.iter().map(Column::count).collect();
        let Some(first) = counts.first().copied().filter(|_| !counts.contains(&0)) else {
            return Err(ValuesError::Empty);
        };
        if pairing == Pairing::Zip
            && let Some(other) = counts.iter().find(|n| **n != first)
        {
            return Err(ValuesError::Unequal(first, *other));
        }
        let side_by_side =
            |_: &Column, next: &Column| pairing != Pairing::Product || next.is_linked;
        let mut turns = Vec::with_capacity(columns.len());
        let mut stride: u128 = 1;
        for group in columns.chunk_by(side_by_side).rev() {
            let counts = group.iter().map(Column::count);
            let count = match pairing {
                Pairing::ZipLongest => counts.max(),
                _ => counts.min(),
            };
            let count = count.unwrap_or(0);
            // Too large a stride is refused below.
            let turn = Turn { stride: stride as u64, count };
            turns.extend(std::iter::repeat_n(turn, group.len()));
            stride = stride.saturating_mul(u128::from(count));
        }
        turns.reverse();
        if stride > u128::from(ELEMENTS_MAX) {
            return Err(ValuesError::TooMany(stride));
        }
        Ok(Values { columns, pairing, count: stride as u64, turns })
    }

    /// Lists that are longer than the one they are linked with: how many items of each are not used.
    pub fn unused(&self) -> impl Iterator<Item = (usize, u64)> {
        let unused = self
            .columns
            .iter()
            .zip(&self.turns)
            .map(|(column, turn)| column.count().saturating_sub(turn.count));
        unused.enumerate().filter(|(_, unused)| *unused > 0)
    }

    /// One range.
    pub fn numbers(numbers: Numbers) -> Values {
        let columns = vec![Column::numbers(numbers)];
        Values::new(columns, Pairing::Product).expect("a range has numbers, and not too many")
    }

    /// One list.
    pub fn list(list: List) -> Result<Values, ValuesError> {
        Values::new(vec![Column::list(list)], Pairing::Product)
    }

    /// How many elements they make.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The lists.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// How they go together.
    pub fn pairing(&self) -> Pairing {
        self.pairing
    }

    /// One value of each column for element `i`, or nothing past the end.
    pub fn row(&self, i: u64) -> Option<Vec<Cow<'_, [u8]>>> {
        (i < self.count).then(|| self.items(i).collect())
    }

    /// The same for one that is there, one after the other.
    pub(crate) fn items(&self, i: u64) -> impl Iterator<Item = Cow<'_, [u8]>> {
        let places = self.columns.iter().zip(&self.turns);
        places.filter_map(move |(column, turn)| {
            let place = i / turn.stride % turn.count;
            (place < column.count()).then(|| column.item(place))
        })
    }
}

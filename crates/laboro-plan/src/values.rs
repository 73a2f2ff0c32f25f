//! The values an array runs over: ranges of numbers, lists, and their combinations. A range takes no
//! memory, a list is packed, and a combination is computed for the one element asked for.

use std::borrow::Cow;

use thiserror::Error;

/// An array larger than this is a slip of the hand, not a job.
pub const ELEMENTS_MAX: u64 = 1_000_000_000;

/// All values of one list together. A list comes from a file or a pipe, which may be endless.
pub const LIST_BYTES_MAX: usize = 1 << 30;

#[derive(Debug, Error, Clone, PartialEq, Eq)]
pub enum ValuesError {
    #[error("no values: the list is empty")]
    Empty,
    #[error("`{0}` is not a range of numbers: write 1-100, or 1-100:2 for every second")]
    NotARange(String),
    #[error("range {0}: the last number is below the first")]
    Backwards(String),
    #[error("range {0}: the step is zero")]
    NoStep(String),
    #[error("{0} elements are more than the {ELEMENTS_MAX} an array may have")]
    TooMany(u128),
    #[error("a list of values is larger than {LIST_BYTES_MAX} bytes")]
    TooLarge,
    #[error("a value holds a zero byte, which no program argument can carry")]
    ZeroByte,
    #[error("lists of {0} and {1} values cannot be paired one to one")]
    Unequal(u64, u64),
}

/// `first, first + step, ... <= last`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Numbers {
    first: u64,
    last: u64,
    step: u64,
}

impl Numbers {
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

    pub fn first(&self) -> u64 {
        self.first
    }

    pub fn last(&self) -> u64 {
        self.last
    }

    pub fn step(&self) -> u64 {
        self.step
    }

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

impl List {
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

    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    pub fn item(&self, i: usize) -> &[u8] {
        let start = if i == 0 { 0 } else { self.ends[i - 1] as usize };
        &self.bytes[start..self.ends[i] as usize]
    }

    /// What the list occupies, for those who promise a bound.
    pub fn memory_bytes(&self) -> usize {
        self.bytes.capacity() + self.ends.capacity() * size_of::<u32>()
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Items {
    Numbers(Numbers),
    List(List),
}

/// One list of values; a matrix gives it a key to be called by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    pub key: Option<String>,
    pub items: Items,
}

impl Column {
    pub fn numbers(numbers: Numbers) -> Column {
        Column { key: None, items: Items::Numbers(numbers) }
    }

    pub fn list(list: List) -> Column {
        Column { key: None, items: Items::List(list) }
    }

    pub fn count(&self) -> u64 {
        match &self.items {
            Items::Numbers(numbers) => numbers.count(),
            Items::List(list) => list.len() as u64,
        }
    }

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
    /// Every combination; the first list changes slowest.
    #[default]
    Product,
    /// The i-th of each; lists of different lengths are refused.
    Zip,
    /// The i-th of each, as far as the shortest list goes.
    ZipShortest,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Values {
    columns: Vec<Column>,
    pairing: Pairing,
    count: u64,
}

impl Values {
    pub fn new(columns: Vec<Column>, pairing: Pairing) -> Result<Values, ValuesError> {
        let counts: Vec<u64> = columns.iter().map(Column::count).collect();
        let Some(first) = counts.first().copied().filter(|_| !counts.contains(&0)) else {
            return Err(ValuesError::Empty);
        };
        let count = match pairing {
            Pairing::Product => {
                counts.iter().fold(1, |all: u128, n| all.saturating_mul(u128::from(*n)))
            }
            Pairing::Zip => match counts.iter().find(|n| **n != first) {
                Some(other) => return Err(ValuesError::Unequal(first, *other)),
                None => u128::from(first),
            },
            Pairing::ZipShortest => u128::from(counts.iter().copied().min().unwrap_or(0)),
        };
        if count > u128::from(ELEMENTS_MAX) {
            return Err(ValuesError::TooMany(count));
        }
        Ok(Values { columns, pairing, count: count as u64 })
    }

    pub fn numbers(numbers: Numbers) -> Values {
        let count = numbers.count();
        Values { columns: vec![Column::numbers(numbers)], pairing: Pairing::Product, count }
    }

    pub fn list(list: List) -> Result<Values, ValuesError> {
        Values::new(vec![Column::list(list)], Pairing::Product)
    }

    pub fn count(&self) -> u64 {
        self.count
    }

    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    pub fn pairing(&self) -> Pairing {
        self.pairing
    }

    /// One value of each column for element `i`, or nothing past the end.
    pub fn row(&self, i: u64) -> Option<Vec<Cow<'_, [u8]>>> {
        if i >= self.count {
            return None;
        }
        if self.pairing != Pairing::Product {
            return Some(self.columns.iter().map(|column| column.item(i)).collect());
        }
        let mut rest = i;
        let mut row: Vec<_> = self
            .columns
            .iter()
            .rev()
            .map(|column| {
                let place = rest % column.count();
                rest /= column.count();
                column.item(place)
            })
            .collect();
        row.reverse();
        Some(row)
    }
}

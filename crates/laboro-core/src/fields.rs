//! Profiles and settings as tagged fields: one form for the journal and for the native wire. A field can be added for
//! ever: a reader skips what it does not know, unless the field says that it must be understood. What is as usual is
//! not written. `spec/fields.md` says the same in words.

use std::fmt;

/// A set of fields that must be understood, by their tags, which are below 64. A worker has one, and so has a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fields(u64);

impl Fields {
    /// No field at all.
    pub const NONE: Fields = Fields(0);
    /// Also those that are not there yet: of a worker in this same program.
    pub const ALL: Fields = Fields(u64::MAX);

    /// A larger tag is not a field that must be understood.
    #[must_use]
    pub const fn with(self, tag: u32) -> Fields {
        if tag < u64::BITS { Fields(self.0 | 1 << tag) } else { self }
    }

    /// Are all the others among these?
    pub const fn has_all(self, others: Fields) -> bool {
        self.0 & others.0 == others.0
    }

    /// The tags, ascending.
    pub fn tags(self) -> impl Iterator<Item = u32> {
        (0..u64::BITS).filter(move |tag| self.0 >> tag & 1 == 1)
    }
}

/// Why bytes are not fields.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum FieldError {
    /// It may not be skipped.
    Unknown(u32),
    Malformed(&'static str),
}

impl std::error::Error for FieldError {}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FieldError::Unknown(tag) => {
                write!(f, "field {tag} of a task is not known; use a newer laboro")
            }
            FieldError::Malformed(problem) => f.write_str(problem),
        }
    }
}

/// Writes fields one after the other. The tag of a field never changes its meaning.
pub(crate) struct Writer<'a> {
    pub(crate) to: &'a mut Vec<u8>,
    /// Tags of fields that a reader may not skip.
    pub(crate) must_understand: Fields,
}

impl Writer<'_> {
    pub(crate) fn bytes(&mut self, tag: u32, bytes: &[u8]) {
        self.key(tag);
        put_string(self.to, bytes);
    }

    pub(crate) fn number(&mut self, tag: u32, number: u64) {
        self.list(tag, |to| put_number(to, number));
    }

    pub(crate) fn signed(&mut self, tag: u32, number: i32) {
        self.number(tag, zigzag(number));
    }

    /// A value of several parts; how long it is stands before it.
    pub(crate) fn list(&mut self, tag: u32, write: impl FnOnce(&mut Vec<u8>)) {
        self.key(tag);
        let start = self.to.len();
        write(self.to);
        let length = self.to.len() - start;
        put_number(self.to, length as u64);
        let digits = self.to.len() - start - length;
        self.to[start..].rotate_right(digits);
    }

    fn key(&mut self, tag: u32) {
        let must = self.must_understand.0.checked_shr(tag).unwrap_or(0) & 1;
        put_number(self.to, u64::from(tag) << 1 | must);
    }
}

pub(crate) fn put_number(to: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        to.push(number as u8 | 0x80);
        number >>= 7;
    }
    to.push(number as u8);
}

pub(crate) fn put_string(to: &mut Vec<u8>, bytes: &[u8]) {
    put_number(to, bytes.len() as u64);
    to.extend_from_slice(bytes);
}

pub(crate) fn zigzag(number: i32) -> u64 {
    (number << 1 ^ number >> 31).cast_unsigned().into()
}

/// Reads what was written, or parts of one value.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    /// Gives each field to `one`, which says whether it knows the tag.
    pub(crate) fn each(
        mut self,
        mut one: impl FnMut(u32, &mut Reader<'a>) -> Result<bool, FieldError>,
    ) -> Result<(), FieldError> {
        while !self.0.is_empty() {
            let key = self.number()?;
            let mut value = Reader(self.string()?);
            let tag = u32::try_from(key >> 1).unwrap_or(u32::MAX);
            if !one(tag, &mut value)? && key & 1 == 1 {
                return Err(FieldError::Unknown(tag));
            }
        }
        Ok(())
    }

    pub(crate) fn number(&mut self) -> Result<u64, FieldError> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = self.0.split_first().ok_or(CUT)?;
            self.0 = rest;
            // The tenth byte has room for one bit.
            if shift == 63 && byte > 1 {
                break;
            }
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(TOO_LARGE)
    }

    /// A number that fits.
    pub(crate) fn small<N: TryFrom<u64>>(&mut self) -> Result<N, FieldError> {
        N::try_from(self.number()?).map_err(|_| TOO_LARGE)
    }

    pub(crate) fn signed(&mut self) -> Result<i32, FieldError> {
        let number: u32 = self.small()?;
        Ok((number >> 1).cast_signed() ^ -(number & 1).cast_signed())
    }

    pub(crate) fn string(&mut self) -> Result<&'a [u8], FieldError> {
        let length = self.number()?;
        let length = usize::try_from(length).ok().filter(|&length| length <= self.0.len());
        let (string, rest) = self.0.split_at(length.ok_or(CUT)?);
        self.0 = rest;
        Ok(string)
    }

    /// All that is left of a value.
    pub(crate) fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }

    pub(crate) fn list<T>(
        &mut self,
        mut one: impl FnMut(&mut Reader<'a>) -> Result<T, FieldError>,
    ) -> Result<Vec<T>, FieldError> {
        let mut entries = Vec::new();
        while !self.0.is_empty() {
            entries.push(one(self)?);
        }
        Ok(entries)
    }
}

const CUT: FieldError = FieldError::Malformed("a field is longer than its record");
const TOO_LARGE: FieldError = FieldError::Malformed("a number of a field is too large");

#[cfg(test)]
mod tests;

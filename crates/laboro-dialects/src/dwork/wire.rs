//! Protocol buffers as far as dwork needs them: fields one by one out of a slice, and back. Written by hand
//! because names are opaque bytes here, required fields must be there, and nothing is copied to look at it.

use bytes::{BufMut, BytesMut};

/// Why bytes are not a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum WireError {
    #[error("the message ends in the middle of field {0}")]
    Cut(u32),
    #[error("a number is longer than ten bytes")]
    LongNumber,
    #[error("a field tag ends early or is out of range")]
    BadTag,
    #[error("field {field} has wire type {kind}, which does not exist here")]
    BadType { field: u32, kind: u8 },
    #[error("groups are nested more than {0} deep")]
    Deep(u32),
    #[error("required field {0} is missing")]
    Missing(&'static str),
    #[error("more than {most} tasks in one message")]
    ManyTasks { most: usize },
}

/// What a field holds, as far as anything here looks at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FieldValue<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    /// Fixed-size numbers and groups: no field of dwork is one.
    Skipped,
}

/// The fields of one message, in order.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fields<'a>(&'a [u8]);

const GROUPS_DEEP_MAX: u32 = 100;

impl<'a> Fields<'a> {
    pub(super) fn of(message: &'a [u8]) -> Fields<'a> {
        Fields(message)
    }

    /// Number and value of the next field; `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<(u32, FieldValue<'a>)>, WireError> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let (field, kind) = self.tag()?;
        Ok(Some((field, self.value(field, kind, 0)?)))
    }

    fn tag(&mut self) -> Result<(u32, u8), WireError> {
        let tag = self.number(0).map_err(|_| WireError::BadTag)?;
        let tag = u32::try_from(tag).map_err(|_| WireError::BadTag)?;
        match (tag >> 3, (tag & 7) as u8) {
            (0, _) => Err(WireError::BadTag),
            found => Ok(found),
        }
    }

    fn value(&mut self, field: u32, kind: u8, deep: u32) -> Result<FieldValue<'a>, WireError> {
        match kind {
            0 => self.number(field).map(FieldValue::Number),
            1 => self.take(field, 8).map(|_| FieldValue::Skipped),
            2 => {
                let len = self.number(field)?;
                let len = usize::try_from(len).map_err(|_| WireError::Cut(field))?;
                self.take(field, len).map(FieldValue::Bytes)
            }
            3 => self.skip_group(field, deep + 1).map(|()| FieldValue::Skipped),
            5 => self.take(field, 4).map(|_| FieldValue::Skipped),
            _ => Err(WireError::BadType { field, kind }),
        }
    }

    fn skip_group(&mut self, group: u32, deep: u32) -> Result<(), WireError> {
        if deep > GROUPS_DEEP_MAX {
            return Err(WireError::Deep(GROUPS_DEEP_MAX));
        }
        loop {
            if self.0.is_empty() {
                return Err(WireError::Cut(group));
            }
            match self.tag()? {
                (field, 4) if field == group => return Ok(()),
                (field, kind) => {
                    self.value(field, kind, deep)?;
                }
            }
        }
    }

    fn take(&mut self, field: u32, len: usize) -> Result<&'a [u8], WireError> {
        let (taken, rest) = self.0.split_at_checked(len).ok_or(WireError::Cut(field))?;
        self.0 = rest;
        Ok(taken)
    }

    fn number(&mut self, field: u32) -> Result<u64, WireError> {
        // Nearly every number here is a tag, a length or a type: one byte.
        if let [byte @ 0..=0x7f, rest @ ..] = self.0 {
            self.0 = rest;
            return Ok(u64::from(*byte));
        }
        let mut value = 0u64;
        for (at, &byte) in self.0.iter().enumerate().take(10) {
            // Bits beyond the 64th are dropped, as every implementation does.
            value |= u64::from(byte & 0x7f) << (7 * at);
            if byte < 0x80 {
                self.0 = &self.0[at + 1..];
                return Ok(value);
            }
        }
        Err(if self.0.len() >= 10 { WireError::LongNumber } else { WireError::Cut(field) })
    }
}

pub(super) fn put_number(mut value: u64, to: &mut BytesMut) {
    while value >= 0x80 {
        to.put_u8(value as u8 | 0x80);
        value >>= 7;
    }
    to.put_u8(value as u8);
}

pub(super) fn number_len(value: u64) -> usize {
    let bits = 64 - (value | 1).leading_zeros() as usize;
    bits.div_ceil(7)
}

pub(super) fn put_number_field(field: u32, value: u64, to: &mut BytesMut) {
    put_number(u64::from(field << 3), to);
    put_number(value, to);
}

pub(super) fn put_bytes_field(field: u32, bytes: &[u8], to: &mut BytesMut) {
    put_len_field(field, bytes.len(), to);
    to.extend_from_slice(bytes);
}

/// The head of a field whose `len` bytes follow.
pub(super) fn put_len_field(field: u32, len: usize, to: &mut BytesMut) {
    put_number(u64::from(field << 3 | 2), to);
    put_number(len as u64, to);
}

pub(super) fn bytes_field_len(len: usize) -> usize {
    1 + number_len(len as u64) + len
}

//! Numbers and strings of bytes as records hold them: numbers in groups of seven bits, the lowest first,
//! signed ones zigzag; strings behind their length. Reading checks every bound and copies nothing.

use super::RecordError;
use laboro_core::FieldError;

/// How many entries a reader makes room for before it has seen them.
const ENTRIES_AHEAD: usize = 4096;

#[derive(Debug, Default)]
pub(super) struct ByteWriter {
    bytes: Vec<u8>,
}

impl ByteWriter {
    pub fn clear(&mut self) {
        if self.bytes.capacity() > super::BUFFER_BYTES_KEPT {
            self.bytes = Vec::new();
        }
        self.bytes.clear();
    }

    pub fn all(&self) -> &[u8] {
        &self.bytes
    }

    pub fn u8(&mut self, value: u8) {
        self.bytes.push(value);
    }

    pub fn bool(&mut self, value: bool) {
        self.u8(u8::from(value));
    }

    pub fn u32(&mut self, value: u32) {
        self.u64(u64::from(value));
    }

    pub fn u64(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }

    pub fn u128(&mut self, mut value: u128) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }

    pub fn i64(&mut self, value: i64) {
        self.u64(zigzag(value));
    }

    pub fn raw(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    pub fn string(&mut self, bytes: &[u8]) {
        self.u64(bytes.len() as u64);
        self.raw(bytes);
    }

    /// A string that is not there yet.
    pub fn string_of(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.bytes.len();
        write(&mut self.bytes);
        let end = self.bytes.len();
        self.u64((end - start) as u64);
        let digits = self.bytes.len() - end;
        self.bytes[start..].rotate_right(digits);
    }
}

pub(super) fn zigzag(value: i64) -> u64 {
    (value << 1 ^ value >> 63).cast_unsigned()
}

pub(super) fn unzigzag(value: u64) -> i64 {
    (value >> 1).cast_signed() ^ -(value & 1).cast_signed()
}

#[derive(Clone, Debug)]
pub(super) struct ByteReader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> ByteReader<'a> {
    pub fn new(bytes: &'a [u8]) -> ByteReader<'a> {
        ByteReader { bytes, at: 0 }
    }

    pub fn is_at_end(&self) -> bool {
        self.at == self.bytes.len()
    }

    pub fn offset(&self) -> usize {
        self.at
    }

    /// An error here: what was just read makes no sense.
    #[cold]
    pub fn malformed<T>(&self, problem: &'static str) -> Result<T, RecordError> {
        Err(RecordError::Malformed { offset: self.at, problem })
    }

    /// The same of a tagged field.
    #[cold]
    pub fn field<T>(&self, error: FieldError) -> Result<T, RecordError> {
        Err(RecordError::Field { offset: self.at, error })
    }

    pub fn u8(&mut self) -> Result<u8, RecordError> {
        match self.bytes.get(self.at) {
            Some(&byte) => {
                self.at += 1;
                Ok(byte)
            }
            None => self.malformed("the record ends inside an event"),
        }
    }

    pub fn bool(&mut self) -> Result<bool, RecordError> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => self.malformed("neither yes nor no"),
        }
    }

    pub fn u64(&mut self) -> Result<u64, RecordError> {
        let first = self.u8()?;
        if first < 0x80 {
            return Ok(u64::from(first));
        }
        let mut value = u64::from(first & 0x7f);
        for shift in (7..64).step_by(7) {
            let byte = self.u8()?;
            // The tenth byte has room for one bit.
            if shift == 63 && byte > 1 {
                break;
            }
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        self.malformed("a number has more than 64 bits")
    }

    pub fn u128(&mut self) -> Result<u128, RecordError> {
        let mut value = 0;
        for shift in (0..128).step_by(7) {
            let byte = self.u8()?;
            // The nineteenth byte has room for two bits.
            if shift == 126 && byte > 3 {
                break;
            }
            value |= u128::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        self.malformed("a number has more than 128 bits")
    }

    pub fn u32(&mut self) -> Result<u32, RecordError> {
        match u32::try_from(self.u64()?) {
            Ok(value) => Ok(value),
            Err(_) => self.malformed("a number has more than 32 bits"),
        }
    }

    pub fn u16(&mut self) -> Result<u16, RecordError> {
        match u16::try_from(self.u64()?) {
            Ok(value) => Ok(value),
            Err(_) => self.malformed("a number has more than 16 bits"),
        }
    }

    pub fn i64(&mut self) -> Result<i64, RecordError> {
        Ok(unzigzag(self.u64()?))
    }

    pub fn i32(&mut self) -> Result<i32, RecordError> {
        match i32::try_from(self.i64()?) {
            Ok(value) => Ok(value),
            Err(_) => self.malformed("a signed number has more than 32 bits"),
        }
    }

    pub fn string(&mut self) -> Result<&'a [u8], RecordError> {
        let length = self.u64()?;
        let rest = &self.bytes[self.at..];
        match usize::try_from(length).ok().and_then(|length| rest.get(..length)) {
            Some(string) => {
                self.at += string.len();
                Ok(string)
            }
            None => self.malformed("a string is longer than its record"),
        }
    }

    pub fn text(&mut self) -> Result<&'a str, RecordError> {
        match std::str::from_utf8(self.string()?) {
            Ok(text) => Ok(text),
            Err(_) => self.malformed("a text is not utf-8"),
        }
    }

    /// How many entries follow, of a byte at least each, and room for the first of them.
    pub fn entries<T>(&mut self) -> Result<(usize, Vec<T>), RecordError> {
        let count = self.u64()?;
        let left = self.bytes.len() - self.at;
        match usize::try_from(count) {
            Ok(count) if count <= left => Ok((count, Vec::with_capacity(count.min(ENTRIES_AHEAD)))),
            _ => self.malformed("a list has more entries than its record has bytes"),
        }
    }
}

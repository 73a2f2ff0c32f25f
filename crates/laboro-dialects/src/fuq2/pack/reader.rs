//! msgpack coming in, from anyone: every form of a number is taken, nil is zero, unknown keys are skipped.

use bytes::{Buf, Bytes};

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PackError {
    #[error("the msgpack data ends too early")]
    Cut,
    #[error("msgpack code {code:#04x} where {wanted} should be")]
    Unexpected { code: u8, wanted: &'static str },
    #[error("a number that does not fit where {wanted} should be")]
    Range { wanted: &'static str },
    #[error("an array of {length} where at most {most} are taken")]
    TooMany { length: usize, most: usize },
}

/// Reads one value after the other. Bytes and texts are shared with the message, not copied.
#[derive(Debug)]
pub(crate) struct PackReader<'a> {
    whole: &'a Bytes,
    rest: &'a [u8],
}

impl<'a> PackReader<'a> {
    pub(crate) fn new(whole: &'a Bytes) -> PackReader<'a> {
        PackReader { whole, rest: whole }
    }

    #[inline]
    fn code(&mut self) -> Result<u8, PackError> {
        let (&code, rest) = self.rest.split_first().ok_or(PackError::Cut)?;
        self.rest = rest;
        Ok(code)
    }

    #[inline]
    fn slice(&mut self, length: usize) -> Result<&'a [u8], PackError> {
        let (slice, rest) = self.rest.split_at_checked(length).ok_or(PackError::Cut)?;
        self.rest = rest;
        Ok(slice)
    }

    /// A big-endian number of so many bytes.
    #[inline]
    fn number(&mut self, bytes: usize) -> Result<u64, PackError> {
        let mut slice = self.slice(bytes)?;
        Ok(slice.get_uint(bytes))
    }

    /// Any integer, wide enough for both signs.
    #[inline]
    fn integer(&mut self, wanted: &'static str) -> Result<i128, PackError> {
        let code = self.code()?;
        Ok(match code {
            0x00..=0x7F => i128::from(code),
            0xE0..=0xFF => i128::from(code as i8),
            0xC0 => 0,
            0xCC..=0xCF => i128::from(self.number(1 << (code - 0xCC))?),
            0xD0 => i128::from(self.number(1)? as i8),
            0xD1 => i128::from(self.number(2)? as i16),
            0xD2 => i128::from(self.number(4)? as i32),
            0xD3 => i128::from(self.number(8)? as i64),
            _ => return Err(PackError::Unexpected { code, wanted }),
        })
    }

    #[inline]
    pub(crate) fn uint(&mut self) -> Result<u64, PackError> {
        let wanted = "an unsigned number";
        u64::try_from(self.integer(wanted)?).map_err(|_| PackError::Range { wanted })
    }

    #[inline]
    pub(crate) fn small(&mut self) -> Result<u32, PackError> {
        let wanted = "a small number";
        u32::try_from(self.integer(wanted)?).map_err(|_| PackError::Range { wanted })
    }

    pub(crate) fn int(&mut self) -> Result<i64, PackError> {
        let wanted = "a number";
        i64::try_from(self.integer(wanted)?).map_err(|_| PackError::Range { wanted })
    }

    pub(crate) fn bool(&mut self) -> Result<bool, PackError> {
        match self.code()? {
            0xC3 => Ok(true),
            0xC2 | 0xC0 => Ok(false),
            code => Err(PackError::Unexpected { code, wanted: "true or false" }),
        }
    }

    /// Takes a nil, if one is next.
    pub(crate) fn nil(&mut self) -> bool {
        let is_nil = self.rest.first() == Some(&0xC0);
        if is_nil {
            self.rest = &self.rest[1..];
        }
        is_nil
    }

    /// Text or bytes.
    pub(crate) fn bytes(&mut self) -> Result<&'a [u8], PackError> {
        let code = self.code()?;
        let length = match code {
            0xA0..=0xBF => usize::from(code & 0x1F),
            0xC0 => 0,
            0xD9 | 0xC4 => self.number(1)? as usize,
            0xDA | 0xC5 => self.number(2)? as usize,
            0xDB | 0xC6 => self.number(4)? as usize,
            _ => return Err(PackError::Unexpected { code, wanted: "text" }),
        };
        self.slice(length)
    }

    /// Text or bytes that share the memory of the message.
    pub(crate) fn shared(&mut self) -> Result<Bytes, PackError> {
        let bytes = self.bytes()?;
        Ok(if bytes.is_empty() { Bytes::new() } else { self.whole.slice_ref(bytes) })
    }

    /// The number of elements of an array; nil has none. Each takes at least a byte, so a number beyond
    /// what is left is a lie.
    #[inline]
    pub(crate) fn array(&mut self) -> Result<usize, PackError> {
        let code = self.code()?;
        let length = match code {
            0x90..=0x9F => usize::from(code & 0x0F),
            0xC0 => 0,
            0xDC => self.number(2)? as usize,
            0xDD => self.number(4)? as usize,
            _ => return Err(PackError::Unexpected { code, wanted: "an array" }),
        };
        if length > self.rest.len() { Err(PackError::Cut) } else { Ok(length) }
    }

    /// Reads an array of at most so many things: a thing in memory can be much larger than on the wire.
    pub(crate) fn list<T>(
        &mut self,
        most: usize,
        mut one: impl FnMut(&mut PackReader<'a>) -> Result<T, PackError>,
    ) -> Result<Vec<T>, PackError> {
        let length = self.array()?;
        if length > most {
            return Err(PackError::TooMany { length, most });
        }
        let mut things = Vec::with_capacity(length.min(1024));
        for _ in 0..length {
            things.push(one(self)?);
        }
        Ok(things)
    }

    /// Reads one value, or passes over it where it is not what it should be: what follows can be read all the same.
    pub(crate) fn or_skip<T>(
        &mut self,
        one: impl FnOnce(&mut PackReader<'a>) -> Result<T, PackError>,
    ) -> Result<Result<T, PackError>, PackError> {
        let start = self.rest;
        let read = one(self);
        if read.is_err() {
            self.rest = start;
            self.skip()?;
        }
        Ok(read)
    }

    /// Reads a tuple: an array to which later versions may add. `one` is called for each element until it
    /// has all it knows; what follows is skipped, and what is missing is the caller's default.
    #[inline]
    pub(crate) fn tuple(
        &mut self,
        known: usize,
        mut one: impl FnMut(usize, &mut PackReader<'a>) -> Result<(), PackError>,
    ) -> Result<(), PackError> {
        let length = self.array()?;
        for at in 0..length.min(known) {
            one(at, self)?;
        }
        for _ in known..length {
            self.skip()?;
        }
        Ok(())
    }

    /// Reads a struct: a map with these keys, or an array in their order. `one` gets the position of the
    /// key; other keys are skipped.
    pub(crate) fn fields(
        &mut self,
        keys: &[&str],
        mut one: impl FnMut(usize, &mut PackReader<'a>) -> Result<(), PackError>,
    ) -> Result<(), PackError> {
        let code = *self.rest.first().ok_or(PackError::Cut)?;
        let length = match code {
            0x80..=0x8F => usize::from(code & 0x0F),
            0xDE => {
                self.code()?;
                self.number(2)? as usize
            }
            0xDF => {
                self.code()?;
                self.number(4)? as usize
            }
            0xC0 | 0x90..=0x9F | 0xDC | 0xDD => return self.tuple(keys.len(), one),
            _ => return Err(PackError::Unexpected { code, wanted: "a map" }),
        };
        if code & 0xF0 == 0x80 {
            self.code()?;
        }
        for _ in 0..length {
            let key = self.key()?;
            match key.and_then(|key| keys.iter().position(|known| known.as_bytes() == key)) {
                Some(at) => one(at, self)?,
                None => self.skip()?,
            }
        }
        Ok(())
    }

    /// A key that is not text is nobody's.
    fn key(&mut self) -> Result<Option<&'a [u8]>, PackError> {
        match self.rest.first() {
            Some(0xA0..=0xBF | 0xD9..=0xDB) => self.bytes().map(Some),
            Some(_) => self.skip().map(|()| None),
            None => Err(PackError::Cut),
        }
    }

    /// Passes over one value, however deep.
    pub(crate) fn skip(&mut self) -> Result<(), PackError> {
        let mut left: u64 = 1;
        while left > 0 {
            left -= 1;
            let code = self.code()?;
            let (bytes, values) = match code {
                0x00..=0x7F | 0xE0..=0xFF | 0xC0 | 0xC2 | 0xC3 => (0, 0),
                0x80..=0x8F => (0, 2 * u64::from(code & 0x0F)),
                0x90..=0x9F => (0, u64::from(code & 0x0F)),
                0xA0..=0xBF => (u64::from(code & 0x1F), 0),
                0xC4..=0xC6 => (self.number(1 << (code - 0xC4))?, 0),
                0xC7..=0xC9 => (self.number(1 << (code - 0xC7))? + 1, 0),
                0xCA => (4, 0),
                0xCB => (8, 0),
                0xCC..=0xCF => (1 << (code - 0xCC), 0),
                0xD0..=0xD3 => (1 << (code - 0xD0), 0),
                0xD4..=0xD8 => ((1 << (code - 0xD4)) + 1, 0),
                0xD9..=0xDB => (self.number(1 << (code - 0xD9))?, 0),
                0xDC | 0xDD => (0, self.number(2 << (code - 0xDC))?),
                0xDE | 0xDF => (0, 2 * self.number(2 << (code - 0xDE))?),
                0xC1 => return Err(PackError::Unexpected { code, wanted: "a value" }),
            };
            self.slice(usize::try_from(bytes).map_err(|_| PackError::Cut)?)?;
            left += values;
            if left > self.rest.len() as u64 {
                return Err(PackError::Cut);
            }
        }
        Ok(())
    }
}

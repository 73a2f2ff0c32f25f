//! One message of a stream: a head that says whose it is and what it follows, then a piece of a record. What
//! the records mean is `laboro_journal`'s business.

use bytes::{BufMut, Bytes, BytesMut};
use crc32c::{crc32c, crc32c_append};

pub(crate) const HEAD_BYTES: usize = 44;
const MAGIC: [u8; 4] = *b"LBJ1";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A record, or the last part of one.
    Record = 1,
    /// A part of a record that others follow. Without its last part it does not count.
    Part = 2,
    /// Nothing happened; whoever writes this is alive and leads.
    Alive = 3,
    /// Whoever wrote this writes no more: another hub need not wait.
    Bye = 4,
    /// The last message of a snapshot: what it covers, and its sums.
    End = 5,
}

impl Kind {
    fn of(byte: u8) -> Option<Kind> {
        [Kind::Record, Kind::Part, Kind::Alive, Kind::Bye, Kind::End]
            .into_iter()
            .find(|kind| *kind as u8 == byte)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head {
    pub kind: Kind,
    /// Chosen at random by each hub that starts: two may believe that they begin the same life.
    pub writer: u64,
    pub life: u32,
    /// Of the record that this belongs to, or of the last one before it.
    pub number: u64,
    /// Counted from 0 in its record.
    pub part: u32,
    /// The check of the message before this one.
    pub chain: u32,
}

/// A message that was read and is whole.
#[derive(Debug, Clone)]
pub(crate) struct Message {
    pub head: Head,
    pub check: u32,
    pub body: Bytes,
}

impl Head {
    /// The message and its check.
    pub fn seal(&self, body: &[u8]) -> (Bytes, u32) {
        let mut bytes = BytesMut::with_capacity(HEAD_BYTES + body.len());
        bytes.put_slice(&MAGIC);
        bytes.put_u32_le(self.kind as u32);
        bytes.put_u64_le(self.writer);
        bytes.put_u32_le(self.life);
        bytes.put_u32_le(0);
        bytes.put_u64_le(self.number);
        bytes.put_u32_le(self.part);
        bytes.put_u32_le(self.chain);
        let check = crc32c_append(crc32c(&bytes), body);
        bytes.put_u32_le(check);
        bytes.put_slice(body);
        (bytes.freeze(), check)
    }
}

impl Message {
    pub fn open(bytes: Bytes) -> Result<Message, &'static str> {
        let Some((head, body)) = bytes.split_at_checked(HEAD_BYTES) else {
            return Err("a message is shorter than its head");
        };
        if head[..4] != MAGIC {
            return Err("a message is not one of ours, or of a newer laboro");
        }
        let u32_at = |at: usize| u32::from_le_bytes(head[at..at + 4].try_into().expect("four"));
        let u64_at = |at: usize| u64::from_le_bytes(head[at..at + 8].try_into().expect("eight"));
        let check = u32_at(40);
        if crc32c_append(crc32c(&head[..40]), body) != check {
            return Err("the checksum of a message is wrong");
        }
        let kind = u8::try_from(u32_at(4)).ok().and_then(Kind::of);
        let head = Head {
            kind: kind.ok_or("a message is of an unknown kind; use a newer laboro")?,
            writer: u64_at(8),
            life: u32_at(16),
            number: u64_at(24),
            part: u32_at(32),
            chain: u32_at(36),
        };
        Ok(Message { head, check, body: bytes.slice(HEAD_BYTES..) })
    }
}

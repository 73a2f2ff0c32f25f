//! The bytes of the log's files: a head of 64 bytes, then records of 32 bytes and a payload, each
//! starting at a multiple of 8. Numbers are little-endian. Only encoding; no files.
//!
//! ```text
//! file    magic 8 | version 4 | zero 4 | log id 8 | salt 8 | number 8 | chain 4 | zero 16 | check 4
//! record  check 4 | length 4 | number 8 | previous check 4 | payload crc 4 | kind 1 | version 1 | zero 6
//! ```
//!
//! A record's check covers its salt and head, the head holds the payload's crc, and the next
//! record holds the check: one changed bit breaks the chain. The salt is random and one file's
//! own, so neither bytes of an older file nor a payload made to look like a record pass.

use crc32c::{crc32c, crc32c_append};

pub(super) const VERSION: u32 = 1;
pub(super) const HEAD_BYTES: usize = 64;
pub(super) const RECORD_HEAD_BYTES: usize = 32;
/// What no record may exceed, whatever the options say; a reader never allocates more.
pub(super) const RECORD_BYTES_CEILING: usize = 1 << 30;

const RECORD_VERSION: u8 = 1;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileKind {
    Segment,
    Snapshot,
    /// The end mark: a head and nothing else, twice.
    Mark,
}

impl FileKind {
    fn magic(self) -> &'static [u8; 8] {
        match self {
            FileKind::Segment => b"LABOROJL",
            FileKind::Snapshot => b"LABOROJS",
            FileKind::Mark => b"LABOROJE",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileHead {
    pub kind: FileKind,
    /// One random number for all files of a log, so that a stray file of another is noticed.
    pub id: u64,
    pub salt: u64,
    /// Segment: its first record. Snapshot: the last record it includes. Mark: a record that was there.
    pub number: u64,
    /// Segment: the check of the record before its first. Else: that of the record named.
    pub chain: u32,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum HeadFault {
    Newer(u32),
    Broken(&'static str),
}

impl FileHead {
    pub fn encode(&self) -> [u8; HEAD_BYTES] {
        let mut bytes = [0; HEAD_BYTES];
        bytes[..8].copy_from_slice(self.kind.magic());
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.id.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.salt.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.number.to_le_bytes());
        bytes[40..44].copy_from_slice(&self.chain.to_le_bytes());
        let check = crc32c(&bytes[..60]);
        bytes[60..].copy_from_slice(&check.to_le_bytes());
        bytes
    }

    pub fn decode(kind: FileKind, bytes: &[u8]) -> Result<FileHead, HeadFault> {
        let Some(bytes) = bytes.first_chunk::<HEAD_BYTES>() else {
            return Err(HeadFault::Broken("the file is shorter than its head"));
        };
        if &bytes[..8] != kind.magic() {
            return Err(HeadFault::Broken("the file does not start as a journal file does"));
        }
        // A newer version may check its head in another way, so the version comes first.
        match u32_at(bytes, 8) {
            VERSION => {}
            version if version > VERSION && !is_ours_otherwise(bytes) => {
                return Err(HeadFault::Newer(version));
            }
            version if version > VERSION => {
                return Err(HeadFault::Broken("the format version is damaged"));
            }
            _ => return Err(HeadFault::Broken("the format version is unknown")),
        }
        if crc32c(&bytes[..60]) != u32_at(bytes, 60) {
            return Err(HeadFault::Broken("the checksum of the file's head does not match"));
        }
        Ok(FileHead {
            kind,
            id: u64_at(bytes, 16),
            salt: u64_at(bytes, 24),
            number: u64_at(bytes, 32),
            chain: u32_at(bytes, 40),
        })
    }
}

/// Whether a head would be sound if only its version were ours: then the version is what is damaged.
fn is_ours_otherwise(bytes: &[u8; HEAD_BYTES]) -> bool {
    let mut bytes = *bytes;
    bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
    crc32c(&bytes[..60]) == u32_at(&bytes, 60)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RecordKind {
    Batch = 1,
    Chunk = 2,
    End = 3,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RecordHead {
    pub check: u32,
    pub length: u32,
    pub number: u64,
    pub previous: u32,
    pub payload_crc: u32,
    pub kind: RecordKind,
}

impl RecordHead {
    /// `None` for anything that was not written as the head of a record of this file.
    pub fn decode(salt: u64, bytes: &[u8; RECORD_HEAD_BYTES]) -> Option<RecordHead> {
        let kind = match bytes[24] {
            1 => RecordKind::Batch,
            2 => RecordKind::Chunk,
            3 => RecordKind::End,
            _ => return None,
        };
        let head = RecordHead {
            check: u32_at(bytes, 0),
            length: u32_at(bytes, 4),
            number: u64_at(bytes, 8),
            previous: u32_at(bytes, 16),
            payload_crc: u32_at(bytes, 20),
            kind,
        };
        let sound = bytes[25] == RECORD_VERSION
            && head.length as usize <= RECORD_BYTES_CEILING
            && check(salt, &bytes[4..]) == head.check;
        sound.then_some(head)
    }

    /// From the start of this record to the start of the next.
    pub fn stride(&self) -> u64 {
        stride(self.length as usize)
    }
}

pub(super) fn stride(payload_bytes: usize) -> u64 {
    (RECORD_HEAD_BYTES as u64 + payload_bytes as u64).next_multiple_of(8)
}

/// Adds one record to `out` and returns its check, which the next record carries.
pub(super) fn encode_record(
    out: &mut Vec<u8>,
    salt: u64,
    kind: RecordKind,
    number: u64,
    previous: u32,
    payload: &[u8],
) -> u32 {
    let length = u32::try_from(payload.len()).expect("payloads are bounded before they come here");
    let mut head = [0; RECORD_HEAD_BYTES];
    head[4..8].copy_from_slice(&length.to_le_bytes());
    head[8..16].copy_from_slice(&number.to_le_bytes());
    head[16..20].copy_from_slice(&previous.to_le_bytes());
    head[20..24].copy_from_slice(&crc32c(payload).to_le_bytes());
    head[24] = kind as u8;
    head[25] = RECORD_VERSION;
    let check = check(salt, &head[4..]);
    head[..4].copy_from_slice(&check.to_le_bytes());

    let end = out.len() + stride(payload.len()) as usize;
    out.reserve(end - out.len());
    out.extend_from_slice(&head);
    out.extend_from_slice(payload);
    out.resize(end, 0);
    check
}

fn check(salt: u64, head: &[u8]) -> u32 {
    crc32c_append(crc32c(&salt.to_le_bytes()), head)
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes are four bytes"))
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes are eight bytes"))
}

//! One record as bytes: a header of fixed size and a body. Pure; reads and writes no file.
//!
//! The header's checksum covers the salt of the segment and the record's offset too, so that no bytes
//! a task prints, not even a copy of a segment, can be taken for a record.

use super::{Amount, Amounts, End, Ending, Key, Stream, Worker};

pub(super) const HEADER_BYTES: usize = 32;

/// The longest body. It bounds what a reader allocates on the word of a file.
pub(super) const BODY_BYTES_MAX: usize = 256 * 1024;

const MAGIC: u16 = 0x6f4c;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Chunk(Stream),
    End,
    /// How much a running attempt had written when the segment began. For the writer only.
    Carry,
}

impl Kind {
    pub fn encode(self) -> u8 {
        match self {
            Kind::Chunk(Stream::Stdout) => 1,
            Kind::Chunk(Stream::Stderr) => 2,
            Kind::End => 3,
            Kind::Carry => 4,
            Kind::Chunk(Stream::Result) => 5,
        }
    }

    pub fn decode(byte: u8) -> Option<Kind> {
        match byte {
            1 => Some(Kind::Chunk(Stream::Stdout)),
            2 => Some(Kind::Chunk(Stream::Stderr)),
            3 => Some(Kind::End),
            4 => Some(Kind::Carry),
            5 => Some(Kind::Chunk(Stream::Result)),
            _ => None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub kind: Kind,
    pub key: Key,
    pub length: u32,
    /// Of a chunk: where in its stream it begins. Of an end: when the attempt started.
    pub mark: u64,
    pub body_crc: u32,
}

impl Header {
    pub fn new(kind: Kind, key: Key, mark: u64, body: &[u8]) -> Header {
        debug_assert!(body.len() <= BODY_BYTES_MAX, "writers split what is longer");
        Header { kind, key, length: body.len() as u32, mark, body_crc: crc32c::crc32c(body) }
    }

    pub fn encode(&self, salt: u64, offset: u64) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[0..2].copy_from_slice(&MAGIC.to_le_bytes());
        bytes[2..4].copy_from_slice(&self.key.attempt.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.key.job.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.key.index.to_le_bytes());
        bytes[12..16].copy_from_slice(&(self.length << 8).to_le_bytes());
        bytes[12] = self.kind.encode();
        bytes[16..24].copy_from_slice(&self.mark.to_le_bytes());
        bytes[24..28].copy_from_slice(&self.body_crc.to_le_bytes());
        let crc = header_crc(&bytes, salt, offset);
        bytes[28..32].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// `None` when no record of this segment begins at this offset.
    pub fn decode(bytes: &[u8; HEADER_BYTES], salt: u64, offset: u64) -> Option<Header> {
        let u16_at = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        if u16_at(0) != MAGIC || u32_at(bytes, 28) != header_crc(bytes, salt, offset) {
            return None;
        }
        let header = Header {
            kind: Kind::decode(bytes[12])?,
            key: Key { job: u32_at(bytes, 4), index: u32_at(bytes, 8), attempt: u16_at(2) },
            length: u32_at(bytes, 12) >> 8,
            mark: u64_at(bytes, 16),
            body_crc: u32_at(bytes, 24),
        };
        (header.length as usize <= BODY_BYTES_MAX).then_some(header)
    }

    pub fn fits(&self, body: &[u8]) -> bool {
        body.len() == self.length as usize && crc32c::crc32c(body) == self.body_crc
    }
}

fn header_crc(bytes: &[u8; HEADER_BYTES], salt: u64, offset: u64) -> u32 {
    let mut place = [0; 16];
    place[..8].copy_from_slice(&salt.to_le_bytes());
    place[8..].copy_from_slice(&offset.to_le_bytes());
    crc32c::crc32c_append(crc32c::crc32c(&place), &bytes[..28])
}

/// For callers that know the slice to be long enough.
pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("a slice of four is an array of four"))
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("a slice of eight is an array of eight"))
}

/// The longest name of a worker that is written down.
const NAME_BYTES_MAX: usize = 255;

/// With the kind of an ending: what was lost of both streams follows the amounts.
const HAS_LOST: u8 = 0x80;

/// With the kind of an ending: what is known of its result follows those.
const HAS_RESULT: u8 = 0x40;

pub(super) fn end_header(
    key: Key,
    end: &End,
    worker: Option<(u32, &[u8])>,
    body: &mut Vec<u8>,
) -> Header {
    let ending = &end.ending;
    body.clear();
    let amounts = Amounts { stdout: end.stdout, stderr: end.stderr, result: end.result };
    let has_lost = if amounts.has_lost() { HAS_LOST } else { 0 };
    let has_result = if end.result.heard() > 0 { HAS_RESULT } else { 0 };
    body.push(ending.kind & !(HAS_LOST | HAS_RESULT) | has_lost | has_result);
    put(body, zigzag(ending.code));
    for number in [ending.wall_us, ending.user_us, ending.sys_us, ending.max_rss_kib] {
        put(body, number);
    }
    put_amounts(body, &amounts);
    if has_lost != 0 {
        put_lost(body, &amounts);
    }
    put_result(body, &amounts);
    if let Some((number, name)) = worker {
        let name = &name[..name.len().min(NAME_BYTES_MAX)];
        put(body, number.into());
        put(body, name.len() as u64);
        body.extend_from_slice(name);
    }
    Header::new(Kind::End, key, ending.started_ms, body)
}

pub(super) fn end(header: &Header, mut body: &[u8]) -> Option<End> {
    take_end(header, &mut body)
}

/// The same with who ran it, which earlier versions did not write down.
pub(super) fn end_by(header: &Header, mut body: &[u8]) -> Option<(End, Option<Worker>)> {
    let end = take_end(header, &mut body)?;
    if body.is_empty() {
        return Some((end, None));
    }
    let number = u32::try_from(take(&mut body)?).ok()?;
    let length = usize::try_from(take(&mut body)?).ok()?;
    let name = body.get(..length)?.to_vec();
    Some((end, Some(Worker { number, name })))
}

fn take_end(header: &Header, body: &mut &[u8]) -> Option<End> {
    let (kind, rest) = body.split_first()?;
    *body = rest;
    let ending = Ending {
        kind: *kind & !(HAS_LOST | HAS_RESULT),
        code: unzigzag(take(body)?)?,
        started_ms: header.mark,
        wall_us: take(body)?,
        user_us: take(body)?,
        sys_us: take(body)?,
        max_rss_kib: take(body)?,
    };
    let mut amounts = take_amounts(body)?;
    if kind & HAS_LOST != 0 {
        take_lost(body, &mut amounts)?;
    }
    if kind & HAS_RESULT != 0 {
        amounts.result = take_result(body)?;
    }
    let Amounts { stdout, stderr, result } = amounts;
    Some(End { ending, stdout, stderr, result })
}

pub(super) fn carry_header(key: Key, amounts: &Amounts, body: &mut Vec<u8>) -> Header {
    body.clear();
    put_amounts(body, amounts);
    if amounts.has_lost() || amounts.result.heard() > 0 {
        put_lost(body, amounts);
    }
    put_result(body, amounts);
    Header::new(Kind::Carry, key, 0, body)
}

pub(super) fn carry(mut body: &[u8]) -> Option<Amounts> {
    let mut amounts = take_amounts(&mut body)?;
    if !body.is_empty() {
        take_lost(&mut body, &mut amounts)?;
    }
    if !body.is_empty() {
        amounts.result = take_result(&mut body)?;
    }
    Some(amounts)
}

fn put_amounts(body: &mut Vec<u8>, amounts: &Amounts) {
    for amount in [amounts.stdout, amounts.stderr] {
        put(body, amount.kept);
        put(body, amount.dropped);
    }
}

fn take_amounts(body: &mut &[u8]) -> Option<Amounts> {
    let mut amount = || Some(Amount { kept: take(body)?, dropped: take(body)?, lost: 0 });
    Some(Amounts { stdout: amount()?, stderr: amount()?, result: Amount::default() })
}

/// Nearly always nothing is lost, and nothing is written.
fn put_lost(body: &mut Vec<u8>, amounts: &Amounts) {
    put(body, amounts.stdout.lost);
    put(body, amounts.stderr.lost);
}

/// Most attempts have none.
fn put_result(body: &mut Vec<u8>, amounts: &Amounts) {
    let Amount { kept, dropped, lost } = amounts.result;
    if amounts.result.heard() > 0 {
        [kept, dropped, lost].into_iter().for_each(|number| put(body, number));
    }
}

fn take_result(body: &mut &[u8]) -> Option<Amount> {
    Some(Amount { kept: take(body)?, dropped: take(body)?, lost: take(body)? })
}

fn take_lost(body: &mut &[u8], amounts: &mut Amounts) -> Option<()> {
    amounts.stdout.lost = take(body)?;
    amounts.stderr.lost = take(body)?;
    Some(())
}

fn zigzag(number: i32) -> u64 {
    u64::from((number << 1 ^ number >> 31) as u32)
}

fn unzigzag(number: u64) -> Option<i32> {
    let number = u32::try_from(number).ok()?;
    Some((number >> 1) as i32 ^ -((number & 1) as i32))
}

/// Seven bits a byte, low ones first: most numbers of an end are small.
fn put(body: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        body.push(number as u8 | 0x80);
        number >>= 7;
    }
    body.push(number as u8);
}

fn take(body: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = body.split_first()?;
        *body = rest;
        let bits = u64::from(byte & 0x7f);
        if bits << shift >> shift != bits {
            return None;
        }
        number |= bits << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

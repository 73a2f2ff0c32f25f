//! Where the records of each attempt lie in a segment. Of a sealed segment this is a sorted file
//! that is searched, never loaded; without it nothing is lost, because a scan can make it again.
//!
//! The file: a head, the ranges of jobs in the segment, then the entries in blocks, each of these
//! parts with its checksum.

use std::fs::File;
use std::path::{Path, PathBuf};

use super::jobs::Jobs;
use super::record::{Kind, u32_at};
use super::segment;
use super::{Error, Key};

/// One record of a segment. The fields lie so that an entry takes 16 bytes: a writer holds one for
/// every record of the segment it fills.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    job: u32,
    index: u32,
    pub offset: u32,
    attempt: u16,
    pub kind: Kind,
}

pub(super) const ENTRY_BYTES: usize = 16;

const _: () = assert!(size_of::<Entry>() == ENTRY_BYTES);

impl Entry {
    pub fn new(key: Key, kind: Kind, offset: u32) -> Entry {
        Entry { job: key.job, index: key.index, offset, attempt: key.attempt, kind }
    }

    pub fn key(&self) -> Key {
        Key { job: self.job, index: self.index, attempt: self.attempt }
    }

    fn encode(&self) -> [u8; ENTRY_BYTES] {
        let mut bytes = [0; ENTRY_BYTES];
        bytes[0..4].copy_from_slice(&self.job.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.index.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.offset.to_le_bytes());
        bytes[12..14].copy_from_slice(&self.attempt.to_le_bytes());
        bytes[14] = self.kind.encode();
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Entry> {
        Some(Entry {
            job: u32_at(bytes, 0),
            index: u32_at(bytes, 4),
            offset: u32_at(bytes, 8),
            attempt: u16::from_le_bytes([bytes[12], bytes[13]]),
            kind: Kind::decode(bytes[14])?,
        })
    }
}

/// What is known of an index without its entries.
#[derive(Clone, Debug)]
pub(super) struct Index {
    pub number: u32,
    pub salt: u64,
    count: u32,
    range_count: u32,
    first: Key,
    last: Key,
}

/// Magic and version, number, salt, counts, first and last key, checksum.
const HEAD_BYTES: usize = 56;
const MAGIC: &[u8; 8] = b"LABIDX\x00\x01";
const CRC_BYTES: usize = 4;
const RANGE_BYTES: usize = 8;

/// The unit of reading and checking.
const BLOCK_ENTRIES: usize = 256;
const BLOCK_BYTES: usize = BLOCK_ENTRIES * ENTRY_BYTES + CRC_BYTES;

impl Index {
    /// Sorts the entries of a segment and writes them down.
    pub fn write(
        dir: &Path,
        number: u32,
        salt: u64,
        mut entries: Vec<Entry>,
    ) -> Result<Jobs, Error> {
        entries.sort_unstable_by_key(|entry| (entry.key(), entry.offset));
        let jobs: Jobs = entries.iter().map(|entry| entry.job).collect();
        let index = Index {
            number,
            salt,
            count: entries.len() as u32,
            range_count: jobs.ranges().len() as u32,
            first: entries.first().map(Entry::key).unwrap_or_default(),
            last: entries.last().map(Entry::key).unwrap_or_default(),
        };

        let mut bytes = Vec::with_capacity(index.file_bytes() as usize);
        bytes.extend_from_slice(&index.head());
        let ranges_from = bytes.len();
        for range in jobs.ranges() {
            bytes.extend_from_slice(&range.start().to_le_bytes());
            bytes.extend_from_slice(&range.end().to_le_bytes());
        }
        put_crc(&mut bytes, ranges_from);
        for block in entries.chunks(BLOCK_ENTRIES) {
            let block_from = bytes.len();
            block.iter().for_each(|entry| bytes.extend_from_slice(&entry.encode()));
            put_crc(&mut bytes, block_from);
        }
        segment::place(dir, &segment::index_path(dir, number), &bytes)?;
        Ok(jobs)
    }

    /// `None` when there is no index or not one that can be used: its segment must be scanned.
    pub fn load(dir: &Path, number: u32, salt: u64) -> Result<Option<Index>, Error> {
        let path = segment::index_path(dir, number);
        let file = match File::open(&path).map_err(Error::at(&path)) {
            Ok(file) => file,
            Err(error) if error.is_gone() => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut head = [0; HEAD_BYTES];
        let got = segment::read_up_to(&file, &mut head, 0).map_err(Error::at(&path))?;
        let key = |at| Key {
            job: u32_at(&head, at),
            index: u32_at(&head, at + 4),
            attempt: u32_at(&head, at + 8) as u16,
        };
        let index = Index {
            number,
            salt,
            count: u32_at(&head, 20),
            range_count: u32_at(&head, 24),
            first: key(28),
            last: key(40),
        };
        let whole = got == HEAD_BYTES
            && head == index.head()
            && file.metadata().map_err(Error::at(&path))?.len() == index.file_bytes();
        Ok(whole.then_some(index))
    }

    /// The jobs with something in the segment.
    pub fn jobs(&self, dir: &Path) -> Result<Jobs, Error> {
        let mut bytes = vec![0; self.range_count as usize * RANGE_BYTES + CRC_BYTES];
        self.read(&self.open(dir)?, dir, &mut bytes, HEAD_BYTES as u64)?;
        let mut jobs = Jobs::default();
        for range in bytes[..bytes.len() - CRC_BYTES].chunks_exact(RANGE_BYTES) {
            jobs.insert(u32_at(range, 0)..=u32_at(range, 4));
        }
        Ok(jobs)
    }

    /// The entries of the keys from `first` to `last`, in order of key and then of arrival.
    pub fn find(&self, dir: &Path, first: Key, last: Key) -> Result<Vec<Entry>, Error> {
        let mut found = Vec::new();
        if self.count == 0 || last < self.first || self.last < first {
            return Ok(found);
        }
        let file = self.open(dir)?;
        let mut block = Vec::with_capacity(BLOCK_ENTRIES);
        let (mut low, mut high) = (0, self.block_count());
        while low < high {
            let middle = low.midpoint(high);
            self.block(&file, dir, middle, &mut block)?;
            if block.first().is_some_and(|entry| entry.key() < first) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        // The block before the first that begins late enough may end with what is wanted.
        for number in low.saturating_sub(1)..self.block_count() {
            self.block(&file, dir, number, &mut block)?;
            found.extend(block.iter().filter(|entry| (first..=last).contains(&entry.key())));
            if block.last().is_some_and(|entry| last < entry.key()) {
                break;
            }
        }
        Ok(found)
    }

    pub fn file_bytes(&self) -> u64 {
        let ranges = u64::from(self.range_count) * RANGE_BYTES as u64;
        let entries = u64::from(self.count) * ENTRY_BYTES as u64;
        let crcs = (1 + u64::from(self.block_count())) * CRC_BYTES as u64;
        HEAD_BYTES as u64 + ranges + entries + crcs
    }

    fn block_count(&self) -> u32 {
        self.count.div_ceil(BLOCK_ENTRIES as u32)
    }

    fn block(
        &self,
        file: &File,
        dir: &Path,
        number: u32,
        block: &mut Vec<Entry>,
    ) -> Result<(), Error> {
        let entries = (self.count as usize - number as usize * BLOCK_ENTRIES).min(BLOCK_ENTRIES);
        let blocks_from = HEAD_BYTES + self.range_count as usize * RANGE_BYTES + CRC_BYTES;
        let offset = blocks_from as u64 + u64::from(number) * BLOCK_BYTES as u64;
        let mut bytes = [0; BLOCK_BYTES];
        let bytes = &mut bytes[..entries * ENTRY_BYTES + CRC_BYTES];
        self.read(file, dir, bytes, offset)?;
        block.clear();
        for entry in bytes[..entries * ENTRY_BYTES].chunks_exact(ENTRY_BYTES) {
            let entry = Entry::decode(entry).ok_or_else(|| self.damaged(dir, offset))?;
            block.push(entry);
        }
        Ok(())
    }

    /// Reads a part that ends with its checksum.
    fn read(&self, file: &File, dir: &Path, bytes: &mut [u8], offset: u64) -> Result<(), Error> {
        let got = segment::read_up_to(file, bytes, offset)
            .map_err(Error::at(&segment::index_path(dir, self.number)))?;
        let (content, crc) = bytes.split_at(bytes.len() - CRC_BYTES);
        if got < bytes.len() || crc32c::crc32c(content) != u32_at(crc, 0) {
            return Err(self.damaged(dir, offset));
        }
        Ok(())
    }

    fn damaged(&self, dir: &Path, offset: u64) -> Error {
        Error::Damaged {
            file: segment::index_path(dir, self.number),
            offset,
            what: "checksum mismatch (delete this index: it is rebuilt from its segment)",
        }
    }

    fn open(&self, dir: &Path) -> Result<File, Error> {
        let path: PathBuf = segment::index_path(dir, self.number);
        File::open(&path).map_err(Error::at(&path))
    }

    fn head(&self) -> [u8; HEAD_BYTES] {
        let mut head = [0; HEAD_BYTES];
        head[0..8].copy_from_slice(MAGIC);
        head[8..12].copy_from_slice(&self.number.to_le_bytes());
        head[12..20].copy_from_slice(&self.salt.to_le_bytes());
        head[20..24].copy_from_slice(&self.count.to_le_bytes());
        head[24..28].copy_from_slice(&self.range_count.to_le_bytes());
        for (at, key) in [(28, self.first), (40, self.last)] {
            head[at..at + 4].copy_from_slice(&key.job.to_le_bytes());
            head[at + 4..at + 8].copy_from_slice(&key.index.to_le_bytes());
            head[at + 8..at + 12].copy_from_slice(&u32::from(key.attempt).to_le_bytes());
        }
        let crc = crc32c::crc32c(&head[..HEAD_BYTES - CRC_BYTES]);
        head[HEAD_BYTES - CRC_BYTES..].copy_from_slice(&crc.to_le_bytes());
        head
    }
}

fn put_crc(bytes: &mut Vec<u8>, from: usize) {
    let crc = crc32c::crc32c(&bytes[from..]);
    bytes.extend_from_slice(&crc.to_le_bytes());
}

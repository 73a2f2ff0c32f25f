//! Walks a segment record by record, without an index: after a crash, and at its growing end.
//! Headers are checked, bodies are not: whoever reads one does that.

use std::fs::File;
use std::path::{Path, PathBuf};

use super::Error;
use super::index::Entry;
use super::record::{BODY_BYTES_MAX, HEADER_BYTES, Header};
use super::segment::{self, HEAD_BYTES};

/// A stretch of a segment in which no record could be found.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Damage {
    pub file: PathBuf,
    pub from: u64,
    pub to: u64,
}

#[derive(Debug)]
pub(super) struct Scan {
    pub dir: PathBuf,
    pub number: u32,
    pub file: File,
    pub salt: u64,
    /// Where the next record begins. Everything before was found and given out, or is damaged.
    pub at: u64,
    pub damage: Vec<Damage>,
    /// Up to here there is no whole record after `at`.
    searched: u64,
    window: Vec<u8>,
    window_at: u64,
}

const WINDOW_BYTES: usize = 256 * 1024;

/// More than this many are not remembered one by one; the scan goes on.
const DAMAGE_KEPT_MAX: usize = 64;

impl Scan {
    pub fn open(dir: &Path, number: u32) -> Result<Scan, Error> {
        let (file, salt) = segment::open(dir, number)?;
        Ok(Scan {
            dir: dir.to_owned(),
            number,
            file,
            salt,
            at: HEAD_BYTES as u64,
            damage: Vec::new(),
            searched: 0,
            window: Vec::new(),
            window_at: 0,
        })
    }

    /// The next whole record before `file_end`. There may be more when the file has grown.
    pub fn next(&mut self, file_end: u32) -> Result<Option<(Entry, Header)>, Error> {
        let file_end = u64::from(file_end);
        let found = match self.header(self.at, file_end)? {
            ScannedHeader::Record(header) => Some((self.at, header)),
            ScannedHeader::Cut => None,
            ScannedHeader::Nothing => self.search(file_end)?,
        };
        let Some((offset, header)) = found else { return Ok(None) };
        self.at = offset + record_bytes(&header);
        let offset = u32::try_from(offset).expect("it lies before the end");
        Ok(Some((Entry::new(header.key, header.kind, offset), header)))
    }

    /// The length of the file, or of what can be ours: no segment comes near 4 GiB.
    pub fn file_end(&self) -> Result<u32, Error> {
        let metadata = self.file.metadata().map_err(Error::at(&self.path()))?;
        Ok(u32::try_from(metadata.len()).unwrap_or(u32::MAX))
    }

    pub fn path(&self) -> PathBuf {
        segment::path(&self.dir, self.number)
    }

    /// Past damage: the next offset at which a whole record begins.
    fn search(&mut self, file_end: u64) -> Result<Option<(u64, Header)>, Error> {
        let mut offset = self.searched.max(self.at + 1);
        while offset + HEADER_BYTES as u64 <= file_end {
            if let ScannedHeader::Record(header) = self.header(offset, file_end)? {
                if self.damage.len() < DAMAGE_KEPT_MAX {
                    self.damage.push(Damage { file: self.path(), from: self.at, to: offset });
                }
                return Ok(Some((offset, header)));
            }
            offset += 1;
        }
        // A record cut short now may be whole next time, so the last stretch is searched again.
        let longest = (HEADER_BYTES + BODY_BYTES_MAX) as u64;
        self.searched = offset.saturating_sub(longest);
        Ok(None)
    }

    fn header(&mut self, offset: u64, file_end: u64) -> Result<ScannedHeader, Error> {
        if offset + HEADER_BYTES as u64 > file_end {
            return Ok(ScannedHeader::Cut);
        }
        let salt = self.salt;
        let bytes = self.bytes(offset)?;
        Ok(match bytes.and_then(|bytes| Header::decode(bytes, salt, offset)) {
            None => ScannedHeader::Nothing,
            Some(header) if offset + record_bytes(&header) > file_end => ScannedHeader::Cut,
            Some(header) => ScannedHeader::Record(header),
        })
    }

    fn bytes(&mut self, offset: u64) -> Result<Option<&[u8; HEADER_BYTES]>, Error> {
        let have = self.window_at..self.window_at + self.window.len() as u64;
        if !(have.start <= offset && offset + HEADER_BYTES as u64 <= have.end) {
            self.window.resize(WINDOW_BYTES, 0);
            let got = segment::read_up_to(&self.file, &mut self.window, offset)
                .map_err(Error::at(&segment::path(&self.dir, self.number)))?;
            self.window.truncate(got);
            self.window_at = offset;
        }
        Ok(self.window[(offset - self.window_at) as usize..].first_chunk())
    }

    /// Forgets what was read ahead: a writer that cut a torn tail has written other bytes there.
    pub fn look_again(&mut self) {
        self.window.clear();
    }
}

enum ScannedHeader {
    Record(Header),
    /// The file ends before the record does.
    Cut,
    Nothing,
}

pub(super) fn record_bytes(header: &Header) -> u64 {
    HEADER_BYTES as u64 + u64::from(header.length)
}

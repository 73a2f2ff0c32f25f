//! Reads the records of one file and judges each: sound, not begun, or broken. Also looks for
//! sound records behind a broken one. What a broken record means is decided in `reader`.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crc32c::crc32c;

use super::LogError;
use super::directory::{NumberedFile, create_file};
use super::format::{
    FileHead, FileKind, HEAD_BYTES, HeadFault, RECORD_HEAD_BYTES, RecordHead, RecordKind, VERSION,
};

/// Enough to make reads few; a longer record grows the buffer to its own, already checked, size.
const WINDOW_BYTES: usize = 1 << 20;

/// One file, read through a window.
#[derive(Debug)]
pub(super) struct Source {
    pub path: PathBuf,
    pub len: u64,
    file: Arc<File>,
    window: Vec<u8>,
    start: u64,
}

impl Source {
    pub fn open(from: &NumberedFile) -> Result<Source, LogError> {
        let (file, path) = (from.open()?, from.path.clone());
        let len = file.metadata().map_err(LogError::io(&path, "read the file's size"))?.len();
        Ok(Source { path, len, file, window: Vec::new(), start: 0 })
    }

    /// Writes the first bytes of the file, up to `end`, to a new file and syncs that.
    pub fn copy(&mut self, end: u64, to: &Path) -> Result<(), LogError> {
        let mut copy = create_file(to)?;
        let mut at = 0;
        while at < end {
            let bytes = self.ahead(at, 1)?;
            if bytes.is_empty() {
                break;
            }
            let bytes = &bytes[..bytes.len().min((end - at) as usize)];
            at += bytes.len() as u64;
            copy.write_all(bytes).map_err(LogError::io(to, "copy to the file"))?;
        }
        copy.sync_all().map_err(LogError::io(to, "sync the file"))
    }

    pub fn sync(&self) -> Result<(), LogError> {
        self.file.sync_data().map_err(LogError::io(&self.path, "sync the file"))
    }

    /// `None` when the file ends before `at + count`.
    pub fn bytes(&mut self, at: u64, count: usize) -> Result<Option<&[u8]>, LogError> {
        if at.checked_add(count as u64).is_none_or(|end| end > self.len) {
            return Ok(None);
        }
        if at < self.start || at + count as u64 > self.start + self.window.len() as u64 {
            self.fill(at, count)?;
        }
        let from = (at - self.start) as usize;
        Ok(self.window.get(from..from + count))
    }

    fn fill(&mut self, at: u64, count: usize) -> Result<(), LogError> {
        let rest = usize::try_from(self.len - at).unwrap_or(usize::MAX);
        self.window.resize(count.max(WINDOW_BYTES).min(rest), 0);
        self.start = at;
        let mut filled = 0;
        while filled < self.window.len() {
            match self.file.read_at(&mut self.window[filled..], at + filled as u64) {
                Ok(0) => break, // The file became shorter under us; `bytes` gives None.
                Ok(count) => filled += count,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(LogError::io(&self.path, "read the file")(error)),
            }
        }
        self.window.truncate(filled);
        Ok(())
    }

    /// What can be had from `at` on without copying: at least `count` bytes, or all up to the end
    /// of the file.
    fn ahead(&mut self, at: u64, count: usize) -> Result<&[u8], LogError> {
        let end = self.len.min(at.saturating_add(count as u64));
        if at >= end {
            return Ok(&[]);
        }
        if at < self.start || end > self.start + self.window.len() as u64 {
            self.fill(at, count)?;
        }
        Ok(self.window.get((at - self.start) as usize..).unwrap_or_default())
    }

    /// Reads anew what a running hub may have changed since.
    pub fn forget(&mut self) {
        self.window.clear();
    }

    pub fn head(&mut self, kind: FileKind) -> Result<FileHead, LogError> {
        let bytes = self.bytes(0, HEAD_BYTES)?.unwrap_or_default();
        FileHead::decode(kind, bytes).map_err(|fault| match fault {
            HeadFault::Newer(version) => {
                LogError::NewerVersion { file: self.path.clone(), version, known: VERSION }
            }
            HeadFault::Broken(reason) => LogError::corrupt(&self.path, 0, reason),
        })
    }

    /// Nothing but zeros, or nothing at all: a segment that got its name and no content.
    pub fn is_void(&mut self) -> Result<bool, LogError> {
        let mut at = 0;
        loop {
            let bytes = self.ahead(at, 1)?;
            if bytes.is_empty() {
                return Ok(true);
            }
            if !is_zero(bytes) {
                return Ok(false);
            }
            at += bytes.len() as u64;
        }
    }
}

/// What must be true of the next record.
#[derive(Debug, Clone, Copy)]
pub(super) struct Expected {
    pub salt: u64,
    pub number: u64,
    pub chain: u32,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    Record(RecordHead),
    /// Zeros or the end of the file: no record was begun here.
    Nothing,
    Broken(&'static str),
}

pub(super) fn next(source: &mut Source, at: u64, expected: Expected) -> Result<Next, LogError> {
    let Some(bytes) = source.bytes(at, RECORD_HEAD_BYTES)? else {
        return Ok(if at >= source.len {
            Next::Nothing
        } else {
            Next::Broken("the file ends here")
        });
    };
    let bytes = bytes.first_chunk().expect("we asked for as many bytes");
    if is_zero(bytes) {
        return Ok(Next::Nothing);
    }
    let Some(head) = RecordHead::decode(expected.salt, bytes) else {
        return Ok(Next::Broken("the checksum of the record's head does not match"));
    };
    if head.number != expected.number {
        return Ok(Next::Broken("the record's number is not the next one"));
    }
    if head.previous != expected.chain {
        return Ok(Next::Broken("the record does not continue the one before it"));
    }
    match payload(source, at, &head)? {
        None => Ok(Next::Broken("the file ends inside the record")),
        Some(payload) if crc32c(payload) != head.payload_crc => {
            Ok(Next::Broken("the checksum of the record's payload does not match"))
        }
        Some(_) => Ok(Next::Record(head)),
    }
}

/// The payload of a record that `next` found at `at`; in the window already.
pub(super) fn payload<'a>(
    source: &'a mut Source,
    at: u64,
    head: &RecordHead,
) -> Result<Option<&'a [u8]>, LogError> {
    source.bytes(at + RECORD_HEAD_BYTES as u64, head.length as usize)
}

/// What lies behind the last sound record of a segment.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Survey {
    /// End of the last byte that is not zero.
    pub dirty_to: Option<u64>,
    /// Sound records with the number asked for or a later one.
    pub numbers: Vec<u64>,
}

pub(super) fn survey(
    source: &mut Source,
    from: u64,
    salt: u64,
    number_min: u64,
) -> Result<Survey, LogError> {
    let mut survey = Survey { dirty_to: dirty_to(source, from)?, numbers: Vec::new() };
    let (mut at, end) = (from, survey.dirty_to.unwrap_or(0));
    while at < end {
        let bytes = source.ahead(at, RECORD_HEAD_BYTES)?;
        if bytes.is_empty() {
            break;
        }
        match find_head(bytes, salt, number_min) {
            HeadSearch::Head(skip, head) => {
                at += skip as u64;
                let payload = payload(source, at, &head)?;
                if payload.is_some_and(|payload| crc32c(payload) == head.payload_crc) {
                    survey.numbers.push(head.number);
                    at += head.stride();
                } else {
                    at += 8;
                }
            }
            HeadSearch::Nothing(skip) => at += skip as u64,
        }
    }
    Ok(survey)
}

fn dirty_to(source: &mut Source, from: u64) -> Result<Option<u64>, LogError> {
    let (mut at, mut dirty_to) = (from, None);
    loop {
        let bytes = source.ahead(at, 1)?;
        if bytes.is_empty() {
            return Ok(dirty_to);
        }
        // Zeros are the rule, and this way of looking at them is the fast one.
        if !is_zero(bytes) {
            let last = bytes.iter().rposition(|byte| *byte != 0).unwrap_or(0);
            dirty_to = Some(at + last as u64 + 1);
        }
        at += bytes.len() as u64;
    }
}

enum HeadSearch {
    Head(usize, RecordHead),
    /// Not in the first so many bytes.
    Nothing(usize),
}

/// Looks for the head of a record where one can start: at multiples of eight. Nothing but a head
/// written for this file passes, so payloads are read only for real ones.
fn find_head(bytes: &[u8], salt: u64, number_min: u64) -> HeadSearch {
    let mut at = 0;
    while let Some(rest) = bytes.get(at..).and_then(|rest| rest.first_chunk::<RECORD_HEAD_BYTES>())
    {
        if rest[..8] != [0; 8]
            && let Some(head) = RecordHead::decode(salt, rest)
            && head.kind == RecordKind::Batch
            && head.number >= number_min
        {
            return HeadSearch::Head(at, head);
        }
        at += 8;
    }
    // Less than a head is left: at the end of the file no record fits in it.
    HeadSearch::Nothing(if at == 0 { bytes.len() } else { at })
}

fn is_zero(bytes: &[u8]) -> bool {
    // In chunks, so that the compiler compares many bytes at once and still stops early.
    bytes.chunks(4096).all(|chunk| chunk.iter().fold(0, |sum, byte| sum | byte) == 0)
}

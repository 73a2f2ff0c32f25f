//! Reads a log from end to end and reports what it holds and what is wrong with it. Changes
//! nothing, and does not mind a hub that is writing meanwhile.

use std::fmt;
use std::path::{Path, PathBuf};

use super::LogError;
use super::directory::Listing;
use super::reader::{Piece, Walked, walk};

#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Report {
    pub last_number: u64,
    /// Records after the snapshot.
    pub records: u64,
    pub log_bytes: u64,
    pub segments: u64,
    pub snapshot: Option<SnapshotReport>,
    /// The first thing that keeps the log from being opened.
    pub problem: Option<Problem>,
    /// What opening the log would put right by itself, or a hub is about to.
    pub notes: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SnapshotReport {
    /// The last record it includes.
    pub number: u64,
    pub bytes: u64,
    pub chunks: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Problem {
    pub file: PathBuf,
    pub offset: u64,
    pub reason: String,
}

/// A list made while a hub gives files new names can lack one. It is damage only if it looks the
/// same in a list made later; how often we look is bounded by this.
pub(super) const TRIES: usize = 100;

pub fn check(dir: &Path) -> Result<Report, LogError> {
    check_with(dir, || (), |(), _, _, _| Ok(())).map(|(report, ())| report)
}

/// The same, and shows all that is read to `visit`. If the list has to be made again, reading starts
/// over with a new `T`.
pub fn check_with<T>(
    dir: &Path,
    start: impl Fn() -> T,
    mut visit: impl FnMut(&mut T, Piece, u64, &[u8]) -> Result<(), String>,
) -> Result<(Report, T), LogError> {
    let mut tries = 1;
    loop {
        let listing = Listing::read_held(dir)?;
        let mut seen = start();
        let walked = walk(&listing, u64::MAX, &mut |piece, number, payload| {
            visit(&mut seen, piece, number, payload)
        })?;
        if walked.damage.is_none() || tries == TRIES || !listing.is_stale(dir)? {
            return Ok((report(walked), seen));
        }
        tries += 1;
    }
}

pub(super) fn report(walked: Walked) -> Report {
    let mut notes = walked.warnings;
    for path in &walked.voids {
        notes.push(format!("{}: a segment without content", path.display()));
    }
    if let (Some(tail), Some(span)) = (&walked.tail, walked.spans.last()) {
        let (path, end) = (span.file.path.display(), span.end);
        notes.push(format!("{path}: an unfinished record at byte {end}: {}", tail.reason));
    }
    Report {
        last_number: walked.last,
        records: walked.records,
        log_bytes: walked.log_bytes,
        segments: walked.spans.len() as u64,
        snapshot: walked.snapshot.map(|snapshot| SnapshotReport {
            number: snapshot.head.number,
            bytes: snapshot.bytes,
            chunks: snapshot.chunks,
        }),
        problem: walked.damage.and_then(Problem::of),
        notes,
    }
}

impl Problem {
    pub(super) fn of(damage: LogError) -> Option<Problem> {
        match damage {
            LogError::Corrupt { file, offset, reason } => Some(Problem { file, offset, reason }),
            _ => None,
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: damaged at byte {}: {}", self.file.display(), self.offset, self.reason)
    }
}

//! Reads a log from end to end and reports what it holds and what is wrong with it. Changes
//! nothing, and does not mind a hub that is writing meanwhile.

use std::fmt;
use std::path::{Path, PathBuf};

use super::LogError;
use super::directory::Listing;
use super::reader::{Piece, Visit, Walked, follow, sound, walk};

/// What a log holds and what is wrong with it.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
#[allow(missing_docs)]
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

/// One snapshot of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs)]
pub struct SnapshotReport {
    /// The last record it includes.
    pub number: u64,
    pub bytes: u64,
    pub chunks: u64,
}

/// Something that is wrong, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs)]
pub struct Problem {
    /// The directory, if files are missing from it.
    pub file: PathBuf,
    pub offset: Option<u64>,
    pub reason: String,
}

/// A list made while a hub gives files new names can lack one. It is damage only if it looks the
/// same in a list made later; how often we look is bounded by this.
pub(super) const TRIES: usize = 100;

/// Reads the whole log and changes nothing.
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
        let read =
            read(&listing, &mut |piece, number, payload| visit(&mut seen, piece, number, payload));
        let may_be_stale = match &read {
            Ok((walked, _)) => walked.damage.is_some(),
            // More files than are held.
            Err(error) => error.is_missing_file(),
        };
        if !may_be_stale || tries == TRIES || !listing.is_stale(dir)? {
            let (walked, reserve) = read?;
            let mut report = report(walked);
            report.notes.extend(reserve);
            return Ok((report, seen));
        }
        tries += 1;
    }
}

fn read(listing: &Listing, visit: &mut Visit<'_>) -> Result<(Walked, Option<String>), LogError> {
    let walked = walk(listing, u64::MAX, visit)?;
    let reserve = reserve(listing, &walked)?;
    Ok((walked, reserve))
}

/// What is wrong with the files that are kept in case the newest snapshot is damaged one day. Nothing depends on them
/// today, so it is only a note.
fn reserve(listing: &Listing, walked: &Walked) -> Result<Option<String>, LogError> {
    let Some(newest) = &walked.snapshot else { return Ok(None) };
    let upto = newest.head.number;
    let older = listing.snapshots.iter().rfind(|file| file.number < upto);
    if older.is_none() && listing.segments.first().is_none_or(|file| file.number > upto) {
        return Ok(None);
    }
    let older = older.map(sound).transpose()?.transpose();
    let walked = match older {
        Ok(older) => follow(listing, older, upto, &mut |_, _, _| Ok(()))?,
        Err(damage) => Walked { damage: Some(damage), ..Walked::default() },
    };
    let problem = walked.damage.and_then(Problem::of).map(|problem| problem.to_string());
    let short = || format!("it ends with record {}", walked.last);
    let problem = problem.or_else(|| (walked.last < upto).then(short));
    Ok(problem.map(|problem| {
        format!(
            "what is kept in case {} is damaged is not whole: {problem}",
            newest.file.path.display()
        )
    }))
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
            LogError::Corrupt { file, offset, reason } => {
                Some(Problem { file, offset: Some(offset), reason })
            }
            LogError::Missing { dir, gone } => {
                let reason = format!("missing at its end: {gone}");
                Some(Problem { file: dir, offset: None, reason })
            }
            _ => None,
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (file, reason) = (self.file.display(), &self.reason);
        match self.offset {
            Some(offset) => write!(f, "{file}: damaged at byte {offset}: {reason}"),
            None => write!(f, "{file}: {reason}"),
        }
    }
}

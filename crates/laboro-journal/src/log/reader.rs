//! Walks a log from its snapshot to its last record, read only, also while a hub writes to it.
//! Says where it ends, what follows there and what is damaged; mends nothing.

use std::path::{Path, PathBuf};

use super::LogError;
use super::directory::{Listing, NumberedFile};
use super::format::{FileHead, FileKind, HEAD_BYTES, RecordHead, RecordKind};
use super::scan::{Expected, Next, Source, next, payload, survey};
use super::snapshot::Snapshot;

/// What a payload is part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece {
    /// Part of the condensed history up to the number given.
    Snapshot,
    /// The record with the number given.
    Batch,
}

/// Takes the pieces in order: those of the snapshot, then every later record.
pub type Visit<'a> = dyn FnMut(Piece, u64, &[u8]) -> Result<(), String> + 'a;

/// Streams everything a directory holds and returns the last record's number. Reads only, and
/// does not mind a hub that writes or condenses meanwhile.
pub fn read(dir: &Path, visit: &mut Visit<'_>) -> Result<u64, LogError> {
    let walked = walk(&Listing::read_held(dir)?, u64::MAX, visit)?;
    walked.damage.map_or(Ok(walked.last), Err)
}

/// How far a walk came and what it met.
#[derive(Debug, Default)]
pub(super) struct Walked {
    pub snapshot: Option<Snapshot>,
    pub id: Option<u64>,
    pub last: u64,
    pub chain: u32,
    pub records: u64,
    pub log_bytes: u64,
    /// The segments read, each with the end of its last sound record.
    pub spans: Vec<Span>,
    pub tail: Option<Tail>,
    /// Last segments that got a name and no content before the power went.
    pub voids: Vec<PathBuf>,
    pub damage: Option<LogError>,
    pub warnings: Vec<String>,
}

#[derive(Debug, Clone)]
pub(super) struct Span {
    pub file: NumberedFile,
    pub head: FileHead,
    pub end: u64,
    /// Where the last record starts, if there is one.
    pub record_last_at: Option<u64>,
}

/// What is behind the last record of the last segment, up to where it is not zero.
#[derive(Debug)]
pub(super) struct Tail {
    pub dirty_to: u64,
    pub reason: &'static str,
}

/// Reads everything up to record `upto`, which is the last of a segment or `u64::MAX`.
pub(super) fn walk(
    listing: &Listing,
    upto: u64,
    visit: &mut Visit<'_>,
) -> Result<Walked, LogError> {
    let (bases, broken) = bases(listing, upto)?;
    let Some((number, damage)) = broken.into_iter().next() else {
        return from_base(listing, bases.into_iter().next(), upto, visit);
    };
    // The newest snapshot is damaged. What it was made from is as good, if all of it is there.
    for base in bases.into_iter().map(Some).chain([None]) {
        let trial = follow(listing, base.clone(), upto, &mut |_, _, _| Ok(()))?;
        if trial.damage.is_none() && trial.last >= number {
            let mut walked = from_base(listing, base, upto, visit)?;
            walked.warnings.push(format!("{damage}; read what it was made from instead"));
            return Ok(walked);
        }
    }
    Ok(Walked { damage: Some(damage), ..Walked::default() })
}

/// Sound snapshots and damaged ones, each newest first.
#[expect(clippy::type_complexity, reason = "two lists, used in two places")]
pub(super) fn bases(
    listing: &Listing,
    upto: u64,
) -> Result<(Vec<Snapshot>, Vec<(u64, LogError)>), LogError> {
    let (mut sound, mut broken) = (Vec::new(), Vec::new());
    for file in listing.snapshots.iter().rev().filter(|file| file.number <= upto) {
        // Read to the end before any of it is believed.
        match Snapshot::read(file, &mut |_| Ok(())) {
            Ok(snapshot) => sound.push(snapshot),
            Err(damage @ LogError::Corrupt { .. }) => broken.push((file.number, damage)),
            Err(error) => return Err(error),
        }
    }
    // A damaged snapshot older than a sound one is needed no more.
    let newest = sound.first().map_or(0, |snapshot| snapshot.head.number);
    broken.retain(|(number, _)| *number > newest);
    Ok((sound, broken))
}

fn from_base(
    listing: &Listing,
    base: Option<Snapshot>,
    upto: u64,
    visit: &mut Visit<'_>,
) -> Result<Walked, LogError> {
    if let Some(snapshot) = &base {
        let number = snapshot.head.number;
        Snapshot::read(&snapshot.file, &mut |chunk| visit(Piece::Snapshot, number, chunk))?;
    }
    follow(listing, base, upto, visit)
}

/// Reads the segments after `base`. A snapshot ends where a segment ends, so a segment that starts
/// at or before its number is covered by it whole, and is not looked at.
pub(super) fn follow(
    listing: &Listing,
    base: Option<Snapshot>,
    upto: u64,
    visit: &mut Visit<'_>,
) -> Result<Walked, LogError> {
    let mut walked = Walked::default();
    if let Some(snapshot) = base {
        walked.last = snapshot.head.number;
        walked.chain = snapshot.head.chain;
        walked.id = Some(snapshot.head.id);
        walked.snapshot = Some(snapshot);
    }
    let covered = walked.last;
    let mut files: Vec<&NumberedFile> = listing
        .segments
        .iter()
        .filter(|file| file.number > covered && file.number <= upto)
        .collect();
    while let Some(file) = files.last() {
        if !Source::open(file)?.is_void()? {
            break;
        }
        walked.voids.push(file.path.clone());
        files.pop();
    }
    for (index, file) in files.iter().enumerate() {
        let after = match files.get(index + 1) {
            Some(file) => After::Segment(file.number),
            None if upto < u64::MAX => After::Sealed,
            None => After::Nothing,
        };
        match read_segment(&mut walked, file, after, visit) {
            Ok(()) => {}
            Err(damage @ LogError::Corrupt { .. }) => {
                walked.damage = Some(damage);
                break;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(walked)
}

/// What comes after a segment decides what its end means.
enum After {
    Segment(u64),
    /// The caller knows the number it has to end with.
    Sealed,
    Nothing,
}

fn read_segment(
    walked: &mut Walked,
    file: &NumberedFile,
    after: After,
    visit: &mut Visit<'_>,
) -> Result<(), LogError> {
    let mut source = Source::open(file)?;
    let head = source.head(FileKind::Segment)?;
    check_head(walked, file, &head)?;
    walked.id = Some(head.id);
    walked.spans.push(Span {
        file: file.clone(),
        head,
        end: HEAD_BYTES as u64,
        record_last_at: None,
    });
    loop {
        let reason = read_records(walked, &mut source, head.salt, visit)?;
        let at = walked.spans.last().map_or(0, |span| span.end);
        match after {
            After::Sealed => return Ok(()),
            After::Segment(first) if first == walked.last + 1 => return Ok(()),
            After::Segment(first) => {
                let reason = reason.unwrap_or("the segment ends too early or too late");
                let last = walked.last;
                let reason = format!("{reason}: last record {last}, next file starts at {first}");
                return Err(LogError::corrupt(&file.path, at, reason));
            }
            After::Nothing => {}
        }
        let survey = survey(&mut source, at, head.salt, walked.last + 1)?;
        let Some(survivor) = survey.numbers.first() else {
            walked.tail = survey.dirty_to.map(|dirty_to| Tail {
                dirty_to,
                reason: reason.unwrap_or("bytes without the start of a record"),
            });
            return Ok(());
        };
        // A record is begun only after the one before it was written. So if a hub is writing here
        // right now, what was half written when we came by is whole on a second look.
        source.forget();
        let expected = Expected { salt: head.salt, number: walked.last + 1, chain: walked.chain };
        if !matches!(next(&mut source, at, expected)?, Next::Record(_)) {
            let reason = reason.unwrap_or("zeros where a record should be");
            let reason = format!("{reason}, but record {survivor} is sound behind it");
            return Err(LogError::corrupt(&file.path, at, reason));
        }
    }
}

fn check_head(walked: &Walked, file: &NumberedFile, head: &FileHead) -> Result<(), LogError> {
    let damaged = |reason: String| Err(LogError::corrupt(&file.path, 0, reason));
    if head.number != file.number {
        return damaged("the file's name and its head disagree".to_owned());
    }
    if head.number != walked.last + 1 {
        let lost = range(walked.last + 1, head.number - 1);
        return damaged(format!("missing before this file: {lost}"));
    }
    if walked.id.is_some_and(|id| id != head.id) {
        return damaged("the file belongs to another journal".to_owned());
    }
    if walked.last > 0 && walked.chain != head.chain {
        return damaged(format!("the file does not continue record {}", walked.last));
    }
    Ok(())
}

/// Reads on from the last span's end as long as records are sound; returns why it stopped, if not
/// for want of records.
fn read_records(
    walked: &mut Walked,
    source: &mut Source,
    salt: u64,
    visit: &mut Visit<'_>,
) -> Result<Option<&'static str>, LogError> {
    let span = walked.spans.last_mut().expect("the segment being read has its span");
    loop {
        let at = span.end;
        let expected = Expected { salt, number: walked.last + 1, chain: walked.chain };
        let record: RecordHead = match next(source, at, expected)? {
            Next::Record(record) if record.kind == RecordKind::Batch => record,
            Next::Record(_) => return Ok(Some("the record is of a kind that is not for segments")),
            Next::Nothing => return Ok(None),
            Next::Broken(reason) => return Ok(Some(reason)),
        };
        let bytes = payload(source, at, &record)?.unwrap_or_default();
        visit(Piece::Batch, record.number, bytes).map_err(|reason| LogError::Replay {
            file: span.file.path.clone(),
            number: record.number,
            reason,
        })?;
        walked.last = record.number;
        walked.chain = record.check;
        walked.records += 1;
        walked.log_bytes += record.stride();
        span.record_last_at = Some(at);
        span.end = at + record.stride();
    }
}

/// `record 7` or `records 7 to 9`, as a message wants it.
pub(super) fn range(first: u64, last: u64) -> String {
    if first >= last { format!("record {first}") } else { format!("records {first} to {last}") }
}

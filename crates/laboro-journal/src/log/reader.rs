//! Walks a log from its snapshot to its last record, read only, also while a hub writes to it. Says where it ends, what
//! follows there and what is damaged; repairs nothing.

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
    /// The newest snapshot could not be used, and was not needed.
    pub snapshot_damaged: Option<u64>,
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
    let Base { snapshot, damaged } = Base::find(listing, upto)?;
    let Some((number, damage)) = damaged else {
        return from_base(listing, snapshot, upto, visit);
    };
    // The newest snapshot is damaged. What it was made from is as good, if all of it is there.
    let trial = follow(listing, snapshot.clone(), upto, &mut |_, _, _| Ok(()))?;
    if trial.damage.is_some() || trial.last < number {
        return Ok(Walked { damage: Some(damage), ..Walked::default() });
    }
    let mut walked = from_base(listing, snapshot, upto, visit)?;
    if let LogError::Corrupt { file, offset, reason } = damage {
        walked.warnings.push(format!(
            "{}: damaged at byte {offset}: {reason}; read what it was made from instead: nothing is lost",
            file.display()
        ));
    }
    walked.snapshot_damaged = Some(number);
    Ok(walked)
}

/// What to read first.
struct Base {
    /// The newest that is sound. Older ones are not looked at: what follows them follows this one too.
    snapshot: Option<Snapshot>,
    /// The newest of those that are damaged and newer.
    damaged: Option<(u64, LogError)>,
}

impl Base {
    fn find(listing: &Listing, upto: u64) -> Result<Base, LogError> {
        let mut base = Base { snapshot: None, damaged: None };
        for file in listing.snapshots.iter().rev().filter(|file| file.number <= upto) {
            match sound(file)? {
                Ok(snapshot) => {
                    base.snapshot = Some(snapshot);
                    break;
                }
                Err(damage) => base.damaged = base.damaged.or(Some((file.number, damage))),
            }
        }
        Ok(base)
    }
}

/// The snapshot, or what is wrong with it. It is read to the end before any of it is believed.
pub(super) fn sound(file: &NumberedFile) -> Result<Result<Snapshot, LogError>, LogError> {
    match Snapshot::read(file, &mut |_| Ok(())) {
        Ok(snapshot) => Ok(Ok(snapshot)),
        Err(damage @ LogError::Corrupt { .. }) => Ok(Err(damage)),
        Err(error) => Err(error),
    }
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
    if upto == u64::MAX && walked.damage.is_none() {
        walked.damage = cut_short(&walked, listing);
    }
    Ok(walked)
}

/// Whether the log ends before a record that was on the disk once. No crash takes such a record away.
fn cut_short(walked: &Walked, listing: &Listing) -> Option<LogError> {
    let mark = listing.mark?;
    if mark.number <= walked.last || walked.id.is_some_and(|id| id != mark.id) {
        return None;
    }
    let gone = range(walked.last + 1, mark.number);
    match (&walked.tail, walked.spans.last()) {
        (Some(tail), Some(span)) => {
            let reason = format!("{}, where {gone} used to be", tail.reason);
            Some(LogError::corrupt(&span.file.path, span.end, reason))
        }
        _ => Some(LogError::Missing { dir: listing.dir.clone(), gone }),
    }
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

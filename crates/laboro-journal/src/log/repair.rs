//! Makes a damaged log open again by giving up what lies behind the damage. Whatever it changes
//! is kept as it was in a directory beside it, and it says what was lost.

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use super::LogError;
use super::check::Problem;
use super::directory::{Listing, Lock, NumberedFile, make_dir, rename, sync_dir};
use super::format::{FileKind, HEAD_BYTES};
use super::mark::Mark;
use super::reader::{Span, Walked, follow, range, sound};
use super::scan::{Source, survey};

/// What a repair found and did. Its text is for the person who asked for it.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Repair {
    /// The log now ends with this record; 0 if nothing could be saved.
    pub last_number: u64,
    /// `None`: nothing was damaged and nothing was changed.
    pub problem: Option<Problem>,
    /// The first and last record that are known to have existed and are gone. The record at the
    /// damage itself is always taken for lost.
    pub lost: Option<(u64, u64)>,
    /// Of the lost, those that could still be read but do not continue what was saved.
    pub lost_readable: u64,
    /// Where the originals of all changed files are; `None` if there was nothing to change.
    pub kept_in: Option<PathBuf>,
}

impl fmt::Display for Repair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(problem) = &self.problem else {
            return write!(f, "nothing to repair; last record {}", self.last_number);
        };
        writeln!(f, "{problem}")?;
        match self.last_number {
            0 => write!(f, "nothing could be saved")?,
            last => write!(f, "saved everything up to record {last}")?,
        }
        if let Some((first, last)) = self.lost {
            let (count, readable) = (last - first + 1, self.lost_readable);
            write!(f, "; lost {count}: {}", range(first, last))?;
            if readable > 0 {
                write!(f, " ({readable} of them sound, but they do not continue what was saved)")?;
            }
        } else {
            write!(f, "; nothing is lost")?;
        }
        if let Some(dir) = &self.kept_in {
            write!(f, "\nthe originals are in {}", dir.display())?;
        }
        Ok(())
    }
}

/// Refuses while a hub has the log open. A torn end is no damage and is left to the next open.
pub fn repair(dir: &Path) -> Result<Repair, LogError> {
    if !dir.is_dir() {
        let missing = io::Error::from(io::ErrorKind::NotFound);
        return Err(LogError::io(dir, "open the directory")(missing));
    }
    let _lock = Lock::take(dir)?;
    let listing = Listing::read(dir)?;
    let (mut best, broken) = best(&listing)?;
    let damage = best.damage.take();
    let snapshot_lost = broken.as_ref().map(|(number, _)| *number);
    let Some(problem) = broken.map(|(_, damage)| damage).or_else(|| damage.clone()) else {
        return Ok(Repair { last_number: best.last, ..Repair::default() });
    };

    let beyond = beyond(&listing, &best)?;
    let mut lost_last = beyond.last().copied().max(snapshot_lost).unwrap_or(0);
    if damage.is_some() {
        let marked = listing.mark.map_or(0, |mark| mark.number);
        lost_last = lost_last.max(best.last + 1).max(marked);
    }
    let cut = matches!(damage, Some(LogError::Corrupt { .. })).then(|| best.spans.last()).flatten();
    let kept_in = set_aside(dir, &listing, &best, cut)?;
    // The last step: until then another repair finds the same.
    Mark::remove(dir)?;
    Ok(Repair {
        last_number: best.last,
        problem: Problem::of(problem),
        lost: (lost_last > best.last).then_some((best.last + 1, lost_last)),
        lost_readable: beyond.len() as u64,
        kept_in,
    })
}

/// What follows from the start that leads furthest, and the newest snapshot if that one is damaged.
fn best(listing: &Listing) -> Result<(Walked, Option<(u64, LogError)>), LogError> {
    let mut best = follow(listing, None, u64::MAX, &mut |_, _, _| Ok(()))?;
    let mut damaged = None;
    for file in &listing.snapshots {
        match sound(file)? {
            Ok(snapshot) => {
                damaged = None;
                let walked = follow(listing, Some(snapshot), u64::MAX, &mut |_, _, _| Ok(()))?;
                // Of two that lead as far the newer one: what it needs is less.
                if walked.last >= best.last {
                    best = walked;
                }
            }
            Err(damage) => damaged = Some((file.number, damage)),
        }
    }
    Ok((best, damaged))
}

/// The numbers of sound records that come after what can be saved.
fn beyond(listing: &Listing, best: &Walked) -> Result<BTreeSet<u64>, LogError> {
    let mut found = BTreeSet::new();
    for file in &listing.segments {
        let mut source = Source::open(file)?;
        let Ok(head) = source.head(FileKind::Segment) else { continue };
        let span = best.spans.iter().find(|span| span.file.path == file.path);
        let from = span.map_or(HEAD_BYTES as u64, |span| span.end);
        found.extend(survey(&mut source, from, head.salt, best.last + 1)?.numbers);
    }
    Ok(found)
}

/// Moves everything that claims to come after what is saved out of the way, the last first, and cuts the
/// last segment if it has to be. A power cut in between leaves a log that is as damaged as before, or one that
/// opens as the repaired does.
fn set_aside(
    dir: &Path,
    listing: &Listing,
    best: &Walked,
    cut_segment: Option<&Span>,
) -> Result<Option<PathBuf>, LogError> {
    // What is older than the snapshot stays, for when that is damaged one day.
    let base = best.snapshot.as_ref().map_or(0, |snapshot| snapshot.head.number);
    let saved = |path: &Path| best.spans.iter().any(|span| span.file.path == path);
    let wrong = |file: &&NumberedFile| file.number > base && !saved(&file.path);
    let snapshots = listing.snapshots.iter().rev().filter(wrong);
    let moved: Vec<_> = snapshots.chain(listing.segments.iter().rev().filter(wrong)).collect();
    if moved.is_empty() && cut_segment.is_none() {
        return Ok(None);
    }
    let kept_in = new_dir(dir)?;
    for file in moved {
        let name = file.path.file_name().expect("a listed file has a name");
        rename(&file.path, &kept_in.join(name))?;
    }
    sync_dir(dir)?;
    if let Some(span) = cut_segment {
        cut(dir, span, &kept_in)?;
    }
    sync_dir(&kept_in)?;
    sync_dir(dir)?;
    Ok(Some(kept_in))
}

/// Puts a copy of the sound part in the place of a segment, and the segment aside.
fn cut(dir: &Path, span: &Span, kept_in: &Path) -> Result<(), LogError> {
    let temporary = dir.join("repair.tmp");
    let path = &span.file.path;
    Source::open(&span.file)?.copy(span.end, &temporary)?;
    let name = path.file_name().expect("a listed file has a name");
    // Two names for the original for a moment, so that no power cut leaves none.
    fs::hard_link(path, kept_in.join(name))
        .map_err(LogError::io(kept_in, "keep the original in the directory"))?;
    sync_dir(kept_in)?;
    rename(&temporary, path)
}

fn new_dir(dir: &Path) -> Result<PathBuf, LogError> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let free = (0..)
        .map(|again| match again {
            0 => dir.join(format!("damaged-{now}")),
            again => dir.join(format!("damaged-{now}-{again}")),
        })
        .find(|path| !path.exists())
        .expect("numbers do not run out");
    make_dir(&free)?;
    Ok(free)
}

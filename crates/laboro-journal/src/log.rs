//! The durable log: records in order, each there whole or not at all, and a snapshot of what the
//! older ones came to. It knows bytes and numbers; what the payloads mean is the caller's.

mod backup;
mod check;
mod condense;
mod directory;
mod error;
mod format;
mod mark;
mod options;
mod reader;
mod repair;
mod room;
mod scan;
mod segment;
mod snapshot;
mod steps;

#[cfg(test)]
mod tests;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

pub use backup::backup;
pub use check::{Problem, Report, SnapshotReport, check, check_with};
pub use condense::{Fold, FoldMaker};
pub use error::LogError;
pub use options::{Durability, Options};
pub use reader::{Piece, Visit, read};
pub use repair::{Repair, repair};

use condense::{Condenser, SealedLog, remove_covered};
use directory::{Listing, Lock, make_dir, remove, sync_dir};
use format::{FileHead, FileKind, stride};
use mark::Marker;
use reader::{Walked, sound, walk};
use room::DiskRoom;
use scan::Source;
use segment::{Blank, Segment, Spare, random, room};
use steps::Steps;

/// With `Durability::None`, as much as this is held back before it is written.
const PENDING_BYTES_MAX: usize = 256 << 10;
/// How much larger each segment is than the one before it, up to the largest.
const SEGMENT_GROWTH: u64 = 4;

/// An open log. One at a time may have a directory open.
pub struct Log {
    dir: PathBuf,
    options: Options,
    id: u64,
    last: u64,
    chain: u32,
    /// `None` in a new log and after a segment was sealed: the next commit begins one.
    active: Option<Segment>,
    spare: Option<Spare>,
    /// How full the active segment was then; not tried again before it is fuller.
    spare_given_up_at: u64,
    room: DiskRoom,
    segment_bytes_next: u64,
    marker: Marker,
    condenser: Condenser,
    warnings: Vec<String>,
    /// After a failed write nobody knows what is on the disk, so there is no second try.
    failed: Option<LogError>,
    steps: Steps,
    _lock: Lock,
}

/// What opening a log found and did.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
#[allow(missing_docs)]
pub struct Recovery {
    /// 0 if the log holds nothing yet.
    pub last_number: u64,
    /// Records replayed after the snapshot.
    pub records: u64,
    pub snapshot_bytes: u64,
    pub log_bytes: u64,
    /// Torn ends that were cut, leftover files that were removed, a damaged snapshot that was not needed.
    pub warnings: Vec<String>,
    pub elapsed: Duration,
}

impl Log {
    /// Opens the log in `dir`, or makes one, and gives all it holds to `replay`: the newest
    /// snapshot's chunks, then every later record in order. Without a `fold` it is never condensed.
    pub fn open(
        dir: &Path,
        options: Options,
        fold: Option<FoldMaker>,
        replay: &mut Visit<'_>,
    ) -> Result<(Log, Recovery), LogError> {
        Log::open_with_steps(dir, options, fold, Steps::default(), replay)
    }

    fn open_with_steps(
        dir: &Path,
        options: Options,
        fold: Option<FoldMaker>,
        steps: Steps,
        replay: &mut Visit<'_>,
    ) -> Result<(Log, Recovery), LogError> {
        let begun = Instant::now();
        options.check()?;
        make_dir(dir)?;
        let lock = Lock::take(dir)?;
        let listing = Listing::read(dir)?;
        let mut walked = walk(&listing, u64::MAX, replay)?;
        if let Some(damage) = walked.damage.take() {
            return Err(damage);
        }
        tidy(dir, &listing, &mut walked, options.durability)?;
        let active = match walked.spans.last() {
            Some(span) => Some(Segment::resume(span, walked.tail.as_ref(), options.durability)?),
            None => None,
        };
        let grown = active.as_ref().map_or(0, |segment| segment.capacity * SEGMENT_GROWTH);
        let snapshot_bytes = walked.snapshot.as_ref().map_or(0, |snapshot| snapshot.bytes);
        let mut condenser = Condenser::new(fold, options.condense_after_bytes, steps.clone());
        condenser.found(walked.log_bytes, snapshot_bytes);
        if walked.snapshot_damaged.is_some() {
            condenser.hurry();
        }
        let id = walked.id.unwrap_or_else(random);
        let mut log = Log {
            dir: dir.to_owned(),
            id,
            last: walked.last,
            chain: walked.chain,
            active,
            spare: None,
            spare_given_up_at: 0,
            room: DiskRoom::default(),
            segment_bytes_next: grown.clamp(options.segment_bytes_min, options.segment_bytes_max),
            marker: Marker::new(dir, id, listing.mark),
            condenser,
            warnings: Vec::new(),
            failed: None,
            options,
            steps,
            _lock: lock,
        };
        log.mark_end();
        let recovery = Recovery {
            last_number: walked.last,
            records: walked.records,
            snapshot_bytes,
            log_bytes: walked.log_bytes,
            warnings: walked.warnings,
            elapsed: begun.elapsed(),
        };
        Ok((log, recovery))
    }

    /// Appends one record and returns its number, when it is as durable as the options say. After
    /// an error, other than a refusal for size, the log takes no more: whether the record is there
    /// is known when the log is next opened.
    pub fn commit(&mut self, payload: &[u8]) -> Result<u64, LogError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        if payload.len() > self.options.record_bytes_max {
            let (bytes, max) = (payload.len(), self.options.record_bytes_max);
            return Err(LogError::TooLarge { bytes, max });
        }
        self.condenser.poll(&mut self.warnings);
        if self.condenser.take_disk_full() {
            self.give_up_spare();
        }
        let number = self.guard(|log| log.append(payload))?;
        if self.condenser.is_due() {
            self.guard(Log::start_condensing)?;
        }
        Ok(number)
    }

    /// The number of the last record.
    pub fn last_number(&self) -> u64 {
        self.last
    }

    /// What went wrong in the background since this was last asked. Nothing of it concerns what
    /// was committed.
    pub fn take_warnings(&mut self) -> Vec<String> {
        self.condenser.poll(&mut self.warnings);
        std::mem::take(&mut self.warnings)
    }

    /// Starts condensing now, if there is anything to condense and a fold to do it with. Returns
    /// at once; `settle` waits for it.
    pub fn condense(&mut self) -> Result<(), LogError> {
        self.condenser.wait(&mut self.warnings);
        if self.condenser.can_start() { self.guard(Log::start_condensing) } else { Ok(()) }
    }

    /// Waits until nothing goes on in the background.
    pub fn wait_for_condensing(&mut self) {
        self.condenser.wait(&mut self.warnings);
    }

    /// Writes what is pending. A condensing under way is abandoned, which costs nothing but the
    /// work done so far. Dropping a log does the same, but cannot say that it failed.
    pub fn close(mut self) -> Result<(), LogError> {
        self.shut()
    }

    fn shut(&mut self) -> Result<(), LogError> {
        let written = match (&self.failed, self.active.take()) {
            (Some(error), _) => Err(error.clone()),
            (None, None) => Ok(()),
            (None, Some(mut segment)) => segment.write().and_then(|()| {
                let lazy = self.options.durability == Durability::Os;
                if lazy { segment.sync() } else { Ok(()) }
            }),
        };
        self.condenser.abandon();
        self.give_up_spare();
        if written.is_ok() {
            self.mark_end();
        }
        written
    }

    /// Everything up to the last record is on the disk, if every commit syncs.
    fn mark_end(&mut self) {
        if self.options.durability == Durability::Sync && self.last > 0 {
            self.marker.reached(self.last, self.chain);
        }
    }

    fn guard<T>(
        &mut self,
        work: impl FnOnce(&mut Log) -> Result<T, LogError>,
    ) -> Result<T, LogError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        work(self).inspect_err(|error| self.failed = Some(error.clone()))
    }

    fn append(&mut self, payload: &[u8]) -> Result<u64, LogError> {
        let number = self.last + 1;
        self.chain = match &mut self.active {
            Some(segment) if segment.fits(payload) => {
                let chain = segment.push(number, self.chain, payload);
                match self.options.durability {
                    Durability::Sync => {
                        segment.write()?;
                        segment.sync()?;
                    }
                    Durability::Os => segment.write()?,
                    Durability::None if segment.pending_bytes() > PENDING_BYTES_MAX => {
                        segment.write()?;
                    }
                    Durability::None => {}
                }
                chain
            }
            _ => self.roll_over(number, payload)?,
        };
        self.last = number;
        self.condenser.log_bytes += stride(payload.len());
        self.prepare_spare();
        Ok(number)
    }

    /// Seals the active segment and begins the next one with this record.
    fn roll_over(&mut self, number: u64, payload: &[u8]) -> Result<u32, LogError> {
        self.seal()?;
        let blank = self.blank_for(payload)?;
        let head = FileHead {
            kind: FileKind::Segment,
            id: self.id,
            salt: random(),
            number,
            chain: self.chain,
        };
        let durability = self.options.durability;
        let (segment, chain) =
            Segment::begin(&self.dir, blank, head, payload, durability, &self.steps)?;
        let grown = segment.capacity.saturating_mul(SEGMENT_GROWTH);
        self.segment_bytes_next =
            grown.clamp(self.options.segment_bytes_min, self.options.segment_bytes_max);
        self.active = Some(segment);
        self.spare_given_up_at = 0;
        if durability == Durability::Sync {
            self.marker.reached(number, chain);
        }
        Ok(chain)
    }

    fn seal(&mut self) -> Result<(), LogError> {
        match self.active.take() {
            Some(mut segment) => segment.write(),
            None => Ok(()),
        }
    }

    fn blank_for(&mut self, payload: &[u8]) -> Result<Blank, LogError> {
        let make = |bytes| {
            let durability = self.options.durability;
            Blank::make(&self.dir, bytes, durability, &AtomicBool::new(false))
        };
        match self.spare.take().map(Spare::wait) {
            Some(Ok(blank)) if blank.has_room(payload) => Ok(blank),
            Some(Ok(_)) => make(room(payload)),
            // A full disk may still have room for a small one. If not, its error is the true one.
            Some(Err(_)) | None => make(room(payload).max(self.options.segment_bytes_min)),
        }
    }

    /// Has the next segment ready before this one is full, where there is room to spare. Not at once: a log that
    /// stays small never needs a second one.
    fn prepare_spare(&mut self) {
        let Some(segment) = &self.active else { return };
        if let Some(spare) = &mut self.spare {
            if spare.is_in_the_way() {
                self.give_up_spare();
            }
            return;
        }
        let (used, capacity) = (segment.used(), segment.capacity);
        if used > (capacity / 4).max(self.spare_given_up_at + capacity / 8) {
            let (wanted, least) = (self.segment_bytes_next, self.options.segment_bytes_min);
            let (durability, room) = (self.options.durability, &self.room);
            let bytes = room.to_spare(&self.dir, wanted, least);
            self.spare = bytes.and_then(|bytes| Spare::prepare(&self.dir, bytes, durability, room));
            if self.spare.is_none() {
                self.spare_given_up_at = used;
            }
        }
    }

    /// Without it the next segment is made when it is needed, and somebody waits for it.
    fn give_up_spare(&mut self) {
        if let Some(spare) = self.spare.take() {
            spare.discard();
            self.spare_given_up_at = self.active.as_ref().map_or(0, Segment::used);
        }
    }

    fn start_condensing(&mut self) -> Result<(), LogError> {
        self.seal()?;
        let (dir, id, upto, chain) = (self.dir.clone(), self.id, self.last, self.chain);
        self.condenser.start(SealedLog { dir, id, upto, chain }, &mut self.warnings);
        Ok(())
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        // Whoever wants to know uses `close`.
        let _ = self.shut();
    }
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Log")
            .field("dir", &self.dir)
            .field("last", &self.last)
            .field("active", &self.active.as_ref().map(|segment| &segment.path))
            .field("condenser", &self.condenser)
            .field("failed", &self.failed)
            .finish_non_exhaustive()
    }
}

/// Whether there is a log in this directory, or was one that is gone.
pub fn is_here(dir: &Path) -> bool {
    Listing::read(dir).is_ok_and(|listing| {
        listing.mark.is_some() || !listing.segments.is_empty() || !listing.snapshots.is_empty()
    })
}

/// Removes what a stopped hub left behind, and makes sure that all we are about to build on is on
/// the disk, whoever wrote it with whatever durability.
fn tidy(
    dir: &Path,
    listing: &Listing,
    walked: &mut Walked,
    durability: Durability,
) -> Result<(), LogError> {
    for path in &listing.leftovers {
        remove(path)?;
        walked.warnings.push(format!("{}: leftover file removed", path.display()));
    }
    for path in &walked.voids {
        remove(path)?;
        walked.warnings.push(format!("{}: segment without content removed", path.display()));
    }
    if let (Some(tail), Some(span)) = (&walked.tail, walked.spans.last()) {
        let (path, count) = (span.file.path.display(), tail.dirty_to.saturating_sub(span.end));
        walked.warnings.push(format!(
            "{path}: torn end cut at byte {}, {count} bytes after record {}: {}",
            span.end, walked.last, tail.reason
        ));
    }
    if let Some(snapshot) = &walked.snapshot {
        let number = snapshot.head.number;
        let base = reserve(listing, number)?;
        if listing.segments.iter().any(|file| file.number <= base)
            || listing.snapshots.iter().any(|file| file.number < number && file.number != base)
        {
            // The snapshot's name has to be durable before what it replaces goes.
            sync_dir(dir)?;
            remove_covered(dir, number, base, &Steps::default())?;
        }
    }
    if durability == Durability::Sync && !walked.spans.is_empty() {
        for span in &walked.spans {
            Source::open(&span.file)?.sync()?;
        }
        sync_dir(dir)?;
    }
    Ok(())
}

/// The snapshot to keep beside the newest, which stands for it together with the log in between; 0 for none.
fn reserve(listing: &Listing, newest: u64) -> Result<u64, LogError> {
    let mut older = listing.snapshots.iter().rev().filter(|file| file.number < newest);
    let (first, second) = (older.next(), older.next());
    match (first, second) {
        (None, _) => Ok(0),
        (Some(only), None) => Ok(only.number),
        // A crash left more than two. The one to keep must not be a damaged one.
        (Some(first), Some(second)) => {
            Ok(if sound(first)?.is_ok() { first } else { second }.number)
        }
    }
}

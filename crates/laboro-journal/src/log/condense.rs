//! Turns history into its condensed form, in the background and from files alone: the last
//! snapshot and the sealed segments after it become a new snapshot, and what is older is removed. They
//! stay until the next one, in case the new one is damaged. The live state is never looked at, so
//! nothing waits.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use super::LogError;
use super::directory::{Listing, remove, sync_dir};
use super::format::{FileHead, FileKind};
use super::reader::{Piece, walk};
use super::segment::random;
use super::snapshot::SnapshotWriter;
use super::steps::Steps;

/// Adds up history and says what is left of it.
pub trait Fold: Send {
    /// Takes the pieces of the old snapshot, then the records, in order.
    fn absorb(&mut self, piece: Piece, number: u64, payload: &[u8]) -> Result<(), String>;

    /// Gives the condensed form to `sink`, in chunks of any size. What it gives must, absorbed or
    /// replayed as `Piece::Snapshot`, come to the same state as all that was absorbed.
    fn emit(self: Box<Self>, sink: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> Result<(), String>;
}

/// Makes an empty fold for each time the log is condensed.
pub type FoldMaker = Arc<dyn Fn() -> Box<dyn Fold> + Send + Sync>;

/// Decides when to condense and watches over the thread that does.
pub(super) struct Condenser {
    maker: Option<FoldMaker>,
    after_bytes: u64,
    /// Bytes of records that the last snapshot does not cover.
    pub log_bytes: u64,
    pub snapshot_bytes: u64,
    at_bytes: u64,
    disk_full: bool,
    job: Option<Job>,
    steps: Steps,
}

struct Job {
    thread: JoinHandle<Result<Condensed, LogError>>,
    abandon: Arc<AtomicBool>,
    log_bytes: u64,
}

struct Condensed {
    snapshot_bytes: u64,
    /// A file that could not be removed costs room and nothing else.
    warnings: Vec<String>,
}

/// The sealed part of the log that is to be condensed.
pub(super) struct SealedLog {
    pub dir: PathBuf,
    pub id: u64,
    pub upto: u64,
    pub chain: u32,
}

impl Condenser {
    pub fn new(maker: Option<FoldMaker>, after_bytes: u64, steps: Steps) -> Condenser {
        Condenser {
            maker,
            after_bytes,
            log_bytes: 0,
            snapshot_bytes: 0,
            at_bytes: after_bytes,
            disk_full: false,
            job: None,
            steps,
        }
    }

    /// What was found when the log was opened.
    pub fn found(&mut self, log_bytes: u64, snapshot_bytes: u64) {
        self.log_bytes = log_bytes;
        self.snapshot_bytes = snapshot_bytes;
        self.at_bytes = self.pause();
    }

    fn pause(&self) -> u64 {
        self.after_bytes.max(self.snapshot_bytes.saturating_mul(2))
    }

    /// The newest snapshot is damaged, and the log is all there is: as soon as there is anything to condense.
    pub fn hurry(&mut self) {
        self.at_bytes = 0;
    }

    pub fn is_due(&self) -> bool {
        self.can_start() && self.log_bytes > self.at_bytes
    }

    pub fn can_start(&self) -> bool {
        self.job.is_none() && self.maker.is_some() && self.log_bytes > 0
    }

    pub fn start(&mut self, sealed: SealedLog, warnings: &mut Vec<String>) {
        let Some(maker) = self.maker.clone() else { return };
        let abandon = Arc::new(AtomicBool::new(false));
        let (stop, steps) = (Arc::clone(&abandon), self.steps.clone());
        let thread = std::thread::Builder::new()
            .name("journal-condense".to_owned())
            .spawn(move || condense(&sealed, maker(), &stop, &steps));
        match thread {
            Ok(thread) => self.job = Some(Job { thread, abandon, log_bytes: self.log_bytes }),
            Err(error) => self.fail(&error.to_string(), warnings),
        }
    }

    /// Looks whether the thread is done; never waits.
    pub fn poll(&mut self, warnings: &mut Vec<String>) {
        if self.job.as_ref().is_some_and(|job| job.thread.is_finished()) {
            self.wait(warnings);
        }
    }

    pub fn wait(&mut self, warnings: &mut Vec<String>) {
        let Some(job) = self.job.take() else { return };
        match job.thread.join() {
            Ok(Ok(mut condensed)) => {
                self.log_bytes -= job.log_bytes;
                self.snapshot_bytes = condensed.snapshot_bytes;
                self.at_bytes = self.pause();
                warnings.append(&mut condensed.warnings);
            }
            Ok(Err(error)) => {
                self.disk_full |= matches!(error, LogError::DiskFull { .. });
                self.fail(&error.to_string(), warnings);
            }
            Err(_) => self.fail("the fold panicked", warnings),
        }
    }

    /// Nothing is lost, only longer. Not tried again before as much has come again.
    fn fail(&mut self, reason: &str, warnings: &mut Vec<String>) {
        warnings.push(format!("the journal was not condensed: {reason}"));
        self.at_bytes = self.log_bytes.saturating_add(self.pause());
    }

    /// Whether the disk had no room since this was last asked.
    pub fn take_disk_full(&mut self) -> bool {
        std::mem::take(&mut self.disk_full)
    }

    pub fn abandon(&mut self) {
        if let Some(job) = self.job.take() {
            job.abandon.store(true, Ordering::Relaxed);
            // It was told to stop, so how it ended says nothing; files are in order either way.
            let _ = job.thread.join();
        }
    }
}

impl fmt::Debug for Condenser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Condenser")
            .field("log_bytes", &self.log_bytes)
            .field("snapshot_bytes", &self.snapshot_bytes)
            .field("at_bytes", &self.at_bytes)
            .field("running", &self.job.is_some())
            .finish_non_exhaustive()
    }
}

fn condense(
    sealed: &SealedLog,
    mut fold: Box<dyn Fold>,
    abandon: &AtomicBool,
    steps: &Steps,
) -> Result<Condensed, LogError> {
    let SealedLog { dir, id, upto, chain } = sealed;
    let stopped = || abandon.load(Ordering::Relaxed);
    let refused = |reason| LogError::Replay { file: dir.clone(), number: *upto, reason };

    let walked = walk(&Listing::read(dir)?, *upto, &mut |piece, number, payload| {
        if stopped() {
            return Err("the log is being closed".to_owned());
        }
        fold.absorb(piece, number, payload)
    })?;
    if let Some(damage) = walked.damage {
        return Err(damage);
    }
    if (walked.last, walked.chain) != (*upto, *chain) {
        let reason = format!("the files end with record {}, not {upto}", walked.last);
        return Err(refused(reason));
    }

    let head = FileHead {
        kind: FileKind::Snapshot,
        id: *id,
        salt: random(),
        number: *upto,
        chain: *chain,
    };
    let mut writer = SnapshotWriter::create(dir, head)?;
    steps.reached("snapshot begun");
    let mut disk_full = None;
    let emitted = fold.emit(&mut |chunk| {
        if stopped() {
            return Err(io::Error::other("the log is being closed"));
        }
        writer.push(chunk).inspect_err(|error| {
            if error.kind() == io::ErrorKind::StorageFull {
                disk_full = Some(LogError::DiskFull { dir: dir.clone() });
            }
        })
    });
    if let Err(reason) = emitted {
        writer.discard()?;
        return Err(disk_full.unwrap_or_else(|| refused(reason)));
    }
    let snapshot_bytes = writer.finish(steps)?;
    let base = walked.snapshot.map_or(0, |snapshot| snapshot.head.number);
    let warnings = remove_covered(dir, *upto, base, steps).err().map(|error| error.to_string());
    Ok(Condensed { snapshot_bytes, warnings: warnings.into_iter().collect() })
}

/// Removes what nobody needs once there are durable snapshots up to `upto` and up to `base`, in any order:
/// the reader does not look at segments that a snapshot covers. `base` and the log after it come to the same
/// as `upto`, and stay for when that is damaged; 0 is the empty state before the first record.
pub(super) fn remove_covered(
    dir: &Path,
    upto: u64,
    base: u64,
    steps: &Steps,
) -> Result<(), LogError> {
    let listing = Listing::read(dir)?;
    let segments = listing.segments.iter().filter(|file| file.number <= base);
    let snapshots =
        listing.snapshots.iter().filter(|file| file.number < upto && file.number != base);
    for file in segments.chain(snapshots) {
        remove(&file.path)?;
        steps.reached("covered file removed");
    }
    sync_dir(dir)
}

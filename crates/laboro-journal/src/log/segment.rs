//! The segment being written: where the next record goes, and the file it goes to. Also prepares
//! segments ahead of their use. When to start a new one is decided in `log`.

use std::fs::{File, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::directory::{create_file, numbered, remove, rename, sync_dir};
use super::format::{FileHead, FileKind, HEAD_BYTES, RecordKind, encode_record, stride};
use super::reader::{Span, Tail};
use super::room::DiskRoom;
use super::steps::Steps;
use super::{Durability, LogError};

/// A buffer grown by one huge record is not kept.
const BUFFER_BYTES_KEPT: usize = 4 << 20;
/// Zeros go out in pieces this large, each synced, so that a commit never queues behind all.
const ZERO_BYTES: usize = 1 << 20;

#[derive(Debug)]
pub(super) struct Segment {
    pub path: PathBuf,
    file: File,
    salt: u64,
    pub capacity: u64,
    /// Where `pending` goes.
    written: u64,
    pending: Vec<u8>,
}

impl Segment {
    /// Writes the head and the first record into `blank` and only then gives it its name, so a
    /// named segment is never empty.
    pub fn begin(
        dir: &Path,
        blank: Blank,
        head: FileHead,
        payload: &[u8],
        durability: Durability,
        steps: &Steps,
    ) -> Result<(Segment, u32), LogError> {
        let mut segment = Segment {
            path: blank.path,
            file: blank.file,
            salt: head.salt,
            capacity: blank.bytes,
            written: 0,
            pending: head.encode().to_vec(),
        };
        let chain = segment.push(head.number, head.chain, payload);
        let path = numbered(dir, FileKind::Segment, head.number);
        segment.fill(&path, durability, steps).inspect_err(|_| {
            // As with a blank: without its name it is of no use to anybody.
            let _ = remove(&segment.path);
        })?;
        segment.path = path;
        steps.reached("segment renamed");
        if durability == Durability::Sync {
            sync_dir(dir)?;
        }
        Ok((segment, chain))
    }

    fn fill(&mut self, name: &Path, durability: Durability, steps: &Steps) -> Result<(), LogError> {
        self.write()?;
        if durability == Durability::Sync {
            self.sync()?;
        }
        steps.reached("segment filled");
        rename(&self.path, name)
    }

    /// Goes on behind the last record of a segment that was there before; cuts a torn tail.
    pub fn resume(
        span: &Span,
        tail: Option<&Tail>,
        durability: Durability,
    ) -> Result<Segment, LogError> {
        let path = span.file.path.clone();
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .open(&path)
            .map_err(LogError::io(&path, "open the file"))?;
        let len = file.metadata().map_err(LogError::io(&path, "read the file's size"))?.len();
        if let Some(tail) = tail {
            zero(&file, span.end, tail.dirty_to, &AtomicBool::new(false))
                .and_then(|()| file.sync_data())
                .map_err(LogError::io(&path, "cut the torn end of the file"))?;
        }
        let mut segment = Segment {
            path,
            file,
            salt: span.head.salt,
            capacity: len & !7,
            written: span.end,
            pending: Vec::new(),
        };
        if durability == Durability::Sync {
            segment.rewrite(span.record_last_at.unwrap_or(0))?;
        }
        Ok(segment)
    }

    /// When a sync fails, the system may forget the bytes and still show them to readers. The last
    /// record could be such a one, so it is written once more before anything is built on it.
    fn rewrite(&mut self, from: u64) -> Result<(), LogError> {
        let doing = "write the last record again";
        let count = self.written.min(self.capacity).saturating_sub(from);
        let mut bytes = vec![0; count as usize];
        self.file
            .read_exact_at(&mut bytes, from)
            .and_then(|()| self.file.write_all_at(&bytes, from))
            .map_err(LogError::io(&self.path, doing))?;
        self.sync()
    }

    pub fn fits(&self, payload: &[u8]) -> bool {
        self.used() + stride(payload.len()) <= self.capacity
    }

    pub fn used(&self) -> u64 {
        self.written + self.pending.len() as u64
    }

    pub fn pending_bytes(&self) -> usize {
        self.pending.len()
    }

    /// Adds a record to what is to be written; returns its check.
    pub fn push(&mut self, number: u64, chain: u32, payload: &[u8]) -> u32 {
        encode_record(&mut self.pending, self.salt, RecordKind::Batch, number, chain, payload)
    }

    /// One write of all that is pending.
    pub fn write(&mut self) -> Result<(), LogError> {
        if self.pending.is_empty() {
            return Ok(());
        }
        self.file
            .write_all_at(&self.pending, self.written)
            .map_err(LogError::io(&self.path, "write to the file"))?;
        self.written += self.pending.len() as u64;
        if self.pending.capacity() > BUFFER_BYTES_KEPT {
            self.pending = Vec::new();
        }
        self.pending.clear();
        Ok(())
    }

    pub fn sync(&self) -> Result<(), LogError> {
        self.file.sync_data().map_err(LogError::io(&self.path, "sync the file"))
    }

    #[cfg(test)]
    pub fn replace_file(&mut self, file: File) {
        self.file = file;
    }
}

/// A segment to be: the right size, and without a number yet.
#[derive(Debug)]
pub(super) struct Blank {
    path: PathBuf,
    file: File,
    bytes: u64,
}

impl Blank {
    /// Overwriting zeros on the disk syncs in half the time an append takes, because no block has
    /// to be found and no size changed. Without syncs there is nothing to gain, so no zeros.
    pub fn make(
        dir: &Path,
        bytes: u64,
        durability: Durability,
        abandon: &AtomicBool,
    ) -> Result<Blank, LogError> {
        let path = dir.join("blank.tmp");
        let file = create_file(&path)?;
        let made = match durability {
            Durability::Sync => zero(&file, 0, bytes, abandon).and_then(|()| file.sync_all()),
            Durability::Os | Durability::None => file.set_len(bytes),
        };
        match made.map_err(LogError::io(&path, "prepare a segment")) {
            Ok(()) => Ok(Blank { path, file, bytes }),
            Err(error) => {
                // Half of one is of no use, and on a full disk somebody needs the room.
                let _ = remove(&path);
                Err(error)
            }
        }
    }

    pub fn has_room(&self, payload: &[u8]) -> bool {
        room(payload) <= self.bytes
    }
}

/// The size of a segment that holds just this record.
pub(super) fn room(payload: &[u8]) -> u64 {
    HEAD_BYTES as u64 + stride(payload.len())
}

fn zero(file: &File, from: u64, to: u64, abandon: &AtomicBool) -> std::io::Result<()> {
    let zeros = vec![0; ZERO_BYTES.min(to.saturating_sub(from) as usize)];
    let mut at = from;
    while at < to && !abandon.load(Ordering::Relaxed) {
        let count = zeros.len().min((to - at) as usize);
        file.write_all_at(&zeros[..count], at)?;
        at += count as u64;
        if at < to {
            file.sync_data()?;
        }
    }
    Ok(())
}

/// A blank being prepared in the background.
#[derive(Debug)]
pub(super) struct Spare {
    thread: JoinHandle<Result<Blank, LogError>>,
    abandon: Arc<AtomicBool>,
    dir: PathBuf,
    bytes: u64,
    room: DiskRoom,
    looked: Instant,
}

/// How often it is asked whether the disk has become full.
const LOOK: Duration = Duration::from_secs(1);

impl Spare {
    /// `None` if there is no thread to be had; then a segment is made when it is needed.
    pub fn prepare(
        dir: &Path,
        bytes: u64,
        durability: Durability,
        room: &DiskRoom,
    ) -> Option<Spare> {
        let (folder, abandon) = (dir.to_owned(), Arc::new(AtomicBool::new(false)));
        let stop = Arc::clone(&abandon);
        let thread = std::thread::Builder::new()
            .name("journal-spare".to_owned())
            .spawn(move || Blank::make(&folder, bytes, durability, &stop))
            .ok()?;
        let (dir, room) = (dir.to_owned(), room.clone());
        Some(Spare { thread, abandon, dir, bytes, room, looked: Instant::now() })
    }

    #[cfg(test)]
    pub fn is_made(&self) -> bool {
        self.thread.is_finished()
    }

    #[cfg(test)]
    pub fn look_now(&mut self) {
        self.looked -= LOOK;
    }

    /// Whether others need the room more than we need to be ahead. Asks the system now and then.
    pub fn is_in_the_way(&mut self) -> bool {
        if self.looked.elapsed() < LOOK {
            return false;
        }
        self.looked = Instant::now();
        self.room.is_short(&self.dir, self.bytes)
    }

    pub fn wait(self) -> Result<Blank, LogError> {
        self.thread.join().expect("preparing a segment does not panic")
    }

    /// Stops the thread and removes what it made. If that fails, the next open does it.
    pub fn discard(self) {
        self.abandon.store(true, Ordering::Relaxed);
        if let Ok(blank) = self.wait() {
            let _ = remove(&blank.path);
        }
    }
}

/// A number nobody outside can guess. The keys of std's hash maps come from the system's random
/// source and are all we need, so no crate for it.
pub(super) fn random() -> u64 {
    RandomState::new().hash_one(0)
}

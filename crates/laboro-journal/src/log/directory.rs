//! The log's directory: which files it holds, what they are called, who has it open. Knows names only, not what is in
//! the files.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::LogError;
use super::format::FileKind;
use super::mark::{self, Mark};

/// Task scripts and their environment end up in here, so the files are their owner's alone.
pub(super) const FILE_MODE: u32 = 0o600;
const DIR_MODE: u32 = 0o700;

#[derive(Debug, Clone)]
pub(super) struct NumberedFile {
    /// Segment: its first record. Snapshot: the last record it includes.
    pub number: u64,
    pub path: PathBuf,
    /// Open, so that it can be read even if its name goes away.
    pub held: Option<Arc<File>>,
}

impl NumberedFile {
    pub fn new(number: u64, path: PathBuf) -> NumberedFile {
        NumberedFile { number, path, held: None }
    }

    pub fn open(&self) -> Result<Arc<File>, LogError> {
        match &self.held {
            Some(file) => Ok(Arc::clone(file)),
            None => File::open(&self.path)
                .map(Arc::new)
                .map_err(LogError::io(&self.path, "open the file")),
        }
    }
}

/// The files of a log at one moment, in order of their numbers. Other files are left alone.
#[derive(Debug, Default)]
pub(super) struct Listing {
    pub dir: PathBuf,
    pub segments: Vec<NumberedFile>,
    pub snapshots: Vec<NumberedFile>,
    /// Files that were being made when something stopped.
    pub leftovers: Vec<PathBuf>,
    pub mark: Option<Mark>,
}

impl Listing {
    pub fn read(dir: &Path) -> Result<Listing, LogError> {
        // Before the files: a hub may be writing, and what its mark says must be in them.
        let mut listing =
            Listing { dir: dir.to_owned(), mark: Mark::read(dir)?, ..Listing::default() };
        for entry in fs::read_dir(dir).map_err(LogError::io(dir, "list the directory"))? {
            let path = entry.map_err(LogError::io(dir, "list the directory"))?.path();
            let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
            if name.ends_with(".tmp") {
                listing.leftovers.push(path);
            } else if let Some(number) = number_of(name, ".log") {
                listing.segments.push(NumberedFile::new(number, path));
            } else if let Some(number) = number_of(name, ".snapshot") {
                listing.snapshots.push(NumberedFile::new(number, path));
            }
        }
        listing.segments.sort_by_key(|file| file.number);
        listing.snapshots.sort_by_key(|file| file.number);
        Ok(listing)
    }

    /// A list whose files a condensing hub cannot take away while they are read. Each try takes
    /// microseconds and fails only if the hub removes files in just these.
    pub fn read_held(dir: &Path) -> Result<Listing, LogError> {
        let mut tries = 1;
        loop {
            let mut listing = Listing::read(dir)?;
            match listing.hold() {
                Err(error) if error.is_missing_file() && tries < HOLD_TRIES => tries += 1,
                Err(error) => return Err(error),
                Ok(()) => return Ok(listing),
            }
        }
    }

    fn hold(&mut self) -> Result<(), LogError> {
        for file in self.snapshots.iter_mut().chain(self.segments.iter_mut().take(HELD_MAX)) {
            file.held = Some(file.open()?);
        }
        Ok(())
    }

    pub fn is_stale(&self, dir: &Path) -> Result<bool, LogError> {
        let now = Listing::read(dir)?;
        let numbers = |files: &[NumberedFile]| files.iter().map(|f| f.number).collect::<Vec<_>>();
        Ok(numbers(&now.segments) != numbers(&self.segments)
            || numbers(&now.snapshots) != numbers(&self.snapshots))
    }
}

const HOLD_TRIES: usize = 1000;
/// Well under the usual limit of open files. A log with more segments is one that is not condensed,
/// and its files stay.
const HELD_MAX: usize = 500;

fn number_of(name: &str, suffix: &str) -> Option<u64> {
    let digits = name.strip_suffix(suffix)?;
    let plain = digits.len() == 20 && digits.bytes().all(|byte| byte.is_ascii_digit());
    // No log gets this far; refusing it here spares everybody a thought about overflow.
    digits.parse().ok().filter(|number| plain && *number < u64::MAX / 2)
}

pub(super) fn numbered(dir: &Path, kind: FileKind, number: u64) -> PathBuf {
    match kind {
        FileKind::Segment => dir.join(format!("{number:020}.log")),
        FileKind::Snapshot => dir.join(format!("{number:020}.snapshot")),
        FileKind::Mark => dir.join(mark::NAME),
    }
}

pub(super) fn create_file(path: &Path) -> Result<File, LogError> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(true)
        .mode(FILE_MODE)
        .open(path)
        .map_err(LogError::io(path, "create the file"))
}

pub(super) fn rename(from: &Path, to: &Path) -> Result<(), LogError> {
    fs::rename(from, to).map_err(LogError::io(to, "rename a file to this name"))
}

/// Gone is what we want; that somebody else was quicker is no error.
pub(super) fn remove(path: &Path) -> Result<(), LogError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(LogError::io(path, "remove the file")(error))
        }
        _ => Ok(()),
    }
}

/// Makes creations, renames and removals in `dir` survive a power cut.
pub(super) fn sync_dir(dir: &Path) -> Result<(), LogError> {
    let handle = File::open(dir).map_err(LogError::io(dir, "open the directory"))?;
    handle.sync_all().map_err(LogError::io(dir, "sync the directory"))
}

/// Creates `dir` and what is missing above it, and makes each new name durable.
pub(super) fn make_dir(dir: &Path) -> Result<(), LogError> {
    let missing: Vec<&Path> =
        dir.ancestors().take_while(|path| !path.as_os_str().is_empty() && !path.exists()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    DirBuilder::new()
        .recursive(true)
        .mode(DIR_MODE)
        .create(dir)
        .map_err(LogError::io(dir, "create the directory"))?;
    for path in missing.iter().rev() {
        match path.parent() {
            Some(above) if !above.as_os_str().is_empty() => sync_dir(above)?,
            _ => sync_dir(Path::new("."))?,
        }
    }
    Ok(())
}

/// Held for as long as a log is open. The system lets go of it when the process ends, however it
/// ends; the process number inside is only there to be shown.
#[derive(Debug)]
pub(super) struct Lock {
    _file: File,
}

impl Lock {
    pub fn take(dir: &Path) -> Result<Lock, LogError> {
        let path = dir.join("lock");
        // Not truncated: until we hold it, what it says is another's.
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(FILE_MODE)
            .open(&path)
            .map_err(LogError::io(&path, "open the lock file"))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                let pid = match file.take(32).read_to_string(&mut text) {
                    Ok(_) => text.trim().parse().ok(),
                    Err(_) => None,
                };
                return Err(LogError::Locked { dir: dir.to_owned(), pid });
            }
            Err(TryLockError::Error(error)) => {
                return Err(LogError::io(&path, "lock the file")(error));
            }
        }
        file.set_len(0)
            .and_then(|()| writeln!(file, "{}", std::process::id()))
            .map_err(LogError::io(&path, "write the lock file"))?;
        Ok(Lock { _file: file })
    }
}

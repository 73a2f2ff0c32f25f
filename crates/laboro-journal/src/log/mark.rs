//! The end mark: a small file that says how far the log is known to reach, so that files which are gone from its end
//! are noticed. It counts only records that are on the disk, and is itself never synced: after a power cut it may say
//! less than the truth, never more.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::LogError;
use super::directory::{FILE_MODE, remove, sync_dir};
use super::format::{FileHead, FileKind, HEAD_BYTES};

pub(super) const NAME: &str = "end";
/// Two places, written in turns, so that a write that was cut short spoils only its own.
const PLACES: [u64; 2] = [0, 512];

/// What a mark says: this record of this log was on the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mark {
    pub id: u64,
    pub number: u64,
    place: usize,
}

impl Mark {
    /// `None` if there is none, or none that can be read: a log of an older version, or a power cut.
    pub fn read(dir: &Path) -> Result<Option<Mark>, LogError> {
        let path = dir.join(NAME);
        match File::open(&path) {
            Ok(file) => Mark::of(&file).map_err(LogError::io(&path, "read the file")),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(LogError::io(&path, "open the file")(error)),
        }
    }

    fn of(file: &File) -> io::Result<Option<Mark>> {
        let mut best: Option<Mark> = None;
        for (place, at) in PLACES.into_iter().enumerate() {
            let mut bytes = [0; HEAD_BYTES];
            match file.read_exact_at(&mut bytes, at) {
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => continue,
                read => read?,
            }
            if let Ok(FileHead { id, number, .. }) = FileHead::decode(FileKind::Mark, &bytes)
                && best.is_none_or(|best| best.number < number)
            {
                best = Some(Mark { id, number, place });
            }
        }
        Ok(best)
    }

    /// A log that is meant to be shorter now.
    pub fn remove(dir: &Path) -> Result<(), LogError> {
        remove(&dir.join(NAME))?;
        sync_dir(dir)
    }
}

/// Keeps the mark of an open log.
#[derive(Debug)]
pub(super) struct Marker {
    path: PathBuf,
    id: u64,
    file: Option<File>,
    last: Option<Mark>,
}

impl Marker {
    /// `last` is the mark that was there; that of another log does not count.
    pub fn new(dir: &Path, id: u64, last: Option<Mark>) -> Marker {
        Marker { path: dir.join(NAME), id, file: None, last: last.filter(|mark| mark.id == id) }
    }

    /// This record and all before it are on the disk. Nobody depends on the mark, so that it cannot be written
    /// is no reason to stop; the next one may be.
    pub fn reached(&mut self, number: u64, chain: u32) {
        if self.last.is_none_or(|last| last.number < number) {
            let _ = self.write(number, chain);
        }
    }

    fn write(&mut self, number: u64, chain: u32) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => {
                let mut options = OpenOptions::new();
                options.write(true).create(true).truncate(false).mode(FILE_MODE);
                none.insert(options.open(&self.path)?)
            }
        };
        let place = self.last.map_or(0, |last| 1 - last.place);
        let head = FileHead { kind: FileKind::Mark, id: self.id, salt: 0, number, chain };
        file.write_all_at(&head.encode(), PLACES[place])?;
        self.last = Some(Mark { id: self.id, number, place });
        Ok(())
    }
}

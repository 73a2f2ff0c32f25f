//! Why a log could not be opened, read or written, in words a person can act on.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Cloneable, so that a log that failed once can go on giving the same answer.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)]
pub enum LogError {
    #[error(
        "journal {dir} is in use{}; stop the hub that has it open, or use another directory",
        by(.pid)
    )]
    Locked { dir: PathBuf, pid: Option<u32> },

    #[error(
        "{file}: damaged at byte {offset}: {reason}; \
         run `laboro journal repair {}`, or restore a backup",
        folder(.file).display()
    )]
    Corrupt { file: PathBuf, offset: u64, reason: String },

    #[error(
        "journal {dir}: missing at its end: {gone}; put the missing files back, restore a backup, \
         or run `laboro journal repair {dir}` to continue without them"
    )]
    Missing { dir: PathBuf, gone: String },

    #[error(
        "{file}: written in format version {version}, this program knows up to {known}; \
         use a newer laboro"
    )]
    NewerVersion { file: PathBuf, version: u32, known: u32 },

    #[error("journal {dir}: no space left on the disk; free some, then start again")]
    DiskFull { dir: PathBuf },

    #[error("{path}: cannot {doing}: {source}")]
    Io { path: PathBuf, doing: &'static str, source: Arc<io::Error> },

    #[error("a record of {bytes} bytes is more than the {max} allowed")]
    TooLarge { bytes: usize, max: usize },

    #[error("{file}: record {number} was not accepted: {reason}")]
    Replay { file: PathBuf, number: u64, reason: String },

    #[error("journal option {name} cannot be {value}: {reason}")]
    Option { name: &'static str, value: u64, reason: &'static str },

    #[error("{to} already exists; choose another name for the backup")]
    Occupied { to: PathBuf },
}

impl LogError {
    /// Names what was being done to which file; a full disk is told apart, because its cure is.
    pub(super) fn io(path: &Path, doing: &'static str) -> impl FnOnce(io::Error) -> LogError {
        move |source| match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                LogError::DiskFull { dir: folder(path).to_owned() }
            }
            _ => LogError::Io { path: path.to_owned(), doing, source: Arc::new(source) },
        }
    }

    pub(super) fn corrupt(file: &Path, offset: u64, reason: impl Into<String>) -> LogError {
        LogError::Corrupt { file: file.to_owned(), offset, reason: reason.into() }
    }

    pub(super) fn is_missing_file(&self) -> bool {
        matches!(self, LogError::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }
}

fn folder(file: &Path) -> &Path {
    file.parent().unwrap_or(file)
}

fn by(pid: &Option<u32>) -> String {
    pid.map(|pid| format!(" by process {pid}")).unwrap_or_default()
}

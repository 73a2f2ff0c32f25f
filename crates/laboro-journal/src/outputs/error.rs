//! Everything that can go wrong with the store, in words that name the file and the place.

use std::io;
use std::path::{Path, PathBuf};

use super::{Key, Stream};

/// Why output was not kept or found.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum Error {
    #[error("{}: {source}", .path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("{}: {what} at {offset}", .file.display())]
    Damaged { file: PathBuf, offset: u64, what: &'static str },
    #[error("{key} {stream}: bytes {from} to {to} are missing from the store")]
    Missing { key: Key, stream: Stream, from: u64, to: u64 },
    #[error("{}: another process is writing here; wait for it or choose another directory", .dir.display())]
    Locked { dir: PathBuf },
    #[error("job {job} was forgotten and takes no more output")]
    Forgotten { job: u32 },
}

impl Error {
    /// For `map_err`: the operating system says only what, never where.
    pub(super) fn at(path: &Path) -> impl FnOnce(io::Error) -> Error {
        move |source| Error::Io { path: path.to_owned(), source }
    }

    pub(super) fn is_gone(&self) -> bool {
        matches!(self, Error::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }
}

//! How far the numbers of each node's messages have come, in a file of four bytes a node. It is written while nodes work,
//! with nothing but a write: what counts is that it outlives a hub that is killed. One that is lost costs a search.

use crate::security::SecurityError;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

#[derive(Debug)]
pub(super) struct NumberBook {
    file: File,
}

impl NumberBook {
    pub(super) fn open(path: &Path) -> Result<NumberBook, SecurityError> {
        let mut options = OpenOptions::new();
        let file =
            options.read(true).write(true).create(true).truncate(false).mode(0o600).open(path);
        let failed = |source| SecurityError::Io { path: path.into(), doing: "open it", source };
        Ok(NumberBook { file: file.map_err(failed)? })
    }

    pub(super) fn reached(&self, place: u32) -> u32 {
        let mut bytes = [0; 4];
        let read = self.file.read_exact_at(&mut bytes, u64::from(place) * 4);
        read.map_or(0, |()| u32::from_le_bytes(bytes))
    }

    pub(super) fn note(&self, place: u32, reached: u32) {
        if let Err(error) = self.file.write_all_at(&reached.to_le_bytes(), u64::from(place) * 4) {
            tracing::debug!("cannot note how far the numbers of a fuq node are: {error}");
        }
    }
}

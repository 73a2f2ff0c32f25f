//! A little room on the disk that is set aside while there is some, so that on a full one it can still be written down which
//! attempts lost their output; and how it is found out whether there is room again.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Some thousand ends.
const RESERVE_BYTES: usize = 256 << 10;

/// More than is written at once, so that what begins again goes on for a while.
const ROOM_BYTES: usize = 512 << 10;

#[derive(Debug)]
pub(super) struct Reserve {
    dir: PathBuf,
}

impl Reserve {
    pub fn new(dir: &Path) -> Reserve {
        Reserve { dir: dir.to_owned() }
    }

    pub fn make(&self) -> io::Result<()> {
        let made = fill(&self.path(), RESERVE_BYTES);
        if made.is_err() {
            self.release();
        }
        made
    }

    pub fn release(&self) {
        // It may not be there.
        let _ = fs::remove_file(self.path());
    }

    pub fn has_room(&self) -> bool {
        let path = self.dir.join("room");
        let filled = fill(&path, ROOM_BYTES);
        let _ = fs::remove_file(&path);
        filled.is_ok()
    }

    fn path(&self) -> PathBuf {
        self.dir.join("reserve")
    }
}

fn fill(path: &Path, bytes: usize) -> io::Result<()> {
    let mut file =
        File::options().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(&vec![0x5a; bytes])?;
    // Where blocks are given out late, this is when it is known.
    file.sync_data()
}

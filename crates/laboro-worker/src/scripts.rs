//! The files of scripts while they run. A file is used again for a later script: a file system that has to find
//! room for a new file soon after others were removed can take longer over it than the script does.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use laboro_plan::ScriptKind;

use crate::words::script_file;

/// A directory with files that are in use, and some that were.
#[derive(Debug, Clone)]
pub struct Scripts {
    shelf: Arc<Shelf>,
}

#[derive(Debug)]
struct Shelf {
    dir: PathBuf,
    files: Mutex<Files>,
}

#[derive(Debug, Default)]
struct Files {
    made: u64,
    /// By whether their names are those of MATLAB.
    free: [Vec<PathBuf>; 2],
}

/// A script in its file, which nobody else uses until this is dropped.
#[derive(Debug)]
pub struct Script {
    path: PathBuf,
    is_matlab: bool,
    shelf: Arc<Shelf>,
}

impl Scripts {
    /// The directory is made when it is first needed, and removed by whoever named it.
    pub fn in_dir(dir: &Path) -> Scripts {
        Scripts { shelf: Arc::new(Shelf { dir: dir.to_owned(), files: Mutex::default() }) }
    }

    pub fn write(&self, kind: &ScriptKind, body: &[u8]) -> io::Result<Script> {
        let is_matlab = *kind == ScriptKind::Matlab;
        let script = Script {
            path: self.shelf.take(is_matlab, kind),
            is_matlab,
            shelf: Arc::clone(&self.shelf),
        };
        let (mut file, old_len) = open(&script.path)?;
        file.write_all(body)?;
        let len = body.len() as u64;
        // Not emptied before: some file systems write a file out at once that was emptied and filled again.
        if old_len > len {
            file.set_len(len)?;
        }
        Ok(script)
    }
}

impl Script {
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        let path = std::mem::take(&mut self.path);
        let mut files = self.shelf.files.lock().unwrap_or_else(PoisonError::into_inner);
        files.free[usize::from(self.is_matlab)].push(path);
    }
}

impl Shelf {
    fn take(&self, is_matlab: bool, kind: &ScriptKind) -> PathBuf {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        files.free[usize::from(is_matlab)].pop().unwrap_or_else(|| {
            files.made += 1;
            self.dir.join(script_file(files.made, kind))
        })
    }
}

/// The file itself, unless the last script did something to it: what a task linked or locked away is left to it. And
/// how long it is.
fn open(path: &Path) -> io::Result<(File, u64)> {
    let mut options = OpenOptions::new();
    options.create(true).write(true).truncate(false).mode(0o700);
    options.custom_flags(rustix::fs::OFlags::NOFOLLOW.bits() as i32);
    let is_ours =
        |data: &Metadata| data.is_file() && data.nlink() == 1 && data.mode() & 0o7777 == 0o700;
    match options.open(path) {
        Ok(file) => {
            if let Some(data) = file.metadata().ok().filter(is_ours) {
                return Ok((file, data.len()));
            }
            fs::remove_file(path)?;
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
        }
        Err(_) => fs::remove_file(path)?,
    }
    Ok((options.create_new(true).open(path)?, 0))
}

#[cfg(test)]
mod tests;

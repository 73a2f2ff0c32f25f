//! What a task that is a program of its own gives back: the file that it was told of, if it has made one.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use bytes::Bytes;
use laboro_core::CALL_BYTES_MAX;

/// Tells a task where to leave its result.
pub(super) const RESULT_VAR: &str = "LABORO_RESULT";

/// The file is gone afterwards. `Err` says in words why there is no result although there should be one.
pub(super) fn take_result(path: &Path) -> Result<Option<Bytes>, String> {
    let file = match open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened,
    };
    let mut bytes = Vec::new();
    let read = file.and_then(|file| file.take(CALL_BYTES_MAX as u64 + 1).read_to_end(&mut bytes));
    let _ = fs::remove_file(path);
    match read {
        Err(error) => Err(format!("its result in {RESULT_VAR} cannot be read: {error}")),
        Ok(read) if read > CALL_BYTES_MAX => Err(format!(
            "its result has more than {CALL_BYTES_MAX} bytes: write it to a file, \
             and the path of that to {RESULT_VAR}"
        )),
        Ok(_) => Ok((!bytes.is_empty()).then(|| bytes.into())),
    }
}

/// Only a file: a pipe that a task put there would never end.
fn open(path: &Path) -> io::Result<File> {
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits() as i32).open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other("it is not a file")),
    }
}

//! Copies a log, also one that a hub is writing to: the copy holds at least every record that was
//! in the files when the call began, and opens like the original.

use std::io;
use std::path::{Path, PathBuf};

use super::LogError;
use super::check::{Report, TRIES, report};
use super::directory::{Listing, NumberedFile, make_dir, rename, sync_dir};
use super::reader::walk;
use super::scan::Source;

/// Copies the log in `dir` to the new directory `to`, which gets its name when all of the copy
/// is on the disk and was read once more. A damaged log is refused, not copied in part.
pub fn backup(dir: &Path, to: &Path) -> Result<Report, LogError> {
    if to.exists() {
        return Err(LogError::Occupied { to: to.to_owned() });
    }
    let partial = partial_name(to);
    let mut tries = 1;
    let copied = loop {
        let listing = Listing::read_held(dir)?;
        clear(&partial)?;
        make_dir(&partial)?;
        match copy(&listing, &partial) {
            // The list may have been made while files changed their names, or have been too long to be held.
            Err(error)
                if (matches!(error, LogError::Corrupt { .. }) || error.is_missing_file())
                    && tries < TRIES
                    && listing.is_stale(dir)? => {}
            copied => break copied,
        }
        tries += 1;
    };
    let last = copied.inspect_err(|_| drop(clear(&partial)))?;

    let walked = walk(&Listing::read(&partial)?, u64::MAX, &mut |_, _, _| Ok(()))?;
    if let Some(damage) = walked.damage {
        return Err(damage);
    }
    if walked.last != last {
        let reason = format!("the copy ends with record {}, not {last}", walked.last);
        return Err(LogError::corrupt(&partial, 0, reason));
    }
    sync_dir(&partial)?;
    rename(&partial, to)?;
    sync_parent(to)?;
    Ok(report(walked))
}

/// Copies a snapshot and the sound part of every segment after it; returns the last record.
fn copy(listing: &Listing, to: &Path) -> Result<u64, LogError> {
    let walked = walk(listing, u64::MAX, &mut |_, _, _| Ok(()))?;
    if let Some(damage) = walked.damage {
        return Err(damage);
    }
    if let Some(snapshot) = &walked.snapshot {
        copy_start(&snapshot.file, to, snapshot.bytes)?;
    }
    for span in &walked.spans {
        copy_start(&span.file, to, span.end)?;
    }
    Ok(walked.last)
}

fn copy_start(from: &NumberedFile, to: &Path, bytes: u64) -> Result<(), LogError> {
    let name = from.path.file_name().expect("a listed file has a name");
    Source::open(from)?.copy(bytes, &to.join(name))
}

fn partial_name(to: &Path) -> PathBuf {
    let mut name = to.as_os_str().to_owned();
    name.push(".partial");
    PathBuf::from(name)
}

fn clear(dir: &Path) -> Result<(), LogError> {
    match std::fs::remove_dir_all(dir) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(LogError::io(dir, "remove the directory")(error))
        }
        _ => Ok(()),
    }
}

fn sync_parent(path: &Path) -> Result<(), LogError> {
    match path.parent() {
        Some(above) if !above.as_os_str().is_empty() => sync_dir(above),
        _ => sync_dir(Path::new(".")),
    }
}

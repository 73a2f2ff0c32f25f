//! What a writer does before it writes: makes sure it is alone, clears away what a crash left, and
//! finds out where the last one stopped.

use std::collections::HashMap;
use std::fs::{File, TryLockError};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use super::active::Active;
use super::record::{self, Kind};
use super::scan::Scan;
use super::segment;
use super::{Amounts, Error, Key};

pub(super) fn lock(dir: &Path) -> Result<File, Error> {
    let path = dir.join("lock");
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(segment::FILE_MODE)
        .open(&path)
        .map_err(Error::at(&path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(Error::Locked { dir: dir.to_owned() }),
        Err(TryLockError::Error(error)) => Err(Error::at(&path)(error)),
    }
}

/// Drafts of files that never got their name, and indexes whose segment is gone.
pub(super) fn remove_leftovers(dir: &Path) -> Result<(), Error> {
    for number in segment::numbers(dir, "tmp")? {
        segment::remove(&segment::path(dir, number).with_extension("tmp"))?;
    }
    let segments = segment::numbers(dir, "out")?;
    for number in segment::numbers(dir, "idx")? {
        if segments.binary_search(&number).is_err() {
            segment::remove(&segment::index_path(dir, number))?;
        }
    }
    Ok(())
}

/// Goes on with the newest segment, and finds out what was running.
pub(super) fn resume(
    dir: &Path,
    mut scan: Scan,
    running: &mut HashMap<Key, Amounts>,
) -> Result<Active, Error> {
    let mut entries = Vec::new();
    let end = scan.file_end()?;
    while let Some((entry, header)) = scan.next(end)? {
        match entry.kind {
            Kind::Chunk(stream) => {
                let amount = running.entry(header.key).or_default().of_mut(stream);
                amount.kept = header.mark.saturating_add(u64::from(header.length));
                entries.push(entry);
            }
            Kind::End => {
                running.remove(&header.key);
                entries.push(entry);
            }
            Kind::Carry => {
                let read = segment::read_record(&scan.file, scan.salt, dir, scan.number, &entry);
                if let Ok((_, body)) = read
                    && let Some(amounts) = record::carry(&body)
                {
                    running.insert(header.key, amounts);
                }
            }
        }
    }
    // An index of a segment that goes on would be a lie.
    segment::remove(&segment::index_path(dir, scan.number))?;
    Active::resume(dir, scan.number, scan.salt, scan.at, entries)
}

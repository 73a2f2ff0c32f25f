//! When the disk says no: the log stops, says why, and believes nothing it is not sure of.

use std::fs::OpenOptions;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::super::room::DiskRoom;
use super::super::segment::Blank;
use super::*;

/// Lets the next commit write to a device instead of the segment: the errors are the kernel's own.
fn write_to(log: &mut Log, device: &str) {
    let file = OpenOptions::new().write(true).open(device).unwrap();
    log.active.as_mut().unwrap().replace_file(file);
}

#[test]
fn a_full_disk_is_named_and_final() {
    let dir = tempfile::tempdir().unwrap();
    let (mut log, ..) = open(dir.path()).unwrap();
    log.commit(b"one").unwrap();
    write_to(&mut log, "/dev/full");
    let first = log.commit(b"two").unwrap_err();
    assert!(matches!(first, LogError::DiskFull { .. }));
    let text = first.to_string();
    assert!(text.contains(&dir.path().display().to_string()), "{text}");
    assert!(text.contains("no space left"), "{text}");
    // The disk may have room again; what is on it is still not known.
    write_to(&mut log, "/dev/null");
    assert_eq!(log.commit(b"two").unwrap_err().to_string(), text);
    assert_eq!(log.close().unwrap_err().to_string(), text);
    assert_eq!(open(dir.path()).unwrap().2.texts(), ["one"]);
}

#[test]
fn a_failed_sync_is_final_and_never_tried_again() {
    let dir = tempfile::tempdir().unwrap();
    let (mut log, ..) = open(dir.path()).unwrap();
    log.commit(b"one").unwrap();
    let good = log.active.as_ref().unwrap().path.clone();
    // Takes every write, and cannot be synced.
    write_to(&mut log, "/dev/null");
    let text = log.commit(b"two").unwrap_err().to_string();
    assert!(text.contains("cannot sync the file"), "{text}");
    write_to(&mut log, good.to_str().unwrap());
    assert_eq!(log.commit(b"three").unwrap_err().to_string(), text);
    assert_eq!(log.last_number(), 1);
    drop(log);
    assert_eq!(open(dir.path()).unwrap().2.texts(), ["one"]);
}

#[test]
fn no_room_for_a_new_segment_is_a_full_disk_too() {
    let dir = tempfile::tempdir().unwrap();
    let (mut log, ..) = open(dir.path()).unwrap();
    symlink("/dev/full", dir.path().join("blank.tmp")).unwrap();
    let error = log.commit(b"one").unwrap_err();
    assert!(matches!(error, LogError::DiskFull { .. }), "{error}");
    assert!(log.commit(b"one").is_err());
    drop(log);
    let (mut log, ..) = open(dir.path()).unwrap();
    assert_eq!(log.commit(b"one").unwrap(), 1);
}

#[test]
fn a_half_written_record_is_not_there_after_a_failed_commit() {
    let dir = tempfile::tempdir().unwrap();
    let (mut log, ..) = open(dir.path()).unwrap();
    log.commit(b"one").unwrap();
    let segment = log.active.as_ref().unwrap().path.clone();
    let end = log.active.as_ref().unwrap().used();
    log.commit(b"the whole of two").unwrap();
    drop(log);
    as_after_a_crash(dir.path());
    // As if the write had stopped after each number of bytes in turn.
    let whole = fs::read(&segment).unwrap();
    for count in 0..48 {
        let mut bytes = whole.clone();
        bytes[end as usize + count..].fill(0);
        fs::write(&segment, &bytes).unwrap();
        assert_eq!(open(dir.path()).unwrap().2.texts(), ["one"], "{count} bytes");
    }
}

/// A log on a disk with so much room, which may change.
fn on_a_disk_with(dir: &Path, free: u64) -> (Log, Arc<AtomicU64>) {
    let free = Arc::new(AtomicU64::new(free));
    let (mut log, ..) = open(dir).unwrap();
    let told = Arc::clone(&free);
    log.room = DiskRoom::of(move |_| Some(told.load(Ordering::Relaxed)));
    (log, free)
}

/// What is made ahead of need, once it is made.
fn blank(log: &mut Log, dir: &Path) -> Option<u64> {
    let spare = log.spare.as_ref()?;
    while !spare.is_made() {
        std::thread::yield_now();
    }
    Some(fs::metadata(dir.join("blank.tmp")).unwrap().len())
}

#[test]
fn a_segment_is_made_ahead_only_with_room_to_spare() {
    for (free, ahead) in [(16383, None), (4 * 4096, Some(4096)), (4 * 16384, Some(16384))] {
        let dir = tempfile::tempdir().unwrap();
        let (mut log, _) = on_a_disk_with(dir.path(), free);
        commit_all(&mut log, 1..=2, long);
        assert_eq!(blank(&mut log, dir.path()), ahead, "{free} bytes free");
        // It goes on in any case, for as long as the disk takes anything.
        commit_all(&mut log, 3..=20, long);
        log.close().unwrap();
        assert_eq!(open(dir.path()).unwrap().1.last_number, 20);
    }
}

#[test]
fn a_segment_made_ahead_is_given_up_when_the_disk_is_full() {
    let dir = tempfile::tempdir().unwrap();
    let (mut log, free) = on_a_disk_with(dir.path(), u64::MAX);
    commit_all(&mut log, 1..=2, long);
    assert!(blank(&mut log, dir.path()).is_some());
    free.store(1000, Ordering::Relaxed);
    log.spare.as_mut().unwrap().look_now();
    log.commit(&long(3)).unwrap();
    assert!(!dir.path().join("blank.tmp").exists());
    commit_all(&mut log, 4..=20, long);
    assert!(!dir.path().join("blank.tmp").exists());
}

#[test]
fn a_segment_that_could_not_be_made_leaves_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    symlink("/dev/full", dir.path().join("blank.tmp")).unwrap();
    let never = &AtomicBool::new(false);
    let made = Blank::make(dir.path(), 4096, Durability::Sync, never);
    assert!(matches!(made, Err(LogError::DiskFull { .. })));
    assert!(fs::symlink_metadata(dir.path().join("blank.tmp")).is_err());
}

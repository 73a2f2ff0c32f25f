//! What a disk keeps, and what it may lose.

use super::*;
use std::fs::File;
use std::os::unix::fs::FileExt;

const FIRST: [u8; 2000] = [1; 2000];
const SECOND: [u8; 3000] = [2; 3000];

/// A file with a synced beginning and a second write behind it.
fn written(dir: &Path, then: impl FnOnce(&File)) -> Disk {
    let disk = Disk::over(dir);
    let file = File::create(dir.join("a.log")).unwrap();
    file.write_all_at(&FIRST, 0).unwrap();
    file.sync_data().unwrap();
    File::open(dir).unwrap().sync_all().unwrap();
    file.write_all_at(&SECOND, 4096).unwrap();
    then(&file);
    disk
}

/// What is left of it after each of many ends.
fn left(ending: Ending, then: impl Fn(&File, &Disk)) -> Vec<Option<Vec<u8>>> {
    let after = |seed: u64| {
        let dir = tempfile::tempdir().unwrap();
        let disk = written(dir.path(), |_| {});
        then(&File::options().write(true).open(dir.path().join("a.log")).unwrap(), &disk);
        disk.end_after(0, ending, Dice::new(seed));
        disk.restore().unwrap();
        std::fs::read(dir.path().join("a.log")).ok()
    };
    (0..40).map(after).collect()
}

fn has_second(bytes: &[u8]) -> bool {
    bytes.get(4096..7096) == Some(&SECOND)
}

#[test]
fn what_was_synced_survives_a_power_cut() {
    for bytes in left(Ending::Power, |_, _| {}) {
        assert_eq!(bytes.unwrap()[..FIRST.len()], FIRST);
    }
}

#[test]
fn what_was_not_synced_may_be_there_or_not() {
    let all = left(Ending::Power, |_, _| {});
    let kept = all.iter().flatten().filter(|bytes| has_second(bytes)).count();
    assert!((1..all.len()).contains(&kept), "{kept}");
}

#[test]
fn a_process_alone_takes_nothing_with_it() {
    let all = left(Ending::Process, |_, _| {});
    assert!(all.iter().flatten().all(|bytes| has_second(bytes)));
}

#[test]
fn a_second_sync_does_not_save_what_the_first_one_failed_on() {
    let all = left(Ending::Power, |file, disk| {
        disk.refuse_after(0, Refusal::Failure);
        assert!(file.sync_data().is_err());
        disk.recover();
        file.sync_data().unwrap();
    });
    assert!(!all.iter().flatten().all(|bytes| has_second(bytes)), "some of it is gone");
}

#[test]
fn what_is_written_again_after_a_failed_sync_can_be_saved() {
    let all = left(Ending::Power, |file, disk| {
        disk.refuse_after(0, Refusal::Failure);
        assert!(file.sync_data().is_err());
        disk.recover();
        file.write_all_at(&SECOND, 4096).unwrap();
        file.sync_data().unwrap();
    });
    assert!(all.iter().flatten().all(|bytes| has_second(bytes)));
}

#[test]
fn a_name_without_a_sync_of_its_directory_may_be_gone() {
    let after = |seed: u64| {
        let dir = tempfile::tempdir().unwrap();
        let disk = written(dir.path(), |_| {});
        std::fs::rename(dir.path().join("a.log"), dir.path().join("b.log")).unwrap();
        disk.end_after(0, Ending::Power, Dice::new(seed));
        disk.restore().unwrap();
        (dir.path().join("a.log").exists(), dir.path().join("b.log").exists())
    };
    let all: BTreeSet<(bool, bool)> = (0..40).map(after).collect();
    assert_eq!(all, BTreeSet::from([(true, false), (false, true)]), "one or the other");
}

#[test]
fn a_full_disk_refuses_as_the_system_does() {
    let dir = tempfile::tempdir().unwrap();
    let disk = written(dir.path(), |_| {});
    disk.refuse_after(1, Refusal::NoSpace);
    let file = File::options().write(true).open(dir.path().join("a.log")).unwrap();
    file.write_all_at(&FIRST, 0).unwrap();
    let error = file.write_all_at(&FIRST, 0).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
}

#[test]
fn what_a_process_does_after_its_end_never_happened() {
    for seed in 0..40 {
        let dir = tempfile::tempdir().unwrap();
        let disk = written(dir.path(), |_| {});
        disk.end_after(0, Ending::Process, Dice::new(seed));
        std::fs::rename(dir.path().join("a.log"), dir.path().join("b.log")).unwrap();
        std::fs::remove_file(dir.path().join("b.log")).unwrap();
        File::open(dir.path()).unwrap().sync_all().unwrap();
        disk.restore().unwrap();
        // The machine loses its power before anyone has looked at it.
        disk.end_after(0, Ending::Power, Dice::new(seed));
        disk.restore().unwrap();
        let bytes = std::fs::read(dir.path().join("a.log")).expect("the name was durable");
        assert_eq!(bytes[..FIRST.len()], FIRST);
    }
}

//! Copies of a log, also of one in use.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::*;

#[test]
fn a_backup_of_an_open_log_holds_what_was_committed() {
    let dir = tempfile::tempdir().unwrap();
    let (home, copy) = (dir.path().join("log"), dir.path().join("copy"));
    let (mut log, ..) = open(&home).unwrap();
    commit_all(&mut log, 1..=40, long);
    let report = backup(&home, &copy).unwrap();
    assert_eq!((report.last_number, report.problem), (40, None));
    log.commit(b"later").unwrap();

    let (mut restored, recovery, told) = open(&copy).unwrap();
    assert_eq!(told.records.len(), 40);
    assert!(recovery.warnings.is_empty(), "{:?}", recovery.warnings);
    assert_eq!(restored.commit(b"another way").unwrap(), 41);
    drop(restored);
    assert_eq!(open(&copy).unwrap().2.texts()[40], "another way");
}

#[test]
fn a_backup_never_overwrites() {
    let dir = tempfile::tempdir().unwrap();
    let (home, copy) = (dir.path().join("log"), dir.path().join("copy"));
    written(&home, &["one"]);
    fs::create_dir(&copy).unwrap();
    assert!(matches!(backup(&home, &copy), Err(LogError::Occupied { .. })));
}

#[test]
fn a_damaged_log_is_not_backed_up_in_part() {
    let dir = tempfile::tempdir().unwrap();
    let (home, copy) = (dir.path().join("log"), dir.path().join("copy"));
    written_long(&home, 30);
    flip(&files(&home, ".log")[1], 100);
    assert!(matches!(backup(&home, &copy), Err(LogError::Corrupt { .. })));
    assert!(!copy.exists() && !dir.path().join("copy.partial").exists());
}

#[test]
fn checks_and_backups_of_a_busy_log_are_sound_and_complete() {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().join("log");
    let options = Options { condense_after_bytes: 20_000, durability: Durability::Os, ..small() };
    let (mut log, ..) = open_with(&home, options, Ledger::maker()).unwrap();
    let (done, committed) = (AtomicBool::new(false), AtomicU64::new(0));
    log.commit(b"key=0").unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut number = 1;
            while !done.load(Ordering::Relaxed) {
                number = log.commit(format!("key={number:0>300}").as_bytes()).unwrap();
                committed.store(number, Ordering::SeqCst);
            }
            assert_eq!(log.take_warnings(), Vec::<String>::new());
        });
        // Also when an assertion fails: the scope waits for the writer.
        let _stop = Stop(&done);
        for round in 0..30 {
            let before = committed.load(Ordering::SeqCst);
            let report = check(&home).unwrap();
            assert_eq!(report.problem, None);
            assert!(report.last_number >= before);

            let copy = dir.path().join(format!("copy-{round}"));
            let before = committed.load(Ordering::SeqCst);
            let report = backup(&home, &copy).unwrap();
            assert!(report.last_number >= before);
            let (_, recovery, told) = open(&copy).unwrap();
            assert_eq!(recovery.last_number, report.last_number);
            let value: u64 = Ledger::of(&told).0["key"].parse().unwrap();
            assert_eq!(value + 1, report.last_number);
            fs::remove_dir_all(&copy).unwrap();
        }
    });
}

struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

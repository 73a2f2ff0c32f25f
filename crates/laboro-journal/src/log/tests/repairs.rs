//! Repair: opens again, keeps the originals, says what is lost.

use super::*;

#[test]
fn a_sound_log_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    written(dir.path(), &["one", "two"]);
    let done = repair(dir.path()).unwrap();
    assert_eq!((done.last_number, done.lost, done.kept_in.as_ref()), (2, None, None));
    assert_eq!(done.to_string(), "nothing to repair; last record 2");
}

#[test]
fn a_log_in_use_is_not_repaired() {
    let dir = tempfile::tempdir().unwrap();
    let _log = open(dir.path()).unwrap();
    assert!(matches!(repair(dir.path()), Err(LogError::Locked { .. })));
}

#[test]
fn everything_up_to_the_damage_is_saved_and_the_rest_is_counted() {
    let dir = tempfile::tempdir().unwrap();
    written_long(dir.path(), 60);
    let segments = files(dir.path(), ".log");
    let at = place(&segments[1], &long(8));
    flip(&segments[1], at + 500);
    let damaged = fs::read(&segments[1]).unwrap();

    let done = repair(dir.path()).unwrap();
    assert_eq!((done.last_number, done.lost, done.lost_readable), (7, Some((8, 60)), 52));
    let problem = done.problem.as_ref().unwrap();
    assert_eq!((&problem.file, problem.offset), (&segments[1], Some(at - 32)));
    let text = done.to_string();
    assert!(text.contains("saved everything up to record 7; lost 53: records 8 to 60"), "{text}");

    let kept = done.kept_in.unwrap();
    assert_eq!(fs::read(kept.join(segments[1].file_name().unwrap())).unwrap(), damaged);
    for segment in &segments[2..] {
        assert!(kept.join(segment.file_name().unwrap()).exists());
    }
    let (mut log, recovery, told) = open(dir.path()).unwrap();
    assert!(recovery.warnings.is_empty(), "{:?}", recovery.warnings);
    assert_eq!(told.records, (1..=7).map(|number| (number, long(number))).collect::<Vec<_>>());
    assert_eq!(log.commit(b"on we go").unwrap(), 8);
}

#[test]
fn a_missing_or_headless_segment_ends_what_can_be_saved() {
    for lose in [|path: &Path| fs::remove_file(path).unwrap(), |path: &Path| flip(path, 3)] {
        let dir = tempfile::tempdir().unwrap();
        written_long(dir.path(), 60);
        lose(&files(dir.path(), ".log")[1]);
        let done = repair(dir.path()).unwrap();
        assert_eq!((done.last_number, done.lost), (3, Some((4, 60))));
        assert_eq!(open(dir.path()).unwrap().2.records.len(), 3);
    }
}

#[test]
fn nothing_saved_is_said_as_plainly() {
    let dir = tempfile::tempdir().unwrap();
    let (home, copy) = (dir.path().join("log"), dir.path().join("copy"));
    let (mut log, ..) = open_with(&home, small(), Ledger::maker()).unwrap();
    commit_all(&mut log, 1..=20, entry);
    log.condense().unwrap();
    log.wait_for_condensing();
    log.commit(&entry(21)).unwrap();
    log.close().unwrap();
    // A copy has no more than it needs.
    backup(&home, &copy).unwrap();
    flip(&files(&copy, ".snapshot")[0], 100);
    let done = repair(&copy).unwrap();
    assert_eq!((done.last_number, done.lost, done.lost_readable), (0, Some((1, 21)), 1));
    assert!(done.to_string().contains("nothing could be saved; lost 21: records 1 to 21"));
    assert_eq!(open(&copy).unwrap().1.last_number, 0);
}

#[test]
fn a_repair_cut_short_can_be_done_again() {
    let made = tempfile::tempdir().unwrap();
    written_long(made.path(), 60);
    let segments = files(made.path(), ".log");
    flip(&segments[2], 100);
    let whole = tempfile::tempdir().unwrap();
    copy_dir(made.path(), whole.path());
    let last = repair(whole.path()).unwrap().last_number;
    // What is set aside goes the last first, so this is what each stop leaves.
    for stop in (3..segments.len()).rev() {
        fs::remove_file(&segments[stop]).unwrap();
        let copy = tempfile::tempdir().unwrap();
        copy_dir(made.path(), copy.path());
        assert_eq!(repair(copy.path()).unwrap().last_number, last);
        assert_eq!(open(copy.path()).unwrap().1.last_number, last);
    }
}

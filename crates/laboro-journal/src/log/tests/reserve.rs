//! The snapshot before the newest and the log in between: the same state a second time, for when the newest one is
//! damaged.

use super::*;

/// A closed log of 301 records, condensed at 100, 200 and 300.
fn condensed(dir: &Path) -> [PathBuf; 2] {
    let (mut log, ..) = open_with(dir, small(), Ledger::maker()).unwrap();
    for first in [1, 101, 201] {
        commit_all(&mut log, first..=first + 99, entry);
        log.condense().unwrap();
        log.wait_for_condensing();
    }
    assert_eq!(log.take_warnings(), Vec::<String>::new());
    log.commit(&entry(301)).unwrap();
    log.close().unwrap();
    files(dir, ".snapshot").try_into().expect("two snapshots are kept")
}

#[test]
fn one_flipped_bit_anywhere_in_the_newest_snapshot_loses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let [_, newest] = condensed(dir.path());
    let before = fs::read(&newest).unwrap();
    let mut noticed = 0;
    for at in (0..before.len() as u64).step_by(7).chain(8..12) {
        flip(&newest, at);
        let (_, recovery, told) = open(dir.path()).unwrap();
        assert_eq!(Ledger::of(&told), state_after(301), "byte {at}");
        noticed += recovery.warnings.len();
        flip(&newest, at);
        assert_eq!(fs::read(&newest).unwrap(), before, "opening did not touch it");
    }
    // Flips of padding are harmless, and of nothing else.
    assert!(noticed > before.len() / 8, "{noticed}");
}

#[test]
fn a_damaged_snapshot_is_said_and_soon_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let [older, newest] = condensed(dir.path());
    flip(&newest, place(&newest, b"key3"));
    let note = check(dir.path()).unwrap();
    assert_eq!(note.problem, None);
    let (mut log, recovery, _) = open_with(dir.path(), small(), Ledger::maker()).unwrap();
    let warning = &recovery.warnings[0];
    assert!(warning.contains("read what it was made from instead: nothing is lost"), "{warning}");
    assert!(warning.contains(&newest.display().to_string()), "{warning}");
    log.commit(&entry(302)).unwrap();
    log.wait_for_condensing();
    assert_eq!(log.take_warnings(), Vec::<String>::new());
    log.close().unwrap();
    let fresh = dir.path().join("00000000000000000302.snapshot");
    assert_eq!(files(dir.path(), ".snapshot"), [older, fresh.clone()]);
    // And that one can be lost as well.
    flip(&fresh, 100);
    assert_eq!(Ledger::of(&open(dir.path()).unwrap().2), state_after(302));
}

#[test]
fn a_backup_is_made_from_what_can_be_read() {
    let dir = tempfile::tempdir().unwrap();
    let (home, to) = (dir.path().join("log"), dir.path().join("backup"));
    let [_, newest] = condensed(&home);
    flip(&newest, 100);
    backup(&home, &to).unwrap();
    let (_, recovery, told) = open(&to).unwrap();
    assert_eq!(recovery.warnings, Vec::<String>::new());
    assert_eq!(Ledger::of(&told), state_after(301));
}

#[test]
fn a_repair_puts_the_damaged_snapshot_aside_and_loses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let [_, newest] = condensed(dir.path());
    flip(&newest, 100);
    let done = repair(dir.path()).unwrap();
    assert_eq!((done.last_number, done.lost), (301, None));
    assert!(done.to_string().contains("up to record 301; nothing is lost"), "{done}");
    assert!(done.kept_in.unwrap().join(newest.file_name().unwrap()).exists());
    let (_, recovery, told) = open(dir.path()).unwrap();
    assert_eq!(recovery.warnings, Vec::<String>::new());
    assert_eq!(Ledger::of(&told), state_after(301));
}

#[test]
fn when_the_log_in_between_is_damaged_too_it_is_refused_and_repaired_up_to_there() {
    let dir = tempfile::tempdir().unwrap();
    let [older, newest] = condensed(dir.path());
    let segment = files(dir.path(), ".log").into_iter().find(|path| {
        fs::read(path).unwrap().windows(entry(250).len()).any(|window| window == entry(250))
    });
    let segment = segment.unwrap();
    flip(&segment, place(&segment, &entry(250)));
    // As long as the newest is sound, it is only worth a note.
    let report = check(dir.path()).unwrap();
    assert_eq!(report.problem, None);
    assert!(report.notes.iter().any(|note| note.contains("is not whole")), "{:?}", report.notes);
    assert_eq!(Ledger::of(&open(dir.path()).unwrap().2), state_after(301));

    flip(&newest, 100);
    match open(dir.path()).unwrap_err() {
        LogError::Corrupt { file, .. } => assert_eq!(file, newest),
        other => panic!("{other}"),
    }
    let done = repair(dir.path()).unwrap();
    assert_eq!((done.last_number, done.lost), (249, Some((250, 301))));
    assert_eq!(Ledger::of(&open(dir.path()).unwrap().2), state_after(249));
    assert!(older.exists());
}

#[test]
fn a_repair_behind_a_sound_snapshot_keeps_the_reserve() {
    let dir = tempfile::tempdir().unwrap();
    let [_, newest] = condensed(dir.path());
    let (mut log, ..) = open(dir.path()).unwrap();
    commit_all(&mut log, 302..=400, entry);
    log.close().unwrap();
    let segment = files(dir.path(), ".log").pop().unwrap();
    let number: u64 = segment.file_stem().unwrap().to_str().unwrap().parse().unwrap();
    flip(&segment, place(&segment, &entry(number + 1)));
    let done = repair(dir.path()).unwrap();
    assert_eq!((done.last_number, done.lost), (number, Some((number + 1, 400))));
    flip(&newest, 100);
    assert_eq!(Ledger::of(&open(dir.path()).unwrap().2), state_after(number));
}

#[test]
fn a_damaged_older_snapshot_is_worth_a_note() {
    let dir = tempfile::tempdir().unwrap();
    let [older, _] = condensed(dir.path());
    flip(&older, 100);
    let report = check(dir.path()).unwrap();
    assert_eq!(report.problem, None);
    assert!(report.notes[0].contains(&older.display().to_string()), "{:?}", report.notes);
    let (_, recovery, told) = open(dir.path()).unwrap();
    assert_eq!(recovery.warnings, Vec::<String>::new());
    assert_eq!(Ledger::of(&told), state_after(301));
    assert_eq!(repair(dir.path()).unwrap().problem, None);
}

#[test]
fn a_snapshot_of_which_nothing_older_is_left_is_refused_when_damaged() {
    let dir = tempfile::tempdir().unwrap();
    let (home, to) = (dir.path().join("log"), dir.path().join("backup"));
    condensed(&home);
    backup(&home, &to).unwrap();
    let [snapshot] = files(&to, ".snapshot").try_into().expect("a backup has what is needed");
    flip(&snapshot, 100);
    match open(&to).unwrap_err() {
        LogError::Corrupt { file, .. } => assert_eq!(file, snapshot),
        other => panic!("{other}"),
    }
}

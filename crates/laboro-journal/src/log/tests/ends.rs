//! What was on the disk and is gone is missed, and what a crash may leave is not mistaken for that.

use super::*;

fn refused(dir: &Path) -> String {
    let text = open(dir).unwrap_err().to_string();
    assert_eq!(read(dir, &mut |_, _, _| Ok(())).unwrap_err().to_string(), text);
    assert!(check(dir).unwrap().problem.is_some(), "{text}");
    assert!(backup(dir, &dir.with_extension("copy")).is_err(), "{text}");
    text
}

#[test]
fn a_last_segment_that_is_gone_is_missed() {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().join("log");
    written_long(&home, 60);
    let last = files(&home, ".log").pop().unwrap();
    let first_gone: u64 = last.file_stem().unwrap().to_str().unwrap().parse().unwrap();
    fs::remove_file(&last).unwrap();
    let text = refused(&home);
    assert!(text.contains(&format!("missing at its end: records {first_gone} to 60")), "{text}");
    assert!(text.contains("put the missing files back, restore a backup, or run"), "{text}");
    let done = repair(&home).unwrap();
    assert_eq!((done.last_number, done.lost), (first_gone - 1, Some((first_gone, 60))));
    assert_eq!(done.kept_in, None, "there is nothing to keep");
    let (mut log, recovery, told) = open(&home).unwrap();
    assert_eq!((told.records.len() as u64, recovery.warnings), (first_gone - 1, Vec::new()));
    assert_eq!(log.commit(b"on we go").unwrap(), first_gone);
}

#[test]
fn a_whole_log_that_is_gone_is_missed() {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().join("log");
    written_long(&home, 60);
    files(&home, ".log").iter().for_each(|path| fs::remove_file(path).unwrap());
    assert!(refused(&home).contains("missing at its end: records 1 to 60"));
    let done = repair(&home).unwrap();
    assert_eq!((done.last_number, done.lost), (0, Some((1, 60))));
    assert_eq!(open(&home).unwrap().1.last_number, 0);
}

#[test]
fn a_log_that_is_gone_behind_its_snapshot_is_missed() {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().join("log");
    let (mut log, ..) = open_with(&home, small(), Ledger::maker()).unwrap();
    commit_all(&mut log, 1..=20, entry);
    log.condense().unwrap();
    log.wait_for_condensing();
    commit_all(&mut log, 21..=30, entry);
    log.close().unwrap();
    fs::remove_file(home.join("00000000000000000021.log")).unwrap();
    assert!(refused(&home).contains("missing at its end: records 21 to 30"));
    assert_eq!(repair(&home).unwrap().lost, Some((21, 30)));
    assert_eq!(Ledger::of(&open(&home).unwrap().2), state_after(20));
}

#[test]
fn a_running_log_knows_its_last_segment() {
    let dir = tempfile::tempdir().unwrap();
    let (home, copy) = (dir.path().join("log"), dir.path().join("copy"));
    let (mut log, ..) = open(&home).unwrap();
    for number in 1..=60 {
        log.commit(&long(number)).unwrap();
    }
    copy_dir(&home, &copy);
    let last = files(&copy, ".log").pop().unwrap();
    fs::remove_file(last).unwrap();
    assert!(refused(&copy).contains("missing at its end"));
}

#[test]
fn a_record_that_was_there_when_the_log_was_closed_is_not_cut_as_a_torn_one() {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().join("log");
    written(&home, &["one", "two", "three"]);
    let segment = &files(&home, ".log")[0];
    flip(segment, place(segment, b"three"));
    let text = refused(&home);
    assert!(text.contains("payload does not match, where record 3 used to be"), "{text}");
    let done = repair(&home).unwrap();
    assert_eq!((done.last_number, done.lost), (2, Some((3, 3))));
    assert_eq!(open(&home).unwrap().2.texts(), ["one", "two"]);
}

#[test]
fn a_mark_that_was_cut_short_counts_as_the_one_before() {
    let dir = tempfile::tempdir().unwrap();
    written(dir.path(), &["one"]);
    written(dir.path(), &["two"]);
    let mark = dir.path().join(mark::NAME);
    let whole = fs::read(&mark).unwrap();
    for (at, last) in [(512, 1), (0, 2)] {
        let mut bytes = whole.clone();
        bytes[at + 20] ^= 1;
        fs::write(&mark, &bytes).unwrap();
        assert_eq!(mark::Mark::read(dir.path()).unwrap().map(|mark| mark.number), Some(last));
        open(dir.path()).unwrap();
    }
    for bytes in [&b""[..], &whole[..30], &[0; 1024]] {
        fs::write(&mark, bytes).unwrap();
        assert_eq!(open(dir.path()).unwrap().2.texts(), ["one", "two"]);
    }
}

#[test]
fn a_mark_of_another_log_says_nothing() {
    let (mine, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    written(mine.path(), &["one"]);
    written(other.path(), &["one", "two", "three"]);
    fs::copy(other.path().join(mark::NAME), mine.path().join(mark::NAME)).unwrap();
    assert_eq!(open(mine.path()).unwrap().2.texts(), ["one"]);
}

#[test]
fn what_is_not_synced_is_not_promised() {
    for durability in [Durability::Os, Durability::None] {
        let dir = tempfile::tempdir().unwrap();
        let options = Options { durability, ..small() };
        let (mut log, ..) = open_with(dir.path(), options, None).unwrap();
        commit_all(&mut log, 1..=20, long);
        log.close().unwrap();
        assert_eq!(mark::Mark::read(dir.path()).unwrap(), None, "a power cut may take any of it");
    }
}

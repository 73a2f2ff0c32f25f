//! Torn ends are cut; damage in the middle is refused; old bytes are never taken for new.

use super::super::format::{FileHead, FileKind, HEAD_BYTES, RecordKind, encode_record};
use super::*;

fn refused(dir: &Path) -> (PathBuf, u64, String) {
    match open(dir).unwrap_err() {
        LogError::Corrupt { file, offset, reason } => (file, offset, reason),
        other => panic!("{other}"),
    }
}

/// The end of a log of small records: where the last one stops.
fn end_of(path: &Path) -> u64 {
    let bytes = fs::read(path).unwrap();
    let last = bytes.iter().rposition(|byte| *byte != 0).unwrap() as u64;
    (last + 1).next_multiple_of(8)
}

#[test]
fn a_torn_last_record_is_cut_and_said() {
    let dir = tempfile::tempdir().unwrap();
    written(dir.path(), &["one", "two", "a torn record"]);
    as_after_a_crash(dir.path());
    let segment = &files(dir.path(), ".log")[0];
    flip(segment, place(segment, b"torn"));
    let (mut log, recovery, told) = open(dir.path()).unwrap();
    assert_eq!(told.texts(), ["one", "two"]);
    let warning = &recovery.warnings[0];
    assert!(warning.contains("torn end cut at byte"), "{warning}");
    assert!(warning.contains("after record 2"), "{warning}");
    assert_eq!(log.commit(b"three").unwrap(), 3);
    log.close().unwrap();
    let (_, recovery, told) = open(dir.path()).unwrap();
    assert_eq!(told.texts(), ["one", "two", "three"]);
    assert!(recovery.warnings.is_empty());
}

#[test]
fn a_record_whose_later_part_alone_was_written_is_cut() {
    let dir = tempfile::tempdir().unwrap();
    written(dir.path(), &["one"]);
    let segment = &files(dir.path(), ".log")[0];
    let file = fs::OpenOptions::new().write(true).open(segment).unwrap();
    file.write_all_at(b"the second page of something", 2048).unwrap();
    let (log, recovery, told) = open(dir.path()).unwrap();
    assert_eq!(told.texts(), ["one"]);
    assert_eq!(recovery.warnings.len(), 1);
    drop(log);
    assert!(fs::read(segment).unwrap()[2048..].iter().all(|byte| *byte == 0));
}

#[test]
fn damage_before_a_sound_record_is_refused_with_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    written(dir.path(), &["one", "two", "three", "four"]);
    let segment = &files(dir.path(), ".log")[0];
    let at = place(segment, b"two");
    flip(segment, at);
    let (file, offset, reason) = refused(dir.path());
    assert_eq!((&file, offset), (segment, at - 32));
    assert!(reason.contains("record 3 is sound behind it"), "{reason}");
    let text = open(dir.path()).unwrap_err().to_string();
    let hint = format!("run `laboro journal repair {}`, or restore", dir.path().display());
    assert!(text.contains(&hint), "{text}");
}

#[test]
fn zeros_over_a_whole_record_in_the_middle_are_damage() {
    let dir = tempfile::tempdir().unwrap();
    written(dir.path(), &["one", "two", "three"]);
    let segment = &files(dir.path(), ".log")[0];
    let at = place(segment, b"two") - 32;
    let file = fs::OpenOptions::new().write(true).open(segment).unwrap();
    file.write_all_at(&[0; 40], at).unwrap();
    assert_eq!(refused(dir.path()).1, at);
}

#[test]
fn damage_in_a_segment_that_is_not_the_last_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    written_long(dir.path(), 30);
    let segments = files(dir.path(), ".log");
    for at in [0, 20, 70, 200, 1100] {
        flip(&segments[1], at);
        let (file, ..) = refused(dir.path());
        assert_eq!(file, segments[1], "byte {at}");
        flip(&segments[1], at);
    }
    // The last record of a segment too: the next file knows that it was there.
    let last = end_of(&segments[0]) - 8;
    flip(&segments[0], last);
    assert!(refused(dir.path()).2.contains("next file starts at 4"));
    flip(&segments[0], last);
    open(dir.path()).unwrap();
}

#[test]
fn a_missing_segment_is_named_by_its_records() {
    let dir = tempfile::tempdir().unwrap();
    written_long(dir.path(), 60);
    let segments = files(dir.path(), ".log");
    fs::remove_file(&segments[0]).unwrap();
    let (file, _, reason) = refused(dir.path());
    assert_eq!(file, segments[1]);
    assert_eq!(reason, "missing before this file: records 1 to 3");
}

#[test]
fn a_segment_of_another_log_is_refused() {
    let (mine, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    written_long(mine.path(), 30);
    written_long(other.path(), 30);
    let segment = &files(mine.path(), ".log")[1];
    fs::copy(&files(other.path(), ".log")[1], segment).unwrap();
    assert_eq!(refused(mine.path()).2, "the file belongs to another journal");
}

#[test]
fn old_records_behind_the_end_are_not_read_as_new() {
    let (mine, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    written(mine.path(), &["one", "two"]);
    written(other.path(), &["old 1", "old 2", "old 3", "old 4"]);
    // What a reused segment would hold: records of another life, with numbers that fit.
    let old = fs::read(&files(other.path(), ".log")[0]).unwrap();
    let segment = &files(mine.path(), ".log")[0];
    let end = end_of(segment);
    let file = fs::OpenOptions::new().write(true).open(segment).unwrap();
    file.write_all_at(&old[end as usize..end as usize + 200], end).unwrap();
    let (log, recovery, told) = open(mine.path()).unwrap();
    assert_eq!(told.texts(), ["one", "two"]);
    assert_eq!(recovery.warnings.len(), 1);
    drop(log);

    // The same of this very file: a number that is not the next, so it is no record.
    let own = fs::read(segment).unwrap()[HEAD_BYTES..end as usize].to_vec();
    file.write_all_at(&own, end).unwrap();
    assert_eq!(open(mine.path()).unwrap().2.texts(), ["one", "two"]);
}

#[test]
fn a_record_that_does_not_continue_the_chain_is_never_believed() {
    let dir = tempfile::tempdir().unwrap();
    written(dir.path(), &["one"]);
    let segment = &files(dir.path(), ".log")[0];
    let head = FileHead::decode(FileKind::Segment, &fs::read(segment).unwrap()).unwrap();
    let mut record = Vec::new();
    encode_record(&mut record, head.salt, RecordKind::Batch, 2, 0xdead_beef, b"from nowhere");
    let file = fs::OpenOptions::new().write(true).open(segment).unwrap();
    file.write_all_at(&record, end_of(segment)).unwrap();
    assert!(refused(dir.path()).2.contains("does not continue the one before it"));
}

#[test]
fn a_payload_made_to_look_like_a_record_does_not_hinder_recovery() {
    let dir = tempfile::tempdir().unwrap();
    let mut trap = b"torn here".to_vec();
    trap.resize(16, 0);
    encode_record(&mut trap, 0, RecordKind::Batch, 5, 0, b"a sound record, it says");
    let (mut log, ..) = open(dir.path()).unwrap();
    log.commit(b"one").unwrap();
    log.commit(&trap).unwrap();
    log.close().unwrap();
    as_after_a_crash(dir.path());
    let segment = &files(dir.path(), ".log")[0];
    flip(segment, place(segment, b"torn here"));
    assert_eq!(open(dir.path()).unwrap().2.texts(), ["one"]);
}

#[test]
fn a_last_segment_without_content_is_removed() {
    for len in [0, 4096] {
        let dir = tempfile::tempdir().unwrap();
        written(dir.path(), &["one"]);
        let void = dir.path().join("00000000000000000002.log");
        fs::File::create(&void).unwrap().set_len(len).unwrap();
        let (mut log, recovery, told) = open(dir.path()).unwrap();
        assert_eq!(told.texts(), ["one"]);
        assert!(recovery.warnings[0].contains("without content"), "{:?}", recovery.warnings);
        assert!(!void.exists());
        assert_eq!(log.commit(b"two").unwrap(), 2);
    }
}

#[test]
fn checking_says_what_opening_would_find_and_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    written_long(dir.path(), 30);
    let report = check(dir.path()).unwrap();
    assert_eq!((report.records, report.last_number, report.problem), (30, 30, None));
    assert_eq!(report.segments as usize, files(dir.path(), ".log").len());
    assert_eq!(report.log_bytes, 30 * 1032);
    assert!(report.notes.is_empty(), "{:?}", report.notes);

    let segment = &files(dir.path(), ".log")[1];
    flip(segment, 100);
    let before = fs::read(segment).unwrap();
    let problem = check(dir.path()).unwrap().problem.unwrap();
    assert_eq!((&problem.file, problem.offset), (segment, Some(64)));
    assert_eq!(fs::read(segment).unwrap(), before);
}

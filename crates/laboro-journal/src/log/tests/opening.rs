//! Opening, committing and opening again.

use super::*;

#[test]
fn a_new_log_is_empty_and_gives_back_what_was_committed() {
    let dir = tempfile::tempdir().unwrap();
    let (mut log, recovery, told) = open(dir.path()).unwrap();
    assert_eq!((recovery.last_number, told), (0, Told::default()));
    assert_eq!(log.commit(b"one").unwrap(), 1);
    assert_eq!(log.commit(b"").unwrap(), 2);
    assert_eq!(log.commit(b"three").unwrap(), 3);
    log.close().unwrap();

    let (mut log, recovery, told) = open(dir.path()).unwrap();
    assert_eq!(told.texts(), ["one", "", "three"]);
    assert_eq!((recovery.last_number, recovery.records), (3, 3));
    assert!(recovery.warnings.is_empty(), "{:?}", recovery.warnings);
    assert_eq!(log.commit(b"four").unwrap(), 4);
    drop(log);
    assert_eq!(open(dir.path()).unwrap().2.texts(), ["one", "", "three", "four"]);
}

#[test]
fn missing_directories_are_made() {
    let dir = tempfile::tempdir().unwrap();
    let deep = dir.path().join("a/b/journal");
    written(&deep, &["one"]);
    assert_eq!(open(&deep).unwrap().2.texts(), ["one"]);
}

#[test]
fn a_second_opener_is_told_who_has_it() {
    let dir = tempfile::tempdir().unwrap();
    let (log, ..) = open(dir.path()).unwrap();
    let text = open(dir.path()).unwrap_err().to_string();
    assert!(text.contains(&format!("in use by process {}", std::process::id())), "{text}");
    assert!(text.contains(&dir.path().display().to_string()), "{text}");
    drop(log);
    open(dir.path()).unwrap();
}

#[test]
fn a_log_grows_over_many_segments() {
    let dir = tempfile::tempdir().unwrap();
    written_long(dir.path(), 100);
    let segments = files(dir.path(), ".log");
    assert!(segments.len() > 5, "{segments:?}");
    assert!(segments[0].ends_with("00000000000000000001.log"));
    let (_, recovery, told) = open(dir.path()).unwrap();
    assert!(recovery.warnings.is_empty(), "{:?}", recovery.warnings);
    assert_eq!(told.records, (1..=100).map(|number| (number, long(number))).collect::<Vec<_>>());
}

#[test]
fn segments_are_zeroed_ahead_and_grow_to_the_largest() {
    let dir = tempfile::tempdir().unwrap();
    written_long(dir.path(), 60);
    let sizes: Vec<u64> =
        files(dir.path(), ".log").iter().map(|path| fs::metadata(path).unwrap().len()).collect();
    assert_eq!(sizes[..3], [4096, 16384, 16384]);
}

#[test]
fn a_record_larger_than_any_segment_gets_one_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let large = vec![7; 1_000_000];
    let (mut log, ..) = open(dir.path()).unwrap();
    log.commit(b"before").unwrap();
    log.commit(&large).unwrap();
    log.commit(b"after").unwrap();
    log.close().unwrap();
    let (.., told) = open(dir.path()).unwrap();
    assert_eq!(told.records[1], (2, large));
    assert_eq!(told.records[2], (3, b"after".to_vec()));
}

#[test]
fn too_large_a_record_is_refused_without_harm() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options { record_bytes_max: 10, ..small() };
    let (mut log, ..) = open_with(dir.path(), options, None).unwrap();
    let text = log.commit(b"eleven byte").unwrap_err().to_string();
    assert_eq!(text, "a record of 11 bytes is more than the 10 allowed");
    assert_eq!(log.commit(b"ten bytes!").unwrap(), 1);
    log.close().unwrap();
    // A limit is for what comes; what is there is read.
    let options = Options { record_bytes_max: 1, ..small() };
    assert_eq!(open_with(dir.path(), options, None).unwrap().2.texts(), ["ten bytes!"]);
}

#[test]
fn options_that_make_no_sense_are_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options { segment_bytes_max: 100, ..Options::default() };
    let text = open_with(dir.path(), options, None).unwrap_err().to_string();
    assert!(text.contains("segment_bytes_max cannot be 100"), "{text}");
}

#[test]
fn every_durability_keeps_what_a_closed_log_was_given() {
    for durability in [Durability::Sync, Durability::Os, Durability::None] {
        let dir = tempfile::tempdir().unwrap();
        let options = Options { durability, ..small() };
        let (mut log, ..) = open_with(dir.path(), options.clone(), None).unwrap();
        for number in 1..=50 {
            log.commit(&long(number)).unwrap();
        }
        log.close().unwrap();
        let (.., told) = open_with(dir.path(), options, None).unwrap();
        assert_eq!(told.records.len(), 50, "{durability:?}");
    }
}

#[test]
fn what_the_system_was_given_is_there_without_a_close() {
    for durability in [Durability::Sync, Durability::Os] {
        let dir = tempfile::tempdir().unwrap();
        let copy = dir.path().join("copy");
        let options = Options { durability, ..small() };
        let (mut log, ..) = open_with(&dir.path().join("log"), options, None).unwrap();
        for number in 1..=20 {
            log.commit(&long(number)).unwrap();
        }
        copy_dir(&dir.path().join("log"), &copy);
        assert_eq!(open(&copy).unwrap().2.records.len(), 20, "{durability:?}");
    }
}

#[test]
fn without_durability_little_is_held_back_and_a_drop_writes_it() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options { durability: Durability::None, ..Options::default() };
    let (mut log, ..) = open_with(dir.path(), options, None).unwrap();
    commit_all(&mut log, 1..=600, long);
    let seen = read(dir.path(), &mut |_, _, _| Ok(())).unwrap();
    assert!((300..600).contains(&seen), "{seen}");
    drop(log);
    assert_eq!(read(dir.path(), &mut |_, _, _| Ok(())).unwrap(), 600);
}

#[test]
fn a_replay_that_refuses_a_record_stops_the_opening() {
    let dir = tempfile::tempdir().unwrap();
    written(dir.path(), &["good", "odd"]);
    let refuse = &mut |_: Piece, _: u64, payload: &[u8]| {
        if payload == b"odd" { Err("what is odd".to_owned()) } else { Ok(()) }
    };
    let text = Log::open(dir.path(), small(), None, refuse).unwrap_err().to_string();
    assert!(text.contains("record 2 was not accepted: what is odd"), "{text}");
    assert_eq!(open(dir.path()).unwrap().2.texts(), ["good", "odd"]);
}

#[test]
fn leftovers_of_a_crash_are_removed_and_other_files_are_not() {
    let dir = tempfile::tempdir().unwrap();
    written(dir.path(), &["one"]);
    fs::write(dir.path().join("blank.tmp"), b"zeros to be").unwrap();
    fs::write(dir.path().join("notes.txt"), b"mine").unwrap();
    let (_, recovery, told) = open(dir.path()).unwrap();
    assert_eq!(told.texts(), ["one"]);
    assert_eq!(recovery.warnings.len(), 1);
    assert!(recovery.warnings[0].ends_with("blank.tmp: leftover file removed"));
    assert!(!dir.path().join("blank.tmp").exists());
    assert!(dir.path().join("notes.txt").exists());
}

#[test]
fn a_crash_at_any_point_of_a_roll_over_loses_nothing_committed() {
    let dir = tempfile::tempdir().unwrap();
    let (home, copies) = (dir.path().join("log"), dir.path().to_owned());
    let taken = Arc::new(std::sync::Mutex::new(Vec::new()));
    let (list, from) = (Arc::clone(&taken), home.clone());
    let steps = Steps::tell(move |step| {
        let mut list = list.lock().unwrap();
        let to = copies.join(format!("copy-{}", list.len()));
        copy_dir(&from, &to);
        list.push((step, to));
    });
    let (mut log, _) =
        Log::open_with_steps(&home, small(), None, steps, &mut |_, _, _| Ok(())).unwrap();
    let mut committed = Vec::new();
    for number in 1..=20 {
        log.commit(&long(number)).unwrap();
        committed.resize(taken.lock().unwrap().len(), number - 1);
    }
    let taken = taken.lock().unwrap();
    assert!(taken.len() >= 4);
    for ((step, copy), before) in taken.iter().zip(committed) {
        let (mut log, _, told) = open(copy).unwrap();
        let last = told.records.len() as u64;
        assert!(last == before || last == before + 1, "{step}: {last} of {before}");
        assert_eq!(log.commit(b"more").unwrap(), last + 1, "{step}");
    }
}

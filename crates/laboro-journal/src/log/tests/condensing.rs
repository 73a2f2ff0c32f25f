//! Condensing: the same state from fewer bytes, whatever happens meanwhile.

use std::sync::Mutex;

use super::*;

fn eager() -> Options {
    Options { condense_after_bytes: 2000, ..small() }
}

fn bytes_of(dir: &Path) -> u64 {
    let read = |path: &PathBuf| fs::metadata(path).unwrap().len();
    files(dir, ".log").iter().chain(&files(dir, ".snapshot")).map(read).sum()
}

#[test]
fn size_follows_the_state_and_not_the_history() {
    let dir = tempfile::tempdir().unwrap();
    let (mut log, ..) = open_with(dir.path(), eager(), Ledger::maker()).unwrap();
    for number in 1..=2000 {
        log.commit(&entry(number)).unwrap();
        if number % 50 == 0 {
            log.wait_for_condensing();
        }
    }
    log.wait_for_condensing();
    assert_eq!(log.take_warnings(), Vec::<String>::new());
    log.close().unwrap();
    assert!(bytes_of(dir.path()) < 100_000, "{}", bytes_of(dir.path()));
    assert_eq!(files(dir.path(), ".snapshot").len(), 2);

    let (_, recovery, told) = open(dir.path()).unwrap();
    assert_eq!(recovery.last_number, 2000);
    assert!(recovery.snapshot_bytes > 0 && recovery.records < 200);
    assert_eq!(Ledger::of(&told), state_after(2000));
}

#[test]
fn a_large_state_is_condensed_less_often() {
    let dir = tempfile::tempdir().unwrap();
    let (mut log, ..) = open_with(dir.path(), eager(), Ledger::maker()).unwrap();
    let own = |number: u64| format!("key{number}={number:0>900}").into_bytes();
    commit_all(&mut log, 1..=20, own);
    log.condense().unwrap();
    log.wait_for_condensing();
    // Twenty kilobytes of snapshot: not again before forty have come, whatever the options say.
    commit_all(&mut log, 21..=60, own);
    log.wait_for_condensing();
    let newest = files(dir.path(), ".snapshot").pop().unwrap();
    assert!(newest.ends_with("00000000000000000020.snapshot"));
    commit_all(&mut log, 61..=70, own);
    log.wait_for_condensing();
    let newest = files(dir.path(), ".snapshot").pop().unwrap();
    assert!(!newest.ends_with("00000000000000000020.snapshot"));
}

#[test]
fn condensing_on_request_makes_a_snapshot_and_commits_go_on() {
    let dir = tempfile::tempdir().unwrap();
    let (mut log, ..) = open_with(dir.path(), small(), Ledger::maker()).unwrap();
    commit_all(&mut log, 1..=10, entry);
    log.condense().unwrap();
    log.wait_for_condensing();
    assert!(files(dir.path(), ".snapshot")[0].ends_with("00000000000000000010.snapshot"));
    assert_eq!(log.commit(&entry(11)).unwrap(), 11);
    log.close().unwrap();
    let report = check(dir.path()).unwrap();
    assert_eq!(
        report.snapshot.as_ref().map(|snapshot| (snapshot.number, snapshot.chunks)),
        Some((10, 5))
    );
    assert_eq!((report.records, report.problem), (1, None));
    let (.., told) = open(dir.path()).unwrap();
    assert_eq!(Ledger::of(&told), state_after(11));
}

#[test]
fn a_log_that_is_all_snapshot_opens_and_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let (mut log, ..) = open_with(dir.path(), small(), Ledger::maker()).unwrap();
    commit_all(&mut log, 1..=10, entry);
    log.condense().unwrap();
    log.wait_for_condensing();
    log.close().unwrap();
    let (mut log, recovery, told) = open(dir.path()).unwrap();
    assert_eq!((recovery.last_number, recovery.records), (10, 0));
    assert_eq!(Ledger::of(&told), state_after(10));
    assert_eq!(log.commit(&entry(11)).unwrap(), 11);
    drop(log);
    assert_eq!(Ledger::of(&open(dir.path()).unwrap().2), state_after(11));
}

#[test]
fn a_crash_at_any_point_of_condensing_loses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let (home, copies) = (dir.path().join("log"), dir.path().to_owned());
    let taken = Arc::new(Mutex::new(Vec::new()));
    let (list, from) = (Arc::clone(&taken), home.clone());
    let steps = Steps::tell(move |step| {
        let mut list = list.lock().unwrap();
        let to = copies.join(format!("copy-{}", list.len()));
        copy_dir(&from, &to);
        list.push((step, to));
    });
    let (mut log, _) =
        Log::open_with_steps(&home, small(), Ledger::maker(), steps, &mut |_, _, _| Ok(()))
            .unwrap();
    // Three rounds, so that the last has an older snapshot to replace, over several segments.
    for (first, last) in [(1, 20), (21, 200)] {
        commit_all(&mut log, first..=last, entry);
        log.condense().unwrap();
        log.wait_for_condensing();
    }
    commit_all(&mut log, 201..=400, entry);
    taken.lock().unwrap().clear();
    log.condense().unwrap();
    log.wait_for_condensing();
    assert_eq!(log.take_warnings(), Vec::<String>::new());

    let taken = taken.lock().unwrap();
    let seen: Vec<&str> = taken.iter().map(|(step, _)| *step).collect();
    for step in ["snapshot begun", "snapshot synced", "snapshot renamed", "snapshot durable"] {
        assert!(seen.contains(&step), "{step} in {seen:?}");
    }
    assert!(seen.iter().filter(|step| **step == "covered file removed").count() > 2, "{seen:?}");
    for (step, copy) in taken.iter() {
        let (mut log, recovery, told) = open_with(copy, small(), Ledger::maker()).unwrap();
        assert_eq!(recovery.last_number, 400, "{step}");
        assert_eq!(Ledger::of(&told), state_after(400), "{step}");
        log.commit(&entry(401)).unwrap();
        log.condense().unwrap();
        log.wait_for_condensing();
        assert_eq!(log.take_warnings(), Vec::<String>::new(), "{step}");
        drop(log);
        assert_eq!(Ledger::of(&open(copy).unwrap().2), state_after(401), "{step}");
        assert_eq!(files(copy, ".tmp"), Vec::<PathBuf>::new());
    }
}

#[test]
fn covered_files_may_have_vanished_in_any_order() {
    let dir = tempfile::tempdir().unwrap();
    let (home, before) = (dir.path().join("log"), dir.path().join("before"));
    let (mut log, ..) = open_with(&home, small(), Ledger::maker()).unwrap();
    commit_all(&mut log, 1..=100, entry);
    log.condense().unwrap();
    log.wait_for_condensing();
    commit_all(&mut log, 101..=200, entry);
    log.condense().unwrap();
    log.wait_for_condensing();
    copy_dir(&home, &before);
    commit_all(&mut log, 201..=300, entry);
    log.condense().unwrap();
    log.wait_for_condensing();
    log.commit(&entry(301)).unwrap();
    log.close().unwrap();

    let needed = files(&home, ".log");
    for kept in files(&before, ".log").iter().chain(&files(&before, ".snapshot")) {
        let copy = dir.path().join("copy");
        copy_dir(&home, &copy);
        fs::copy(kept, copy.join(kept.file_name().unwrap())).unwrap();
        let (_, _, told) = open(&copy).unwrap();
        assert_eq!(Ledger::of(&told), state_after(301), "{}", kept.display());
        assert_eq!(files(&copy, ".log").len(), needed.len(), "{}", kept.display());
        assert_eq!(files(&copy, ".snapshot").len(), 2);
        fs::remove_dir_all(&copy).unwrap();
    }
}

#[test]
fn a_fold_that_fails_is_reported_and_commits_go_on() {
    let dir = tempfile::tempdir().unwrap();
    let (mut log, ..) = open_with(dir.path(), small(), Ledger::maker()).unwrap();
    log.commit(b"without a key").unwrap();
    log.condense().unwrap();
    log.wait_for_condensing();
    let warnings = log.take_warnings();
    assert_eq!(warnings.len(), 1);
    assert!(warnings[0].contains("not condensed"), "{warnings:?}");
    assert!(warnings[0].contains("no key in without a key"), "{warnings:?}");
    assert_eq!(log.commit(b"more").unwrap(), 2);
    log.close().unwrap();
    assert_eq!(open(dir.path()).unwrap().2.texts(), ["without a key", "more"]);
    assert!(files(dir.path(), ".snapshot").is_empty());
}

#[test]
fn a_fold_that_fails_does_no_harm_where_nothing_is_condensed_by_itself() {
    let dir = tempfile::tempdir().unwrap();
    let never = Options { condense_after_bytes: u64::MAX, ..small() };
    let (mut log, ..) = open_with(dir.path(), never, Ledger::maker()).unwrap();
    log.commit(b"without a key").unwrap();
    log.condense().unwrap();
    log.wait_for_condensing();
    assert_eq!(log.take_warnings().len(), 1);
    assert_eq!(log.commit(b"more").unwrap(), 2);
}

/// Fails in one of the ways a fold can.
struct Bad(&'static str);

impl Fold for Bad {
    fn absorb(&mut self, _: Piece, _: u64, _: &[u8]) -> Result<(), String> {
        Ok(())
    }

    fn emit(
        self: Box<Self>,
        sink: &mut dyn FnMut(&[u8]) -> std::io::Result<()>,
    ) -> Result<(), String> {
        sink(b"half of it").map_err(|error| error.to_string())?;
        match self.0 {
            "panics" => panic!("on purpose"),
            reason => Err(reason.to_owned()),
        }
    }
}

#[test]
fn a_fold_that_panics_or_stops_half_way_leaves_no_snapshot() {
    for (way, said) in [("panics", "the fold panicked"), ("no room", "no room")] {
        let dir = tempfile::tempdir().unwrap();
        let maker: FoldMaker = Arc::new(move || Box::new(Bad(way)));
        let (mut log, ..) = open_with(dir.path(), small(), Some(maker)).unwrap();
        log.commit(b"one").unwrap();
        log.condense().unwrap();
        log.wait_for_condensing();
        assert!(log.take_warnings()[0].contains(said));
        log.commit(b"two").unwrap();
        log.close().unwrap();
        assert_eq!(open(dir.path()).unwrap().2.texts(), ["one", "two"]);
        assert!(files(dir.path(), ".snapshot").is_empty());
    }
}

/// Stays inside `emit` until it is told to stop, giving one chunk after the other.
struct Endless;

impl Fold for Endless {
    fn absorb(&mut self, _: Piece, _: u64, _: &[u8]) -> Result<(), String> {
        Ok(())
    }

    fn emit(
        self: Box<Self>,
        sink: &mut dyn FnMut(&[u8]) -> std::io::Result<()>,
    ) -> Result<(), String> {
        loop {
            sink(b"and").map_err(|error| error.to_string())?;
            std::thread::yield_now();
        }
    }
}

#[test]
fn closing_abandons_a_condensing_and_leaves_nothing_of_it() {
    let dir = tempfile::tempdir().unwrap();
    let maker: FoldMaker = Arc::new(|| Box::new(Endless));
    let (mut log, ..) = open_with(dir.path(), small(), Some(maker)).unwrap();
    log.commit(b"one").unwrap();
    log.condense().unwrap();
    assert_eq!(log.commit(b"two").unwrap(), 2);
    log.close().unwrap();
    assert!(files(dir.path(), ".tmp").is_empty());
    let (_, recovery, told) = open(dir.path()).unwrap();
    assert_eq!(told.texts(), ["one", "two"]);
    assert!(recovery.warnings.is_empty());
}

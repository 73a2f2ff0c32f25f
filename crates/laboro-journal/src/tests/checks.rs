//! Checking a journal: counts of what is there, and words for what is wrong.

use super::world::{ask, begin, join, lazy, submit, worker};
use crate::log::{Log, LogError};
use crate::record::Encoder;
use crate::{FileJournal, JournalError, check};
use laboro_core::{
    ArraySpec, Command, Event, JobId, JobOptions, Offer, Patience, Route, State, SubmitTo, Time,
    Work,
};
use std::path::Path;

/// One job of a hundred, three of it leased.
fn journal_at(dir: &Path) -> FileJournal {
    let (mut journal, ledger, _) = FileJournal::open(dir, lazy()).unwrap();
    let (mut hub, began) = begin(ledger, 1);
    journal.commit_blocking(began).unwrap();
    let array = ArraySpec::numbered("cells", 100, Work::Named);
    let submit = submit(SubmitTo::New(JobOptions::default()), Vec::new(), vec![array]);
    let route = Route::Answer { most: 3, patience: Patience::None };
    let offer = Offer { worker: worker("w"), route, lease_ms: None };
    for command in [submit, join("w"), Command::Offer(offer)] {
        journal.commit_blocking(hub.step(Time(2), ask(command))).unwrap();
    }
    journal
}

/// A journal that ends with a record of our making.
fn journal_with(dir: &Path, payload: &[u8]) {
    journal_at(dir).close().unwrap();
    let (mut log, _) = Log::open(dir, lazy(), None, &mut |_, _, _| Ok(())).unwrap();
    log.commit(payload).unwrap();
}

#[test]
fn a_check_beside_a_running_hub_counts_what_is_there() {
    let dir = tempfile::tempdir().unwrap();
    let _journal = journal_at(dir.path());
    let checked = check(dir.path()).unwrap();
    assert_eq!(checked.problem, None);
    assert_eq!((checked.jobs, checked.workers, checked.log.records), (1, 1, 4));
    let tasks: Vec<(State, u64)> = checked.tasks.into_iter().filter(|(_, n)| *n > 0).collect();
    assert_eq!(tasks, [(State::Ready, 97), (State::Leased, 3)]);
}

#[test]
fn a_check_of_a_condensed_journal_counts_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let mut journal = journal_at(dir.path());
    let before = check(dir.path()).unwrap();
    journal.condense_blocking().unwrap();
    let after = check(dir.path()).unwrap();
    assert_eq!(after.problem, None);
    assert!(after.log.snapshot.is_some());
    assert_eq!(
        (after.jobs, after.workers, after.tasks),
        (before.jobs, before.workers, before.tasks)
    );
}

#[test]
fn a_record_that_is_no_batch_is_named_with_its_place() {
    let dir = tempfile::tempdir().unwrap();
    journal_with(dir.path(), &[1, 0, 0, 99]);
    let expected = "byte 3: event kind 99 is not known; use a newer laboro";
    let checked = check(dir.path()).unwrap();
    assert_eq!(checked.problem, Some(format!("record 5: {expected}")));
    assert_eq!(checked.log.records, 5);
    let error = FileJournal::open(dir.path(), lazy()).unwrap_err();
    let JournalError::Log(LogError::Replay { number: 5, reason, .. }) = error else {
        panic!("{error} is another error");
    };
    assert_eq!(reason, expected);
}

#[test]
fn an_event_that_does_not_fit_is_an_error_and_no_panic() {
    let dir = tempfile::tempdir().unwrap();
    let stray = Event::JobClosed { job: JobId(77) };
    journal_with(dir.path(), Encoder::default().batch(Time(9), &[stray]));
    let problem = check(dir.path()).unwrap().problem.unwrap();
    assert!(problem.starts_with("record 5: an event does not fit: "), "{problem}");
    assert!(FileJournal::open(dir.path(), lazy()).is_err());
}

#[test]
fn a_directory_without_a_journal_holds_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let checked = check(dir.path()).unwrap();
    assert_eq!((checked.problem, checked.events, checked.jobs), (None, 0, 0));
}

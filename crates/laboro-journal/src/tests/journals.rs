//! What a journal promises: effects for events kept, nothing for nothing, and one error for ever.

use super::world::{ask, begin, join, lazy, submit};
use crate::log::{Durability, LogError, Options};
use crate::{FileJournal, Journal, JournalError, MemoryJournal};
use laboro_core::{
    ArraySpec, Command, Effect, JobOptions, Ledger, Name, Query, Reply, SubmitTo, Time, Work,
};
use std::pin::pin;
use std::task::{Context, Poll, Waker};

fn some_job() -> Command {
    let array = ArraySpec::numbered(Name::default(), 1000, Work::Named);
    submit(SubmitTo::New(JobOptions::default()), Vec::new(), vec![array])
}

fn at_once<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("this had to be ready at once"),
    }
}

#[test]
fn whatever_the_durability_a_closed_journal_gives_all_back() {
    for durability in [Durability::Sync, Durability::Os, Durability::None] {
        let dir = tempfile::tempdir().unwrap();
        let options = Options { durability, ..Options::default() };
        let (mut journal, ledger, _) = FileJournal::open(dir.path(), options.clone()).unwrap();
        let (mut hub, began) = begin(ledger, 1);
        journal.commit_blocking(began).unwrap();
        for (now, command) in (2..).zip([some_job(), join("w"), some_job()]) {
            journal.commit_blocking(hub.step(Time(now), ask(command))).unwrap();
        }
        journal.close().unwrap();
        let (_, ledger, recovery) = FileJournal::open(dir.path(), options).unwrap();
        assert_eq!(ledger.describe(), hub.ledger().describe());
        assert_eq!(recovery.records, 4);
    }
}

#[test]
fn a_memory_journal_replays_to_what_the_hub_knows() {
    let mut journal = MemoryJournal::default();
    let (mut hub, began) = begin(Ledger::default(), 1);
    at_once(journal.commit(began)).unwrap();
    let effects = at_once(journal.commit(hub.step(Time(2), ask(some_job())))).unwrap();
    assert!(matches!(&effects[..], [Effect::Reply { reply: Reply::Submitted { .. }, .. }]));
    assert_eq!(journal.replayed().describe(), hub.ledger().describe());
    assert_eq!(journal.batches().len(), 2);
}

#[test]
fn a_batch_without_events_gives_its_effects_and_writes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let (mut journal, ledger, _) = FileJournal::open(dir.path(), Options::default()).unwrap();
    let (mut hub, began) = begin(ledger, 1);
    journal.commit_blocking(began).unwrap();
    // Ready at once: nobody has to be asked.
    let asked = hub.step(Time(2), ask(Command::Query(Query::Groups)));
    let effects = at_once(journal.commit(asked)).unwrap();
    assert!(matches!(&effects[..], [Effect::Reply { reply: Reply::Groups(_), .. }]));
    journal.close().unwrap();
    let (_, _, recovery) = FileJournal::open(dir.path(), lazy()).unwrap();
    assert_eq!(recovery.last_number, 1);
}

/// Little ones are written at once, large ones by a thread, which the little ones after them must not overtake.
#[test]
fn a_commit_that_nobody_waits_for_is_kept_in_its_place() {
    for jobs in [1, 10] {
        let dir = tempfile::tempdir().unwrap();
        let (mut journal, ledger, _) = FileJournal::open(dir.path(), Options::default()).unwrap();
        let (mut hub, began) = begin(ledger, 1);
        journal.commit_blocking(began).unwrap();
        for round in 0..20 {
            let step = hub.step(Time(2), (0..jobs).flat_map(|_| ask(some_job())).collect());
            let _ = pin!(journal.commit(step)).poll(&mut Context::from_waker(Waker::noop()));
            let little = if round % 2 == 0 { Command::Query(Query::Groups) } else { some_job() };
            journal.commit_blocking(hub.step(Time(3), ask(little))).unwrap();
        }
        drop(journal);
        let (_, ledger, recovery) = FileJournal::open(dir.path(), lazy()).unwrap();
        assert_eq!(ledger.describe(), hub.ledger().describe());
        assert_eq!(recovery.last_number, 31);
    }
}

#[test]
fn after_an_error_every_commit_fails_the_same_way() {
    for durability in [Durability::Sync, Durability::Os, Durability::None] {
        let dir = tempfile::tempdir().unwrap();
        let options = Options { durability, record_bytes_max: 30, ..Options::default() };
        let (mut journal, ledger, _) = FileJournal::open(dir.path(), options).unwrap();
        let (mut hub, began) = begin(ledger, 1);
        journal.commit_blocking(began).unwrap();
        let large = journal.commit_blocking(hub.step(Time(2), ask(some_job()))).unwrap_err();
        let small = journal.commit_blocking(hub.step(Time(3), ask(join("w")))).unwrap_err();
        let asked = hub.step(Time(4), ask(Command::Query(Query::Groups)));
        let nothing = journal.commit_blocking(asked).unwrap_err();
        let condensed = journal.condense_blocking().unwrap_err();
        let closed = journal.close().unwrap_err();
        for error in [&large, &small, &nothing, &condensed, &closed] {
            assert!(matches!(error, JournalError::Log(LogError::TooLarge { max: 30, .. })));
            assert_eq!(error.to_string(), large.to_string());
        }
    }
}

#[test]
fn a_dropped_journal_leaves_its_directory_free() {
    let dir = tempfile::tempdir().unwrap();
    for life in 1..4 {
        let (mut journal, ledger, _) = FileJournal::open(dir.path(), Options::default()).unwrap();
        assert_eq!(ledger.life(), life - 1);
        journal.commit_blocking(begin(ledger, 1).1).unwrap();
    }
}

#[test]
fn futures_of_commits_may_move_between_threads() {
    fn needs_send(_: impl Send) {}
    let dir = tempfile::tempdir().unwrap();
    let (mut journal, ledger, _) = FileJournal::open(dir.path(), lazy()).unwrap();
    needs_send(journal.commit(begin(ledger, 1).1));
}

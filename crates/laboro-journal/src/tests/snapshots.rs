//! A condensed journal: as much as is needed, in records of bounded size.

use super::world::{ask, begin, lazy, script, submit, task};
use crate::FileJournal;
use crate::log::{Piece, check, read};
use laboro_core::{Hub, JobId, JobOptions, Ledger, SubmitTo, TaskSpec, Time};
use std::path::Path;

/// A hub with these tasks, and its journal condensed.
fn condensed(dir: &Path, tasks: Vec<TaskSpec>) -> Hub {
    let (mut journal, ledger, _) = FileJournal::open(dir, lazy()).unwrap();
    let (mut hub, began) = begin(ledger, 1);
    journal.commit_blocking(began).unwrap();
    let open = JobOptions { open: true, ..JobOptions::default() };
    let made = submit(SubmitTo::New(open), Vec::new(), Vec::new());
    journal.commit_blocking(hub.step(Time(2), ask(made))).unwrap();
    let mut tasks = tasks.into_iter().peekable();
    while tasks.peek().is_some() {
        let some = tasks.by_ref().take(100).collect();
        let added = submit(SubmitTo::Add(JobId(1)), some, Vec::new());
        journal.commit_blocking(hub.step(Time(3), ask(added))).unwrap();
    }
    journal.condense_blocking().unwrap();
    assert_eq!(journal.take_warnings(), Vec::<String>::new());
    hub
}

fn chunks(dir: &Path) -> Vec<usize> {
    let mut chunks = Vec::new();
    read(dir, &mut |piece, _, payload| {
        assert_eq!(piece, Piece::Snapshot);
        chunks.push(payload.len());
        Ok(())
    })
    .unwrap();
    chunks
}

/// Compares what both would condense to: the text of a state has every script in full.
fn assert_same(dir: &Path, hub: &Hub) {
    let (_, ledger, _) = FileJournal::open(dir, lazy()).unwrap();
    let pieces = |ledger: &Ledger| {
        let mut pieces = Vec::new();
        ledger.condense(&mut |piece| pieces.push(piece));
        pieces
    };
    assert!(pieces(&ledger) == pieces(hub.ledger()));
}

#[test]
fn a_snapshot_of_many_tasks_comes_in_records_of_bounded_size() {
    let dir = tempfile::tempdir().unwrap();
    let name = |number: u64| format!("{:016x}", number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let hub = condensed(dir.path(), (0..40_000).map(|n| task(name(n), None)).collect());
    let chunks = chunks(dir.path());
    assert!(chunks.len() > 2, "{chunks:?}");
    assert!(chunks.iter().all(|&bytes| bytes < 512 << 10), "{chunks:?}");
    assert_same(dir.path(), &hub);
}

#[test]
fn a_script_shared_by_thousands_is_in_a_snapshot_once() {
    let dir = tempfile::tempdir().unwrap();
    let shared = script(vec![b'x'; 500_000]);
    let tasks = (0..5000).map(|n| task(format!("task-{n}"), Some(shared.clone())));
    let hub = condensed(dir.path(), tasks.collect());
    let snapshot = check(dir.path()).unwrap().snapshot.unwrap();
    assert!(snapshot.bytes < 600_000, "{snapshot:?}");
    assert_same(dir.path(), &hub);
}

#[test]
fn tasks_with_long_scripts_are_parted() {
    let dir = tempfile::tempdir().unwrap();
    let body = |number: usize| format!("{number}{}", "x".repeat(100_000)).into_bytes();
    let tasks = (0..200).map(|n| task(format!("task-{n}"), Some(script(body(n)))));
    let hub = condensed(dir.path(), tasks.collect());
    let chunks = chunks(dir.path());
    assert!(chunks.iter().all(|&bytes| bytes < 5 << 20), "{chunks:?}");
    assert_same(dir.path(), &hub);
}

//! Folding: what viewers are told of many changes.

use super::fold::Fold;
use laboro_api::EventKind;
use laboro_core::{Change, JobId, Outcome, State, WorkerId};

fn tasks(job: u32, first: u32, last: u32, state: State) -> Change {
    let outcome = state.is_finished().then_some(Outcome::Success);
    Change::Tasks { job: JobId(job), first, last, state, worker: None, outcome }
}

/// Kind, job, first and last.
type Told = (EventKind, Option<u32>, Option<u32>, Option<u32>);

fn folded(changes: &[Change]) -> Vec<Told> {
    let mut fold = Fold::default();
    changes.iter().for_each(|change| fold.add(change));
    let events = fold.take(1);
    assert!(fold.is_empty());
    events.iter().map(|event| (event.kind, event.job, event.first, event.last)).collect()
}

#[test]
fn ranges_that_touch_and_say_the_same_are_one() {
    let done = |first, last| tasks(1, first, last, State::Done);
    let told = folded(&[done(1, 1), done(2, 2), done(3, 5), tasks(1, 6, 6, State::Failed)]);
    let tasks = |first, last| (EventKind::Tasks, Some(1), Some(first), Some(last));
    assert_eq!(told, [tasks(1, 5), tasks(6, 6)]);
}

#[test]
fn a_task_is_told_of_once_unless_it_ended_in_between() {
    let told = folded(&[tasks(1, 1, 1, State::Ready), tasks(1, 1, 1, State::Leased)]);
    assert_eq!(told.len(), 1);
    let told = folded(&[tasks(1, 1, 1, State::Failed), tasks(1, 1, 1, State::Ready)]);
    assert_eq!(told.len(), 2);
}

#[test]
fn a_job_in_which_too_much_happens_is_one_hint() {
    let many: Vec<Change> = (0..1000).map(|i| tasks(7, i * 2, i * 2, State::Done)).collect();
    assert_eq!(folded(&many), [(EventKind::Job, Some(7), None, None)]);
}

#[test]
fn too_many_jobs_at_once_are_a_gap() {
    let many: Vec<Change> = (0..10_000).map(|job| Change::Job { job: JobId(job) }).collect();
    assert_eq!(folded(&many), [(EventKind::Gap, None, None, None)]);
}

#[test]
fn workers_and_jobs_are_told_of_once() {
    let worker = Change::Worker { worker: WorkerId(3) };
    let job = Change::Job { job: JobId(2) };
    let told = folded(&[worker.clone(), job.clone(), worker, job]);
    let kinds: Vec<EventKind> = told.iter().map(|told| told.0).collect();
    assert_eq!(kinds, [EventKind::Job, EventKind::Worker]);
}

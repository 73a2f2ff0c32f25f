//! The oracle sees what must not happen, one promise a test, by events that no hub would post.

use super::*;
use laboro_core::{
    Added, Fields, GroupId, JobId, JobOptions, NewTask, Profile, Refusal, Setting, TaskResult, Work,
};
use std::sync::Arc;

const TASK: u32 = 1;
const AFTER: u32 = 2;
const WORKER: WorkerId = WorkerId(1);

fn task(index: u32) -> TaskId {
    TaskId::new(JobId(1), index)
}

/// Two tasks, the second after the first, and a worker.
fn oracle() -> Oracle {
    let new = |name: &str, preds: &[u32]| NewTask {
        name: name.into(),
        profile: 0,
        work: None,
        preds: preds.iter().map(|&index| task(index)).collect(),
        memo: None,
    };
    let (profiles, tasks) = (vec![Profile::default()], vec![new("a", &[]), new("b", &[TASK])]);
    let added = Added { job: JobId(1), profiles, arrays: Vec::new(), tasks };
    let (group, name) = (GroupId(0), Name::from("g"));
    let options = Box::new(JobOptions::default());
    let mut oracle = Oracle::new(Arc::default());
    let begin = [
        Event::Began { life: 1, seed: 1 },
        Event::GroupMade { group, name: name.clone() },
        Event::WorkerMet { worker: WORKER, group, name, dialect: "d".into(), period_ms: None },
        Event::WorkerMet {
            worker: WorkerId(2),
            group,
            name: "other".into(),
            dialect: "d".into(),
            period_ms: None,
        },
        Event::JobMade { job: JobId(1), group, options },
        Event::Added(Box::new(added)),
    ];
    oracle.kept(Time(1), &begin).expect("nothing is wrong yet");
    oracle
}

fn leased(index: u32, count: u64) -> Event {
    let (lease, worker) = (LeaseNo::new(1, count), WORKER);
    Event::Leased { task: task(index), lease, worker, until: None, share: None }
}

fn finished(index: u32, worker: WorkerId) -> Event {
    let (outcome, then) = (Outcome::Success, Then::Done);
    Event::Finished { task: task(index), worker, outcome, then, words: None }
}

/// What the last of these events breaks.
fn broken(events: &[Event]) -> Promise {
    oracle().kept(Time(2), events).expect_err("the oracle sees it").promise
}

#[test]
fn a_second_lease_is_seen() {
    assert_eq!(broken(&[leased(TASK, 0), leased(TASK, 1)]), Promise::OneLease);
}

#[test]
fn a_task_before_its_predecessor_is_seen() {
    assert_eq!(broken(&[leased(AFTER, 0)]), Promise::PredecessorsFirst);
}

#[test]
fn an_owner_that_gets_more_than_its_share_is_seen() {
    let made = |job: u32, owner: &str| {
        let options = JobOptions { owner: Some(owner.into()), ..JobOptions::default() };
        let (job, group) = (JobId(job), GroupId(0));
        let new = |name: String| NewTask {
            name: name.into(),
            profile: 0,
            work: None,
            preds: Default::default(),
            memo: None,
        };
        let tasks = (1..=2).map(|number| new(format!("{owner}-{number}"))).collect();
        let added = Added { job, profiles: vec![Profile::default()], arrays: Vec::new(), tasks };
        [Event::JobMade { job, group, options: Box::new(options) }, Event::Added(Box::new(added))]
    };
    let leased = |job: u32, index: u32, count: u64| Event::Leased {
        task: TaskId::new(JobId(job), index),
        lease: LeaseNo::new(1, count),
        worker: WORKER,
        until: None,
        share: None,
    };
    let mut oracle = oracle();
    oracle.kept(Time(2), &[made(2, "ann"), made(3, "bob")].concat()).expect("nothing is wrong yet");
    let each = [leased(1, 1, 9), leased(2, 1, 0), leased(3, 1, 1)];
    oracle.kept(Time(3), &each).expect("each has one");
    oracle.kept(Time(4), &[leased(2, 2, 2)]).expect("of equals either may go first");
    let done = Event::Finished {
        task: TaskId::new(JobId(3), 1),
        worker: WORKER,
        outcome: Outcome::Success,
        then: Then::Done,
        words: None,
    };
    // By now ann has two slots in use, and bob none.
    oracle
        .kept(Time(5), &[done, made(4, "ann")[0].clone(), made(4, "ann")[1].clone()])
        .expect("fine");
    let broken = oracle.kept(Time(6), &[leased(4, 1, 3)]).expect_err("the oracle sees it");
    assert_eq!(broken.promise, Promise::FairShares);
}

#[test]
fn a_cycle_is_seen() {
    let waits = Event::PredsAdded { task: task(TASK), preds: vec![task(AFTER)] };
    assert_eq!(broken(&[waits]), Promise::Graphs);
}

#[test]
fn a_second_run_is_seen() {
    let events = [leased(TASK, 0), finished(TASK, WORKER), leased(TASK, 1)];
    assert_eq!(broken(&events), Promise::NoSecondRun);
}

#[test]
fn a_result_that_overwrites_another_is_seen() {
    let events = [leased(TASK, 0), finished(TASK, WORKER), finished(TASK, WORKER)];
    assert_eq!(broken(&events), Promise::LateResults);
}

#[test]
fn a_result_of_somebody_else_is_seen() {
    assert_eq!(broken(&[leased(TASK, 0), finished(TASK, WorkerId(2))]), Promise::LateResults);
}

/// The second worker says that the first task is done.
fn said(lease: fn(TaskRef) -> LeaseRef) -> Oracle {
    let lease = lease(TaskRef::Name("a".into()));
    let result = TaskResult { lease, outcome: Outcome::Success, message: None, memo: None };
    let (worker, results) = (WorkerRef::Id(WorkerId(2)), vec![result]);
    let command = Command::Report(Report { worker, results });
    let mut oracle = oracle();
    oracle.asked(Ask { token: Token(1), command }).expect("anybody may say so");
    oracle
}

#[test]
fn another_may_say_that_a_task_is_done_where_its_dialect_lets_it() {
    let events = [leased(TASK, 0), finished(TASK, WorkerId(2))];
    said(LeaseRef::Anyones).kept(Time(2), &events).expect("that counts");
    let broken = said(LeaseRef::HeldOrFree).kept(Time(2), &events).expect_err("it is held");
    assert_eq!(broken.promise, Promise::LateResults);
    // And then it does not run again.
    let mut oracle = said(LeaseRef::Anyones);
    oracle.kept(Time(2), &events).expect("that counts");
    let broken = oracle.kept(Time(3), &[leased(TASK, 1)]).expect_err("it is done");
    assert_eq!(broken.promise, Promise::NoSecondRun);
}

#[test]
fn what_is_acknowledged_as_done_by_name_and_is_not_is_seen() {
    let mut oracle = said(LeaseRef::Anyones);
    let refused = Err(Refusal::NotStarted("a".into()));
    oracle.replied(Token(1), &Reply::Reported(vec![refused])).expect("nothing was promised");
    let mut oracle = said(LeaseRef::Anyones);
    let broken = oracle.replied(Token(1), &Reply::Reported(vec![Ok(())]));
    assert_eq!(broken.expect_err("it is not done").promise, Promise::NothingLost);
}

#[test]
fn a_lease_number_that_was_used_before_is_seen() {
    let events = [leased(TASK, 0), finished(TASK, WORKER), leased(AFTER, 0)];
    assert_eq!(broken(&events), Promise::OneLease);
}

#[test]
fn more_than_a_worker_has_room_for_is_seen() {
    let mut oracle = oracle();
    oracle.rooms.insert(WORKER, Room::default());
    oracle.kept(Time(2), &[leased(TASK, 0)]).expect("an event alone says nothing about room");
    assert_eq!(oracle.check_room(WORKER).expect_err("it has none").promise, Promise::Slots);
}

#[test]
fn work_that_its_worker_does_not_understand_is_seen() {
    let mut oracle = oracle();
    let kinds = |fields| Room { kinds: Some(Kinds::ALL.understanding(fields)), ..Room::default() };
    let setting = Setting { stdout: Some((*b"out").into()), ..Setting::default() };
    let grants = [Grant {
        task: task(TASK),
        name: "a".into(),
        job_name: "".into(),
        lease: LeaseNo::new(1, 0),
        attempt: 1,
        fails: 0,
        profile: Default::default(),
        work: Some(Arc::new(Work::script(".sh", Arc::default(), Arc::new(setting)))),
        memo: None,
        element: None,
        share: None,
    }];
    oracle.rooms.insert(WORKER, kinds(Fields::known()));
    oracle.check_understood(WORKER, &grants).expect("it is as new as the hub");
    oracle.rooms.insert(WORKER, kinds(Fields::NONE));
    let broken = oracle.check_understood(WORKER, &grants).expect_err("it is older");
    assert_eq!(broken.promise, Promise::Understood);
}

#[test]
fn what_a_journal_forgot_is_seen() {
    let broken = oracle().recovered(&Ledger::default(), None).expect_err("it is empty");
    assert_eq!(broken.promise, Promise::NothingLost);
}

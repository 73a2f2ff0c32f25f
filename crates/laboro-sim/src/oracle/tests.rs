//! The oracle sees what must not happen, one promise a test, by events that no hub would post.

use super::*;
use laboro_core::{
    Added, Amount, Capacity, Fields, GroupId, JobId, JobOptions, Kinds, Needs, NewTask, Portion,
    Profile, Refusal, Request, Setting, Share, Supply, TaskResult, Work,
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
fn a_job_that_starts_before_its_time_is_seen() {
    let begin = Some(Time(1000));
    let deferred = Event::JobDeferred { job: JobId(1), begin };
    assert_eq!(broken(&[deferred.clone(), leased(TASK, 0)]), Promise::BeginTimes);
    assert_eq!(broken(&[deferred, Event::JobDue { job: JobId(1) }]), Promise::BeginTimes);
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
    let broken = oracle.check_slots(WORKER, &BTreeSet::new()).expect_err("it has none");
    assert_eq!(broken.promise, Promise::Slots);
}

/// Two tasks of a second job that want so much of the gpus, or a whole one where a worker has no halves.
fn wanting(parts: u64) -> Oracle {
    let wants = |parts| vec![("gpu".into(), Request::Some(Amount::of_parts(parts)))];
    let variants = vec![Needs { resources: wants(Amount::PARTS), ..Needs::default() }];
    let needs = Needs { resources: wants(parts), variants, ..Needs::default() };
    let profiles = vec![Profile { needs, time_request_ms: Some(500), ..Profile::default() }];
    let new = |name: &str| NewTask {
        name: name.into(),
        profile: 0,
        work: None,
        preds: Default::default(),
        memo: None,
    };
    let tasks = vec![new("c"), new("d")];
    let added = Added { job: JobId(2), profiles, arrays: Vec::new(), tasks };
    let options = Box::new(JobOptions::default());
    let mut oracle = oracle();
    let begin = [
        Event::JobMade { job: JobId(2), group: GroupId(0), options },
        Event::Added(Box::new(added)),
    ];
    oracle.kept(Time(2), &begin).expect("nothing is wrong yet");
    oracle
}

/// A lease of one of them, with whole gpus and a part of one.
fn leased_gpus(index: u32, items: u128, shared: Option<(u8, u16)>, variant: u8) -> Event {
    let portion = Portion { items, shared, ..Portion::default() };
    let share = Some(Arc::new(Share {
        portions: vec![("gpu".into(), portion)],
        variant,
        nodes: Vec::new(),
    }));
    let (task, lease) = (TaskId::new(JobId(2), index), LeaseNo::new(1, index.into()));
    Event::Leased { task, lease, worker: WORKER, until: None, share }
}

#[test]
fn an_item_beyond_one_whole_is_seen() {
    let leases = |item, parts| {
        [leased_gpus(1, 0, Some((0, parts)), 0), leased_gpus(2, 0, Some((item, parts)), 0)]
    };
    wanting(5_000).kept(Time(3), &leases(0, 5_000)).expect("two halves are one");
    wanting(6_000).kept(Time(3), &leases(1, 6_000)).expect("another item has room");
    let broken = wanting(6_000).kept(Time(3), &leases(0, 6_000)).expect_err("1.2 of one");
    assert_eq!(broken.promise, Promise::Resources);
    let leases = [leased_gpus(1, 0, Some((3, 6_000)), 0), leased_gpus(2, 1 << 3, None, 1)];
    let broken = wanting(6_000).kept(Time(3), &leases).expect_err("a whole one beside a part");
    assert_eq!(broken.promise, Promise::Resources);
}

#[test]
fn a_task_that_gets_other_than_it_asks_for_is_seen() {
    wanting(12_500)
        .kept(Time(3), &[leased_gpus(1, 1, Some((1, 2_500)), 0)])
        .expect("it asks for that");
    let wrong = [
        leased_gpus(1, 1, None, 0),
        leased_gpus(1, 0b11, None, 0),
        // Its variant asks for a whole one.
        leased_gpus(1, 1, Some((1, 2_500)), 1),
        Event::Leased {
            task: TaskId::new(JobId(2), 1),
            lease: LeaseNo::new(1, 1),
            worker: WORKER,
            until: None,
            share: None,
        },
    ];
    for lease in wrong {
        let broken = wanting(12_500).kept(Time(3), &[lease]).expect_err("not that");
        assert_eq!(broken.promise, Promise::Resources);
    }
}

/// Two tasks that take two workers each, and four workers.
fn wide() -> Oracle {
    let needs = Needs { nodes: 2, ..Needs::default() };
    let new = |name: &str| NewTask {
        name: name.into(),
        profile: 0,
        work: None,
        preds: Default::default(),
        memo: None,
    };
    let profiles = vec![Profile { needs, ..Profile::default() }, Profile::default()];
    let small = NewTask { profile: 1, ..new("small") };
    let tasks = vec![new("c"), new("d"), small];
    let added = Added { job: JobId(2), profiles, arrays: Vec::new(), tasks };
    let options = Box::new(JobOptions::default());
    let mut oracle = oracle();
    let mut begin = vec![
        Event::JobMade { job: JobId(2), group: GroupId(0), options },
        Event::Added(Box::new(added)),
    ];
    begin.extend((10..14).map(|number| Event::WorkerMet {
        worker: WorkerId(number),
        group: GroupId(0),
        name: format!("w{number}").into(),
        dialect: "native".into(),
        period_ms: None,
    }));
    oracle.kept(Time(2), &begin).expect("nothing is wrong yet");
    oracle
}

fn leased_nodes(index: u32, workers: &[u32]) -> Event {
    let nodes = workers[1..].iter().map(|&number| WorkerId(number)).collect();
    Event::Leased {
        task: TaskId::new(JobId(2), index),
        lease: LeaseNo::new(1, index.into()),
        worker: WorkerId(workers[0]),
        until: None,
        share: Some(Arc::new(Share { nodes, ..Share::default() })),
    }
}

#[test]
fn workers_that_a_task_has_not_for_itself_are_seen() {
    let right = [leased_nodes(1, &[10, 11]), leased_nodes(2, &[12, 13])];
    wide().kept(Time(3), &right).expect("each has two of its own");
    let wrong = [
        vec![leased_nodes(1, &[10])],
        vec![leased_nodes(1, &[10, 11, 12])],
        vec![leased_nodes(1, &[10, 10])],
        vec![leased_nodes(1, &[10, 11]), leased_nodes(2, &[12, 11])],
        vec![leased_nodes(1, &[10, 11]), leased_nodes(3, &[11])],
        vec![leased_nodes(3, &[11]), leased_nodes(1, &[10, 11])],
    ];
    for leases in wrong {
        let broken = wide().kept(Time(3), &leases).expect_err("not those");
        assert_eq!(broken.promise, Promise::WholeWorkers, "{broken}");
    }
}

/// What is broken when a worker that has so much is given item 2 of its gpus.
fn given_item_two(room: Room) -> Option<Promise> {
    let mut oracle = wanting(10_000);
    oracle.rooms.insert(WORKER, Room { kinds: Some(Kinds::ALL), ..room });
    let lease = leased_gpus(1, 1 << 2, None, 0);
    oracle.kept(Time(1000), std::slice::from_ref(&lease)).expect("an event says nothing of rooms");
    let Event::Leased { task, lease, share, .. } = lease else { return None };
    let profile = Arc::new(oracle.model.tasks[&task].profile.clone());
    let grant = Grant { task, lease, share, profile, ..grant() };
    oracle.check_room(WORKER, &grant, &BTreeSet::new()).err().map(|broken| broken.promise)
}

#[test]
fn more_than_a_worker_has_by_now_is_seen() {
    let gpus = |count| Capacity {
        slots: 1,
        resources: vec![("gpu".into(), Supply::of(count))],
        ..Capacity::default()
    };
    let room = |count| Room { capacity: gpus(count), ..Room::default() };
    assert_eq!(given_item_two(room(3)), None);
    assert_eq!(given_item_two(room(2)), Some(Promise::Resources), "there is no such item");
    assert_eq!(given_item_two(room(0)), Some(Promise::Resources), "there are no gpus");
    assert_eq!(given_item_two(room(200)), Some(Promise::Resources), "nobody tells them apart");
    let leaving = |ms| Room { until: Some(Time(ms)), ..room(3) };
    assert_eq!(given_item_two(leaving(1500)), None);
    assert_eq!(given_item_two(leaving(1499)), Some(Promise::Resources), "it leaves before");
}

fn grant() -> Grant {
    Grant {
        task: task(TASK),
        name: "a".into(),
        job_name: "".into(),
        own_names: false,
        lease: LeaseNo::new(1, 0),
        attempt: 1,
        fails: 0,
        profile: Default::default(),
        work: None,
        memo: None,
        role: Role::Only,
        element: None,
        share: None,
    }
}

#[test]
fn work_that_its_worker_does_not_understand_is_seen() {
    let mut oracle = oracle();
    let kinds = |fields| Room { kinds: Some(Kinds::ALL.understanding(fields)), ..Room::default() };
    let setting = Setting { stdout: Some((*b"out").into()), ..Setting::default() };
    let work = Some(Arc::new(Work::script(".sh", Arc::default(), Arc::new(setting))));
    let grants = [Grant { work, ..grant() }];
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

//! When elements need a record of their own, and when they do not any more.

use crate::{
    Archive, ArraySpec, Ask, Command, Config, Effect, Hub, Join, LeaseRef, Ledger, Offer, Outcome,
    Patience, Place, Reply, Report, Return, Returned, Route, SessionId, Submit, TaskResult, Time,
    Token, Work, WorkerId, WorkerRef,
};

const ELEMENTS: u32 = 1000;
const WORKER: WorkerRef = WorkerRef::Id(WorkerId(0));

fn ask(hub: &mut Hub, command: Command) -> Vec<Effect> {
    hub.step(Time(5), vec![Ask { token: Token(1), command }]).release(Nowhere.receipt())
}

/// A hub with an array, all of it leased.
fn leased() -> (Hub, Vec<LeaseRef>) {
    let (mut hub, _) = Hub::begin(Ledger::default(), Config::default(), Time(1), 42);
    let arrays = vec![ArraySpec::numbered("a", ELEMENTS, Work::Named)];
    ask(&mut hub, Command::Submit(Submit { arrays, ..Submit::new("default") }));
    ask(&mut hub, Command::Join(Join::new("default", "w", "test", SessionId(1))));
    let leases = pull(&mut hub);
    assert_eq!(leases.len(), ELEMENTS as usize);
    (hub, leases)
}

fn pull(hub: &mut Hub) -> Vec<LeaseRef> {
    let route = Route::Answer { most: ELEMENTS, patience: Patience::None };
    let offer = Offer { worker: WORKER, route, lease_ms: None };
    match &ask(hub, Command::Offer(offer))[..] {
        [Effect::Reply { reply: Reply::Work { grants, .. }, .. }] => (grants.iter())
            .map(|grant| LeaseRef::Number { task: grant.task, lease: grant.lease })
            .collect(),
        other => panic!("{other:?}"),
    }
}

fn finish(hub: &mut Hub, leases: &[LeaseRef]) {
    let results = (leases.iter().cloned())
        .map(|lease| TaskResult { lease, outcome: Outcome::Success, message: None, memo: None })
        .collect();
    ask(hub, Command::Report(Report { worker: WORKER, results }));
}

fn hand_back(hub: &mut Hub, leases: &[LeaseRef]) {
    let tasks = leases.iter().cloned().map(|lease| Returned { lease, preds: Vec::new() }).collect();
    ask(hub, Command::Return(Return { worker: WORKER, tasks, place: Place::Back }));
}

#[test]
fn elements_that_are_given_back_as_they_went_need_no_record() {
    let (mut hub, leases) = leased();
    let (odd, even): (Vec<_>, Vec<_>) =
        leases.into_iter().enumerate().partition(|(at, _)| at % 2 == 0);
    let [odd, even] =
        [odd, even].map(|some| some.into_iter().map(|(_, lease)| lease).collect::<Vec<_>>());
    finish(&mut hub, &odd);
    hand_back(&mut hub, &even);
    assert_eq!(hub.ledger().records(), 1, "only the array's own is left");
    hub.ledger().check().unwrap();
    let again = pull(&mut hub);
    assert_eq!(again.len(), even.len(), "all of them are there to be taken again");
    finish(&mut hub, &again);
    assert_eq!(hub.ledger().records(), 1);
}

#[test]
fn an_element_given_back_before_others_goes_after_them() {
    let (mut hub, leases) = leased();
    hand_back(&mut hub, &leases[10..]);
    hand_back(&mut hub, &leases[..1]);
    let task = |lease: &LeaseRef| match lease {
        LeaseRef::Number { task, .. } => task.index,
        other => panic!("{other:?}"),
    };
    let again = pull(&mut hub);
    assert_eq!((task(&again[0]), again.last().map(task)), (11, Some(1)));
    hub.ledger().check().unwrap();
}

/// Nobody waits for what is decided here to be safe.
struct Nowhere;

impl Archive for Nowhere {}

//! Tasks that are there get predecessors in any order: what would close a cycle is refused, an acyclic graph never
//! is, whatever the slices in which it is looked for, and a restart in between changes nothing.

use laboro_core::*;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

const TASKS: usize = 14;

#[derive(Debug, Clone)]
enum Move {
    /// Edges from predecessor to successor, in one message. Tasks are made where they are first named.
    Submit(Vec<(usize, usize)>),
    Complete(usize),
    /// What is leased goes back behind these.
    Return(usize, Vec<usize>),
    Restart,
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let task = || 0..TASKS;
    let edges = prop::collection::vec((task(), task()), 1..6);
    let one = prop_oneof![
        12 => edges.prop_map(Move::Submit),
        3 => task().prop_map(Move::Complete),
        2 => (task(), prop::collection::vec(task(), 1..3)).prop_map(|(t, preds)| Move::Return(t, preds)),
        1 => Just(Move::Restart),
    ];
    prop::collection::vec(one, 1..60)
}

/// Who waits for whom among what is not done.
#[derive(Default, Clone)]
struct Model {
    waits_for: BTreeMap<usize, BTreeSet<usize>>,
    /// Leased since it was made: a merge leaves it as it is.
    leased: BTreeSet<usize>,
    done: BTreeSet<usize>,
}

impl Model {
    fn has_cycle(&self) -> bool {
        let mut left = self.waits_for.clone();
        loop {
            let free: Vec<usize> =
                left.iter().filter(|(_, preds)| preds.is_empty()).map(|(&task, _)| task).collect();
            if free.is_empty() {
                return !left.is_empty();
            }
            for task in free {
                left.remove(&task);
                left.values_mut().for_each(|preds| _ = preds.remove(&task));
            }
        }
    }

    fn submit(&self, message: &[(usize, Vec<usize>)]) -> Model {
        let mut next = self.clone();
        for (task, _) in message {
            next.waits_for.entry(*task).or_default();
            next.done.remove(task);
        }
        for (task, preds) in message.iter().filter(|(task, _)| !self.leased.contains(task)) {
            let preds = preds.iter().filter(|pred| next.waits_for.contains_key(pred)).copied();
            let preds: Vec<usize> = preds.collect();
            next.waits_for.get_mut(task).expect("just made").extend(preds);
        }
        next
    }

    fn complete(&mut self, task: usize) {
        self.waits_for.remove(&task);
        self.waits_for.values_mut().for_each(|preds| _ = preds.remove(&task));
        self.leased.remove(&task);
        self.done.insert(task);
    }
}

struct Rig {
    hub: Hub,
    history: Vec<(Time, Event)>,
    config: Config,
    token: u64,
}

impl Rig {
    fn new(config: Config) -> Rig {
        let (hub, batch) = Hub::begin(Ledger::default(), config.clone(), Time(1), 3);
        let mut rig = Rig { hub, history: Vec::new(), config, token: 0 };
        rig.keep(batch);
        rig.ask(Command::Join(Join::new("default", "w", "test", SessionId(1))));
        rig
    }

    fn keep(&mut self, batch: Batch) -> Vec<Effect> {
        self.history.extend(batch.events.iter().map(|event| (batch.at, event.clone())));
        batch.release(Nowhere.receipt())
    }

    /// Asks, and steps until the answer is there. Another command is answered in every step meanwhile.
    fn ask(&mut self, command: Command) -> Reply {
        self.token += 2;
        let (mine, other) = (Token(self.token), Token(self.token + 1));
        let mut asks = vec![Ask { token: mine, command }];
        for _ in 0..10_000 {
            asks.push(Ask { token: other, command: Command::Query(Query::Groups) });
            let batch = self.hub.step(Time(1), std::mem::take(&mut asks));
            let mut answer = None;
            let mut others = 0;
            for effect in self.keep(batch) {
                match effect {
                    Effect::Reply { token, reply } if token == mine => answer = Some(reply),
                    Effect::Reply { .. } => others += 1,
                    _ => {}
                }
            }
            assert_eq!(others, 1, "others are served in every slice");
            if let Some(answer) = answer {
                return answer;
            }
        }
        panic!("a search never ends");
    }

    fn restart(&mut self) {
        let mut ledger = Ledger::default();
        self.history.iter().for_each(|(at, event)| ledger.apply(*at, event));
        let (hub, batch) = Hub::begin(ledger, self.config.clone(), Time(1), 3);
        self.hub = hub;
        self.keep(batch);
        self.ask(Command::Join(Join::new("default", "w", "test", SessionId(1))));
    }

    fn worker(&self) -> WorkerRef {
        WorkerRef::Name { group: "default".into(), name: "w".into() }
    }

    fn lease(&mut self, task: usize) -> LeaseRef {
        LeaseRef::Held(TaskRef::Name(name(task)))
    }
}

fn name(task: usize) -> Name {
    Name::from(format!("t{task}"))
}

fn submit(message: &[(usize, Vec<usize>)]) -> Command {
    let tasks = message.iter().map(|(task, preds)| TaskSpec {
        name: name(*task),
        profile: 0,
        work: None,
        preds: preds.iter().map(|&pred| TaskRef::Name(name(pred))).collect(),
        memo: None,
    });
    let options = JobOptions { key: Some(Box::from(*b"k")), open: true, ..JobOptions::default() };
    Command::Submit(Submit {
        job: SubmitTo::Open(options),
        tasks: tasks.collect(),
        unknown_pred: UnknownPred::Ignore,
        if_taken: IfTaken::Merge,
        ..Submit::new("default")
    })
}

/// Every task once, with what it comes after.
fn message(edges: &[(usize, usize)]) -> Vec<(usize, Vec<usize>)> {
    let mut tasks: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for &(pred, succ) in edges {
        tasks.entry(pred).or_default();
        tasks.entry(succ).or_default().push(pred);
    }
    tasks.into_iter().collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn exactly_what_would_close_a_cycle_is_refused(slice in 1usize..40, moves in moves()) {
        let mut config = Config::default();
        config.limits.cycle_search = slice;
        let mut rig = Rig::new(config);
        let mut model = Model::default();
        for step in moves {
            match step {
                Move::Submit(edges) => {
                    let message = message(&edges);
                    let next = model.submit(&message);
                    match rig.ask(submit(&message)) {
                        Reply::Refused(Refusal::Cycle(_)) => prop_assert!(next.has_cycle(), "{message:?} is acyclic"),
                        Reply::Submitted { .. } => {
                            prop_assert!(!next.has_cycle(), "{message:?} closes a cycle");
                            model = next;
                        }
                        other => prop_assert!(false, "{other:?}"),
                    }
                }
                Move::Complete(task) => {
                    take_all(&mut rig, &mut model);
                    if model.leased.contains(&task) {
                        let (lease, outcome) = (rig.lease(task), Outcome::Success);
                        let results = vec![TaskResult { lease, outcome, message: None, memo: None }];
                        let worker = rig.worker();
                        rig.ask(Command::Report(Report { worker, results }));
                        model.complete(task);
                    }
                }
                Move::Return(task, preds) => {
                    take_all(&mut rig, &mut model);
                    if !model.leased.contains(&task) {
                        continue;
                    }
                    let mut next = model.clone();
                    next.leased.remove(&task);
                    let known = preds.iter().filter(|pred| next.waits_for.contains_key(pred));
                    let known: Vec<usize> = known.copied().collect();
                    next.waits_for.get_mut(&task).unwrap().extend(known);
                    let preds = preds.into_iter().map(|pred| TaskRef::Name(name(pred))).collect();
                    let tasks = vec![Returned { lease: rig.lease(task), preds }];
                    let worker = rig.worker();
                    match rig.ask(Command::Return(Return { worker, tasks, place: Place::Back })) {
                        Reply::Refused(Refusal::Cycle(_)) => prop_assert!(next.has_cycle()),
                        Reply::Ok => {
                            prop_assert!(!next.has_cycle());
                            model = next;
                        }
                        other => prop_assert!(false, "{other:?}"),
                    }
                }
                Move::Restart => rig.restart(),
            }
        }
    }
}

/// The worker takes all that is ready: in the model, what waits for nothing.
fn take_all(rig: &mut Rig, model: &mut Model) {
    let route = Route::Answer { most: 100, patience: Patience::None };
    let worker = rig.worker();
    rig.ask(Command::Offer(Offer { worker, route, lease_ms: None }));
    let free = model.waits_for.iter().filter(|(_, preds)| preds.is_empty());
    model.leased.extend(free.map(|(&task, _)| task));
}

/// Nobody waits for what is decided here to be safe.
struct Nowhere;

impl Archive for Nowhere {}

//! Random commands that mostly hit: they name tasks, leases, workers and jobs that are there, and now and
//! then ones that are not.

mod submits;

use crate::dice::Dice;
use crate::model::{Phase, Task};
use crate::world::{Crew, World};
use laboro_core::*;
use std::collections::BTreeSet;

const GROUPS: [&str; 2] = ["default", "other"];
const CREW: usize = 7;

/// One random step.
pub fn act(world: &mut World, dice: &mut Dice) {
    if dice.one_in(60) {
        world.restart(dice.one_in(2));
        return;
    }
    pass_time(world, dice);
    let count = 1 + dice.below(3);
    // Decided on the same world, as by peers who do not know of each other.
    let commands: Vec<Command> = (0..count).map(|_| command(world, dice)).collect();
    let news: Vec<Option<News>> = commands.iter().map(News::of).collect();
    let replies = world.step(commands);
    for (news, reply) in news.into_iter().zip(replies) {
        if let Some(news) = news {
            news.note(world, reply);
        }
    }
}

fn pass_time(world: &mut World, dice: &mut Dice) {
    match dice.below(10) {
        0..=4 => {}
        5..=7 => world.pass(u64::from(dice.between(1, 50))),
        8 => {
            let due = world.hub.next_deadline().filter(|due| *due < Time(10_000_000_000));
            world.now = world.now.max(due.unwrap_or(world.now));
        }
        _ => world.pass(u64::from(dice.between(100, 30_000))),
    }
}

/// What a command changes about the crew once it is accepted.
enum News {
    Joined(Box<Join>),
    Pushes(WorkerId),
    Left(WorkerId),
}

impl News {
    fn of(command: &Command) -> Option<News> {
        match command {
            Command::Join(join) => Some(News::Joined(Box::new(join.clone()))),
            Command::Offer(Offer {
                worker: WorkerRef::Id(id), route: Route::Push { .. }, ..
            }) => Some(News::Pushes(*id)),
            Command::Leave(Leave { worker: WorkerRef::Id(id), .. }) => Some(News::Left(*id)),
            _ => None,
        }
    }

    fn note(self, world: &mut World, reply: Option<Reply>) {
        match (self, reply) {
            (News::Joined(join), Some(Reply::Joined { worker, .. })) => {
                let before = world.crew.get(&worker);
                let pushes = before.is_some_and(|crew| crew.pushes);
                let draining = before.is_some_and(|crew| crew.draining);
                let slots = join.capacity.slots;
                let until = join.capacity.time_left_ms.map(|ms| world.now.after_ms(ms));
                let crew = Crew { join: *join, pushes, connected: true, draining, slots, until };
                world.crew.insert(worker, crew);
            }
            (News::Pushes(worker), Some(Reply::Ok)) => {
                if let Some(crew) = world.crew.get_mut(&worker) {
                    crew.pushes = crew.connected;
                }
            }
            (News::Left(worker), Some(Reply::Ok)) => {
                if let Some(crew) = world.crew.get_mut(&worker) {
                    (crew.pushes, crew.connected, crew.draining) = (false, false, false);
                }
            }
            _ => {}
        }
    }
}

fn command(world: &World, dice: &mut Dice) -> Command {
    match dice.below(100) {
        0..=13 => submits::submit(world, dice),
        14..=15 => Command::Close(some_job(world, dice)),
        16..=22 => join(world, dice),
        23..=40 => offer(world, dice),
        41..=67 => report(world, dice),
        68..=69 => hand_back(world, dice),
        70 => decline(world, dice),
        71..=72 => Command::Renew(some_worker(world, dice)),
        73 => acknowledge(world, dice),
        74..=76 => leave(world, dice),
        77 => Command::Cancel(selection(world, dice)),
        78 if dice.one_in(2) => Command::MarkDone(selection(world, dice)),
        78 => Command::Cancel(selection(world, dice)),
        79..=80 => Command::Hold(selection(world, dice)),
        81..=83 => Command::Release(selection(world, dice)),
        84..=86 => Command::Retry(selection(world, dice)),
        87..=88 => Command::Prioritise(selection(world, dice), dice.of(&[-1, 0, 3])),
        89 if dice.one_in(2) => documents(dice),
        89 => limit(world, dice),
        90 => Command::Pause(dice.of(&GROUPS).into()),
        91..=92 => Command::Resume(dice.of(&GROUPS).into()),
        93..=94 => drain(world, dice),
        95 => Command::Eject(some_worker(world, dice), "a test says so".into()),
        96 => Command::Pardon(some_worker(world, dice)),
        97..=98 => Command::Forget(some_job(world, dice)),
        _ => match (world.waiting.keys().next(), some_task(world, dice)) {
            (Some(&token), _) if dice.one_in(2) => Command::Withdraw(token),
            (_, Some(task)) => {
                let task = if dice.one_in(2) { TaskRef::Own(task) } else { TaskRef::Id(task) };
                Command::Query(Query::Explain { group: dice.of(&GROUPS).into(), task })
            }
            _ => Command::Query(Query::Groups),
        },
    }
}

fn some_job(world: &World, dice: &mut Dice) -> JobId {
    let jobs: Vec<JobId> = world.model.jobs.keys().copied().collect();
    dice.pick(&jobs).copied().unwrap_or(JobId(1))
}

fn some_worker(world: &World, dice: &mut Dice) -> WorkerRef {
    let all: Vec<WorkerId> = world.model.workers.keys().copied().collect();
    WorkerRef::Id(dice.pick(&all).copied().unwrap_or(WorkerId(0)))
}

fn some_task(world: &World, dice: &mut Dice) -> Option<TaskId> {
    let all: Vec<TaskId> = world.model.tasks.keys().copied().collect();
    dice.pick(&all).copied()
}

fn join(world: &World, dice: &mut Dice) -> Command {
    let name = Name::from(format!("w{}", dice.below(CREW)));
    let group: Name = dice.of(&GROUPS).into();
    let known =
        world.crew.iter().find(|(_, crew)| crew.join.name == name && crew.join.group == group);
    let held = |id: WorkerId| {
        let leases = world.model.leases().into_iter().filter(move |(.., worker)| *worker == id);
        leases.map(|(task, lease, _)| (task, lease)).collect::<Vec<_>>()
    };
    let running = match (known, dice.below(4)) {
        (Some((&id, _)), 0) => Some(held(id)),
        (Some((&id, _)), 1) => Some(held(id).into_iter().skip(1).collect()),
        (_, 2) => Some(Vec::new()),
        _ => None,
    };
    let kinds = match dice.below(4) {
        0 => Kinds::of(&[WorkKind::Named, WorkKind::Command]),
        1 => Kinds::ALL.understanding(Fields::NONE),
        _ => Kinds::ALL,
    };
    Command::Join(Join {
        group,
        name,
        dialect: "test",
        session: SessionId(world.next_session + dice.below(3) as u64),
        life: dice.of(&[None, None, Some(1), Some(2)]),
        kinds,
        tags: if dice.one_in(3) { vec!["fast".into()] } else { Vec::new() },
        capacity: Capacity {
            slots: dice.of(&[1, 2, 4, 8]),
            memory: dice.of(&[0, 30, 100]),
            resources: vec![("gpu".into(), Supply::of(dice.of(&[0, 1, 4])))],
            time_left_ms: dice.of(&[None, None, Some(5_000)]),
        },
        period_ms: dice.of(&[None, Some(500), Some(20_000)]),
        running,
        acknowledges: dice.one_in(2),
        host: Name::default(),
    })
}

fn offer(world: &World, dice: &mut Dice) -> Command {
    let route = match dice.below(5) {
        0 | 1 => Route::Push { ahead: 0 },
        2 => Route::Answer { most: dice.between(0, 4), patience: Patience::None },
        _ => {
            let until = world.now.after_ms(u64::from(dice.between(0, 2000)));
            Route::Answer { most: dice.between(1, 4), patience: Patience::Until(until) }
        }
    };
    let lease_ms = dice.of(&[None, None, Some(300), Some(5000)]);
    Command::Offer(Offer { worker: some_worker(world, dice), route, lease_ms })
}

fn report(world: &World, dice: &mut Dice) -> Command {
    let leases = world.model.leases();
    let stale = world.old_leases.last().filter(|_| dice.one_in(10)).copied();
    let chosen = match (stale, dice.pick(&leases)) {
        (Some((worker, task, lease)), _) => Some((task, lease, worker)),
        (None, live) => live.copied(),
    };
    let Some((task, lease, holder)) = chosen else { return Command::Query(Query::Groups) };
    let worker = if dice.one_in(20) { some_worker(world, dice) } else { WorkerRef::Id(holder) };
    let mut results = vec![result(world, dice, task, lease)];
    // Whatever else it has, at once; now and then something twice.
    if dice.one_in(3) {
        for (task, lease, _) in leases.iter().filter(|(.., other)| *other == holder) {
            results.push(result(world, dice, *task, *lease));
        }
    }
    Command::Report(Report { worker, results })
}

fn result(world: &World, dice: &mut Dice, task: TaskId, lease: LeaseNo) -> TaskResult {
    let outcome = match dice.below(12) {
        0 | 1 => Outcome::Exit(dice.of(&[1, 3])),
        2 => Outcome::Signal(9),
        3 => Outcome::TimedOut,
        4 => Outcome::Error,
        5 => Outcome::Lost,
        _ => Outcome::Success,
    };
    TaskResult { lease: lease_ref(world, dice, task, lease), outcome, message: None, memo: None }
}

fn lease_ref(world: &World, dice: &mut Dice, task: TaskId, lease: LeaseNo) -> LeaseRef {
    let known = world.model.tasks.get(&task);
    match (dice.below(4), known) {
        (0, _) => LeaseRef::Held(TaskRef::Id(task)),
        (1, Some(known)) if known.array.is_none() && !known.name.is_empty() => {
            LeaseRef::Held(TaskRef::Name(known.name.clone()))
        }
        _ => LeaseRef::Number { task, lease },
    }
}

fn hand_back(world: &World, dice: &mut Dice) -> Command {
    let leases = world.model.leases();
    let Some(&(task, lease, holder)) = dice.pick(&leases) else {
        return Command::Query(Query::Groups);
    };
    let group = world.model.jobs[&task.job].group;
    let group = world.model.groups[&group].name.clone();
    let preds = submits::preds(world, dice, &group, &[]);
    let returned = Returned { lease: lease_ref(world, dice, task, lease), preds };
    let place = dice.of(&[Place::Front, Place::Back]);
    Command::Return(Return { worker: WorkerRef::Id(holder), tasks: vec![returned], place })
}

fn decline(world: &World, dice: &mut Dice) -> Command {
    let leases = world.model.leases();
    let Some(&(task, lease, holder)) = dice.pick(&leases) else {
        return Command::Query(Query::Groups);
    };
    let declined =
        Declined { lease: lease_ref(world, dice, task, lease), reason: "too long".into() };
    Command::Decline(Decline { worker: WorkerRef::Id(holder), tasks: vec![declined] })
}

fn acknowledge(world: &World, dice: &mut Dice) -> Command {
    match dice.pick(&world.model.leases()) {
        Some(&(_, lease, holder)) => Command::Acknowledge(WorkerRef::Id(holder), lease),
        None => Command::Query(Query::Groups),
    }
}

fn leave(world: &World, dice: &mut Dice) -> Command {
    let how = match dice.below(3) {
        0 => Leaving::Gone,
        1 => Leaving::Away { grace_ms: 0 },
        _ => Leaving::Away { grace_ms: u64::from(dice.between(1, 1000)) },
    };
    Command::Leave(Leave { worker: some_worker(world, dice), session: None, how })
}

fn selection(world: &World, dice: &mut Dice) -> Selection {
    let which = match dice.below(4) {
        0 => Which::Job,
        1 => Which::InState(dice.of(&State::ALL)),
        _ => {
            let ranges = (0..1 + dice.below(2)).map(|_| {
                let first = dice.between(0, 8);
                (first, first + dice.between(0, 4))
            });
            Which::Ranges(ranges.collect())
        }
    };
    Selection { job: some_job(world, dice), which }
}

fn limit(world: &World, dice: &mut Dice) -> Command {
    Command::Limit {
        job: some_job(world, dice),
        max_running: dice.of(&[None, Some(None), Some(Some(0)), Some(Some(2))]),
        max_fails: dice.of(&[None, Some(None), Some(Some(1))]),
    }
}

fn documents(dice: &mut Dice) -> Command {
    let change = |dice: &mut Dice| {
        let (kind, name) = (dice.of(&["a", "b"]), dice.of(&["x", "y", "z"]));
        match dice.below(4) {
            0 => DocumentChange::remove(kind, name),
            size => DocumentChange::set(kind, name, &vec![b'.'; size * size]),
        }
    };
    Command::ChangeDocuments((0..1 + dice.below(3)).map(|_| change(dice)).collect())
}

fn drain(world: &World, dice: &mut Dice) -> Command {
    let how = dice.of(&[
        Drain::All,
        Drain::Slots(1),
        Drain::AtOnce,
        Drain::Lift,
        Drain::Lift,
        Drain::Lift,
    ]);
    Command::Drain(some_worker(world, dice), how)
}

/// Everything is let go, good workers come, and all that can be done gets done.
pub fn finish(world: &mut World) {
    world.step(GROUPS.iter().map(|&group| Command::Resume(group.into())).collect());
    let jobs: Vec<JobId> = world.model.jobs.keys().copied().collect();
    for &job in &jobs {
        let selection = Selection { job, which: Which::Job };
        let (max_running, max_fails) = (Some(None), Some(None));
        world.step(vec![
            Command::Limit { job, max_running, max_fails },
            Command::Release(selection),
        ]);
    }
    for group in GROUPS {
        let join = Join {
            group: group.into(),
            name: "strong".into(),
            dialect: "test",
            session: SessionId(1_000_000),
            life: None,
            kinds: Kinds::ALL,
            tags: vec!["fast".into()],
            capacity: Capacity {
                slots: 10_000,
                memory: 1 << 40,
                resources: vec![("gpu".into(), Supply::of(128))],
                time_left_ms: None,
            },
            period_ms: None,
            running: None,
            acknowledges: false,
            host: Name::default(),
        };
        let Some(Reply::Joined { worker, .. }) = world.ask(Command::Join(join.clone())) else {
            panic!("a good worker may join");
        };
        world.crew.insert(
            worker,
            Crew {
                join,
                pushes: true,
                connected: true,
                draining: false,
                slots: 10_000,
                until: None,
            },
        );
        let worker = WorkerRef::Id(worker);
        world.ask(Command::Offer(Offer {
            worker,
            route: Route::Push { ahead: 0 },
            lease_ms: None,
        }));
    }
    for _ in 0..10_000 {
        world.pass(20_000);
        world.ask(Command::Query(Query::Groups));
        // Others are lost meanwhile, and what ran alone there is held.
        let held = |task: &Task| task.phase == Phase::Held;
        let held: BTreeSet<JobId> = (world.model.tasks.iter())
            .filter(|(_, task)| held(task))
            .map(|(id, _)| id.job)
            .collect();
        for job in held {
            world.ask(Command::Release(Selection { job, which: Which::Job }));
        }
        let leases = world.model.leases();
        if leases.is_empty() {
            break;
        }
        for (task, lease, worker) in leases {
            let lease = LeaseRef::Number { task, lease };
            let result = TaskResult { lease, outcome: Outcome::Success, message: None, memo: None };
            let worker = WorkerRef::Id(worker);
            world.ask(Command::Report(Report { worker, results: vec![result] }));
        }
    }
    world.check();
    for (id, task) in &world.model.tasks {
        assert!(
            !matches!(task.phase, Phase::Held | Phase::Delayed(_) | Phase::Leased { .. }),
            "{id} is {:?} though everything was let go",
            task.phase
        );
        let left = world.model.state(*id) == State::Ready && !world.model.is_unclear(*id);
        assert!(!left, "{id} is ready and nobody takes it");
    }
    for id in world.model.tasks.keys().filter(|id| !world.model.is_unclear(**id)) {
        assert!(world.model.state(*id).is_over(), "{id} waits for nothing that can happen");
    }
}

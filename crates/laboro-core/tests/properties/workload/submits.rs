//! Random submits: tasks and arrays whose names and predecessors are often known already.

use super::{GROUPS, some_task};
use crate::dice::Dice;
use crate::world::World;
use laboro_core::*;
use smallvec::SmallVec;
use std::sync::Arc;

const TASK_NAMES: usize = 24;
const ARRAY_NAMES: usize = 6;

pub(super) fn submit(world: &World, dice: &mut Dice) -> Command {
    let (group, job) = target(world, dice);
    let profiles: Vec<Profile> = (0..1 + dice.below(2)).map(|_| profile(dice)).collect();
    let array_count = if dice.one_in(3) { 1 + dice.below(2) } else { 0 };
    let task_count = dice.below(6);
    let mut names: Vec<Name> = Vec::new();
    let count = dice.between(1, 5);
    let mut arrays = Vec::new();
    for _ in 0..array_count {
        let name = Name::from(format!("a{}", dice.below(ARRAY_NAMES)));
        names.push(name.clone());
        let mut array = ArraySpec::numbered(name, count, some_work(dice));
        array.profile = dice.below(profiles.len()) as u32;
        arrays.push(array);
    }
    let mut tasks = Vec::new();
    for _ in 0..task_count {
        let name = match dice.below(8) {
            0 => Name::default(),
            _ => Name::from(format!("t{}", dice.below(TASK_NAMES))),
        };
        names.push(name.clone());
        let work = (!dice.one_in(3)).then(|| Arc::new(some_work(dice)));
        let profile = dice.below(profiles.len()) as u32;
        tasks.push(TaskSpec { name, profile, work, preds: SmallVec::new(), memo: None });
    }
    // After all are named, so that predecessors come in any order.
    for array in &mut arrays {
        array.preds = preds(world, dice, &group, &names);
        if dice.one_in(2) {
            array.each = partner(world, dice, &group, count, &names[..array_count]);
        }
    }
    for task in &mut tasks {
        task.preds = preds(world, dice, &group, &names).into();
    }
    Command::Submit(Submit {
        group,
        job,
        profiles,
        tasks,
        arrays,
        unknown_pred: if dice.one_in(4) { UnknownPred::Refuse } else { UnknownPred::Ignore },
        if_taken: dice.of(&[IfTaken::Refuse, IfTaken::Same, IfTaken::Merge, IfTaken::Merge]),
    })
}

fn target(world: &World, dice: &mut Dice) -> (Name, SubmitTo) {
    let open: Vec<JobId> =
        world.model.jobs.iter().filter(|(_, job)| job.options.open).map(|(&id, _)| id).collect();
    if dice.one_in(2)
        && let Some(&job) = dice.pick(&open)
    {
        let group = world.model.jobs[&job].group;
        return (world.model.groups[&group].name.clone(), SubmitTo::Add(job));
    }
    let options = JobOptions {
        open: dice.one_in(3),
        held: dice.one_in(8),
        max_running: dice.one_in(5).then(|| dice.between(0, 3)),
        max_fails: dice.one_in(5).then(|| dice.between(0, 2)),
        begin: dice.one_in(6).then(|| world.now.after_ms(dice.between(0, 3000).into())),
        key: dice.one_in(6).then(|| Box::from([dice.below(5) as u8])),
        own_names: dice.one_in(3),
        owner: dice.one_in(2).then(|| format!("owner-{}", dice.below(3)).into()),
        name: Name::default(),
        on_end: dice.one_in(4).then(|| "mail:a@example.org".into()).into_iter().collect(),
    };
    let job = match options.key.is_some() && dice.one_in(2) {
        true => SubmitTo::Open(options),
        false => SubmitTo::New(options),
    };
    (dice.of(&GROUPS).into(), job)
}

fn profile(dice: &mut Dice) -> Profile {
    let mut profile = Profile {
        priority: dice.of(&[0, 0, 0, 1, -1]),
        attempts: dice.of(&[1, 1, 2, 3]),
        lost_max: dice.of(&[0, 1, 5]),
        backoff: Backoff { first_ms: dice.of(&[0, 0, 100]), most_ms: 1000 },
        runs_anyway: dice.one_in(4),
        time_limit_ms: dice.of(&[None, None, Some(2_000)]),
        ..Profile::default()
    };
    if dice.one_in(6) {
        profile.retry_on = vec![3];
    }
    profile.needs.slots = dice.of(&[1, 1, 1, 1, 2, 4]);
    profile.needs.memory = dice.of(&[0, 0, 0, 10, 30]);
    if dice.one_in(5) {
        profile.needs.resources = vec![("gpu".into(), some_gpus(dice))];
    }
    if dice.one_in(6) {
        profile.time_request_ms = dice.of(&[Some(500), Some(4_000)]);
    }
    if dice.one_in(5) {
        let mut variant = Needs { slots: dice.of(&[1, 2]), ..Needs::default() };
        if dice.one_in(2) {
            variant.resources = vec![("gpu".into(), some_gpus(dice))];
        }
        profile.needs.variants = vec![variant];
    }
    if dice.one_in(8) {
        profile.needs.tags = vec!["fast".into()];
    }
    profile
}

fn some_gpus(dice: &mut Dice) -> Request {
    let parts = |parts| Request::Some(Amount::of_parts(parts));
    dice.of(&[
        Request::whole(1),
        Request::whole(2),
        parts(5_000),
        parts(3_000),
        parts(12_500),
        Request::All,
    ])
}

fn some_work(dice: &mut Dice) -> Work {
    match dice.below(4) {
        0 => Work::indexed(b"run".as_slice().into(), Box::default(), Box::default()),
        1 => Work::Named,
        _ => Work::Command(CommandWork {
            program: Program::Shell(b"true".as_slice().into()),
            setting: Arc::new(Setting {
                stdout: dice.one_in(4).then(|| b"out".as_slice().into()),
                ..Setting::default()
            }),
        }),
    }
}

pub(super) fn preds(world: &World, dice: &mut Dice, group: &Name, own: &[Name]) -> Vec<TaskRef> {
    let count = dice.of(&[0, 0, 1, 1, 2]);
    (0..count).filter_map(|_| pred(world, dice, group, own)).collect()
}

fn pred(world: &World, dice: &mut Dice, _group: &Name, own: &[Name]) -> Option<TaskRef> {
    match dice.below(8) {
        0..=2 => dice.pick(own).filter(|name| !name.is_empty()).cloned().map(TaskRef::Name),
        3 => Some(TaskRef::Name(Name::from(format!("t{}", dice.below(TASK_NAMES))))),
        4 => Some(TaskRef::Name(Name::from(format!("a{}", dice.below(ARRAY_NAMES))))),
        5 => {
            let (array, element) = (dice.below(ARRAY_NAMES), dice.between(1, 5));
            Some(TaskRef::Name(Name::from(format!("a{array}.{element}"))))
        }
        6 => some_task(world, dice).map(TaskRef::Own),
        _ => some_task(world, dice).map(TaskRef::Id),
    }
}

/// An array of the same length: in the submit, or one that is there.
fn partner(
    world: &World,
    dice: &mut Dice,
    _group: &Name,
    count: u32,
    own: &[Name],
) -> Vec<TaskRef> {
    if dice.one_in(2) {
        return dice.pick(own).cloned().map(TaskRef::Name).into_iter().collect();
    }
    let same = world.model.arrays.iter().filter(|(_, array)| array.count == count);
    let same: Vec<TaskId> = same.map(|(&id, _)| id).collect();
    dice.pick(&same).map(|&id| TaskRef::Id(id)).into_iter().collect()
}

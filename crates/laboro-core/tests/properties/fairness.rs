//! Was it this owner's turn? Looks at one lease before it counts: an owner with an equal task that waits, and fewer
//! slots in use for its weight, goes first; and nobody has more slots in use than it may. By full walks, as the model.

use super::model::{Model, Phase, Task};
use laboro_core::*;
use std::collections::BTreeMap;

/// What is wrong with giving this task to a worker now, if anything is.
pub fn unfair(
    model: &Model,
    shares: &Shares,
    task: TaskId,
    share: Option<&Share>,
) -> Option<String> {
    let job = model.jobs.get(&task.job)?;
    let given = model.tasks.get(&task)?;
    let used = slots_in_use(model, job.group);
    let owner = job.options.owner.as_ref();
    let slots_of = |owner: Option<&Name>| used.get(&owner).copied().unwrap_or(0);
    let own = shares.of(owner);
    let more = slots(given, share);
    if own.max_running_slots.is_some_and(|most| slots_of(owner) + more > most) {
        let most = own.max_running_slots;
        return Some(format!(
            "{task} gives {owner:?} {} slots and more than {most:?}",
            slots_of(owner)
        ));
    }
    let comes_first = |other: Option<&Name>| {
        let theirs = shares.of(other);
        let has_room =
            theirs.max_running_slots.is_none_or(|most| slots_of(other) + most_slots(given) <= most);
        has_room
            && slots_of(other) * u64::from(own.weight) < slots_of(owner) * u64::from(theirs.weight)
    };
    let waits = |id: &TaskId, other: &Task| {
        other.phase == Phase::Idle
            && is_equal(given, other)
            && model.is_open(id.job)
            && model.state(*id) == State::Ready
            && !model.is_unclear(*id)
    };
    let overlooked = model.tasks.iter().find(|(id, other)| {
        let theirs = &model.jobs[&id.job];
        let whose = theirs.options.owner.as_ref();
        theirs.group == job.group && whose != owner && comes_first(whose) && waits(id, other)
    });
    let (other, _) = overlooked?;
    let whose = model.jobs[&other.job].options.owner.as_ref();
    Some(format!(
        "{task} of {owner:?}, who has {} slots in use, is given out while {other} of {whose:?} waits, who has {}",
        slots_of(owner),
        slots_of(whose)
    ))
}

/// May the owner of a task have no more of its like at once?
pub fn is_full(model: &Model, shares: &Shares, task: TaskId) -> bool {
    let job = &model.jobs[&task.job];
    let owner = job.options.owner.as_ref();
    let used = slots_in_use(model, job.group).get(&owner).copied().unwrap_or(0);
    let most = shares.of(owner).max_running_slots;
    most.is_some_and(|most| used + most_slots(&model.tasks[&task]) > most)
}

fn slots_in_use(model: &Model, group: GroupId) -> BTreeMap<Option<&Name>, u64> {
    let mut used = BTreeMap::new();
    for (id, task) in &model.tasks {
        let job = &model.jobs[&id.job];
        if let Phase::Leased { share, .. } = &task.phase
            && job.group == group
        {
            *used.entry(job.options.owner.as_ref()).or_default() += slots(task, share.as_ref());
        }
    }
    used
}

/// What it takes of a worker, the way it goes.
fn slots(task: &Task, share: Option<&Share>) -> u64 {
    let variant = share.map_or(0, |share| usize::from(share.variant));
    let needs = &task.profile.needs;
    let way = variant.checked_sub(1).map_or(needs, |other| &needs.variants[other]);
    u64::from(way.slots) * u64::from(way.nodes.max(1))
}

/// Whichever way it goes.
fn most_slots(task: &Task) -> u64 {
    let needs = &task.profile.needs;
    let ways = needs.variants.iter().chain([needs]);
    ways.map(|way| u64::from(way.slots) * u64::from(way.nodes.max(1))).max().unwrap_or(0)
}

/// A worker that can run one can run the other.
fn is_equal(one: &Task, other: &Task) -> bool {
    let time = |task: &Task| task.profile.time_request_ms.or(task.profile.time_limit_ms);
    one.demand == other.demand
        && one.profile.needs == other.profile.needs
        && time(one) == time(other)
        && one.is_suspect() == other.is_suspect()
}

//! Whether what workers are given fits what they said they have: slots, memory, resources, tags, time. It counts by
//! what the leases of the model were given, and knows nothing of how the hub chose.

use super::Oracle;
use super::model;
use crate::promise::{Broken, Kept, Promise};
use laboro_core::{
    Amount, Capacity, Grant, Join, Kinds, LeaseNo, Name, Portion, Request, Share, Supply, TaskId,
    Time, WorkerId,
};
use std::collections::{BTreeMap, BTreeSet};

/// What a worker said of itself.
#[derive(Debug, Default)]
pub(super) struct Room {
    /// The most that it ever asked for beyond its slots.
    pub ahead: u32,
    /// What it said last that it knows. `None`: it never said anything.
    pub kinds: Option<Kinds>,
    pub capacity: Capacity,
    pub tags: Vec<Name>,
    /// It leaves then.
    pub until: Option<Time>,
}

impl Room {
    pub fn joined(&mut self, join: &Join, at: Time) {
        self.kinds = Some(join.kinds);
        self.capacity = join.capacity.clone();
        self.tags = join.tags.clone();
        self.until = join.capacity.time_left_ms.map(|ms| at.after_ms(ms));
    }

    fn supply(&self, name: &Name) -> Supply {
        let found = self.capacity.resources.iter().find(|(known, _)| known == name);
        found.map_or(Supply::of(0), |(_, supply)| supply.clone())
    }
}

/// Everything in it, in ten-thousandths.
fn parts(portion: &Portion) -> u64 {
    let whole = u64::from(portion.items.count_ones()) * Amount::PARTS;
    whole + portion.shared.map_or(0, |(_, parts)| parts.into()) + portion.amount.parts()
}

fn portions(share: Option<&Share>) -> impl Iterator<Item = &(Name, Portion)> {
    share.into_iter().flat_map(|share| &share.portions)
}

fn portion_of<'a>(share: Option<&'a Share>, name: &Name) -> Option<&'a Portion> {
    portions(share).find(|(known, _)| known == name).map(|(_, portion)| portion)
}

impl Oracle {
    /// A lease has of each resource what its task asks for, and of no other.
    pub(super) fn check_share(&self, id: TaskId, share: Option<&Share>) -> Kept {
        let needs = self.model.tasks[&id].way(share);
        let asked = needs.resources.iter().map(|(name, _)| name);
        let is_right = asked.eq(portions(share).map(|(name, _)| name))
            && needs.resources.iter().all(|(name, request)| {
                let given = portion_of(share, name).map_or(0, parts);
                match request {
                    Request::Some(amount) => given == amount.parts(),
                    Request::All => given > 0,
                }
            });
        match is_right {
            true => Ok(()),
            false => {
                let what = format!("{id} needs {needs:?} and gets {share:?}");
                Err(Broken::new(Promise::Resources, what))
            }
        }
    }

    /// A task has as many workers as it takes, none of them twice, and where one of several is, nothing else is.
    pub(super) fn check_nodes(&self, id: TaskId, worker: WorkerId, share: Option<&Share>) -> Kept {
        let broken = |what: String| Err(Broken::new(Promise::WholeWorkers, what));
        let wanted = self.model.tasks[&id].profile.needs.nodes;
        let others = share.map_or(&[][..], |share| &share.nodes);
        let workers: BTreeSet<WorkerId> = others.iter().copied().chain([worker]).collect();
        if workers.len() != others.len() + 1 || workers.len() != wanted.max(1) as usize {
            return broken(format!("{id} takes {wanted} workers: {worker:?} and {others:?}"));
        }
        for &worker in &workers {
            let beside = self
                .model
                .held_by(worker)
                .find(|(task, ..)| wanted > 0 || task.profile.needs.nodes > 0);
            if let Some((other, ..)) = beside {
                return broken(format!("{id} is at {worker:?} beside {}", other.name));
            }
        }
        Ok(())
    }

    /// Whatever a worker has by now: no item of it is given out beyond one whole.
    pub(super) fn check_items(&self, worker: WorkerId) -> Kept {
        let mut taken: BTreeMap<(&Name, u8), u64> = BTreeMap::new();
        for (.., share) in self.model.held_by(worker) {
            for (name, portion) in portions(share) {
                let own = (0..u128::BITS as u8).filter(|item| portion.items >> item & 1 == 1);
                let own = own.map(|item| (item, Amount::PARTS));
                let shared = portion.shared.map(|(item, parts)| (item, u64::from(parts)));
                for (item, parts) in own.chain(shared) {
                    *taken.entry((name, item)).or_default() += parts;
                }
            }
        }
        match taken.into_iter().find(|(_, parts)| *parts > Amount::PARTS) {
            None => Ok(()),
            Some(((name, item), parts)) => {
                let what = format!("{parts} of 10000 of {name} {item} of {worker:?} are given out");
                Err(Broken::new(Promise::Resources, what))
            }
        }
    }

    /// One more task fits beside what its worker holds. What `later` names is not given out yet.
    pub(super) fn check_room(
        &self,
        worker: WorkerId,
        grant: &Grant,
        later: &BTreeSet<LeaseNo>,
    ) -> Kept {
        // Who takes without having joined has said nothing of what it has. And what the grant's own batch has
        // ended since takes nothing.
        let room = self.rooms.get(&worker).filter(|room| room.kinds.is_some());
        let (Some(room), Some(task)) = (room, self.model.tasks.get(&grant.task)) else {
            return Ok(());
        };
        let share = grant.share.as_deref();
        let needs = task.way(share);
        let used = self.used(worker, later);
        let broken = |what: String| {
            let what = format!("{} at {worker:?}: {what}", grant.task);
            Err(Broken::new(Promise::Resources, what))
        };
        let said = &grant.profile.needs;
        if (said.slots, said.memory, &said.resources)
            != (needs.slots, needs.memory, &needs.resources)
        {
            return broken(format!("it is said to need {said:?} and needs {needs:?}"));
        }
        if needs.memory > 0 && used.memory > room.capacity.memory.into() {
            let (taken, has) = (used.memory, room.capacity.memory);
            return broken(format!("{taken} bytes are taken of {has}"));
        }
        if let Some(tag) = needs.tags.iter().find(|tag| !room.tags.contains(tag)) {
            return broken(format!("it is not {tag}"));
        }
        for (name, request) in &needs.resources {
            let (supply, taken) = (room.supply(name), used.parts(name));
            let has = Amount::whole(supply.count);
            let portion = portion_of(share, name).copied().unwrap_or_default();
            let is_all = *request == Request::All;
            let is_told_apart = supply.count <= Supply::ITEMS_MAX;
            let beyond =
                u32::try_from(supply.count).ok().and_then(|n| portion.visible().checked_shr(n));
            let is_named = portion.amount == Amount::default();
            if taken > has.parts() || is_all && parts(&portion) != has.parts() {
                return broken(format!("{taken} parts of {has} {name} are taken"));
            }
            if is_named != is_told_apart || beyond.is_some_and(|bits| bits != 0) {
                return broken(format!("of {has} {name} it gets {portion:?}"));
            }
        }
        let wanted = task.profile.time_request_ms.or(task.profile.time_limit_ms);
        if let (Some(until), Some(ms)) = (room.until, wanted)
            && self.at.after_ms(ms) > until
        {
            return broken(format!(
                "it asks for {ms} ms, and {} are left",
                until.since_ms(self.at)
            ));
        }
        Ok(())
    }

    /// A worker that only takes what is pushed never has more than it said.
    pub(super) fn check_slots(&self, worker: WorkerId, later: &BTreeSet<LeaseNo>) -> Kept {
        let Some(room) = self.rooms.get(&worker) else { return Ok(()) };
        let used = self.used(worker, later);
        let (slots, ahead) = (room.capacity.slots, room.ahead);
        if used.is_pulled || used.slots <= slots + ahead {
            return Ok(());
        }
        let slots_used = used.slots;
        let what =
            format!("worker {} has {slots} slots and {ahead} ahead, {slots_used} used", worker.0);
        Err(Broken::new(Promise::Slots, what))
    }

    fn used(&self, worker: WorkerId, later: &BTreeSet<LeaseNo>) -> Used<'_> {
        let mut used = Used::default();
        for (task, lease, share) in self.model.held_by(worker) {
            if later.contains(&lease) {
                continue;
            }
            used.add(task, share);
            used.is_pulled |= self.pulled.contains(&lease);
        }
        used
    }
}

/// What the leases of a worker take.
#[derive(Default)]
struct Used<'a> {
    slots: u32,
    memory: u128,
    resources: BTreeMap<&'a Name, u64>,
    /// Some of it was asked for.
    is_pulled: bool,
}

impl<'a> Used<'a> {
    fn parts(&self, name: &Name) -> u64 {
        self.resources.get(name).copied().unwrap_or(0)
    }

    fn add(&mut self, task: &'a model::Task, share: Option<&'a Share>) {
        let needs = task.way(share);
        self.slots += needs.slots;
        self.memory += u128::from(needs.memory);
        for (name, portion) in portions(share) {
            *self.resources.entry(name).or_default() += parts(portion);
        }
    }
}

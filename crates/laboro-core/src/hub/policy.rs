//! Which task goes to which worker. Whoever wants another rule changes this file.
//!
//! A worker takes from the best class that fits it. Classes stand in the order of their best lane: first the owner with the
//! fewest slots in use for its weight (`ledger/lanes/accounts.rs`), then the lane's priority, then its age, except that the lanes of an open job go to the end each time they are served:
//! such a job may never run out of tasks. A task that was lost with its workers too often goes to a worker that has
//! nothing else, and that one gets nothing else meanwhile. A class whose task is too big for the worker's free room is passed over,
//! but not for ever: after `passes_max` times the worker is kept free for it. A class whose tasks take several workers finds
//! them when it is its turn (`gather`).

use crate::command::Capacity;
use crate::event::Share;
use crate::id::{Name, Time};
use crate::ledger::{Class, ClassHandle, Ledger, Worker, WorkerHandle};
use crate::presence::{Member, OfferKind, Presence};
use crate::resources::{Request, Supply};
use crate::setting::NODES;
use crate::task::{Demand, Needs};
use crate::view::Standing;

/// Room at a worker for one round of matching.
pub(super) struct Room {
    slots: u32,
    /// Beyond the slots, for small tasks only.
    ahead: u32,
    memory: u64,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fit {
    Yes,
    /// It would, if the worker had nothing else to do.
    Later,
    Never,
}

impl Room {
    pub(super) fn of(member: &Member, worker: &Worker, kind: OfferKind) -> Room {
        let slots = member.capacity.slots.saturating_sub(member.fewer_slots);
        let free = u64::from(slots).saturating_sub(worker.used.slots) as u32;
        let beyond = worker.used.slots.saturating_sub(u64::from(slots));
        let (slots, ahead) = match kind {
            OfferKind::Push => (free, u64::from(member.ahead).saturating_sub(beyond) as u32),
            // Who asks for n tasks gets n of one slot each whatever it has, or bigger ones that fit.
            OfferKind::Answer { most, .. } => (free.max(most), 0),
        };
        // Whose task runs alone has room for nothing else.
        let (slots, ahead) = if worker.used.alone > 0 { (0, 0) } else { (slots, ahead) };
        let memory = u128::from(member.capacity.memory).saturating_sub(worker.used.memory) as u64;
        Room { slots, ahead, memory }
    }

    pub(super) fn is_full(&self) -> bool {
        self.slots == 0 && self.ahead == 0
    }

    /// Is there a slot for each that the task needs, or is it small enough to be sent ahead?
    pub(super) fn has_slots(&self, needs: &Needs) -> bool {
        needs.slots <= self.slots || self.ahead > 0 && is_small(needs)
    }

    pub(super) fn reserve(&mut self, needs: &Needs, is_alone: bool) {
        if is_alone {
            (self.slots, self.ahead) = (0, 0);
        } else if needs.slots <= self.slots {
            self.slots -= needs.slots;
        } else {
            self.ahead -= 1;
        }
        self.memory = self.memory.saturating_sub(needs.memory);
    }

    /// The first way to run it that fits now; else whether any will.
    pub(super) fn fit_any(
        &self,
        member: &Member,
        worker: &Worker,
        kind: OfferKind,
        needs: &Needs,
        is_alone: bool,
    ) -> (Fit, u8) {
        let mut best = Fit::Never;
        for (variant, way) in needs.ways() {
            match self.fit(member, worker, kind, way, is_alone) {
                Fit::Yes => return (Fit::Yes, variant),
                Fit::Later => best = Fit::Later,
                Fit::Never => {}
            }
        }
        (best, 0)
    }

    fn fit(
        &self,
        member: &Member,
        worker: &Worker,
        kind: OfferKind,
        needs: &Needs,
        is_alone: bool,
    ) -> Fit {
        let all = &member.capacity;
        let slots_ever = match kind {
            OfferKind::Push => all.slots.saturating_sub(member.fewer_slots),
            OfferKind::Answer { .. } => all.slots.max(1),
        };
        if needs.slots > slots_ever
            || needs.memory > all.memory
            || !needs.tags.iter().all(|tag| member.tags.binary_search(tag).is_ok())
            || !needs.resources.iter().all(|(name, wanted)| supply(all, name).is_enough(*wanted))
        {
            return Fit::Never;
        }
        let free_now = self.has_slots(needs)
            && (!is_alone || worker.leases == 0)
            && needs.memory <= self.memory
            && needs.resources.iter().all(|(name, wanted)| {
                supply(all, name).portion(worker.used.resource(name), *wanted).is_some()
            });
        if free_now { Fit::Yes } else { Fit::Later }
    }
}

/// One slot and nothing else that could be short.
fn is_small(needs: &Needs) -> bool {
    needs.slots == 1 && needs.memory == 0 && needs.resources.is_empty()
}

/// What of its worker's resources a task gets that goes this way.
pub(super) fn share(member: &Member, worker: &Worker, needs: &Needs, variant: u8) -> Option<Share> {
    if needs.resources.is_empty() && variant == 0 {
        return None;
    }
    let portion = |(name, wanted): &(Name, Request)| {
        let portion = supply(&member.capacity, name).portion(worker.used.resource(name), *wanted);
        (name.clone(), portion.expect("what is leased fits"))
    };
    let portions = needs.resources.iter().map(portion).collect();
    Some(Share { portions, variant, nodes: Vec::new() })
}

static NOTHING: Supply = Supply { count: 0, items: Vec::new() };

pub(super) fn supply<'a>(capacity: &'a Capacity, name: &Name) -> &'a Supply {
    let found = capacity.resources.iter().find(|(known, _)| known == name);
    found.map_or(&NOTHING, |(_, supply)| supply)
}

/// Whether the worker is there long enough for a task that asks for so much time. One that does not ask takes what is left.
pub(super) fn has_time(member: &Member, limit_ms: Option<u64>, now: Time) -> bool {
    match (member.until, limit_ms) {
        (Some(until), Some(limit)) => now.after_ms(limit) <= until,
        _ => true,
    }
}

/// Whether it could be one of several workers of a task, once it has nothing else to do.
pub(super) fn can_be_node(member: &Member, worker: &Worker, class: &Class, now: Time) -> bool {
    let demand = Demand { fields: class.kind.fields.with(NODES), ..class.kind };
    let room = Room::of(member, worker, OfferKind::Push);
    member.push.is_some()
        && member.session.is_some()
        && member.answers.is_empty()
        && !member.draining
        && worker.record.standing == Standing::Good
        && member.kinds.has(demand)
        && has_time(member, class.limit_ms, now)
        && room.fit_any(member, worker, OfferKind::Push, &class.needs, true).0 != Fit::Never
}

/// How many tasks a worker may have more, as its standing goes.
pub(super) fn allowance(worker: &Worker) -> u32 {
    match worker.record.standing {
        Standing::Good => u32::MAX,
        Standing::Probation if worker.leases == 0 => 1,
        Standing::Probation | Standing::OnHold | Standing::Ejected => 0,
    }
}

/// A worker that takes tasks, and how it asked for them.
#[derive(Clone, Copy)]
pub(super) struct Taker {
    pub(super) worker: WorkerHandle,
    pub(super) kind: OfferKind,
    pub(super) lease_ms: Option<u64>,
}

/// The class that the offer takes from next, if any fits. Counts who was passed over.
pub(super) fn choose(
    ledger: &Ledger,
    presence: &Presence,
    passes: &mut super::matching::Passes,
    taker: Taker,
    room: &Room,
    passes_max: u32,
    now: Time,
) -> Choice {
    let member = presence.member(taker.worker).expect("who takes is a member");
    let worker = ledger.workers().get(taker.worker);
    for class in ledger.lanes().heads(worker.group) {
        let this = ledger.lanes().class(class);
        if !member.kinds.has(this.kind) || !has_time(member, this.limit_ms, now) {
            continue;
        }
        if this.needs.nodes > 0 {
            if taker.kind != OfferKind::Push {
                continue;
            }
            if passes.gathers.wants(class, this, presence.comings()) {
                return Choice::Gather(class);
            }
            let is_free = worker.leases == 0 && can_be_node(member, worker, this, now);
            if is_free && passes.gathers.waits_for_busy(class, ledger) {
                return Choice::StandIn(class);
            }
            continue;
        }
        let (fit, variant) = room.fit_any(member, worker, taker.kind, &this.needs, this.is_alone);
        match fit {
            Fit::Never => {}
            Fit::Yes => return Choice::Take(class, variant),
            Fit::Later if taker.kind != OfferKind::Push => {}
            Fit::Later if member.kept_for == Some(this.serial) => return Choice::Wait(class),
            Fit::Later => {
                if passes.passed(class, this.serial) >= passes_max {
                    return Choice::Wait(class);
                }
            }
        }
    }
    Choice::Nothing
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Choice {
    /// By this of its variants.
    Take(ClassHandle, u8),
    /// Stay free for this class.
    Wait(ClassHandle),
    /// Find workers for a task of this class.
    Gather(ClassHandle),
    /// Be one of the workers that are found, in the place of one that is busy.
    StandIn(ClassHandle),
    Nothing,
}

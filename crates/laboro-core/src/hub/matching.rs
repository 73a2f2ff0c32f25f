//! Brings ready tasks and waiting workers together. Between commands nobody who waits fits anything that
//! is ready, so only what has just changed is looked at: classes that woke up, workers with new room.

use super::Hub;
use super::gather::Gathers;
use super::policy::{self, Choice, Fit, Room, Taker};
use crate::effect::{Effect, Element, Grant, Role};
use crate::event::{Event, Share};
use crate::id::{GroupId, TaskId};
use crate::ledger::{ClassHandle, LaneHandle, OfferHandle, Phase, WorkerHandle};
use crate::presence::OfferKind;
use crate::reply::{Idle, Reply};
use crate::task::{Profile, State};
use crate::view::Standing;
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::sync::Arc;

/// How often classes were passed over by smaller tasks since they last got something.
#[derive(Debug, Default)]
pub(super) struct Passes {
    /// By the handle of the class, with its serial.
    counts: Vec<(u64, u32)>,
    /// Classes that were passed over in the search under way, with their serials.
    just_now: Vec<(ClassHandle, u64)>,
    /// Which worker is kept free for a class, one for each, with the class's serial.
    keepers: BTreeMap<ClassHandle, (u64, WorkerHandle)>,
    /// Workers that are kept together for one task.
    pub(super) gathers: Gathers,
}

impl Passes {
    /// Counts one more, unless a worker is kept for the class already.
    pub(super) fn passed(&mut self, class: ClassHandle, serial: u64) -> u32 {
        if self.keepers.contains_key(&class) {
            return 0;
        }
        self.just_now.push((class, serial));
        match self.counts.get(class.at()) {
            Some(&(known, count)) if known == serial => count,
            _ => 0,
        }
    }

    /// Something was taken from behind those that were passed over.
    fn overtaken(&mut self) {
        for (class, serial) in self.just_now.drain(..) {
            let at = class.at();
            if at >= self.counts.len() {
                self.counts.resize(at + 1, (0, 0));
            }
            let (known, count) = &mut self.counts[at];
            *count = if *known == serial { count.saturating_add(1) } else { 1 };
            *known = serial;
        }
    }

    /// The worker is not kept free for any class.
    pub(super) fn dismiss_keeper(&mut self, worker: WorkerHandle) {
        self.keepers.retain(|_, &mut (_, keeper)| keeper != worker);
    }

    /// The class got something; gives the worker that was kept free for it.
    pub(super) fn served(&mut self, class: ClassHandle) -> Option<WorkerHandle> {
        if let Some(count) = self.counts.get_mut(class.at()) {
            *count = (0, 0);
        }
        if self.keepers.is_empty() {
            return None;
        }
        self.keepers.remove(&class).map(|(_, worker)| worker)
    }
}

impl Hub {
    pub(super) fn match_waiting(&mut self) {
        loop {
            if !self.passes.keepers.is_empty() {
                self.dismiss_keepers();
            }
            self.free_nodes();
            self.note_changes();
            if !self.passes.gathers.is_empty() {
                self.tend_gathers();
            }
            if self.ledger.nothing_awake() {
                return;
            }
            for group in self.ledger.take_idle_groups() {
                self.end_waiting(group);
            }
            for worker in self.ledger.take_loosened() {
                self.serve_again(worker);
            }
            for class in self.ledger.take_awake() {
                self.find_workers(class);
            }
        }
    }

    /// Nothing of the group goes on by itself any more: those who wait for that are told.
    fn end_waiting(&mut self, group: GroupId) {
        if self.ledger().group(group).counts.active() > 0 {
            return;
        }
        while let Some(token) = self.presence.next_ending(group) {
            self.give_up(token);
        }
    }

    /// The worker may have more room than before. Offers that a class may have tried take a new turn, so
    /// that they are new to it.
    fn serve_again(&mut self, worker: WorkerHandle) {
        self.note_end(worker);
        let Some(member) = self.presence.member(worker) else { return };
        let offers: SmallVec<[OfferHandle; 4]> =
            member.push.iter().chain(&member.answers).copied().collect();
        for offer in offers {
            if self.presence.may_have_been_tried(offer) {
                self.presence.unqueue(offer);
            }
            self.serve(offer, u32::MAX);
        }
    }

    /// Whoever is kept free for a class that wants nothing any more goes back to work.
    fn dismiss_keepers(&mut self) {
        let mut keepers = std::mem::take(&mut self.passes.keepers);
        keepers.retain(|&class, &mut (serial, worker)| {
            let wanted = self.ledger().lanes().class(class).serial == serial
                && !self.class_is_idle(class)
                && self.can_keep(worker, class, serial);
            if !wanted && let Some(member) = self.presence.member_mut(worker) {
                member.kept_for = None;
                self.ledger.note_room(worker);
            }
            wanted
        });
        self.passes.keepers = keepers;
    }

    /// Is the worker still kept for the class, and will it be able to take from it?
    fn can_keep(&self, worker: WorkerHandle, class: ClassHandle, serial: u64) -> bool {
        let Some(member) = self.presence.member(worker) else { return false };
        let this = self.ledger().workers().get(worker);
        let room = Room::of(member, this, OfferKind::Push);
        let class = self.ledger().lanes().class(class);
        member.kept_for == Some(serial)
            && member.push.is_some()
            && !member.draining
            // Another that is not gathered for others can be kept in its place.
            && member.gathered.is_none()
            && this.record.standing == Standing::Good
            && member.kinds.has(class.kind)
            && policy::has_time(member, class.limit_ms, self.ledger.now())
            && room.fit_any(member, this, OfferKind::Push, &class.needs, class.is_alone).0
                != Fit::Never
    }

    /// Gives the tasks of a class that woke up to those who wait, least recently served first, and about
    /// as many to each.
    fn find_workers(&mut self, class: ClassHandle) {
        let (group, serial) = {
            let this = self.ledger().lanes().class(class);
            (this.group, this.serial)
        };
        let mut after = self.presence.tried(class, serial);
        let (mut quota, mut round_end) = (0, 0);
        loop {
            if self.class_is_idle(class) {
                return;
            }
            let Some((turn, offer)) = self.presence.next_waiting(group, after) else { break };
            if turn > round_end {
                quota = self.fair_share(class, group);
                round_end = self.presence.last_turn();
            }
            self.serve(offer, quota);
            after = turn;
        }
        self.presence.set_tried(group, class, serial, after);
    }

    pub(super) fn class_is_idle(&self, class: ClassHandle) -> bool {
        let this = self.ledger().lanes().class(class);
        self.ledger().lanes().is_idle(class) || self.ledger().group(this.group).paused
    }

    fn fair_share(&self, class: ClassHandle, group: GroupId) -> u32 {
        let ledger = self.ledger();
        // The first lane is enough to tell a few tasks from many.
        let ready = ledger.lanes().best_lane(class).map_or(0, |lane| {
            let job = ledger.job(ledger.lanes().lane(lane).job);
            job.counts.of(State::Ready)
        });
        let waiting = self.presence.waiting_count(group).max(1) as u32;
        ready.div_ceil(waiting).max(1)
    }

    /// Gives an offer what fits, at most so many tasks; then it waits on, or is answered.
    pub(super) fn serve(&mut self, offer: OfferHandle, quota: u32) {
        let waiting = self.presence.offer(offer).clone();
        let taker =
            Taker { worker: waiting.worker, kind: waiting.kind, lease_ms: waiting.lease_ms };
        let grants = self.fill(taker, quota);
        let was_served = !grants.is_empty();
        let worker = self.ledger().workers().get(waiting.worker).id;
        match waiting.kind {
            OfferKind::Push => {
                if was_served
                    && let Some(session) =
                        self.presence.member(waiting.worker).and_then(|member| member.session)
                {
                    self.effects.push(Effect::Dispatch { session, worker, grants });
                }
                if !self.has_room(waiting.worker) {
                    self.presence.unqueue(offer);
                } else if was_served || !self.presence.is_queued(offer) {
                    self.presence.queue(offer);
                }
            }
            OfferKind::Answer { token, .. } if was_served => {
                self.presence.drop_offer(offer);
                let reply = Reply::Work { worker, grants };
                self.effects.push(Effect::Reply { token, reply });
            }
            // Who got nothing keeps its turn.
            OfferKind::Answer { .. } if self.presence.is_queued(offer) => {}
            OfferKind::Answer { .. } => self.presence.queue(offer),
        }
    }

    fn runs_alone(&self, worker: WorkerHandle) -> bool {
        self.ledger().workers().get(worker).used.alone > 0
    }

    fn has_room(&self, worker: WorkerHandle) -> bool {
        let Some(member) = self.presence.member(worker) else { return false };
        let this = self.ledger().workers().get(worker);
        !member.draining
            && policy::allowance(this) > 0
            && !Room::of(member, this, OfferKind::Push).is_full()
    }

    /// Leases what fits the taker's room.
    pub(super) fn fill(&mut self, taker: Taker, quota: u32) -> Vec<Grant> {
        if self.is_gathered(taker.worker) {
            return Vec::new();
        }
        let ledger = self.ledger.read();
        let member = self.presence.member(taker.worker).expect("who takes is a member");
        let worker = ledger.workers().get(taker.worker);
        let mut left = quota.min(policy::allowance(worker));
        if let OfferKind::Answer { most, .. } = taker.kind {
            left = left.min(most);
        }
        if member.draining || left == 0 || ledger.group(worker.group).paused {
            return Vec::new();
        }
        let mut room = Room::of(member, worker, taker.kind);
        let mut grants = Vec::new();
        while left > 0 && !room.is_full() {
            self.passes.just_now.clear();
            let (ledger, presence) = (self.ledger.read(), &self.presence);
            let (max, now) = (self.config.passes_max, self.ledger.now());
            match policy::choose(ledger, presence, &mut self.passes, taker, &room, max, now) {
                Choice::Nothing => break,
                // Started at once, so that the next in the same step finds workers for the next task.
                Choice::Gather(class) => {
                    self.gather(class);
                    self.start_if_complete(class);
                    if self.is_gathered(taker.worker) || self.runs_alone(taker.worker) {
                        break;
                    }
                }
                Choice::StandIn(class) => {
                    self.stand_in(class, taker.worker);
                    self.start_if_complete(class);
                    break;
                }
                Choice::Wait(class) => {
                    let serial = ledger.lanes().class(class).serial;
                    self.passes.keepers.insert(class, (serial, taker.worker));
                    let member = self.presence.member_mut(taker.worker);
                    member.expect("who takes is a member").kept_for = Some(serial);
                    break;
                }
                Choice::Take(class, variant) => {
                    self.passes.overtaken();
                    if let Some(keeper) = self.passes.served(class)
                        && let Some(member) = self.presence.member_mut(keeper)
                    {
                        member.kept_for = None;
                        if keeper != taker.worker {
                            self.ledger.note_room(keeper);
                        }
                    }
                    self.lease_from((class, variant), taker, &mut room, &mut left, &mut grants);
                }
            }
        }
        if !grants.is_empty() {
            self.presence.note_engaged(taker.worker);
        }
        grants
    }

    /// Leases tasks of the best lane of a class while they fit.
    fn lease_from(
        &mut self,
        (class, variant): (ClassHandle, u8),
        taker: Taker,
        room: &mut Room,
        left: &mut u32,
        grants: &mut Vec<Grant>,
    ) {
        let Some(lane) = self.ledger().lanes().best_lane(class) else { return };
        let (needs, is_alone) = {
            let class = self.ledger().lanes().class(class);
            (class.needs.clone(), class.is_alone)
        };
        let needs = needs.way(variant);
        loop {
            let task = self.head_of(lane);
            let share = {
                let member = self.presence.member(taker.worker).expect("who takes is a member");
                let worker = self.ledger.read().workers().get(taker.worker);
                policy::share(member, worker, needs, variant).map(Arc::new)
            };
            grants.push(self.grant(task, taker.worker, taker.lease_ms, share));
            room.reserve(needs, is_alone);
            *left -= 1;
            let fits = *left > 0 && room.has_slots(needs) && needs.memory == 0;
            if !fits || !needs.resources.is_empty() || !self.ledger().lanes().may_go_on(lane) {
                return;
            }
        }
    }

    /// The task that stands first in a lane; of an array, its first fresh element.
    #[inline]
    pub(super) fn head_of(&self, lane: LaneHandle) -> TaskId {
        let ledger = self.ledger();
        let head = ledger.lanes().lane(lane).head;
        let id = ledger.id_of(head);
        if !id.is_whole() {
            return id;
        }
        let (job, at) = ledger.array_of(head);
        let first = ledger.job(job).arrays[at].fresh.next(0);
        TaskId::new(id.job, first.expect("a gate stands in a lane for its fresh elements"))
    }

    #[inline]
    pub(super) fn grant(
        &mut self,
        task: TaskId,
        worker: WorkerHandle,
        lease_ms: Option<u64>,
        share: Option<Arc<Share>>,
    ) -> Grant {
        let lease = self.ledger().next_lease();
        let until = lease_ms.map(|ms| self.ledger.now().after_ms(ms));
        let worker = self.ledger().workers().get(worker).id;
        self.ledger.post(Event::Leased { task, lease, worker, until, share: share.clone() });

        let ledger = self.ledger();
        let handle = ledger.record_of(task).expect("a leased task has a record");
        let record = ledger.task(handle);
        debug_assert!(matches!(record.phase, Phase::Leased { .. }));
        let job = ledger.job(record.job);
        let (name, element) = match job.array_at(record.index) {
            None => (record.name.clone(), None),
            Some(at) => {
                let array = &job.arrays[at];
                let position = record.index - array.first;
                let (count, values) = (array.count, array.values.clone());
                (array.name.clone(), Some(Element { position, count, values }))
            }
        };
        let profile = ledger.profiles().get(record.profile);
        let profile = match &share {
            Some(share) if share.variant > 0 => {
                let needs = profile.needs.way(share.variant).clone();
                Arc::new(Profile { needs, ..Profile::clone(profile) })
            }
            _ => Arc::clone(profile),
        };
        Grant {
            lease,
            task,
            name,
            job_name: job.options.name.clone(),
            own_names: job.options.own_names,
            element,
            attempt: record.attempt(),
            fails: record.fails,
            work: record.work.clone(),
            profile,
            share,
            memo: record.memo().cloned(),
            role: Role::Only,
        }
    }

    /// Why an offer of this worker gets nothing.
    pub(super) fn idle_reason(&self, worker: WorkerHandle) -> Idle {
        let this = self.ledger().workers().get(worker);
        let group = self.ledger().group(this.group);
        // Who is on hold waits for work, and where none can come it waits for nothing.
        let is_finished = group.ever_used && group.counts.active() == 0;
        let is_own = this.leases > 0
            && group.counts.active() == u64::from(group.counts.of(State::Leased))
            && group.counts.of(State::Waiting) == 0
            && self.runs_for_the_last_time(worker);
        match this.record.standing {
            Standing::Ejected => return Idle::Ejected,
            Standing::OnHold if !is_finished && !is_own => return Idle::OnHold,
            Standing::Probation if this.leases > 0 && !is_own => return Idle::OnHold,
            Standing::OnHold | Standing::Probation | Standing::Good => {}
        }
        if self.presence.member(worker).is_some_and(|member| member.draining) {
            Idle::Draining
        } else if is_finished {
            Idle::Finished
        } else if !group.ever_used {
            Idle::Fresh
        } else if is_own {
            Idle::Own
        } else {
            Idle::Later
        }
    }

    /// None of what this worker runs is tried again if it fails.
    fn runs_for_the_last_time(&self, worker: WorkerHandle) -> bool {
        let ledger = self.ledger();
        let workers = ledger.workers();
        workers.leases_of(worker).all(|lease| {
            let record = ledger.task(workers.lease(lease).task);
            let attempts = ledger.profiles().get(record.profile).attempts;
            record.fails.saturating_add(1) >= attempts
        })
    }
}

//! Tasks that take several whole workers at one moment. When it is the turn of such a task, as many workers of its group
//! are chosen as it wants, idle ones before others, and get nothing more; when the last of them has ended what it ran, the
//! task starts. A worker that has nothing to do before that takes the place of one that is busy. So it waits for nothing
//! but what its workers ran when they were chosen.
//!
//! A class gathers for one task at a time, and only where there are enough workers: all of them are chosen at once, so no
//! two tasks wait for each other's. A class that lacks workers only because they are gathered for others is the next to
//! gather. One that loses a worker lets the others go and begins anew. Who is chosen comes from a pool of the class
//! (`pools`); a class for which there are too few looks again only when a worker has come or changed.

mod pools;

use super::Hub;
use super::policy;
use crate::effect::{Effect, Grant, Node, Role};
use crate::event::Share;
use crate::id::{GroupId, WorkerId};
use crate::ledger::{Class, ClassHandle, Ledger, WorkerHandle};
use pools::Pools;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Which workers are gathered, and for which classes.
#[derive(Debug, Default)]
pub(super) struct Gathers {
    under_way: BTreeMap<ClassHandle, Gather>,
    /// Classes for which there were too few workers: the serial of each, and how often any had come or gone then.
    short: BTreeMap<ClassHandle, (u64, u64)>,
    /// In each group the class that gathers next: there are enough workers, but others have them.
    next: BTreeMap<GroupId, (ClassHandle, u64)>,
    /// How often a gathering has ended.
    ended: u64,
    pools: Pools,
}

#[derive(Debug)]
struct Gather {
    serial: u64,
    workers: Vec<WorkerHandle>,
    /// So many of them, from the first, have nothing else to do any more.
    free: usize,
    /// One of them is not there any more, or cannot take the task.
    is_broken: bool,
}

impl Gathers {
    pub(super) fn is_empty(&self) -> bool {
        self.under_way.is_empty() && self.next.is_empty()
    }

    /// Whether it is worth looking for workers.
    pub(super) fn wants(&self, handle: ClassHandle, class: &Class, comings: u64) -> bool {
        let state = (class.serial, comings + self.ended);
        !self.under_way.contains_key(&handle)
            && self.short.get(&handle) != Some(&state)
            && self.next.get(&class.group).is_none_or(|(next, _)| *next == handle)
    }

    /// Whether one of the workers for the class still runs something else.
    pub(super) fn waits_for_busy(&self, class: ClassHandle, ledger: &Ledger) -> bool {
        let gather = self.under_way.get(&class).filter(|gather| !gather.is_broken);
        let next = gather.and_then(|gather| gather.workers.get(gather.free));
        next.is_some_and(|&worker| ledger.workers().get(worker).leases > 0)
    }

    /// How many workers are kept for the class, and how many of them have nothing else to do.
    pub(super) fn kept(&self, class: ClassHandle, serial: u64) -> Option<(usize, usize)> {
        let gather = self.under_way.get(&class).filter(|gather| gather.serial == serial)?;
        Some((gather.workers.len(), gather.free))
    }
}

impl Hub {
    /// Whatever happened to workers is told to those who choose some of them.
    pub(super) fn note_changes(&mut self) {
        let pools = &mut self.passes.gathers.pools;
        self.presence.drain_changed().for_each(|worker| pools.note(worker));
    }

    /// The worker has ended something.
    pub(super) fn note_end(&mut self, worker: WorkerHandle) {
        self.passes.gathers.pools.note(worker);
    }

    /// Chooses workers for the next task of the class, if there are enough.
    pub(super) fn gather(&mut self, handle: ClassHandle) {
        self.note_changes();
        let (ledger, now) = (self.ledger.read(), self.ledger.now());
        let class = ledger.lanes().class(handle);
        let (group, serial, wanted) = (class.group, class.serial, class.needs.nodes as usize);
        let gathers = &mut self.passes.gathers;
        gathers.short.remove(&handle);
        gathers.next.retain(|_, (next, _)| *next != handle);
        let pool = gathers.pools.look(handle, ledger, &self.presence, now);
        let (free, all) = pool.counts();
        if free < wanted {
            let comings = self.presence.comings() + gathers.ended;
            gathers.short.insert(handle, (serial, comings));
            if all >= wanted {
                gathers.next.insert(group, (handle, serial));
            }
            return;
        }
        let workers = pool.best(wanted, ledger);
        for &worker in &workers {
            self.set_gathered(worker, handle);
        }
        let gather = Gather { serial, workers, free: 0, is_broken: false };
        self.passes.gathers.under_way.insert(handle, gather);
    }

    /// What it was kept free for so far is for another to take.
    fn set_gathered(&mut self, worker: WorkerHandle, handle: ClassHandle) {
        self.passes.dismiss_keeper(worker);
        if let Some(member) = self.presence.member_mut(worker) {
            member.kept_for = None;
        }
        self.presence.set_gathered(worker, Some(handle));
    }

    /// A worker that has nothing to do takes the place of one that is waited for, which goes back to work.
    pub(super) fn stand_in(&mut self, handle: ClassHandle, worker: WorkerHandle) {
        let Some(gather) = self.passes.gathers.under_way.get_mut(&handle) else { return };
        let at = gather.free;
        let Some(busy) = gather.workers.get_mut(at) else { return };
        let busy = std::mem::replace(busy, worker);
        self.presence.set_gathered(busy, None);
        self.set_gathered(worker, handle);
        self.ledger.note_room(busy);
    }

    fn can_be_node(&self, worker: WorkerHandle, class: &Class) -> bool {
        let Some(member) = self.presence.member(worker) else { return false };
        let this = self.ledger().workers().get(worker);
        policy::can_be_node(member, this, class, self.ledger.now())
    }

    /// The worker is gathered: it takes nothing else. It may be that it cannot take the task any more.
    pub(super) fn is_gathered(&mut self, worker: WorkerHandle) -> bool {
        let gathered = self.presence.member(worker).and_then(|member| member.gathered);
        let Some(handle) = gathered else { return false };
        let can = self.can_be_node(worker, self.ledger().lanes().class(handle));
        if let Some(gather) = self.passes.gathers.under_way.get_mut(&handle) {
            gather.is_broken |= !can;
        }
        true
    }

    /// Starts what has its workers, lets go who is not wanted any more.
    pub(super) fn tend_gathers(&mut self) {
        for class in self.presence.take_strayed() {
            if let Some(gather) = self.passes.gathers.under_way.get_mut(&class) {
                gather.is_broken = true;
            }
        }
        let under_way: Vec<ClassHandle> = self.passes.gathers.under_way.keys().copied().collect();
        for handle in under_way {
            self.start_if_complete(handle);
        }
        let next: Vec<(ClassHandle, u64)> = self.passes.gathers.next.values().copied().collect();
        for (handle, serial) in next {
            let class = self.ledger().lanes().class(handle);
            if class.serial != serial || self.class_is_idle(handle) {
                self.passes.gathers.next.retain(|_, (next, _)| *next != handle);
            } else if self.passes.gathers.wants(handle, class, self.presence.comings()) {
                self.gather(handle);
                self.start_if_complete(handle);
            }
        }
    }

    pub(super) fn start_if_complete(&mut self, handle: ClassHandle) {
        if self.is_complete(handle) {
            self.start_gathered(handle);
        }
    }

    /// Have all of them nothing else to do? What cannot come about is given up.
    fn is_complete(&mut self, handle: ClassHandle) -> bool {
        let ledger = self.ledger.read();
        let is_idle = self.class_is_idle(handle);
        let Some(gather) = self.passes.gathers.under_way.get_mut(&handle) else { return false };
        if gather.is_broken || is_idle || ledger.lanes().class(handle).serial != gather.serial {
            self.let_go(handle);
            return false;
        }
        // Nobody who is gathered is given anything, so who was free is.
        while let Some(&worker) = gather.workers.get(gather.free) {
            if ledger.workers().get(worker).leases > 0 {
                return false;
            }
            gather.free += 1;
        }
        let class = ledger.lanes().class(handle);
        let gather = &self.passes.gathers.under_way[&handle];
        let can = gather.workers.iter().all(|&worker| self.can_be_node(worker, class));
        if !can {
            // The time of one of them is too short by now.
            self.let_go(handle);
        }
        can
    }

    fn let_go(&mut self, class: ClassHandle) {
        let Some(gather) = self.passes.gathers.under_way.remove(&class) else { return };
        self.passes.gathers.ended += 1;
        for worker in gather.workers {
            if self.presence.member(worker).is_some_and(|member| member.gathered == Some(class)) {
                self.presence.set_gathered(worker, None);
                self.ledger.note_room(worker);
            }
        }
    }

    /// The worker whose name comes first runs it, and all of them get a lease of their own.
    fn start_gathered(&mut self, handle: ClassHandle) {
        let Some(lane) = self.ledger().lanes().best_lane(handle) else { return };
        let Some(gather) = self.passes.gathers.under_way.remove(&handle) else { return };
        self.passes.gathers.ended += 1;
        self.passes.served(handle);
        let mut workers = gather.workers;
        workers.sort_by(|&one, &other| {
            let workers = self.ledger().workers();
            workers.get(one).name.cmp(&workers.get(other).name)
        });
        let nodes: Arc<[Node]> = workers.iter().map(|&worker| self.node(worker)).collect();
        let first = workers[0];
        let (share, lease_ms) = {
            let member = self.presence.member(first).expect("who is gathered is here");
            let worker = self.ledger().workers().get(first);
            let needs = &self.ledger().lanes().class(handle).needs;
            let share = policy::share(member, worker, needs, 0);
            let others = workers[1..].iter().map(|&other| self.ledger().workers().get(other).id);
            let others: Vec<WorkerId> = others.collect();
            let share = match others.is_empty() {
                true => share,
                false => Some(Share { nodes: others, ..share.unwrap_or_default() }),
            };
            let offer = member.push.expect("who is gathered takes what is sent");
            (share.map(Arc::new), self.presence.offer(offer).lease_ms)
        };
        let task = self.head_of(lane);
        let mut grant = self.grant(task, first, lease_ms, share);
        grant.role = Role::First(nodes);
        let kept = Grant {
            element: None,
            work: None,
            share: None,
            memo: None,
            role: Role::Kept,
            ..grant.clone()
        };
        let mut grant = Some(grant);
        for worker in workers {
            let id = self.ledger().workers().get(worker).id;
            self.presence.set_gathered(worker, None);
            let member = self.presence.member_mut(worker).expect("who is gathered is here");
            member.engaged = true;
            let (session, offer) = (member.session, member.push);
            if let Some(offer) = offer {
                self.presence.unqueue(offer);
            }
            if let Some(session) = session {
                let grants = vec![grant.take().unwrap_or_else(|| kept.clone())];
                self.effects.push(Effect::Dispatch { session, worker: id, grants });
            }
        }
    }

    fn node(&self, worker: WorkerHandle) -> Node {
        let name = self.ledger().workers().get(worker).name.clone();
        let member = self.presence.member(worker).expect("who is gathered is here");
        let host = if member.host.bytes().is_empty() { &name } else { &member.host };
        Node { host: host.clone(), slots: member.capacity.slots, worker: name }
    }

    /// Who was kept for a task that is over is told so.
    pub(super) fn free_nodes(&mut self) {
        for (worker, task, lease) in self.ledger.take_freed_nodes() {
            let session = self.presence.member(worker).and_then(|member| member.session);
            if let Some(session) = session {
                let worker = self.ledger().workers().get(worker).id;
                let leases = vec![(task, lease)];
                self.effects.push(Effect::Revoke { session, worker, leases });
            }
        }
    }
}

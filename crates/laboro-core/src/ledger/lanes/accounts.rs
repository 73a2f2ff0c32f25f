//! Whose turn it is between the owners of one group: the owner with the fewest slots in use for its weight, and of
//! several with equally few the one that has waited longest. An *account* is what an owner has in a group; a *queue* holds the
//! lanes of one account in one class. Nothing here is journaled: leases and the hub's settings add up to it.
//!
//! A change of one account costs O(log owners) for each class in which it has something to do. An account without
//! competition is not even sorted in: its place is looked up when another one comes.

mod rota;

use super::{LaneOrder, Lanes};
use crate::config::Shares;
use crate::id::{GroupId, Name};
use crate::ledger::front::Front;
use crate::ledger::handle::{AccountHandle, ClassHandle, LaneHandle, QueueHandle};
use crate::task::Needs;
use crate::view::OwnerView;
pub(super) use rota::Rota;
use smallvec::SmallVec;
use std::ops::Bound;
use std::sync::Arc;

/// Smaller goes first: fewer slots in use for its weight, then longer ago that this changed.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    load: u64,
    stamp: u64,
}

#[derive(Debug)]
pub(crate) struct Account {
    group: GroupId,
    owner: Option<Name>,
    weight: u32,
    pub(crate) max_slots: Option<u64>,
    /// What its tasks that run take.
    pub(crate) slots: u64,
    stamp: u64,
    /// Where its queues are sorted in. Not the present one while nobody competes.
    place: Place,
    /// Those with lanes in them.
    queues: SmallVec<[QueueHandle; 2]>,
    /// How many of these are open to workers.
    standing: u32,
    jobs: u32,
}

#[derive(Debug)]
pub(crate) struct Queue {
    class: ClassHandle,
    account: AccountHandle,
    pub(super) lanes: Front<(LaneOrder, LaneHandle)>,
    /// Where it stands in its class.
    filed: Option<Place>,
    /// Its position among the queues of its account.
    at: u32,
    /// Lanes that point here, listed or not.
    users: u32,
}

/// One group's classes with something to do, by their best queue.
#[derive(Debug, Default)]
pub(super) struct GroupQueue {
    pub(super) heads: Front<(Place, LaneOrder, ClassHandle)>,
    /// How many classes have lanes that are listed, whether their owners may have more or not.
    pub(super) busy: usize,
    /// Accounts with something to do.
    standing: u32,
}

impl Account {
    fn present_place(&self) -> Place {
        let load = (self.slots << WEIGHT_BITS) / u64::from(self.weight.max(1));
        Place { load, stamp: self.stamp }
    }

    /// Would another task of this class be more than it may have?
    fn is_full_for(&self, needs: &Needs) -> bool {
        self.max_slots.is_some_and(|most| self.slots + most_slots(needs) > most)
    }

    fn vacant() -> Account {
        Account {
            group: GroupId::default(),
            owner: None,
            weight: 1,
            max_slots: None,
            slots: 0,
            stamp: 0,
            place: Place::default(),
            queues: SmallVec::new(),
            standing: 0,
            jobs: 0,
        }
    }
}

/// Weights up to this many bits are told apart for a single slot.
const WEIGHT_BITS: u32 = 20;

/// Of whichever way it takes.
pub(crate) fn most_slots(needs: &Needs) -> u64 {
    needs.ways().map(|(_, way)| u64::from(way.slots_in_all())).max().unwrap_or(0)
}

impl Lanes {
    pub(crate) fn account(&self, account: AccountHandle) -> &Account {
        &self.accounts[account]
    }

    /// The hub's settings of how owners share. Whatever is there is sorted anew.
    pub(crate) fn set_shares(&mut self, shares: Arc<Shares>) {
        self.shares = shares;
        let accounts: Vec<AccountHandle> = self.account_by_owner.values().copied().collect();
        for account in accounts {
            let this = &mut self.accounts[account];
            let share = self.shares.of(this.owner.as_ref());
            (this.weight, this.max_slots) = (share.weight, share.max_running_slots);
            self.refile_all(account);
        }
    }

    /// Who has jobs in the group, in the order of names; jobs without an owner come first.
    pub(crate) fn owners_after(
        &self,
        group: GroupId,
        after: Option<&Name>,
    ) -> impl Iterator<Item = OwnerView> + '_ {
        let from = match after {
            None => Bound::Included((group, None)),
            Some(after) => Bound::Excluded((group, Some(after.clone()))),
        };
        let owners = self.account_by_owner.range((from, Bound::Unbounded));
        owners.take_while(move |((of, _), _)| *of == group).map(|((_, owner), &account)| {
            let Account { slots, weight, max_slots, jobs, .. } = self.accounts[account];
            let owner = owner.clone();
            OwnerView { owner, jobs, slots_used: slots, weight, max_running_slots: max_slots }
        })
    }

    /// A job more of this owner in this group.
    pub(crate) fn join_account(&mut self, group: GroupId, owner: Option<&Name>) -> AccountHandle {
        let key = (group, owner.cloned());
        let account = match self.account_by_owner.get(&key) {
            Some(&account) => account,
            None => {
                let share = self.shares.of(owner);
                let account = self.accounts.insert(Account {
                    group,
                    owner: owner.cloned(),
                    weight: share.weight,
                    max_slots: share.max_running_slots,
                    ..Account::vacant()
                });
                self.account_by_owner.insert(key, account);
                account
            }
        };
        self.accounts[account].jobs += 1;
        account
    }

    /// A job less. It has no lanes any more, and nothing of it runs.
    pub(crate) fn leave_account(&mut self, account: AccountHandle) {
        self.accounts[account].jobs -= 1;
        if self.accounts[account].jobs == 0 {
            let gone = self.accounts.remove(account, Account::vacant());
            debug_assert!(gone.slots == 0 && gone.queues.is_empty(), "it has no jobs");
            self.account_by_owner.remove(&(gone.group, gone.owner));
        }
    }

    /// A task of the account was given to a worker.
    pub(crate) fn take_slots(&mut self, account: AccountHandle, slots: u32) {
        self.accounts[account].slots += u64::from(slots);
        self.slots_changed(account);
    }

    /// A task of the account is not with a worker any more.
    pub(crate) fn free_slots(&mut self, account: AccountHandle, slots: u32) {
        self.accounts[account].slots -= u64::from(slots);
        self.slots_changed(account);
    }

    fn slots_changed(&mut self, account: AccountHandle) {
        self.stamp += 1;
        let this = &mut self.accounts[account];
        this.stamp = self.stamp;
        let is_alone = self.groups.get(this.group.at()).is_none_or(|group| group.standing <= 1);
        if !this.queues.is_empty() && (!is_alone || this.max_slots.is_some()) {
            self.refile_all(account);
        }
    }

    pub(super) fn queue_for(&mut self, class: ClassHandle, account: AccountHandle) -> QueueHandle {
        if let Some(&queue) = self.queue_by_key.get(&(class, account)) {
            self.queues[queue].users += 1;
            return queue;
        }
        let queue = Queue { class, account, lanes: Front::default(), filed: None, at: 0, users: 1 };
        let queue = self.queues.insert(queue);
        self.queue_by_key.insert((class, account), queue);
        queue
    }

    /// A lane less points to it.
    pub(super) fn release_queue(&mut self, queue: QueueHandle) {
        self.queues[queue].users -= 1;
        if self.queues[queue].users == 0 {
            let vacant = Queue {
                class: ClassHandle::NONE,
                account: AccountHandle::NONE,
                lanes: Front::default(),
                filed: None,
                at: 0,
                users: 0,
            };
            let gone = self.queues.remove(queue, vacant);
            debug_assert!(gone.lanes.is_empty(), "only an empty queue is dropped");
            self.queue_by_key.remove(&(gone.class, gone.account));
        }
    }

    /// The lane that goes first in its class, if its owner may have more.
    pub(crate) fn best_lane(&self, class: ClassHandle) -> Option<LaneHandle> {
        let &(_, queue) = self.classes[class].queues.first()?;
        self.queues[queue].lanes.first().map(|&(_, lane)| lane)
    }

    /// For each owner in a class that may have more: the tasks of the class that it may have more, and its lanes.
    pub(crate) fn open_queues(
        &self,
        class: ClassHandle,
    ) -> impl Iterator<Item = (u64, impl Iterator<Item = LaneHandle> + '_)> + '_ {
        let class = &self.classes[class];
        class.queues.iter().map(|(_, queue)| {
            let queue = &self.queues[queue];
            let account = &self.accounts[queue.account];
            let left = account.max_slots.map(|most| most.saturating_sub(account.slots));
            let tasks = left.map_or(u64::MAX, |left| left / most_slots(&class.needs).max(1));
            (tasks, queue.lanes.iter().map(|&(_, lane)| lane))
        })
    }

    /// After a task of the lane was given out, is it the turn of the same lane again?
    pub(crate) fn may_go_on(&self, lane: LaneHandle) -> bool {
        let this = &self.lanes[lane];
        if !this.listed || self.queues[this.queue].filed.is_none() {
            return false;
        }
        let group = &self.groups[self.classes[this.class].group.at()];
        let is_first = || {
            let head = group.heads.first().map(|&(.., class)| class);
            head == Some(this.class) && self.best_lane(this.class) == Some(lane)
        };
        group.standing <= 1 || is_first()
    }

    pub(super) fn insert_lane(&mut self, queue: QueueHandle, order: LaneOrder, lane: LaneHandle) {
        let this = &mut self.queues[queue];
        let account = &mut self.accounts[this.account];
        if this.lanes.is_empty() {
            this.at = account.queues.len() as u32;
            account.queues.push(queue);
        }
        this.lanes.insert((order, lane));
        self.refile(queue);
    }

    pub(super) fn remove_lane(&mut self, queue: QueueHandle, order: LaneOrder, lane: LaneHandle) {
        let this = &mut self.queues[queue];
        this.lanes.remove(&(order, lane));
        if this.lanes.is_empty() {
            let (at, account) = (this.at, this.account);
            let queues = &mut self.accounts[account].queues;
            queues.swap_remove(at as usize);
            if let Some(&moved) = queues.get(at as usize) {
                self.queues[moved].at = at;
            }
        }
        self.refile(queue);
    }

    /// The lane stands elsewhere among those of its queue.
    pub(super) fn move_lane(
        &mut self,
        queue: QueueHandle,
        lane: LaneHandle,
        from: LaneOrder,
        to: LaneOrder,
    ) {
        let lanes = &mut self.queues[queue].lanes;
        lanes.remove(&(from, lane));
        lanes.insert((to, lane));
        self.refile(queue);
    }

    /// Sorts all queues of an account in where it stands now.
    fn refile_all(&mut self, account: AccountHandle) {
        self.accounts[account].place = self.accounts[account].present_place();
        let mut at = 0;
        while let Some(&queue) = self.accounts[account].queues.get(at) {
            self.refile(queue);
            at += 1;
        }
    }

    /// Puts a queue where it belongs in its class, and its class in its group.
    fn refile(&mut self, queue: QueueHandle) {
        let Queue { class, account, filed, .. } = self.queues[queue];
        let this = &mut self.accounts[account];
        let stands =
            !self.queues[queue].lanes.is_empty() && !this.is_full_for(&self.classes[class].needs);
        if stands && this.standing == 0 {
            this.place = this.present_place();
        }
        let wanted = stands.then_some(this.place);
        if wanted != filed {
            self.queues[queue].filed = wanted;
            let queues = &mut self.classes[class].queues;
            if let Some(place) = filed {
                queues.remove(&(place, queue));
            }
            if let Some(place) = wanted {
                queues.insert((place, queue));
            }
            self.count_standing(account, filed.is_some(), wanted.is_some());
        }
        self.refile_class(class);
    }

    fn count_standing(&mut self, account: AccountHandle, before: bool, after: bool) {
        if before == after {
            return;
        }
        let this = &mut self.accounts[account];
        let was_there = this.standing > 0;
        this.standing = if after { this.standing + 1 } else { this.standing - 1 };
        let is_there = this.standing > 0;
        if was_there == is_there {
            return;
        }
        let this_group = this.group;
        let group = &mut self.groups[this_group.at()];
        if !is_there {
            group.standing -= 1;
            return;
        }
        group.standing += 1;
        if group.standing == 2
            && let Some(other) = self.first_other(this_group, account)
        {
            // It was alone so far, and its place was not kept up.
            self.refile_all(other);
        }
    }

    /// Another account that stands in the group where there are two.
    fn first_other(&self, group: GroupId, account: AccountHandle) -> Option<AccountHandle> {
        let &(.., class) = self.groups[group.at()].heads.first()?;
        let queues = self.classes[class].queues.iter();
        queues.map(|(_, queue)| self.queues[queue].account).find(|&other| other != account)
    }

    /// Does everything stand where it belongs? Walks over all of it.
    pub(in crate::ledger) fn check_order(&self) -> Result<(), String> {
        let mut standing = vec![0; self.groups.len()];
        for (&(group, _), &account) in &self.account_by_owner {
            let this = &self.accounts[account];
            let filed = this.queues.iter().filter(|&&queue| self.queues[queue].filed.is_some());
            if filed.count() != this.standing as usize {
                return Err(format!("{this:?} miscounts its queues"));
            }
            if this.standing > 0 {
                standing[group.at()] += 1;
                let is_alone = self.groups[group.at()].standing == 1;
                if !is_alone && this.place != this.present_place() {
                    return Err(format!("{this:?} does not stand where it belongs"));
                }
            }
        }
        for (&(class, account), &queue) in &self.queue_by_key {
            let (this, owner) = (&self.queues[queue], &self.accounts[account]);
            let stands = !this.lanes.is_empty() && !owner.is_full_for(&self.classes[class].needs);
            if this.filed != stands.then_some(owner.place) {
                return Err(format!("{this:?} does not stand where its owner does"));
            }
        }
        let counted = self.groups.iter().map(|group| group.standing).collect::<Vec<u32>>();
        if counted != standing {
            return Err(format!("{counted:?} owners stand in groups, but {standing:?} do"));
        }
        Ok(())
    }

    /// Puts a class where its best queue belongs.
    fn refile_class(&mut self, class: ClassHandle) {
        let this = &self.classes[class];
        let best = this.queues.first().and_then(|&(place, queue)| {
            let &(order, _) = self.queues[queue].lanes.first()?;
            Some((place, order))
        });
        let filed = this.filed;
        if best == filed {
            return;
        }
        let heads = &mut self.groups[this.group.at()].heads;
        if let Some((place, order)) = filed {
            heads.remove(&(place, order, class));
        }
        if let Some((place, order)) = best {
            heads.insert((place, order, class));
        }
        self.classes[class].filed = best;
        if filed.is_none() {
            self.awake.push(class);
        }
    }
}

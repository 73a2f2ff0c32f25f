//! The ledger of a living hub: whatever changes it is an event, and every event is remembered until the batch it
//! belongs to is sealed. Also hands over what events left to be looked at.

use super::{ClassHandle, Ledger, TaskHandle, WorkerHandle};
use crate::config::Shares;
use crate::event::Event;
use crate::id::{GroupId, LeaseNo, TaskId, Time};
use std::collections::BTreeSet;
use std::sync::Arc;

/// A ledger and the events posted to it since they were last taken.
#[derive(Debug)]
pub(crate) struct LedgerWriter {
    ledger: Ledger,
    posted: Vec<Event>,
    now: Time,
}

impl LedgerWriter {
    pub(crate) fn new(ledger: Ledger) -> LedgerWriter {
        LedgerWriter { ledger, posted: Vec::new(), now: Time(0) }
    }

    pub(crate) fn read(&self) -> &Ledger {
        &self.ledger
    }

    /// Time never goes back here, whatever the clock does.
    pub(crate) fn set_now(&mut self, now: Time) {
        self.now = self.now.max(now);
    }

    pub(crate) fn now(&self) -> Time {
        self.now
    }

    #[inline]
    pub(crate) fn post(&mut self, event: Event) {
        self.ledger.apply(self.now, &event);
        self.posted.push(event);
    }

    pub(crate) fn take_posted(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.posted)
    }

    /// Classes of tasks that have become worth a look, with what they cost to find.
    pub(crate) fn take_awake(&mut self) -> Vec<ClassHandle> {
        self.ledger.lanes.take_awake()
    }

    pub(crate) fn take_changes(&mut self) -> Vec<crate::effect::Change> {
        std::mem::take(&mut self.ledger.changes)
    }

    /// Changes are collected only while somebody watches.
    pub(crate) fn collect_changes(&mut self, on: bool) {
        self.ledger.collects_changes = on;
    }

    /// Workers that are not kept any more for a task that ran on another.
    pub(crate) fn take_freed_nodes(&mut self) -> Vec<(WorkerHandle, TaskId, LeaseNo)> {
        std::mem::take(&mut self.ledger.freed_nodes)
    }

    pub(crate) fn take_loosened(&mut self) -> Vec<WorkerHandle> {
        std::mem::take(&mut self.ledger.loosened)
    }

    /// How owners share is a setting, and what follows from it is derived.
    pub(crate) fn set_shares(&mut self, shares: Arc<Shares>) {
        self.ledger.lanes.set_shares(shares);
    }

    /// Levels are derived, so they change without an event.
    pub(crate) fn set_level(&mut self, node: TaskHandle, level: u32) {
        self.ledger.set_level(node, level);
    }

    /// Groups in which nothing went on any more at some time.
    pub(crate) fn take_idle_groups(&mut self) -> BTreeSet<GroupId> {
        std::mem::take(&mut self.ledger.idle_groups)
    }

    /// Also those that an earlier version left, or a hub that was killed.
    pub(crate) fn note_unused_groups(&mut self) {
        let groups: Vec<GroupId> = self.ledger.groups().map(|group| group.id).collect();
        groups.into_iter().for_each(|group| self.ledger.note_if_unused(group));
    }

    /// Groups in which nothing was left at some time.
    pub(crate) fn take_unused_groups(&mut self) -> BTreeSet<GroupId> {
        std::mem::take(&mut self.ledger.unused_groups)
    }

    /// The worker may have room that nobody has looked at.
    pub(crate) fn note_room(&mut self, worker: WorkerHandle) {
        self.ledger.loosened.push(worker);
    }

    pub(crate) fn nothing_awake(&self) -> bool {
        let ledger = &self.ledger;
        ledger.lanes.nobody_awake() && ledger.loosened.is_empty() && ledger.idle_groups.is_empty()
    }
}

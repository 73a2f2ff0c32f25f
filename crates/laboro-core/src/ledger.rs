//! The state that events add up to. `post` is the only way to change it, live and in replay alike:
//! what a journal holds is exactly what happened here.

mod apply;
mod check;
mod condense;
mod describe;
mod elements;
mod graph;
mod index_set;
mod jobs;
mod lanes;
mod load;
mod moves;
mod names;
mod order;
mod pages;
mod profiles;
mod record;
pub mod restore;
mod slab;
mod state;
mod workers;

pub(crate) use jobs::{Array, Job};
pub use load::Load;
pub(crate) use load::Scale;
pub(crate) use record::{HELD_BECAUSE, Phase, Record};
pub(crate) use slab::{NONE, Slab};
pub use state::State;
pub(crate) use state::Timer;
pub(crate) use workers::{RECENT, Tally, TrackRecord, Worker};

use crate::event::Event;
use crate::id::Time;
use std::collections::BTreeSet;

/// A state and the events posted to it since they were last taken.
#[derive(Debug)]
pub(crate) struct Ledger {
    state: State,
    posted: Vec<Event>,
    now: Time,
}

impl Ledger {
    pub(crate) fn new(state: State) -> Ledger {
        Ledger { state, posted: Vec::new(), now: Time(0) }
    }

    pub(crate) fn state(&self) -> &State {
        &self.state
    }

    /// Time never goes back here, whatever the clock does.
    pub(crate) fn set_now(&mut self, now: Time) {
        self.now = self.now.max(now);
    }

    pub(crate) fn now(&self) -> Time {
        self.now
    }

    pub(crate) fn post(&mut self, event: Event) {
        self.state.apply(self.now, &event);
        self.posted.push(event);
    }

    pub(crate) fn take_posted(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.posted)
    }

    /// Classes of tasks that have become worth a look, with what they cost to find.
    pub(crate) fn take_awake(&mut self) -> Vec<u32> {
        self.state.lanes.take_awake()
    }

    pub(crate) fn take_changes(&mut self) -> Vec<crate::effect::Change> {
        std::mem::take(&mut self.state.changes)
    }

    /// Changes are collected only while somebody watches.
    pub(crate) fn collect_changes(&mut self, on: bool) {
        self.state.collects_changes = on;
    }

    pub(crate) fn take_loosened(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.state.loosened)
    }

    /// Levels are derived, so they change without an event.
    pub(crate) fn set_level(&mut self, node: u32, level: u32) {
        self.state.set_level(node, level);
    }

    /// Groups in which nothing went on any more at some time.
    pub(crate) fn take_idle_groups(&mut self) -> BTreeSet<u32> {
        std::mem::take(&mut self.state.idle_groups)
    }

    /// Also those that an earlier version left, or a hub that was killed.
    pub(crate) fn note_unused_groups(&mut self) {
        let groups: Vec<u32> = self.state.groups().map(|group| group.id.0).collect();
        groups.into_iter().for_each(|group| self.state.note_if_unused(group));
    }

    /// Groups in which nothing was left at some time.
    pub(crate) fn take_unused_groups(&mut self) -> BTreeSet<u32> {
        std::mem::take(&mut self.state.unused_groups)
    }

    /// The worker may have room that nobody has looked at.
    pub(crate) fn look_at(&mut self, worker: u32) {
        self.state.loosened.push(worker);
    }

    pub(crate) fn nothing_awake(&self) -> bool {
        let state = &self.state;
        state.lanes.nobody_awake() && state.loosened.is_empty() && state.idle_groups.is_empty()
    }
}

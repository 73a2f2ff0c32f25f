//! Nodes that poll and are gone. Such a node says nothing while all of it works, so that silence alone means nothing.
//! But one with a free slot asks for work, and one whose task is over says so: who has not spoken for a while and should
//! have is not there any more, and its tasks go to others.

use super::FuqState;
use super::register::Node;
use crate::listen::Reception;
use laboro_core::{
    Command, JobId, Leave, Leaving, Name, Query, Reply, TaskId, Time, WorkerRef, WorkerView,
    counted,
};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

/// What was seen of the nodes that poll.
#[derive(Debug, Default)]
pub(super) struct Absence {
    nodes: HashMap<String, Seen>,
    /// How long the longest task of a job took that was told here.
    longest_ms: BTreeMap<JobId, u64>,
}

#[derive(Debug, Default)]
struct Seen {
    /// When something was last asked or answered.
    at: Time,
    slots: u32,
    /// Requests that are being answered.
    standing: u32,
    /// What it was given, and when.
    given: HashMap<TaskId, Time>,
}

/// A task may take so many times as long as the longest before it.
const LONGER: u64 = 10;
const JOBS_MAX: usize = 10_000;
const LOOK_MS_MIN: u64 = 250;

impl Absence {
    /// Those that may hold something since an earlier life of the hub.
    pub(super) fn remember(&mut self, now: Time, nodes: impl Iterator<Item = Node>) {
        for node in nodes {
            let seen = Seen { at: now, slots: node.slots, ..Seen::default() };
            self.nodes.entry(node.name).or_insert(seen);
        }
    }

    fn note(&mut self, now: Time, node: &Node) -> &mut Seen {
        let seen = self.nodes.entry(node.name.clone()).or_default();
        (seen.at, seen.slots) = (now, node.slots);
        seen
    }

    pub(super) fn gave(&mut self, now: Time, node: &Node, tasks: impl Iterator<Item = TaskId>) {
        let seen = self.note(now, node);
        // What was lost or cancelled is never told of.
        if seen.given.len() > 4 * seen.slots as usize + 64 {
            seen.given.clear();
        }
        seen.given.extend(tasks.map(|task| (task, now)));
    }

    pub(super) fn ended(&mut self, now: Time, node: &Node, task: TaskId) {
        let Some(began) = self.note(now, node).given.remove(&task) else { return };
        let longest = self.longest_ms.entry(task.job).or_default();
        *longest = (*longest).max(now.since_ms(began));
        if self.longest_ms.len() > JOBS_MAX {
            self.longest_ms.pop_first();
        }
    }

    /// Nodes that have been silent for this time.
    fn quiet(&self, now: Time, quiet_ms: u64) -> Vec<String> {
        let is_quiet = |seen: &Seen| seen.standing == 0 && now.since_ms(seen.at) >= quiet_ms;
        let quiet = self.nodes.iter().filter(|(_, seen)| is_quiet(seen));
        quiet.map(|(name, _)| name.clone()).collect()
    }

    /// Whether a quiet node that holds these should have spoken.
    fn is_gone(&self, now: Time, quiet_ms: u64, view: &WorkerView, is_connected: bool) -> bool {
        let Some(seen) = self.nodes.get(&view.name.to_string()) else { return false };
        if view.lease_count < seen.slots {
            return true;
        }
        let silent_ms = now.since_ms(seen.at);
        let is_late = |(task, _): &(TaskId, _)| {
            let longest = self.longest_ms.get(&task.job);
            longest
                .is_some_and(|ms| silent_ms >= ms.saturating_mul(LONGER).saturating_add(quiet_ms))
        };
        !is_connected && view.leases.iter().all(is_late)
    }
}

/// A request of the node is being answered for as long as this is kept.
pub(super) struct Present<'a> {
    door: &'a FuqState,
    reception: &'a Reception,
    node: &'a Node,
}

impl<'a> Present<'a> {
    pub(super) fn new(door: &'a FuqState, reception: &'a Reception, node: &'a Node) -> Present<'a> {
        let now = reception.hall.clock.now();
        door.absence().note(now, node).standing += 1;
        Present { door, reception, node }
    }
}

impl Drop for Present<'_> {
    fn drop(&mut self) {
        let now = self.reception.hall.clock.now();
        let mut absence = self.door.absence();
        let seen = absence.note(now, self.node);
        seen.standing = seen.standing.saturating_sub(1);
    }
}

/// Looks for nodes that are gone, until the hub stops.
pub(super) async fn watch(door: Arc<FuqState>, reception: Reception) {
    let hall = &reception.hall;
    let known = door.register().all();
    door.absence().remember(hall.clock.now(), known.into_iter());
    let pause = Duration::from_millis((door.quiet_ms / 4).max(LOOK_MS_MIN));
    loop {
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = hall.stop.cancelled() => return,
        }
        let quiet = door.absence().quiet(hall.clock.now(), door.quiet_ms);
        for name in quiet {
            look_at(&door, &reception, name).await;
        }
    }
}

async fn look_at(door: &FuqState, reception: &Reception, name: String) {
    let group = Name::from(reception.door.group.as_str());
    let worker = WorkerRef::Name { group, name: Name::from(name.as_str()) };
    let view = match reception.handle.ask(Command::Query(Query::Worker(worker.clone()))).await {
        Ok(Reply::Workers(views)) => views.into_iter().next(),
        _ => None,
    };
    // One with a websocket is the affair of its connection.
    let view = view.filter(|view| view.dialect.bytes() == b"fuq" && view.lease_count > 0);
    let (now, is_connected) = (reception.hall.clock.now(), door.polls(&name));
    let has_gone =
        |view: &WorkerView| door.absence().is_gone(now, door.quiet_ms, view, is_connected);
    if view.as_ref().is_none_or(has_gone) {
        door.absence().nodes.remove(&name);
    } else {
        return;
    }
    let Some(view) = view else { return };
    let (at, tasks) = (&reception.door, view.lease_count);
    tracing::warn!("{at}: {name} is lost: {} of it go to others", counted(tasks, "task"));
    let leave = Leave { worker, session: None, how: Leaving::Gone };
    let _ = reception.handle.ask(Command::Leave(leave)).await;
}

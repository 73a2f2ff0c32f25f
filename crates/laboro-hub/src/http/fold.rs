//! Many changes into few events: ranges that touch become one, a job in which too much happens becomes a hint to
//! look at it again. What viewers are told is bounded by time, not by how fast tasks end.

use laboro_api::{Event, EventKind};
use laboro_core::{Change, GroupId, JobId, WorkerId};
use std::collections::{BTreeSet, HashMap};

/// Ranges told of one job in one window.
const RANGES_A_JOB_MAX: usize = 32;

/// Jobs and workers told of in one window; beyond it viewers are told to look at everything again.
const SUBJECTS_MAX: usize = 5000;

#[derive(Default)]
pub(super) struct Fold {
    jobs: HashMap<JobId, JobNews>,
    /// In the order they were first heard of.
    order: Vec<JobId>,
    workers: BTreeSet<WorkerId>,
    groups: BTreeSet<GroupId>,
    is_too_much: bool,
}

#[derive(Default)]
struct JobNews {
    ranges: Vec<Change>,
    /// Something besides its tasks, or too much to tell.
    itself: bool,
    is_crowded: bool,
}

impl Fold {
    pub(super) fn add(&mut self, change: &Change) {
        if self.is_too_much {
            return;
        }
        match change {
            Change::Tasks { job, .. } => self.job(*job).add(change),
            Change::Job { job } => self.job(*job).itself = true,
            Change::Worker { worker } => drop(self.workers.insert(*worker)),
            Change::Group { group } => drop(self.groups.insert(*group)),
        }
        if self.order.len() + self.workers.len() > SUBJECTS_MAX {
            *self = Fold { is_too_much: true, ..Fold::default() };
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        !self.is_too_much
            && self.order.is_empty()
            && self.workers.is_empty()
            && self.groups.is_empty()
    }

    /// Everything since the last time.
    pub(super) fn take(&mut self, at_ms: u64) -> Vec<Event> {
        let mut folded = std::mem::take(self);
        if folded.is_too_much {
            return vec![Event::bare(EventKind::Gap, at_ms)];
        }
        let mut events = Vec::new();
        for job in folded.order {
            let news = folded.jobs.remove(&job).expect("every job in the order has its news");
            events.extend(news.ranges.iter().map(|change| Event::of(change, at_ms)));
            if news.itself {
                events.push(Event::of(&Change::Job { job }, at_ms));
            }
        }
        let workers = folded.workers.into_iter().map(|worker| Change::Worker { worker });
        let groups = folded.groups.into_iter().map(|group| Change::Group { group });
        events.extend(workers.chain(groups).map(|change| Event::of(&change, at_ms)));
        events
    }

    fn job(&mut self, job: JobId) -> &mut JobNews {
        let order = &mut self.order;
        self.jobs.entry(job).or_insert_with(|| {
            order.push(job);
            JobNews::default()
        })
    }
}

impl JobNews {
    fn add(&mut self, change: &Change) {
        if self.is_crowded || self.ranges.last_mut().is_some_and(|last| join(last, change)) {
            return;
        }
        // A task that was ready and is leased in the same window is told of as leased only.
        if let Some(known) = self.ranges.iter_mut().find(|known| is_same_range(known, change)) {
            known.clone_from(change);
            return;
        }
        if self.ranges.len() == RANGES_A_JOB_MAX {
            *self = JobNews { itself: true, is_crowded: true, ranges: Vec::new() };
            return;
        }
        self.ranges.push(change.clone());
    }
}

/// Lengthens `last` by `next` if that follows it and says the same.
fn join(last: &mut Change, next: &Change) -> bool {
    let (
        Change::Tasks { last: end, state: a, worker: b, outcome: c, .. },
        Change::Tasks { first, last: new_end, state, worker, outcome, .. },
    ) = (last, next)
    else {
        return false;
    };
    let follows = end.checked_add(1) == Some(*first);
    let joins = follows && (*a, *b, *c) == (*state, *worker, *outcome);
    if joins {
        *end = *new_end;
    }
    joins
}

fn is_same_range(known: &Change, next: &Change) -> bool {
    let range = |change: &Change| match change {
        Change::Tasks { first, last, state, .. } => Some((*first, *last, *state)),
        Change::Job { .. } | Change::Worker { .. } | Change::Group { .. } => None,
    };
    match (range(known), range(next)) {
        (Some((first, last, state)), Some((next_first, next_last, _))) => {
            // How a task ended is worth telling even when it starts anew at once.
            (first, last) == (next_first, next_last) && !state.is_finished()
        }
        _ => false,
    }
}

//! A condensed ledger in pieces: what a snapshot holds instead of the history that led there. Each piece
//! is an event like any other, so that one `apply` reads both. `condense.rs` makes them.

use super::jobs::Job;
use super::lanes::{End, Turns};
use super::load::Scale;
use super::reading::{Ledger, Timer};
use super::record::{Extra, Past, Phase, Record};
use super::workers::{NewLease, Tally, Term, TrackRecord};
use crate::event::{Ranges, Share};
use crate::id::{GroupId, JobId, LeaseNo, Name, TaskId, Time, WorkerId};
use crate::job::JobOptions;
use crate::task::{Demand, NewArray, Outcome, Profile, State, Work};
use crate::view::Standing;
use std::sync::Arc;

/// Pieces come in the order of these variants.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Restore {
    /// What follows was written by the rule that blocked tasks are over. Earlier versions say nothing.
    BlockedIsOver,
    Counters {
        life: u32,
        seed: u64,
        next_lease: u64,
        next_job: u32,
        next_worker: u32,
        front: i64,
        back: i64,
    },
    Group {
        group: GroupId,
        name: Name,
        paused: bool,
        ever_used: bool,
    },
    Worker(Box<RestoredWorker>),
    Job(Box<RestoredJob>),
    Array(Box<RestoredArray>),
    /// Elements of arrays without a record, by state.
    Elements {
        job: JobId,
        state: State,
        ranges: Ranges,
    },
    FailedElements {
        job: JobId,
        outcome: Outcome,
        ranges: Ranges,
    },
    /// Why they failed, where more is known than how.
    FailedBecause {
        job: JobId,
        why: Box<str>,
        ranges: Ranges,
    },
    Tasks(Box<RestoredTasks>),
    /// An array, and one whose elements each wait for its.
    Followers(Vec<(TaskId, TaskId)>),
    /// Predecessor and successor.
    Edges(Vec<(TaskId, TaskId)>),
    Lane {
        job: JobId,
        profile: Profile,
        kind: Demand,
        turn: i64,
        tasks: Vec<TaskId>,
    },
    Lease {
        task: TaskId,
        lease: LeaseNo,
        worker: WorkerId,
        started: Time,
        until: Option<Time>,
        period_ms: Option<u64>,
        share: Option<Arc<Share>>,
    },
}

/// A worker and how it has done.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct RestoredWorker {
    pub worker: WorkerId,
    pub group: GroupId,
    pub name: Name,
    pub dialect: Name,
    pub seen: Time,
    pub period_ms: Option<u64>,
    pub good: u64,
    pub bad: u64,
    pub since: u32,
    pub recent: Vec<(JobId, bool)>,
    /// Job, good, bad.
    pub tallies: Vec<(JobId, u32, u32)>,
    pub standing: Standing,
    pub reason: Option<Box<str>>,
    pub until: Option<Time>,
    pub holds: u32,
}

/// A job without its tasks.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct RestoredJob {
    pub job: JobId,
    pub group: GroupId,
    pub options: JobOptions,
    pub stopped: bool,
    pub forgiven: u32,
    pub submitted: Time,
    pub ended: Option<Time>,
    pub next_index: u32,
    pub failures: Vec<(Outcome, u32)>,
    pub good: u32,
    pub bad: u32,
}

/// An array without its elements.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct RestoredArray {
    pub job: JobId,
    pub first: u32,
    /// Its predecessors come as edges.
    pub array: NewArray,
    pub profile: Profile,
    pub waiting: u32,
    pub failed: u32,
    pub unfinished: u32,
    pub bad: u32,
}

/// Tasks of a job that have records.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct RestoredTasks {
    pub job: JobId,
    pub profiles: Vec<Profile>,
    pub tasks: Vec<RestoredTask>,
}

/// One record.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct RestoredTask {
    pub index: u32,
    pub name: Name,
    pub profile: u32,
    pub work: Option<Arc<Work>>,
    pub waiting: u32,
    pub failed: u32,
    pub fails: u16,
    pub lost: u16,
    pub phase: RestoredPhase,
    pub extra: Option<Box<RestoredExtra>>,
}

/// Where a task with a record is.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum RestoredPhase {
    Waiting,
    Blocked,
    /// Its place comes with its lane.
    Ready,
    Delayed(Time),
    Held,
    /// Its lease comes later.
    Leased,
    Finished(RestoredAttempt),
    Cancelled,
}

/// An attempt that has ended.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct RestoredAttempt {
    pub outcome: Outcome,
    pub worker: WorkerId,
    pub started: Time,
    pub took_ms: u32,
}

/// What few tasks have.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs)]
pub struct RestoredExtra {
    pub memo: Option<Arc<[u8]>>,
    pub message: Option<Box<str>>,
    pub past: Vec<RestoredAttempt>,
    pub lapsed: Option<(LeaseNo, WorkerId)>,
}

impl Ledger {
    pub(in crate::ledger) fn restored(&mut self, piece: &Restore) {
        match piece {
            Restore::Counters { life, seed, next_lease, next_job, next_worker, front, back } => {
                self.life = *life;
                self.set_seed(*seed);
                self.next_lease = *next_lease;
                self.next_job = *next_job;
                self.workers.next = *next_worker;
                self.lanes.set_turns(Turns { front: *front, back: *back });
                self.has_old_counts = true;
            }
            Restore::BlockedIsOver => self.has_old_counts = false,
            Restore::Group { group, name, paused, ever_used } => {
                let made = self.add_group(*group, name);
                (made.paused, made.ever_used) = (*paused, *ever_used);
            }
            Restore::Worker(worker) => self.restore_worker(worker),
            Restore::Job(job) => {
                let mut made =
                    Job::new(job.job, job.group, Box::new(job.options.clone()), job.submitted);
                made.stopped = job.stopped;
                made.forgiven = job.forgiven;
                made.ended = job.ended;
                made.next_index = job.next_index;
                made.failures = job.failures.iter().copied().collect();
                (made.good, made.bad) = (job.good, job.bad);
                self.add_job(made);
            }
            Restore::Array(array) => self.restore_array(array),
            Restore::Elements { job, state, ranges } => self.restore_elements(*job, *state, ranges),
            Restore::FailedElements { job, outcome, ranges } => {
                let job = self.live_job(*job);
                let set = self.job_mut(job).failed_elements.entry(*outcome).or_default();
                ranges.iter().for_each(|&(first, last)| set.insert_range(first, last));
            }
            Restore::FailedBecause { job, why, ranges } => {
                let job = self.live_job(*job);
                let set = self.job_mut(job).failed_because.entry(why.clone()).or_default();
                ranges.iter().for_each(|&(first, last)| set.insert_range(first, last));
            }
            Restore::Tasks(tasks) => self.restore_tasks(tasks),
            Restore::Followers(pairs) => {
                pairs.iter().for_each(|&(pred, follower)| self.add_follower(pred, follower));
            }
            Restore::Edges(edges) => {
                for &(pred, succ) in edges {
                    if let (Some(pred), Some(succ)) = (self.record_of(pred), self.record_of(succ)) {
                        self.graph.link(&mut self.tasks, pred, succ);
                    }
                }
            }
            Restore::Lane { job, profile, kind, turn, tasks } => {
                self.restore_lane(*job, profile, *kind, *turn, tasks);
            }
            Restore::Lease { task, lease: no, worker, started, until, period_ms, share } => {
                let handle = self.record_of(*task).expect("a leased task is there");
                let worker = self.live_worker(*worker);
                let profile = self.profiles.get(self.tasks[handle].profile);
                let is_alone = self.tasks[handle].is_suspect(profile) || profile.needs.nodes > 0;
                // An earlier version did not keep how long it was given for.
                let period_ms = |until: Time| period_ms.unwrap_or(until.since_ms(*started));
                let lease = self.workers.grant(
                    NewLease {
                        no: *no,
                        task: handle,
                        worker,
                        started: *started,
                        term: until.map(|until| Term::new(until, period_ms(until))),
                        share: share.clone(),
                        is_alone,
                        is_node: false,
                    },
                    &profile.needs,
                );
                let variant = share.as_ref().map_or(0, |share| share.variant);
                let slots = profile.needs.way(variant).slots_in_all();
                self.tasks[handle].phase = Phase::Leased { lease };
                let account = self.job(self.tasks[handle].job).account;
                self.lanes.take_slots(account, slots);
                if let Some(until) = until {
                    self.timers.insert((*until, Timer::Lease(*no, lease)));
                }
            }
        }
    }

    fn restore_worker(&mut self, from: &RestoredWorker) {
        let name = from.name.clone();
        let handle = self.add_worker(from.worker, from.group, name, from.seen);
        let worker = self.workers.get_mut(handle);
        (worker.dialect, worker.period_ms) = (from.dialect.clone(), from.period_ms);
        let tallies = from.tallies.iter().map(|&(job, good, bad)| Tally { job, good, bad });
        self.workers.get_mut(handle).record = TrackRecord {
            good: from.good,
            bad: from.bad,
            since: from.since,
            recent: from.recent.iter().copied().collect(),
            tallies: tallies.collect(),
            standing: from.standing,
            reason: from.reason.clone(),
            until: from.until,
            holds: from.holds,
        };
    }

    fn restore_array(&mut self, from: &RestoredArray) {
        let job = self.live_job(from.job);
        let profile = self.profiles.intern(self.job(job).group, &from.profile, 1);
        let at = self.put_array(job, from.first, &from.array, profile);
        let this = self.job_mut(job);
        this.done_elements += from.array.count - from.unfinished - from.bad;
        let array = &mut this.arrays[at];
        (array.unfinished, array.bad) = (from.unfinished, from.bad);
        let gate = array.gate;
        let mut scale = Scale::default();
        scale.array(&from.array.name, &from.array.work, &from.array.values, 0);
        self.load_ever(job, scale.bytes);
        if from.unfinished > 0 {
            self.load_bytes(job, scale.bytes);
        }
        (self.tasks[gate].waiting, self.tasks[gate].failed) = (from.waiting, from.failed);
    }

    fn restore_elements(&mut self, job: JobId, state: State, ranges: &Ranges) {
        let job = self.live_job(job);
        for &(first, last) in ranges {
            let count = last - first + 1;
            self.weigh(job, count, None, Some(state));
            let this = self.jobs[job].as_mut().expect("a job in use is there");
            let group = self.groups[this.group.at()].as_mut().expect("a job's group is there");
            this.sets[state as usize].insert_range(first, last);
            this.counts.add(state, count);
            group.counts.add(state, count);
            let at = this.array_at(first).expect("elements belong to an array");
            match state {
                State::Ready => this.arrays[at].fresh.insert_range(first, last),
                State::Blocked => this.arrays[at].blocked += count,
                _ => {}
            }
        }
    }

    fn restore_tasks(&mut self, from: &RestoredTasks) {
        let job = self.live_job(from.job);
        let group = self.job(job).group;
        let mut scale = Scale::default();
        for task in &from.tasks {
            let profile = self.profiles.intern(group, &from.profiles[task.profile as usize], 1);
            let mut record =
                Record::new(task.name.clone(), job, task.index, profile, Phase::Waiting);
            record.work.clone_from(&task.work);
            (record.waiting, record.failed) = (task.waiting, task.failed);
            (record.fails, record.lost) = (task.fails, task.lost);
            record.extra = task.extra.as_ref().map(|extra| self.share(extra.unpacked()));
            let (phase, state) = task.phase.unpacked();
            record.phase = phase;
            let before = scale.bytes;
            if self.job(job).array_at(task.index).is_none() {
                scale.task(&task.name, task.work.as_ref(), 0);
            }
            let bytes = scale.bytes - before;
            self.load_ever(job, bytes);
            if !state.is_finished() {
                self.load_bytes(job, bytes);
            }
            self.weigh(job, 1, None, Some(state));
            let handle = self.insert_record(record);
            if let Phase::Delayed { until } = phase {
                let id = TaskId::new(from.job, task.index);
                self.timers.insert((until, Timer::Delay(id)));
            }
            let this = self.jobs[job].as_mut().expect("a job in use is there");
            this.pages.put(task.index, handle);
            this.sets[state as usize].insert(task.index);
            if state == State::Blocked
                && let Some(at) = this.array_at(task.index)
            {
                this.arrays[at].blocked += 1;
            }
            this.counts.add(state, 1);
            self.group_mut(group).counts.add(state, 1);
            self.register_name(handle);
        }
    }

    /// A snapshot of an earlier version: who came after a blocked task counted it among those that it waits for. Now
    /// it counts as over, everybody is put where that leads, and jobs end that had nothing but blocked tasks left.
    pub(in crate::ledger) fn settle_old_counts(&mut self) {
        self.has_old_counts = false;
        let mut slots = Vec::new();
        for job in self.jobs_from(JobId(0)).collect::<Vec<_>>() {
            slots.extend(self.job(job).arrays.iter().map(|array| array.gate));
            slots.extend(self.job(job).pages.range(1, u32::MAX).map(|(_, slot)| slot));
        }
        for &slot in &slots {
            let preds = self.graph.preds_of(self.tasks[slot].preds);
            let waiting = preds.filter(|&pred| self.verdict(pred).is_none()).count() as u32;
            let record = &mut self.tasks[slot];
            record.failed += record.waiting.saturating_sub(waiting);
            record.waiting = waiting;
        }
        for slot in slots {
            if self.tasks[slot].is_gate() {
                self.update_array(slot, End::Back);
            } else {
                self.update_idle_record(slot, End::Back);
            }
        }
        for job in self.jobs_from(JobId(0)).collect::<Vec<_>>() {
            self.end_if_over(job);
        }
    }

    fn restore_lane(
        &mut self,
        job: JobId,
        profile: &Profile,
        kind: Demand,
        turn: i64,
        tasks: &[TaskId],
    ) {
        let job = self.live_job(job);
        let group = self.job(job).group;
        let profile = self.profiles.find(group, profile).expect("a lane's tasks have its profile");
        let turns = self.lanes.turns();
        let open = !self.job(job).is_parked();
        // All tasks of a lane are suspects or none is; earlier versions had both in one.
        for is_alone in [false, true] {
            let mut lane = None;
            for &task in tasks {
                let handle = self.record_of(task).expect("a task in a lane is there");
                if self.tasks[handle].is_suspect(self.profiles.get(profile)) != is_alone {
                    continue;
                }
                let lane = *lane.insert(self.lane_for(job, profile, kind, is_alone));
                self.lanes.push(&mut self.tasks, lane, handle, End::Back, false);
            }
            if let Some(lane) = lane {
                self.lanes.set_turn(lane, turn);
                self.lanes.open(lane, open);
            }
        }
        self.lanes.set_turns(turns);
    }
}

impl RestoredPhase {
    fn unpacked(&self) -> (Phase, State) {
        match self {
            RestoredPhase::Waiting => (Phase::Waiting, State::Waiting),
            RestoredPhase::Blocked => (Phase::Blocked, State::Blocked),
            // The lane puts it in its place.
            RestoredPhase::Ready => (Phase::Waiting, State::Ready),
            RestoredPhase::Delayed(until) => (Phase::Delayed { until: *until }, State::Delayed),
            RestoredPhase::Held => (Phase::Held, State::Held),
            RestoredPhase::Leased => (Phase::Waiting, State::Leased),
            RestoredPhase::Finished(RestoredAttempt { outcome, worker, started, took_ms }) => {
                let state = if outcome.is_success() { State::Done } else { State::Failed };
                let phase = Phase::Finished {
                    outcome: *outcome,
                    worker: *worker,
                    took_ms: *took_ms,
                    started: *started,
                };
                (phase, state)
            }
            RestoredPhase::Cancelled => (Phase::Cancelled, State::Cancelled),
        }
    }
}

impl RestoredExtra {
    fn unpacked(&self) -> Extra {
        let past = self.past.iter().map(|attempt| Past {
            outcome: attempt.outcome,
            worker: attempt.worker,
            started: attempt.started,
            took_ms: attempt.took_ms,
        });
        Extra {
            memo: self.memo.clone(),
            message: self.message.clone(),
            past: past.collect(),
            lapsed: self.lapsed,
        }
    }
}

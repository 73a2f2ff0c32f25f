//! What each event does to the state. Handlers have checked everything before an event is posted, and a
//! journal holds only what was posted: nothing here can fail.

mod added;
mod attempts;
mod control;
mod forget;

use super::reading::{Ledger, Timer};
use crate::effect::Change;
use crate::event::Event;
use crate::id::{GroupId, JobId, Name, Time, WorkerId};
use crate::ledger::{Job, JobHandle, WorkerHandle};

impl Ledger {
    /// Applies one event that happened at this time. Events of a journal come in their order.
    pub fn apply(&mut self, at: Time, event: &Event) {
        let before = std::mem::replace(&mut self.at, at);
        if self.has_old_counts && !matches!(event, Event::Restored(_)) {
            self.settle_old_counts();
        }
        match event {
            Event::Began { life, seed } => self.began(*life, *seed, before),
            Event::GroupMade { group, name } => {
                self.add_group(*group, name);
            }
            Event::GroupPaused { group, paused } => {
                self.group_mut(*group).paused = *paused;
                if !paused {
                    self.lanes.wake_group(*group);
                    self.note_if_unused(*group);
                }
                self.push_change(Change::Group { group: *group });
            }
            Event::GroupForgotten { group } => {
                self.forget_group(*group);
                self.push_change(Change::Group { group: *group });
            }
            Event::JobMade { job, group, options } => {
                let made = Job::new(*job, *group, options.clone(), at);
                self.add_job(made);
                self.group_mut(*group).ever_used = true;
                self.push_change(Change::Job { job: *job });
            }
            Event::JobClosed { job } => {
                let handle = self.live_job(*job);
                self.job_mut(handle).options.open = false;
                self.end_if_over(handle);
            }
            Event::JobHeld { job, held } => self.change_job(*job, |job| job.options.held = *held),
            Event::JobStopped { job, stopped } => self.change_job(*job, |job| {
                job.stopped = *stopped;
                if !stopped {
                    job.forgiven = job.failed_now();
                }
            }),
            Event::JobDue { job } => self.defer_job(*job, None),
            Event::JobDeferred { job, begin } => self.defer_job(*job, *begin),
            Event::JobLimited { job, max_running, max_fails } => self.change_job(*job, |job| {
                job.options.max_running = *max_running;
                job.options.max_fails = *max_fails;
            }),
            Event::JobForgotten { job } => self.job_forgotten(*job),
            Event::Added(added) => self.added(added),
            Event::PredsAdded { task, preds } => self.preds_added(*task, preds),
            Event::Renewed { task, preds, memo } => self.renewed(*task, preds, memo.as_ref()),
            Event::WorkerMet { worker, group, name, dialect, period_ms } => {
                let handle = match self.workers.find(*worker) {
                    Some(handle) => handle,
                    None => self.add_worker(*worker, *group, name.clone(), at),
                };
                let met = self.workers.get_mut(handle);
                (met.dialect, met.period_ms) = (dialect.clone(), *period_ms);
                self.push_change(Change::Worker { worker: *worker });
            }
            Event::WorkerForgotten { worker } => {
                let handle = self.live_worker(*worker);
                let group = self.workers.get(handle).group;
                self.workers.forget(handle);
                self.group_mut(group).workers -= 1;
                self.note_if_unused(group);
                self.push_change(Change::Worker { worker: *worker });
            }
            Event::Leased { task, lease, worker, until, share } => {
                self.actor = (Some(*worker), None);
                self.leased(*task, *lease, *worker, *until, share.as_ref());
            }
            Event::Finished { task, worker, outcome, then, words } => {
                self.actor = (Some(*worker), Some(*outcome));
                self.finished(*task, *worker, *outcome, *then, words.as_deref());
            }
            Event::Returned { task, why, preds } => self.returned(*task, *why, preds),
            Event::HeldBack { task, why, reason } => self.held_back(*task, *why, reason),
            Event::Woken { task } => self.woken(*task),
            Event::Cancelled { job, ranges } => self.cancelled(*job, ranges),
            Event::MarkedDone { job, ranges } => self.marked_done(*job, ranges),
            Event::Held { job, ranges } => self.held(*job, ranges),
            Event::Released { job, ranges } => self.released(*job, ranges),
            Event::Retried { job, ranges } => self.retried(*job, ranges),
            Event::Prioritised { job, ranges, priority } => {
                self.prioritised(*job, ranges, *priority);
            }
            Event::TasksForgotten { job, ranges } => self.tasks_forgotten(*job, ranges),
            Event::Judged { worker, standing, reason, until } => {
                let handle = self.live_worker(*worker);
                let record = &mut self.workers.get_mut(handle).record;
                record.judge(*standing, reason.clone(), *until);
                self.push_change(Change::Worker { worker: *worker });
            }
            Event::DocumentChanged(change) => self.documents.change(change),
            Event::Restored(piece) => self.restored(piece),
        }
        self.tidy_lanes();
        self.actor = (None, None);
    }

    /// A new life: lease numbers of this life start anew, and every live lease with an end of its own
    /// gets one more period, counted from now.
    fn began(&mut self, life: u32, seed: u64, before: Time) {
        self.life = life;
        self.next_lease = 0;
        if self.seed == 0 {
            self.set_seed(seed);
        }
        self.restart_timers(before);
    }

    pub(in crate::ledger) fn add_job(&mut self, mut job: Job) {
        let id = job.id;
        job.owner = self.own(job.options.owner.as_ref(), id);
        job.account = self.lanes.join_account(job.group, job.options.owner.as_ref());
        self.next_job = self.next_job.max(id.0);
        if let Some(key) = &job.options.key {
            // A key may pass from a job that was closed to a later one.
            let newest = self.keys.entry((job.group, job.owner, key.clone())).or_insert(id);
            *newest = id.max(*newest);
        }
        if let Some(begin) = job.options.begin {
            self.timers.insert((begin, Timer::Begin(id)));
        }
        if let Some(ended) = job.ended {
            self.ended.insert((ended, id));
        }
        self.group_mut(job.group).jobs.insert(id);
        let handle = self.jobs.insert(Some(Box::new(job)));
        self.job_ids.insert(id, handle);
    }

    pub(in crate::ledger) fn add_worker(
        &mut self,
        id: WorkerId,
        group: GroupId,
        name: Name,
        seen: Time,
    ) -> WorkerHandle {
        self.group_mut(group).workers += 1;
        self.workers.add(id, group, name, seen)
    }

    fn change_job(&mut self, id: JobId, change: impl FnOnce(&mut Job)) {
        let handle = self.live_job(id);
        change(self.job_mut(handle));
        self.refresh_lanes(handle);
        self.push_change(Change::Job { job: id });
    }

    /// Nothing of the job starts before this time.
    fn defer_job(&mut self, id: JobId, begin: Option<Time>) {
        let handle = self.live_job(id);
        if let Some(before) = std::mem::replace(&mut self.job_mut(handle).options.begin, begin) {
            self.timers.remove(&(before, Timer::Begin(id)));
        }
        if let Some(begin) = begin {
            self.timers.insert((begin, Timer::Begin(id)));
        }
        self.change_job(id, |_| {});
    }

    pub(in crate::ledger) fn live_job(&self, id: JobId) -> JobHandle {
        self.find_job(id).expect("events name only jobs that are there")
    }

    pub(in crate::ledger) fn live_worker(&self, id: WorkerId) -> WorkerHandle {
        self.workers.find(id).expect("events name only workers that are there")
    }

    pub(in crate::ledger) fn push_change(&mut self, change: Change) {
        if self.collects_changes {
            self.changes.push(change);
        }
    }
}

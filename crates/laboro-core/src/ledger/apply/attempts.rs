//! Leases and how they end: with a result, or without.

use crate::event::{ReturnReason, Share, Then, Words};
use crate::id::{LeaseNo, TaskId, Time, WorkerId};
use crate::ledger::handle::{LaneHandle, TaskHandle};
use crate::ledger::lanes::End;
use crate::ledger::reading::{Ledger, Timer};
use crate::ledger::record::{Past, Phase, Record};
use crate::ledger::workers::{NewLease, Term};
use crate::task::{Outcome, State};
use std::sync::Arc;

impl Ledger {
    pub(super) fn leased(
        &mut self,
        task: TaskId,
        no: LeaseNo,
        worker: WorkerId,
        until: Option<Time>,
        share: Option<&Arc<Share>>,
    ) {
        self.next_lease = self.next_lease.max(no.count() + 1);
        let worker = self.live_worker(worker);
        let (handle, lane) = match self.record_of(task) {
            Some(handle) => {
                let lane = self.lane_at(handle);
                self.pull_out(handle);
                (handle, lane)
            }
            None => self.make_fresh_record(task),
        };
        // An open job may go on for ever: it takes turns with the others. A closed one ends some day, and
        // goes first when it came first.
        if self.job(self.tasks[handle].job).options.open {
            self.lanes.yield_turn(lane);
        }
        let record = &mut self.tasks[handle];
        let (job, index) = (record.job, record.index);
        record.forget_lapsed();
        let profile = self.profiles.get(record.profile);
        let needs = &profile.needs;
        let started = self.at;
        let grant = NewLease {
            no,
            task: handle,
            worker,
            started,
            term: until.map(|until| Term::new(until, until.since_ms(started))),
            share: share.cloned(),
            is_alone: record.is_suspect(profile) || needs.nodes > 0,
            is_node: false,
        };
        let slots = needs.way(share.map_or(0, |share| share.variant)).slots_in_all();
        let lease = self.workers.grant(grant, needs);
        self.tasks[handle].phase = Phase::Leased { lease };
        let account = self.job(job).account;
        self.lanes.take_slots(account, slots);
        if let Some(until) = until {
            self.timers.insert((until, Timer::Lease(no, lease)));
        }
        self.count(job, index, Some(State::Ready), Some(State::Leased));
    }

    /// The record, and the lane that its array stands in.
    fn make_fresh_record(&mut self, task: TaskId) -> (TaskHandle, LaneHandle) {
        let job = self.live_job(task.job);
        let at = self.job(job).array_at(task.index).expect("a task without a record is an element");
        let lane = self.lane_at(self.job(job).arrays[at].gate);
        self.job_mut(job).arrays[at].fresh.remove(task.index);
        self.update_gate(job, at, End::Back);
        (self.make_record(job, at, task.index, Phase::Waiting), lane)
    }

    fn lane_at(&self, handle: TaskHandle) -> LaneHandle {
        match self.tasks[handle].phase {
            Phase::Ready(link) | Phase::Gate(link) => link.lane,
            other => unreachable!("only what stands in a lane is leased, not {other:?}"),
        }
    }

    pub(super) fn finished(
        &mut self,
        task: TaskId,
        worker: WorkerId,
        outcome: Outcome,
        then: Then,
        words: Option<&Words>,
    ) {
        let handle = self.record_of(task).unwrap_or_else(|| self.record_of_free(task));
        let (from, started) = match self.end_lease(handle) {
            Some(lease) => (State::Leased, lease.started),
            // A result that came late and still counts.
            None => (self.pull_out(handle), self.at),
        };
        self.note_result(handle, worker, outcome);
        let at = self.at;
        let record = &mut self.tasks[handle];
        let (job, index) = (record.job, record.index);
        record.forget_lapsed();
        if let Some(words) = words {
            let extra = record.extra_mut();
            extra.message.clone_from(&words.message);
            if let Some(memo) = &words.memo {
                extra.memo = Some(Arc::clone(memo));
            }
        }
        let took_ms = u32::try_from(at.since_ms(started)).unwrap_or(u32::MAX);
        match then {
            Then::Done | Then::Failed => {
                let good = then == Then::Done;
                if !good {
                    count_attempt(record, outcome);
                }
                record.phase = Phase::Finished { outcome, worker, took_ms, started };
                let to = if good { State::Done } else { State::Failed };
                self.count(job, index, Some(from), Some(to));
                if !good {
                    *self.job_mut(job).failures.entry(outcome).or_default() += 1;
                }
                self.ended_for_good(handle, from, to);
            }
            Then::Again(until) => {
                count_attempt(record, outcome);
                record.remember(Past { outcome, worker, started, took_ms });
                if until > at {
                    self.delay(handle, until);
                    self.count(job, index, Some(from), Some(State::Delayed));
                } else {
                    self.place(handle, Some(from), End::Front);
                }
            }
        }
    }

    /// A record for an element that nobody holds and that somebody has done all the same.
    fn record_of_free(&mut self, task: TaskId) -> TaskHandle {
        let job = self.live_job(task.job);
        let this = self.job(job);
        let at = this.array_at(task.index).expect("a task without a record is an element");
        let state = this.state_of(task.index).expect("an element is in some state");
        self.materialise(job, at, task.index, state)
    }

    /// Tells whoever waits, and folds an element back into its array. One that ended badly keeps its
    /// record if it has predecessors or successors of its own: a retry must find them.
    pub(in crate::ledger) fn ended_for_good(&mut self, handle: TaskHandle, from: State, to: State) {
        let record = &self.tasks[handle];
        let (job, index) = (record.job, record.index);
        self.tell_change(handle, Some(from), to);
        if let Some(at) = self.job(job).array_at(index) {
            let record = &self.tasks[handle];
            let succs = self.graph.succs_of(record.succs).next();
            let preds = self.graph.preds_of(record.preds).next();
            if to == State::Done || (succs.is_none() && preds.is_none() && record.failed == 0) {
                self.fold_ended(handle);
            }
            self.elements_moved(job, at, (index, index), Some(from), to);
        }
    }

    /// An element that ended is a number in a range again.
    pub(in crate::ledger) fn fold_ended(&mut self, handle: TaskHandle) {
        let Record { job, index, phase, .. } = self.tasks[handle];
        if let Phase::Finished { outcome, .. } = phase
            && !outcome.is_success()
        {
            let extra = self.tasks[handle].extra.clone();
            let this = self.job_mut(job);
            this.failed_elements.entry(outcome).or_default().insert(index);
            if let Some(why) = extra.as_ref().and_then(|extra| extra.message.as_deref()) {
                this.remember_why(index, why);
            }
        }
        self.graph.detach(&mut self.tasks, handle);
        self.fold(handle);
    }

    fn note_result(&mut self, handle: TaskHandle, worker: WorkerId, outcome: Outcome) {
        if outcome == Outcome::Lost {
            return;
        }
        let good = outcome.is_success();
        let job = self.job_mut(self.tasks[handle].job);
        let count = if good { &mut job.good } else { &mut job.bad };
        *count = count.saturating_add(1);
        let id = job.id;
        if let Some(worker) = self.workers.find(worker) {
            let at = self.at;
            let worker = self.workers.get_mut(worker);
            worker.seen = at;
            worker.record.note(id, good);
        }
    }

    pub(super) fn returned(&mut self, task: TaskId, why: ReturnReason, preds: &[TaskId]) {
        let handle = self.end_without_result(task, why).0;
        self.link_all(handle, preds);
        let end = if why == ReturnReason::Handed { End::Back } else { End::Front };
        if !self.rejoin(handle, end) {
            self.place(handle, Some(State::Leased), end);
        }
    }

    pub(super) fn held_back(&mut self, task: TaskId, why: ReturnReason, reason: &str) {
        let (handle, worker) = self.end_without_result(task, why);
        if why == ReturnReason::Handed {
            // No attempt of the task, but something that its worker did badly.
            self.note_result(handle, worker, Outcome::Error);
        }
        let record = &mut self.tasks[handle];
        let (job, index) = (record.job, record.index);
        record.extra_mut().message = Some(reason.into());
        record.phase = Phase::Held;
        self.count(job, index, Some(State::Leased), Some(State::Held));
    }

    /// Its record and its worker.
    fn end_without_result(&mut self, task: TaskId, why: ReturnReason) -> (TaskHandle, WorkerId) {
        let handle = self.record_of(task).expect("only a leased task is returned");
        let lease = self.end_lease(handle).expect("only a leased task is returned");
        let worker = self.workers.get(lease.worker).id;
        let took_ms = u32::try_from(self.at.since_ms(lease.started)).unwrap_or(u32::MAX);
        let record = &mut self.tasks[handle];
        if why == ReturnReason::Lapsed {
            record.lost = record.lost.saturating_add(1);
            let started = lease.started;
            record.remember(Past { outcome: Outcome::Lost, worker, started, took_ms });
        }
        // A late result may still count, unless the attempt was revoked, or ran on several workers of which one is lost:
        // it is stopped on the first then.
        if matches!(why, ReturnReason::Lapsed | ReturnReason::Left)
            && lease.next_node.some().is_none()
        {
            record.extra_mut().lapsed = Some((lease.no, worker));
        }
        (handle, worker)
    }

    pub(super) fn woken(&mut self, task: TaskId) {
        let Some(handle) = self.record_of(task) else { return };
        if self.tasks[handle].state() == Some(State::Delayed) {
            self.pull_out(handle);
            self.place(handle, Some(State::Delayed), End::Front);
        }
    }

    /// After a restart live leases that end by themselves have one more period, and no wait is longer than it was
    /// when anything last happened, `before`: the clock may have been set back meanwhile.
    pub(super) fn restart_timers(&mut self, before: Time) {
        let at = self.at;
        let timers: Vec<(Time, Timer)> = self.timers.iter().copied().collect();
        for (until, timer) in timers {
            match timer {
                Timer::Lease(_, lease) => {
                    let Some(term) = &mut self.workers.lease_mut(lease).term else { continue };
                    let later = at.after_ms(term.period_ms());
                    term.until = later;
                    self.move_timer(until, timer, later);
                }
                // An hour of the clock, whatever became of the clock.
                Timer::Begin(_) => {}
                Timer::Delay(task) => {
                    let Some(handle) = self.record_of(task) else { continue };
                    let latest = at.after_ms(until.since_ms(before));
                    if until > latest {
                        self.move_timer(until, timer, latest);
                        self.tasks[handle].phase = Phase::Delayed { until: latest };
                    }
                }
            }
        }
    }

    fn move_timer(&mut self, from: Time, timer: Timer, to: Time) {
        self.timers.remove(&(from, timer));
        self.timers.insert((to, timer));
    }

    /// Keeps what the last attempt left before another run overwrites it.
    pub(super) fn remember_attempt(&mut self, handle: TaskHandle) {
        let record = &mut self.tasks[handle];
        if let Phase::Finished { outcome, worker, took_ms, started } = record.phase
            && worker != WorkerId::UNKNOWN
        {
            record.remember(Past { outcome, worker, started, took_ms });
        }
    }
}

fn count_attempt(record: &mut Record, outcome: Outcome) {
    if outcome == Outcome::Lost {
        record.lost = record.lost.saturating_add(1);
    } else {
        record.fails = record.fails.saturating_add(1);
    }
}

//! A worker is lost: which of its tasks can have been the cause, and which only waited there.
//!
//! Only what can have been started counts as lost: of a worker that acknowledges what arrives, the oldest tasks that fill
//! its slots; of others, whatever they were given. The rest goes back as if it had not been sent. A task that was lost
//! `lost_max` times is a suspect: it runs alone on a worker (`Record::is_suspect`, `policy`), so that if this one is
//! lost, too, no other task can have been the cause. Then it is held, until a person releases it.

use super::Hub;
use super::lease::Claim;
use crate::command::{Decline, WorkerRef};
use crate::event::{Event, ReturnReason};
use crate::explanation::times;
use crate::id::{LeaseNo, TaskId};
use crate::ledger::{HELD_BECAUSE, Phase, WorkerHandle};
use crate::presence::Arrivals;
use crate::refusal::Refusal;
use crate::reply::Reply;

/// What a worker says about a task is kept up to this length.
const REASON_CHARS_MAX: usize = 1000;

impl Hub {
    pub(super) fn acknowledge(
        &mut self,
        worker: &WorkerRef,
        lease: LeaseNo,
    ) -> Result<Reply, Refusal> {
        let handle = self.find_worker(worker)?;
        if let Some(member) = self.presence.member_mut(handle) {
            member.arrivals.last = member.arrivals.last.max(lease);
        }
        Ok(Reply::Ok)
    }

    /// The worker's process is gone, and with it whatever it can have started.
    pub(super) fn lose_all(&mut self, worker: WorkerHandle, arrivals: Arrivals) {
        let leases = self.leases_of(worker);
        self.lose(worker, &leases, arrivals);
    }

    /// What runs there by its own account against what it holds here. What it does not run goes back; what it runs
    /// without a lease is given back as unknown.
    pub(super) fn compare(
        &mut self,
        worker: WorkerHandle,
        running: &[(TaskId, LeaseNo)],
        former: Arrivals,
    ) -> Vec<(TaskId, LeaseNo)> {
        let mut running: Vec<(TaskId, LeaseNo)> = running.to_vec();
        running.sort_unstable();
        let runs = |lease: &(TaskId, LeaseNo)| running.binary_search(lease).is_ok();
        let (held, missing): (Vec<_>, Vec<_>) = self.leases_of(worker).into_iter().partition(runs);
        let now = self.presence.admit(worker).arrivals;
        let is_same_process = match (former.life, now.life) {
            (Some(before), Some(now)) => before == now,
            _ => !held.is_empty(),
        };
        if is_same_process {
            // Nobody was lost; it has not arrived, or it is over and the hub was not told how.
            for &(task, lease) in missing.iter().rev() {
                let why = if former.has(lease) { ReturnReason::Lapsed } else { ReturnReason::Left };
                self.give_back(task, why);
            }
        } else {
            self.lose(worker, &missing, former);
        }
        let arrived = held.iter().map(|&(_, lease)| lease).max().unwrap_or_default();
        let arrivals = &mut self.presence.admit(worker).arrivals;
        arrivals.last = arrivals.last.max(arrived);
        let mut held = held;
        held.sort_unstable();
        running.into_iter().filter(|lease| held.binary_search(lease).is_err()).collect()
    }

    /// These of its leases, oldest first. Each goes to the front, so the newest goes first: then they stand there as
    /// they were given out.
    fn lose(&mut self, worker: WorkerHandle, leases: &[(TaskId, LeaseNo)], arrivals: Arrivals) {
        let may_have_run = self.may_have_run(worker, arrivals);
        for &(task, lease) in leases.iter().rev() {
            let why = if lease <= may_have_run { ReturnReason::Lapsed } else { ReturnReason::Left };
            self.take_back(task, why);
        }
    }

    /// The last of a worker's leases that it can have started: it takes them in the order in which they were given.
    fn may_have_run(&self, worker: WorkerHandle, arrivals: Arrivals) -> LeaseNo {
        if !arrivals.are_told {
            return LeaseNo(u64::MAX);
        }
        let ledger = self.ledger();
        let (mut slots, mut last) = (0u64, LeaseNo(0));
        for lease in ledger.workers().leases_of(worker) {
            let lease = ledger.workers().lease(lease);
            if slots >= u64::from(arrivals.slots.max(1)) || !arrivals.has(lease.no) {
                break;
            }
            let needs = &ledger.profiles().get(ledger.task(lease.task).profile).needs;
            slots += u64::from(needs.way(lease.variant()).slots);
            last = lease.no;
        }
        last
    }

    /// Ends a live lease without a result. A task that was lost too often is held.
    pub(super) fn take_back(&mut self, task: TaskId, why: ReturnReason) {
        match why {
            ReturnReason::Lapsed if self.is_lost_too_often(task) => self.hold_lost(task),
            _ => self.give_back(task, why),
        }
    }

    /// Ends a live lease without a result.
    fn give_back(&mut self, task: TaskId, why: ReturnReason) {
        self.end_at_first(task);
        self.ledger.post(Event::Returned { task, why, preds: Vec::new() });
    }

    /// A task with several workers may be lost with one on which it does not run: it is ended where it does.
    pub(super) fn end_at_first(&mut self, task: TaskId) {
        let ledger = self.ledger();
        let record = ledger.record_of(task).map(|handle| ledger.task(handle));
        let Some(Phase::Leased { lease }) = record.map(|record| record.phase) else { return };
        let lease = ledger.workers().lease(lease);
        if lease.next_node.some().is_some() {
            self.revoke(task.job, &vec![(task.index, task.index)]);
        }
    }

    /// Whether one more loss is one too many.
    pub(super) fn is_lost_too_often(&self, task: TaskId) -> bool {
        let ledger = self.ledger();
        let handle = ledger.record_of(task).expect("a leased task has a record");
        let record = ledger.task(handle);
        debug_assert!(matches!(record.phase, Phase::Leased { .. }), "the lease is live");
        record.lost >= ledger.profiles().get(record.profile).lost_max
    }

    pub(super) fn hold_lost(&mut self, task: TaskId) {
        let ledger = self.ledger();
        let handle = ledger.record_of(task).expect("a leased task has a record");
        let lost = u32::from(ledger.task(handle).lost) + 1;
        let alone = if lost > 1 { ", the last time with no other task there" } else { "" };
        let reason = format!("{HELD_BECAUSE}its worker was lost {}{alone}", times(lost));
        self.end_at_first(task);
        self.ledger.post(Event::HeldBack {
            task,
            why: ReturnReason::Lapsed,
            reason: reason.into(),
        });
    }

    /// A worker cannot run these. It is judged like one that failed them: what others run well is its own trouble.
    pub(super) fn decline(&mut self, decline: Decline) -> Result<Reply, Refusal> {
        let handle = self.find_worker(&decline.worker)?;
        self.note_alive(handle);
        self.presence.note_engaged(handle);
        let worker = self.ledger().workers().get(handle);
        let (id, group, name) = (worker.id, worker.group, worker.name.clone());
        for declined in decline.tasks {
            let Ok(Claim::Live(task)) = self.claim(id, group, &declined.lease) else { continue };
            let said: String = declined.reason.chars().take(REASON_CHARS_MAX).collect();
            let reason = format!("{HELD_BECAUSE}worker {name} cannot run it: {said}").into();
            self.ledger.post(Event::HeldBack { task, why: ReturnReason::Handed, reason });
        }
        self.judge(handle);
        Ok(Reply::Ok)
    }
}

//! What is to be asked of the worker, in which order, and what was asked and has no answer yet. JOB, CANCEL
//! and STOP are kept as what they mean until they are said, so that what comes late still joins a batch and
//! what is taken back before was never said.

use super::super::header::{AT_ONCE, MessageKind};
use super::super::naming::{self, HeldTask};
use super::super::payload::{self, TaskPair};
use super::super::talk::Wear;
use super::asked::Asked;
use super::{Foreman, native, wire};
use crate::session::{HangUp, Output};
use bytes::BytesMut;
use laboro_core::{
    Command, Decline, Declined, Drain, Grant, LeaseNo, LeaseRef, MESSAGE_BYTES_MAX, Place, Return,
    Returned, TaskId, Time, WorkerId, WorkerRef,
};
use std::collections::VecDeque;

/// Tasks that one JOB carries at most. Large enough that the cost of a message is nothing beside theirs.
const JOB_TASKS_MAX: usize = 4096;
/// How long work waits that the worker had no room for, when no UPDATE comes before: an original has none only until its
/// own bookkeeping is done, so not long at first. Twice as long each time it has still none.
const NO_ROOM_MS: u64 = 1;
const NO_ROOM_MS_MAX: u64 = 50;

#[derive(Debug, Default)]
pub(super) struct Requests {
    pub(super) ready: VecDeque<Grant>,
    pub(super) cancels: Vec<HeldTask>,
    stop: Option<Drain>,
    /// The worker was told to end everything: nothing else is worth saying.
    stopped: bool,
    under_way: Vec<(u32, ForemanRequest)>,
    /// No room for more JOBs until then.
    jobs_held: Option<Time>,
    /// How long they waited last. 0: it had room.
    pause_ms: u64,
    /// The worker's queue was full: nothing until then.
    all_held: Option<Time>,
}

#[derive(Debug)]
pub(super) enum ForemanRequest {
    Job(Vec<Grant>),
    Cancel(Vec<HeldTask>),
    Stop(Drain),
}

impl Requests {
    pub(super) fn answered(&mut self, seq: u32) -> Option<ForemanRequest> {
        let at = self.under_way.iter().position(|(asked, _)| *asked == seq)?;
        Some(self.under_way.remove(at).1)
    }

    /// An answer without trouble: the peer's queue has room again.
    pub(super) fn go_on(&mut self, answered: &ForemanRequest) {
        self.all_held = None;
        if let ForemanRequest::Job(_) = answered {
            self.pause_ms = 0;
        }
    }

    /// Results came, so there is room again.
    pub(super) fn release_jobs(&mut self) {
        (self.jobs_held, self.pause_ms) = (None, 0);
    }

    pub(super) fn hold_jobs(&mut self, now: Time) {
        self.pause_ms = (2 * self.pause_ms).clamp(NO_ROOM_MS, NO_ROOM_MS_MAX);
        self.jobs_held = Some(now.after_ms(self.pause_ms));
    }

    /// To be said later. Gives the tasks that the worker does not have after all.
    pub(super) fn again(&mut self, now: Time, request: ForemanRequest) -> Vec<TaskId> {
        self.all_held = Some(now.after_ms(NO_ROOM_MS_MAX));
        self.put_back(request)
    }

    /// Everything without an answer is to be said later.
    pub(super) fn all_again(&mut self) -> Vec<TaskId> {
        (self.jobs_held, self.all_held) = (None, None);
        let under_way = std::mem::take(&mut self.under_way);
        under_way.into_iter().flat_map(|(_, request)| self.put_back(request)).collect()
    }

    fn put_back(&mut self, request: ForemanRequest) -> Vec<TaskId> {
        match request {
            ForemanRequest::Job(grants) => {
                let tasks = grants.iter().map(|grant| grant.task).collect();
                grants.into_iter().rev().for_each(|grant| self.ready.push_front(grant));
                return tasks;
            }
            ForemanRequest::Cancel(leases) => self.cancels.extend(leases),
            ForemanRequest::Stop(drain) => self.stop = Some(drain),
        }
        Vec::new()
    }

    /// Work that the worker has not got, or may not have got: it does not run there yet, but will.
    pub(super) fn unsent(&self) -> impl Iterator<Item = (TaskId, LeaseNo)> {
        let under_way = self.under_way.iter().flat_map(|(_, request)| match request {
            ForemanRequest::Job(grants) => &grants[..],
            ForemanRequest::Cancel(_) | ForemanRequest::Stop(_) => &[],
        });
        under_way.chain(&self.ready).map(|grant| (grant.task, grant.lease))
    }

    /// Takes it out of what is to be said, or has it ended.
    pub(super) fn revoke(&mut self, held: HeldTask) {
        match self.ready.iter().position(|grant| grant.lease == held.lease) {
            Some(at) => drop(self.ready.remove(at)),
            None => self.cancels.push(held),
        }
    }

    pub(super) fn held_until(&self) -> Option<Time> {
        let jobs = self.jobs_held.filter(|_| !self.ready.is_empty());
        [jobs, self.all_held].into_iter().flatten().min()
    }

    pub(super) fn look_at_holds(&mut self, now: Time) {
        let is_over = |until: &Time| *until <= now;
        self.jobs_held.take_if(|until| is_over(until));
        self.all_held.take_if(|until| is_over(until));
    }
}

impl Foreman {
    pub(super) fn stop(&mut self, drain: Drain) {
        let stop = &mut self.requests.stop;
        match (drain, *stop) {
            // It asked for that itself.
            (Drain::All, _) if self.drains => {}
            // What was said cannot be taken back; what was not said is.
            (Drain::Lift, _) => *stop = None,
            (_, Some(Drain::AtOnce)) => {}
            (Drain::Slots(more), Some(Drain::Slots(slots))) => {
                *stop = Some(Drain::Slots(slots.saturating_add(more)));
            }
            (Drain::Slots(_), Some(Drain::All)) => {}
            (drain, _) => *stop = Some(drain),
        }
    }

    pub(super) fn say_requests(&mut self, now: Time, worker: WorkerId, out: &mut Output) {
        if self.requests.stopped {
            return;
        }
        if self.requests.stop == Some(Drain::AtOnce) && self.talk.may_interrupt() {
            self.asked_at = now;
            self.say_stop(Drain::AtOnce, AT_ONCE, out);
            self.requests.stopped = true;
            return;
        }
        self.requests.look_at_holds(now);
        if !self.talk.may_ask() || self.requests.all_held.is_some() {
            return;
        }
        if !self.talk.numbering().has_cancel() {
            // There is no word for it: what it sends for them does not count any more.
            self.requests.cancels.clear();
        }
        let has_jobs = !self.requests.ready.is_empty() && self.requests.jobs_held.is_none();
        if !has_jobs && self.requests.cancels.is_empty() && self.requests.stop.is_none() {
            return;
        }
        self.asked_at = now;
        match self.talk.wear() {
            Wear::Fine => {}
            Wear::Reset => {
                self.talk.ask_reset(&mut out.say);
                out.end_message();
                return;
            }
            Wear::Reconnect => return out.hang_up(HangUp::Finished),
        }
        if let Some(drain) = self.requests.stop.take() {
            let slots = match drain {
                Drain::Slots(slots) => slots.min(self.slots),
                _ => self.slots,
            };
            self.slots -= slots;
            self.say_stop(drain, slots.max(1), out);
        } else if !self.requests.cancels.is_empty() {
            self.say_cancel(out);
        } else {
            self.say_job(worker, out);
        }
    }

    fn say_stop(&mut self, drain: Drain, arg0: u32, out: &mut Output) {
        let seq = self.talk.ask(&mut out.say, MessageKind::Stop, arg0);
        out.end_message();
        self.requests.under_way.push((seq, ForemanRequest::Stop(drain)));
    }

    fn say_cancel(&mut self, out: &mut Output) {
        let count = self.requests.cancels.len().min(JOB_TASKS_MAX);
        let cancels: Vec<HeldTask> = self.requests.cancels.drain(..count).collect();
        let name = if self.is_native() { native::pair_of } else { naming::pair_of };
        let pairs: Vec<TaskPair> = cancels.iter().map(name).collect();
        let body = |to: &mut BytesMut| payload::write_pairs(to, &pairs);
        let seq = self.talk.ask_with(&mut out.say, MessageKind::Cancel, body);
        out.end_message();
        self.requests.under_way.push((seq, ForemanRequest::Cancel(cancels)));
    }

    fn say_job(&mut self, worker: WorkerId, out: &mut Output) {
        let most = if self.is_native() { JOB_TASKS_MAX } else { 1 };
        let count = self.requests.ready.len().min(most);
        let mut grants: Vec<Grant> = self.requests.ready.drain(..count).collect();
        let mut body = BytesMut::new();
        loop {
            self.write_job(&mut body, &grants);
            if body.len() <= self.job_bytes_max() {
                break;
            }
            // Too much for one message: half of it may do.
            let rest = grants.split_off(grants.len() / 2);
            if grants.is_empty() {
                self.decline_oversized(worker, &rest, body.len(), out);
                return;
            }
            rest.into_iter().rev().for_each(|grant| self.requests.ready.push_front(grant));
            body.clear();
        }
        let seq =
            self.talk.ask_with(&mut out.say, MessageKind::Job, |to| to.extend_from_slice(&body));
        out.end_message();
        self.note_given(&grants);
        self.requests.under_way.push((seq, ForemanRequest::Job(grants)));
    }

    fn write_job(&self, to: &mut BytesMut, grants: &[Grant]) {
        if self.is_native() {
            wire::write_job(to, grants, |job| self.context.admission.job_secret(job));
        } else {
            let tasks: Vec<payload::Task> = grants.iter().map(naming::task_of).collect();
            payload::write_tasks(to, &tasks);
        }
    }

    /// It fits no message, so no worker here can be given it.
    fn decline_oversized(
        &self,
        worker: WorkerId,
        grants: &[Grant],
        bytes: usize,
        out: &mut Output,
    ) {
        let most = self.job_bytes_max();
        let words = format!("its description has {bytes} bytes; a message takes at most {most}");
        let tasks = (grants.iter())
            .map(|grant| Declined {
                lease: LeaseRef::Number { task: grant.task, lease: grant.lease },
                reason: words.as_str().into(),
            })
            .collect();
        let decline = Decline { worker: WorkerRef::Id(worker), tasks };
        out.ask(Asked::Nothing.tag(), Command::Decline(decline));
    }

    /// What every worker takes, or less where the hub is told to.
    fn job_bytes_max(&self) -> usize {
        self.context.message_max.min(MESSAGE_BYTES_MAX)
    }

    /// The worker has not heard of it. It cannot be given back before it has left: it would get it again.
    pub(super) fn return_unsaid(&mut self, worker: WorkerRef, out: &mut Output) {
        let back = |grant: Grant| Returned {
            lease: LeaseRef::Number { task: grant.task, lease: grant.lease },
            preds: Vec::new(),
        };
        let tasks: Vec<Returned> = self.requests.ready.drain(..).map(back).collect();
        if !tasks.is_empty() {
            let back = Return { worker, tasks, place: Place::Front };
            out.ask(Asked::Nothing.tag(), Command::Return(back));
        }
    }

    pub(super) fn hand_back(&self, (task, lease): (TaskId, LeaseNo), out: &mut Output) {
        let super::ForemanPhase::Working { worker, .. } = self.phase else { return };
        let lease = LeaseRef::Number { task, lease };
        let tasks = vec![Returned { lease, preds: Vec::new() }];
        let back = Return { worker: WorkerRef::Id(worker), tasks, place: Place::Front };
        out.ask(Asked::Nothing.tag(), Command::Return(back));
    }
}

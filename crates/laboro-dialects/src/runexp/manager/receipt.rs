//! From REZULTO to a report.

use super::super::door::Success;
use super::super::result::{HEADER_BYTES_MAX, of_wait_status, wait_status};
use super::super::roll::Loan;
use super::super::words::{ManagerWord, WordBuffer};
use super::lending::{is_own_script, numbered};
use super::{Manager, ManagerStage, say, tag};
use crate::session::{AttemptEnd, Chunk, Ends, Output, Stream};
use crate::worker::Used;
use bytes::{Bytes, BytesMut};
use laboro_core::{
    Command, LeaseNo, Name, Outcome, Query, Reply, Report, State, TaskRef, TaskResult, TaskView,
    Time, WorkerRef,
};

/// Between PRETA and RICEVIS for a result without a byte: whoever takes one read for one message would find both
/// in one.
const EMPTY_PAUSE_MS: u64 = 50;

/// A result whose body is on its way. The body is passed on as it comes; only its header is looked at.
#[derive(Debug)]
pub(super) struct Receipt {
    name: Bytes,
    /// `None`: it is known already, and only the exchange is completed.
    loan: Option<Loan>,
    is_good: bool,
    /// What it says is not known yet.
    is_kept: bool,
    size: u64,
    left: u64,
    head: BytesMut,
}

impl Receipt {
    pub(super) fn is_complete(&self) -> bool {
        self.left == 0
    }

    /// Whether anything was there.
    pub(super) fn take(&mut self, heard: &mut WordBuffer, out: &mut Output) -> bool {
        let Some(bytes) = heard.body(self.left) else { return false };
        let offset = self.size - self.left;
        self.left -= bytes.len() as u64;
        let room = HEADER_BYTES_MAX.saturating_sub(self.head.len());
        self.head.extend_from_slice(&bytes[..bytes.len().min(room)]);
        if self.is_kept
            && let Some(Loan { task, lease, attempt, .. }) = self.loan
        {
            // A result that is told once more is known by its lease, and what was kept of it is not kept twice.
            let offset = lease.map(|_| offset);
            let lease = lease.unwrap_or(LeaseNo(0));
            out.keep.push(Chunk { task, lease, attempt, stream: Stream::Out, offset, bytes });
        }
        true
    }

    /// How it ended by the rule that holds for it, and words for a failure that the exit status hides.
    fn outcome(&self, loan: &Loan, success: Success) -> (Outcome, Option<Box<str>>) {
        let status = wait_status(&self.head).map(of_wait_status);
        let by_exit_status = loan.by_exit_status || success == Success::ExitCode;
        match (status, self.is_good) {
            (Some(outcome), _) if by_exit_status => (outcome, None),
            (_, true) => (Outcome::Success, None),
            (Some(outcome), false) if !outcome.is_success() => (outcome, None),
            (_, false) => {
                (Outcome::Error, Some("the run did not say RES: with a good word".into()))
            }
        }
    }
}

/// A result that was announced.
#[derive(Clone, Debug)]
pub(super) struct Announced {
    pub(super) name: Bytes,
    pub(super) is_good: bool,
    pub(super) size: u64,
}

impl Manager {
    pub(super) fn announced(&mut self, result: Announced, now: Time, out: &mut Output) {
        if let Some(loan) = self.seat().find(&result.name, now) {
            self.begin_receipt(result, Some(loan), true, now, out);
            return;
        }
        if self.door.follows.as_ref().is_some_and(|former| former.done.contains(&result.name)) {
            self.begin_receipt(result, None, false, now, out);
            return;
        }
        // It may have been given out before the hub was started anew.
        let task = match numbered(&result.name) {
            Some(task) => TaskRef::Id(task),
            None => TaskRef::Name(Name::new(&result.name)),
        };
        let query = Query::Task { group: self.context.group.clone(), task };
        out.ask(tag::RECALL, Command::Query(query));
        self.stage = ManagerStage::Recalling(result);
        self.due = None;
    }

    /// The hub says what it knows of such a task.
    pub(super) fn recalled(&mut self, reply: Reply, now: Time, out: &mut Output) {
        let ManagerStage::Recalling(result) =
            std::mem::replace(&mut self.stage, ManagerStage::Waiting)
        else {
            unreachable!("it was asked for a result");
        };
        // Whoever has it by now: the exchange is completed, and the hub decides whether it counts.
        let was_here = |view: &TaskView| {
            view.attempts.iter().any(|attempt| Some(attempt.worker) == self.worker_id)
        };
        match reply {
            Reply::Task(view) if was_here(&view) || self.door.follows.is_some() => {
                let is_lapsed = u16::from(view.state != State::Leased);
                let is_from_before = !was_here(&view);
                let loan = Loan {
                    task: view.task,
                    lease: None,
                    attempt: view.attempt.saturating_sub(is_lapsed).max(1),
                    lent_at: None,
                    holder: self.seat().name.clone(),
                    is_from_before,
                    by_exit_status: !is_own_script(view.work.as_deref()),
                };
                // A result that was counted before its runner heard so comes once more, with all that was printed.
                let is_kept = !view.state.is_finished();
                self.begin_receipt(result, Some(loan), is_kept, now, out);
            }
            _ => {
                let name = result.name.escape_ascii();
                out.malformed(format!("it has a result of `{name}`, which it was never given"));
            }
        }
    }

    fn begin_receipt(
        &mut self,
        result: Announced,
        loan: Option<Loan>,
        is_kept: bool,
        now: Time,
        out: &mut Output,
    ) {
        let Announced { name, is_good, size } = result;
        if size > self.door.limits.result_bytes {
            let most = self.door.limits.result_bytes;
            out.malformed(format!("a result of {size} bytes is more than {most}"));
            return;
        }
        say(out, &ManagerWord::Preta);
        if size == 0 {
            self.quiet_until = Some(now.after_ms(EMPTY_PAUSE_MS));
        }
        let head = BytesMut::new();
        self.stage = ManagerStage::Receiving(Receipt {
            name,
            loan,
            is_good,
            is_kept,
            size,
            left: size,
            head,
        });
        self.due = Some(now.after_ms(self.door.limits.exchange_ms));
    }

    /// The body is complete.
    pub(super) fn report(&mut self, now: Time, out: &mut Output) {
        let ManagerStage::Receiving(receipt) =
            std::mem::replace(&mut self.stage, ManagerStage::Reporting)
        else {
            unreachable!("a result is reported once it was received");
        };
        let Some(loan) = &receipt.loan else {
            say(out, &ManagerWord::Ricevis);
            self.wait();
            return;
        };
        let (outcome, message) = receipt.outcome(loan, self.door.success);
        out.ended.extend(self.end(now, loan, outcome));
        let lease = loan.lease_ref();
        let results = vec![TaskResult { lease, outcome, message, memo: None }];
        let (group, name) = (self.context.group.clone(), loan.holder.clone());
        let worker = WorkerRef::Name { group, name };
        out.ask(tag::REPORT, Command::Report(Report { worker, results }));
        self.settled = receipt.loan.map(|loan| (receipt.name, loan));
        self.due = None;
    }

    /// For those who remember attempts. What it used a runner does not tell.
    fn end(&self, now: Time, loan: &Loan, outcome: Outcome) -> Option<Ends> {
        let (lease, lent_at) = (loan.lease?, loan.lent_at?);
        let worker = self.worker_id.filter(|_| loan.holder == self.seat().name)?;
        let used = Used { wall_us: now.since_ms(lent_at).saturating_mul(1000), ..Used::default() };
        let Loan { task, attempt, .. } = *loan;
        let end = AttemptEnd { task, lease, attempt, outcome, ended: now, used };
        Some(Ends { worker, name: loan.holder.clone(), ends: vec![end] })
    }
}

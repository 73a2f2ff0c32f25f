//! Results. A result counts if its lease is live, or lapsed while nobody else holds or has finished the task; and
//! where a dialect lets any worker say that a task is done, also if another worker holds it.

use super::Hub;
use super::lease::Claim;
use crate::command::{Report, TaskResult};
use crate::event::{Event, Then, Words};
use crate::id::{GroupId, JobId, TaskId, WorkerId};
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::task::{Outcome, State};

impl Hub {
    pub(super) fn report(&mut self, report: Report) -> Result<Reply, Refusal> {
        let handle = self.find_worker(&report.worker)?;
        self.note_alive(handle);
        self.presence.note_engaged(handle);
        let (worker, group) = {
            let worker = self.ledger().workers().get(handle);
            (worker.id, worker.group)
        };
        let verdicts = (report.results.into_iter())
            .map(|result| self.accept_result(worker, group, result))
            .collect();
        self.judge(handle);
        Ok(Reply::Reported(verdicts))
    }

    fn accept_result(
        &mut self,
        worker: WorkerId,
        group: GroupId,
        result: TaskResult,
    ) -> Result<(), Refusal> {
        let TaskResult { lease, outcome, message, memo } = result;
        let task = match self.claim(worker, group, &lease)? {
            // As if its worker had gone, and no more often than that.
            Claim::Live(task) if outcome == Outcome::Lost && self.is_lost_too_often(task) => {
                self.hold_lost(task);
                return Ok(());
            }
            Claim::Live(task) | Claim::Lapsed(task) => task,
            Claim::Done(_) if outcome.is_success() => return Ok(()),
            Claim::Anothers(task) if outcome.is_success() => {
                // It need not run on there, and its room is given away.
                self.revoke(task.job, &vec![(task.index, task.index)]);
                task
            }
            Claim::Done(task) => {
                let task = self.ledger().shown_name(task);
                return Err(Refusal::AlreadyFinished { task, by_you: false });
            }
            Claim::Anothers(task) | Claim::Node(task) => {
                return Err(Refusal::NotYours(self.ledger().shown_name(task)));
            }
        };
        let then = self.next_step(task, outcome);
        let words =
            (message.is_some() || memo.is_some()).then(|| Box::new(Words { message, memo }));
        self.ledger.post(Event::Finished { task, worker, outcome, then, words });
        if then == Then::Failed {
            self.stop_if_too_many_failed(task.job);
        }
        self.trim_open_job(task.job);
        Ok(())
    }

    /// Done, failed for good, or worth another attempt.
    fn next_step(&self, task: TaskId, outcome: Outcome) -> Then {
        if outcome.is_success() {
            return Then::Done;
        }
        let ledger = self.ledger();
        // An element without a record was never tried.
        let (fails, profile) = match ledger.record_of(task).map(|handle| ledger.task(handle)) {
            Some(record) => (record.fails, record.profile),
            None => (0, ledger.array(task).expect("a claimed task is there").1.profile),
        };
        let profile = ledger.profiles().get(profile);
        if outcome == Outcome::Lost {
            // As if its worker had gone: counted by itself.
            return Then::Again(self.ledger.now());
        }
        let worth_it = match outcome {
            Outcome::Exit(code) => profile.retry_on.is_empty() || profile.retry_on.contains(&code),
            _ => true,
        };
        let failed = fails.saturating_add(1);
        if !worth_it || failed >= profile.attempts {
            return Then::Failed;
        }
        Then::Again(self.ledger.now().after_ms(profile.backoff.wait_ms(failed)))
    }

    /// `max_fails` stops a job: nothing more of it starts until a person says so.
    pub(super) fn stop_if_too_many_failed(&mut self, job: JobId) {
        let Some(handle) = self.ledger().find_job(job) else { return };
        let this = self.ledger().job(handle);
        let Some(most) = this.options.max_fails else { return };
        if !this.stopped && this.failed_now().saturating_sub(this.forgiven) > most {
            self.ledger.post(Event::JobStopped { job, stopped: true });
        }
    }

    /// A job that stays open for months forgets its oldest finished tasks.
    fn trim_open_job(&mut self, job: JobId) {
        let keep = &self.config.keep;
        let handle = self.ledger().find_job(job).expect("a result's job is there");
        let this = self.ledger().job(handle);
        let done = this.counts.of(State::Done) - this.done_elements;
        if !this.options.open || done < keep.tasks_of_open_job.saturating_add(keep.slice) {
            return;
        }
        // Elements of arrays cost next to nothing and go with their job.
        let ranges = this.first_done(keep.slice);
        if !ranges.is_empty() {
            self.ledger.post(Event::TasksForgotten { job, ranges });
        }
    }
}

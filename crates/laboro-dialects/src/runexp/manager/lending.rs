//! From a grant to LABORO.

use super::super::door::Filled;
use super::super::roll::Loan;
use super::super::script::{Extra, Script, render};
use super::super::words::{ManagerWord, is_sayable};
use super::{Manager, ManagerStage, say, tag};
use crate::session::Output;
use bytes::Bytes;
use laboro_core::{
    Command, Grant, JobId, LeaseRef, Outcome, Report, TaskId, TaskResult, Time, Work,
};

/// Before the numbers of a job and of a task whose own name cannot be said.
const NUMBERED: &str = "laboro-";

impl Manager {
    /// Hands out what the hub gave, which is one task.
    pub(super) fn lend(&mut self, now: Time, grants: Vec<Grant>, out: &mut Output) {
        let mut grants = grants.into_iter();
        let Some(grant) = grants.next() else {
            say(out, &ManagerWord::Atendi);
            self.wait();
            return;
        };
        match self.script(&grant) {
            Ok(script) => {
                let name = self.wire_name(&grant, now);
                let word = ManagerWord::Laboro {
                    name: name.clone(),
                    kind: script.kind.into(),
                    size: script.body.len() as u64,
                };
                say(out, &word);
                self.seat().lend(name, self.loan(&grant, now));
                self.stage = ManagerStage::Lending(script.body);
                self.due = Some(now.after_ms(self.door.limits.exchange_ms));
            }
            Err(why) => {
                // No runner can take it, so it must not come back to the next one.
                let result = TaskResult {
                    lease: LeaseRef::Number { task: grant.task, lease: grant.lease },
                    outcome: Outcome::Error,
                    message: Some(format!("runexp runners cannot take it: {why}").into()),
                    memo: None,
                };
                let report = Report { worker: self.worker(), results: vec![result] };
                out.ask(tag::ASIDE, Command::Report(report));
                self.offer(self.patience(), out);
            }
        }
    }

    fn script(&self, grant: &Grant) -> Result<Script, String> {
        let facts = facts(grant);
        if grant.element.is_none() {
            let work = grant.work.as_deref().unwrap_or(&Work::Named);
            return render(work, &Extra { facts, ..Extra::default() });
        }
        let fill = self.door.fill.ok_or("elements of arrays are not filled in at this door")?;
        let Filled { work, arguments } = fill(grant)?;
        render(&work, &Extra { arguments, facts })
    }

    /// The task's own name where it can be said, means no other task, and is not in use at this host for another one.
    fn wire_name(&self, grant: &Grant, now: Time) -> Bytes {
        let mut name = grant.name.bytes().to_vec();
        if let Some(element) = &grant.element
            && !name.is_empty()
        {
            name.extend_from_slice(format!(".{}", u64::from(element.position) + 1).as_bytes());
        }
        let is_free =
            |name: &[u8]| self.seat().find(name, now).is_none_or(|loan| loan.task == grant.task);
        let is_plain = !grant.own_names && is_sayable(&name);
        if is_plain && is_free(&name) && numbered(&name).is_none() {
            return name.into();
        }
        format!("{NUMBERED}{}-{}", grant.task.job, grant.task.number()).into()
    }

    fn loan(&self, grant: &Grant, now: Time) -> Loan {
        Loan {
            task: grant.task,
            lease: Some(grant.lease),
            attempt: grant.attempt,
            lent_at: Some(now),
            holder: self.seat().name.clone(),
            is_from_before: false,
            by_exit_status: !is_own_script(grant.work.as_deref()),
        }
    }
}

/// Whom a name means that was made of numbers.
pub(super) fn numbered(name: &[u8]) -> Option<TaskId> {
    let (job, index) = std::str::from_utf8(name).ok()?.strip_prefix(NUMBERED)?.split_once('-')?;
    let task = TaskId { job: JobId(job.parse().ok()?), index: index.parse().ok()? };
    (!task.is_whole()).then_some(task)
}

/// By these a task knows itself, as at workers of our own.
fn facts(grant: &Grant) -> Vec<(&'static str, String)> {
    let position = grant.element.as_ref().map(|element| u64::from(element.position));
    let index = position.map_or(u64::from(grant.task.number()), |position| position + 1);
    vec![
        ("LABORO_JOB", grant.task.job.to_string()),
        ("LABORO_INDEX", index.to_string()),
        ("LABORO_ATTEMPT", grant.attempt.to_string()),
    ]
}

/// Of the dialect's own kinds, for which its own rule holds.
pub(super) fn is_own_script(work: Option<&Work>) -> bool {
    matches!(work, Some(Work::Script(script)) if matches!(&*script.kind, ".sh" | ".m"))
}

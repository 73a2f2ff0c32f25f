//! What the agent says to the hub and hears from it: joining, grants, reports, answers.

use super::{Agent, OUTPUTS_TROUBLE, REPORT_EVERY, Stopping};
use crate::run::GROUP;
use anyhow::{Context, anyhow};
use laboro_core::{
    Capacity, Command, Grant, Join, Kinds, LeaseRef, Offer, Place, Reply, Report, Return, Returned,
    Route,
};
use laboro_hub::Delivery;
use laboro_worker::memory_total;
use std::time::Instant;

/// Tags of what is asked, to tell answers apart.
const REPORT: u64 = 1;
pub(super) const OTHER: u64 = 0;

impl Agent {
    pub(super) async fn join(&mut self) -> anyhow::Result<()> {
        let resources = &self.options.resources;
        let join = Join {
            group: GROUP.into(),
            name: "local".into(),
            dialect: "local",
            session: self.session.session,
            life: None,
            kinds: Kinds::ALL,
            tags: self.options.tags.iter().map(|tag| tag.as_str().into()).collect(),
            capacity: Capacity {
                slots: self.options.slots.saturating_add(self.grant_ahead),
                memory: memory_total(),
                resources: resources.iter().map(|(name, n)| (name.as_str().into(), *n)).collect(),
                time_left_ms: None,
            },
            period_ms: None,
            // Whatever an earlier run had on loan is not running any more.
            running: Some(Vec::new()),
            acknowledges: false,
        };
        match self.handle.ask(Command::Join(join)).await? {
            Reply::Joined { .. } => {}
            other => return Err(anyhow!("the hub answered {other:?}")),
        }
        let offer =
            Offer { worker: self.worker.clone(), route: Route::Push { ahead: 0 }, lease_ms: None };
        self.ask(OTHER, Command::Offer(offer)).await
    }

    pub(super) async fn ask(&mut self, tag: u64, command: Command) -> anyhow::Result<()> {
        self.unanswered += 1;
        self.session.ask(tag, command).await?;
        Ok(())
    }

    pub(super) fn delivered(&mut self, delivery: Delivery) -> anyhow::Result<()> {
        match delivery {
            Delivery::Work { grants, .. } if self.stopping == Stopping::No => {
                self.queue.extend(grants);
            }
            Delivery::Work { grants, .. } => self.returned.extend(grants.iter().map(given_back)),
            Delivery::Revoke { leases, .. } => {
                for (task, _) in leases {
                    let running = self.running.iter().find(|(_, running)| running.task == task);
                    if let Some((&id, _)) = running {
                        self.runner.stop(id, self.options.grace);
                    }
                }
            }
            // Nobody but this agent asks for it.
            Delivery::Stop { .. } | Delivery::Replaced => {}
            Delivery::Reply { tag, reply } => {
                self.unanswered -= 1;
                match reply {
                    Reply::Refused(refusal) => return Err(anyhow!("the hub refused: {refusal}")),
                    Reply::Reported(verdicts) if tag == REPORT => {
                        if let Some(refusal) = verdicts.into_iter().find_map(Result::err) {
                            return Err(anyhow!("the hub refused a result: {refusal}"));
                        }
                        self.recorded()?;
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }

    pub(super) fn report_is_due(&mut self) -> bool {
        if self.ended.is_empty() && self.returned.is_empty() {
            return false;
        }
        let since = *self.unreported_since.get_or_insert_with(Instant::now);
        let to_do = self.queue.len() + self.running.len() - self.begun;
        to_do < self.options.slots as usize
            || self.stopping != Stopping::No
            || since.elapsed() >= REPORT_EVERY
    }

    /// Results go to the hub in one report, after what the tasks printed has left this program.
    pub(super) async fn report(&mut self) -> anyhow::Result<()> {
        if self.ended.is_empty() && self.returned.is_empty() {
            return Ok(());
        }
        self.unreported_since = None;
        self.outputs.flush().context(OUTPUTS_TROUBLE)?;
        self.last_flush = Instant::now();
        if !self.ended.is_empty() {
            let (results, views) = std::mem::take(&mut self.ended).into_iter().unzip();
            self.unrecorded.push_back(views);
            let report = Report { worker: self.worker.clone(), results };
            self.ask(REPORT, Command::Report(report)).await?;
        }
        if !self.returned.is_empty() {
            let tasks = std::mem::take(&mut self.returned);
            let worker = self.worker.clone();
            self.ask(OTHER, Command::Return(Return { worker, tasks, place: Place::Front })).await?;
        }
        Ok(())
    }

    /// The hub has answered the oldest report: from now on these ends are what happened.
    fn recorded(&mut self) -> anyhow::Result<()> {
        let ends = self.unrecorded.pop_front().expect("every report is answered once, in order");
        for end in ends {
            self.tally.add(&end);
            self.display.ended(&end, &self.progress());
            if !end.again {
                self.attempts.ended_for_good(end.index);
                if let Some(order) = &mut self.order {
                    self.display.above(|| order.ended(end.index, end.attempt))?;
                }
            }
        }
        Ok(())
    }
}

pub(super) fn given_back(grant: &Grant) -> Returned {
    let lease = LeaseRef::Number { task: grant.task, lease: grant.lease };
    Returned { lease, preds: Vec::new() }
}

//! What people do to jobs, tasks and groups: cancel, hold, release, retry, priority, limits, pause.

use super::Hub;
use crate::command::{Selection, Which};
use crate::effect::Effect;
use crate::event::{Event, Ranges};
use crate::id::{JobId, LeaseNo, Name, SessionId, TaskId, WorkerId};
use crate::ledger::{Job, Phase};
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::task::State;
use std::collections::BTreeMap;

impl Hub {
    pub(super) fn cancel(&mut self, selection: &Selection) -> Result<Reply, Refusal> {
        let job = selection.job;
        let ranges = self.select(selection, |state| !state.is_finished())?;
        self.revoke(job, &ranges);
        self.change(&ranges, |ranges| Event::Cancelled { job, ranges })
    }

    /// What was done elsewhere need not run here. Tasks that run or have ended stay as they are.
    pub(super) fn mark_done(&mut self, selection: &Selection) -> Result<Reply, Refusal> {
        let job = selection.job;
        let is_idle = |state: State| !state.is_finished() && state != State::Leased;
        let ranges = self.select(selection, is_idle)?;
        self.change(&ranges, |ranges| Event::MarkedDone { job, ranges })
    }

    /// Running tasks of the ranges shall be ended where they run.
    pub(super) fn revoke(&mut self, job: JobId, ranges: &Ranges) {
        let ledger = self.ledger.read();
        let this = ledger.job(ledger.find_job(job).expect("the selection was checked"));
        let mut revoked: BTreeMap<(SessionId, WorkerId), Vec<(TaskId, LeaseNo)>> = BTreeMap::new();
        for &(first, last) in ranges {
            let runs = this.set(State::Leased).runs(first, last);
            for index in runs.flat_map(|(first, last)| first..=last) {
                let handle = this.pages.find(index).expect("a leased task has a record");
                let Phase::Leased { lease } = ledger.task(handle).phase else { continue };
                let lease = ledger.workers().lease(lease);
                let session = self.presence.member(lease.worker).and_then(|member| member.session);
                if let Some(session) = session {
                    let worker = ledger.workers().get(lease.worker).id;
                    let leases = revoked.entry((session, worker)).or_default();
                    leases.push((TaskId::new(job, index), lease.no));
                }
            }
        }
        for ((session, worker), leases) in revoked {
            self.effects.push(Effect::Revoke { session, worker, leases });
        }
    }

    /// A job is held as a whole, whatever number of tasks it has; its running ones go on.
    pub(super) fn hold(&mut self, selection: &Selection) -> Result<Reply, Refusal> {
        let job = selection.job;
        if selection.which == Which::Job {
            let handle = self.find_job(job)?;
            if !self.ledger().job(handle).options.held {
                self.ledger.post(Event::JobHeld { job, held: true });
            }
            return Ok(Reply::Changed { tasks: self.ledger().job(handle).counts.unfinished() });
        }
        let idle = |state| {
            matches!(state, State::Waiting | State::Blocked | State::Ready | State::Delayed)
        };
        let ranges = self.select(selection, idle)?;
        self.change(&ranges, |ranges| Event::Held { job, ranges })
    }

    /// Lifts the hold of a job and lets one go on that stopped after too many failures; or of tasks. A job that is
    /// neither and waits for its time begins now: who holds one with a time wants that time kept when it is released.
    pub(super) fn release(&mut self, selection: &Selection) -> Result<Reply, Refusal> {
        let job = selection.job;
        if selection.which == Which::Job {
            let handle = self.find_job(job)?;
            let this = self.ledger().job(handle);
            let (held, stopped) = (this.options.held, this.stopped);
            let is_early = !held && !stopped && this.options.begin.is_some();
            if is_early {
                self.ledger.post(Event::JobDeferred { job, begin: None });
            }
            if held {
                self.ledger.post(Event::JobHeld { job, held: false });
            }
            if stopped {
                self.ledger.post(Event::JobStopped { job, stopped: false });
            }
            let each = Selection { job, which: Which::InState(State::Held) };
            let changed = match self.select(&each, |state| state == State::Held) {
                Ok(ranges) => self.change(&ranges, |ranges| Event::Released { job, ranges })?,
                Err(_) => Reply::Changed { tasks: 0 },
            };
            let all = Reply::Changed { tasks: self.ledger().job(handle).counts.unfinished() };
            return Ok(if held || stopped || is_early { all } else { changed });
        }
        let ranges = self.select(selection, |state| state == State::Held)?;
        self.change(&ranges, |ranges| Event::Released { job, ranges })
    }

    pub(super) fn retry(&mut self, selection: &Selection) -> Result<Reply, Refusal> {
        let job = selection.job;
        let ranges = match selection.which {
            // A whole job: what failed. Who wants the cancelled ones too says so.
            Which::Job => self.select(selection, |state| state == State::Failed)?,
            _ => self.select(selection, |s| matches!(s, State::Failed | State::Cancelled))?,
        };
        let stopped =
            self.ledger().find_job(job).is_some_and(|handle| self.ledger().job(handle).stopped);
        let reply = self.change(&ranges, |ranges| Event::Retried { job, ranges });
        if stopped {
            self.ledger.post(Event::JobStopped { job, stopped: false });
        }
        reply
    }

    pub(super) fn prioritise(
        &mut self,
        selection: &Selection,
        priority: i32,
    ) -> Result<Reply, Refusal> {
        let job = selection.job;
        let ranges = match selection.which {
            // All of it, so that arrays stay ranges.
            Which::Job => self.ledger().job(self.find_job(job)?).all(),
            _ => self.select(selection, |state| !state.is_finished())?,
        };
        let limits = &self.config.limits;
        let odd = self.ledger().job(self.find_job(job)?).odd_elements(&ranges);
        let room = limits.tasks.saturating_sub(self.ledger().records());
        let most = limits.tasks_a_submit.min(room) as u64;
        if odd > most {
            return Err(Refusal::Limit { what: "elements with a priority of their own", most });
        }
        self.change(&ranges, |ranges| Event::Prioritised { job, ranges, priority })
    }

    pub(super) fn limit(
        &mut self,
        job: JobId,
        max_running: Option<Option<u32>>,
        max_fails: Option<Option<u32>>,
    ) -> Result<Reply, Refusal> {
        let this = self.ledger().job(self.find_job(job)?);
        let max_running = max_running.unwrap_or(this.options.max_running);
        let max_fails = max_fails.unwrap_or(this.options.max_fails);
        self.ledger.post(Event::JobLimited { job, max_running, max_fails });
        self.stop_if_too_many_failed(job);
        Ok(Reply::Ok)
    }

    pub(super) fn pause(&mut self, group: &Name, paused: bool) -> Result<Reply, Refusal> {
        let group = self.find_group(group)?;
        if self.ledger().group(group).paused != paused {
            self.ledger.post(Event::GroupPaused { group, paused });
        }
        Ok(Reply::Ok)
    }

    fn change(
        &mut self,
        ranges: &Ranges,
        event: impl FnOnce(Ranges) -> Event,
    ) -> Result<Reply, Refusal> {
        let tasks = ranges.iter().map(|&(first, last)| u64::from(last - first) + 1).sum();
        if !ranges.is_empty() {
            self.ledger.post(event(ranges.clone()));
        }
        Ok(Reply::Changed { tasks })
    }

    /// The selected tasks that are in one of the wanted states, as ranges.
    fn select(
        &self,
        selection: &Selection,
        wanted: impl Fn(State) -> bool,
    ) -> Result<Ranges, Refusal> {
        let this = self.ledger().job(self.find_job(selection.job)?);
        let states: Vec<State> = match selection.which {
            Which::InState(state) => [state].into_iter().filter(|&state| wanted(state)).collect(),
            _ => State::ALL.into_iter().filter(|&state| wanted(state)).collect(),
        };
        let within = match &selection.which {
            Which::Ranges(ranges) => ranges.clone(),
            Which::Job | Which::InState(_) => this.all(),
        };
        let ranges = runs_in(this, &states, &within);
        if ranges.is_empty() { Err(Refusal::NothingSelected) } else { Ok(ranges) }
    }
}

/// Tasks of the job in these states within these ranges, ascending and joined.
fn runs_in(job: &Job, states: &[State], within: &Ranges) -> Ranges {
    let end = job.next_index;
    let within = within.iter().map(|&(first, last)| (first.max(1), last.min(end - 1)));
    let mut runs: Ranges = Vec::new();
    // Joined first: however often the same is said, it is looked up once.
    for (first, last) in joined(within.filter(|(first, last)| first <= last).collect()) {
        for &state in states {
            runs.extend(job.set(state).runs(first, last));
        }
    }
    joined(runs)
}

/// Ascending, and those that touch as one.
fn joined(mut runs: Ranges) -> Ranges {
    runs.sort_unstable();
    let mut joined: Ranges = Vec::with_capacity(runs.len());
    for (first, last) in runs {
        match joined.last_mut() {
            Some(before) if first <= before.1.saturating_add(1) => before.1 = before.1.max(last),
            _ => joined.push((first, last)),
        }
    }
    joined
}

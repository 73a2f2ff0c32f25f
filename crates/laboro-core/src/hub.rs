//! The hub decides: commands come in, events and effects go out. One file a command family below; every
//! handler checks first and posts after, and nothing fails in between.

mod backlog;
mod conduct;
mod control;
mod documents;
mod explain;
mod gather;
mod lease;
mod loss;
mod matching;
mod parts;
mod policy;
mod query;
mod report;
mod search;
mod submit;
mod sweep;
mod timers;
mod workers;

use crate::command::{Ask, Command, Scope, TaskRef, WorkerRef};
use crate::config::Config;
use crate::effect::{Batch, Change, Effect};
use crate::event::Event;
use crate::id::{GroupId, JobId, Name, TaskId, Time, Token};
use crate::ledger::{JobHandle, Ledger, LedgerWriter, NameScope, WorkerHandle};
use crate::presence::Presence;
use crate::refusal::Refusal;
use crate::reply::Reply;
use search::CycleCheck;
use std::sync::Arc;

/// A ledger, who is there, and the rules by which tasks and workers meet.
#[derive(Debug)]
pub struct Hub {
    ledger: LedgerWriter,
    presence: Presence,
    config: Config,
    passes: matching::Passes,
    searching: search::Searching,
    effects: Vec<Effect>,
}

impl Hub {
    /// A new life on what a journal gave back. `seed` is used only by a ledger that has none: choose it
    /// so that peers cannot guess it.
    pub fn begin(ledger: Ledger, config: Config, now: Time, seed: u64) -> (Hub, Batch) {
        let mut hub = Hub {
            ledger: LedgerWriter::new(ledger),
            presence: Presence::default(),
            config,
            passes: matching::Passes::default(),
            searching: search::Searching::default(),
            effects: Vec::new(),
        };
        hub.ledger.set_now(now);
        hub.ledger.set_shares(hub.config.shares.clone());
        let (life, before) = (hub.ledger().life() + 1, hub.ledger().at());
        hub.ledger.post(Event::Began { life, seed: seed.max(1) });
        hub.expect_workers_back(before);
        hub.ledger.note_unused_groups();
        hub.forget_unused_groups();
        // Nobody is there yet who could take what is ready.
        hub.ledger.take_awake();
        hub.ledger.take_loosened();
        hub.ledger.take_freed_nodes();
        hub.ledger.take_idle_groups();
        let batch = hub.seal();
        (hub, batch)
    }

    /// All that has arrived, in order, then whatever was due by `now`.
    pub fn step(&mut self, now: Time, asks: Vec<Ask>) -> Batch {
        self.ledger.set_now(now);
        self.begin_slice();
        for Ask { token, command } in asks {
            let reply = self.run_command(token, command);
            self.reply(token, reply);
        }
        self.search_on();
        self.expire();
        self.sweep();
        self.match_waiting();
        self.forget_unused_groups();
        self.seal()
    }

    /// When `step` must be called even if nothing arrives.
    pub fn next_deadline(&self) -> Option<Time> {
        let ledger = self.ledger().next_timer().map(|(at, _)| at);
        let search = self.is_searching().then(|| self.ledger.now());
        [ledger, self.presence.next_timer(), self.sweep_due(), search].into_iter().flatten().min()
    }

    /// What it knows.
    pub fn ledger(&self) -> &Ledger {
        self.ledger.read()
    }

    /// `None`: the reply comes later.
    fn run_command(&mut self, token: Token, command: Command) -> Option<Reply> {
        let result = match command {
            Command::Submit(_) | Command::Return(_) | Command::Forget(_) if self.is_searching() => {
                return self.wait_for_search(token, command);
            }
            Command::Submit(submit) => {
                let result = self.submit(submit, CycleCheck::ByLevel);
                return self.answer(token, result);
            }
            Command::Close(job) => self.close(job),
            Command::Join(join) => self.join(join),
            Command::Offer(offer) => return self.offer(token, offer),
            Command::Withdraw(waiting) => {
                self.give_up(waiting);
                Ok(Reply::Ok)
            }
            Command::Report(report) => self.report(report),
            Command::Renew(worker) => self.renew(&worker),
            Command::Return(back) => {
                let result = self.hand_back(back, CycleCheck::ByLevel);
                return self.answer(token, result);
            }
            Command::Decline(decline) => self.decline(decline),
            Command::Acknowledge(worker, lease) => self.acknowledge(&worker, lease),
            Command::Leave(leave) => self.leave(&leave),
            Command::Cancel(selection) => self.cancel(&selection),
            Command::MarkDone(selection) => self.mark_done(&selection),
            Command::Hold(selection) => self.hold(&selection),
            Command::Release(selection) => self.release(&selection),
            Command::Retry(selection) => self.retry(&selection),
            Command::Prioritise(selection, priority) => self.prioritise(&selection, priority),
            Command::Limit { job, max_running, max_fails } => {
                self.limit(job, max_running, max_fails)
            }
            Command::Pause(group) => self.pause(&group, true),
            Command::Resume(group) => self.pause(&group, false),
            Command::Drain(worker, drain) => self.drain(&worker, drain),
            Command::Eject(worker, reason) => self.eject(&worker, &reason),
            Command::Pardon(worker) => self.pardon(&worker),
            Command::Forget(job) => self.forget(job),
            Command::ChangeDocuments(changes) => self.change_documents(changes),
            Command::Query(query) => self.query(&query),
            Command::Watch(scope) => self.watch(token, scope),
            Command::Unwatch(watch) => self.unwatch(watch),
        };
        Some(result.unwrap_or_else(Reply::Refused))
    }

    fn watch(&mut self, token: Token, scope: Scope) -> Result<Reply, Refusal> {
        let most = self.config.limits.watches;
        if self.presence.watches.len() >= most {
            return Err(Refusal::Limit { what: "watches", most: most as u64 });
        }
        self.presence.watches.insert(token, scope);
        self.ledger.collect_changes(true);
        Ok(Reply::Watching)
    }

    fn unwatch(&mut self, watch: Token) -> Result<Reply, Refusal> {
        self.presence.watches.remove(&watch);
        self.ledger.collect_changes(!self.presence.watches.is_empty());
        Ok(Reply::Ok)
    }

    fn seal(&mut self) -> Batch {
        self.notify();
        let effects = std::mem::take(&mut self.effects);
        Batch::new(self.ledger.now(), self.ledger.take_posted(), effects)
    }

    /// Whoever watches everything shares one copy of what changed.
    fn notify(&mut self) {
        let changes = self.ledger.take_changes();
        if changes.is_empty() || self.presence.watches.is_empty() {
            return;
        }
        let all: Arc<[Change]> = changes.into();
        for (&watch, scope) in &self.presence.watches {
            let changes = match scope {
                Scope::All => all.clone(),
                Scope::Job(wanted) => {
                    all.iter().filter(|change| is_about(change, *wanted)).cloned().collect()
                }
            };
            if !changes.is_empty() {
                self.effects.push(Effect::Notify { watch, changes });
            }
        }
    }

    fn find_group(&self, name: &Name) -> Result<GroupId, Refusal> {
        self.ledger().find_group(name).ok_or_else(|| Refusal::NoSuchGroup(name.clone()))
    }

    fn find_job(&self, job: JobId) -> Result<JobHandle, Refusal> {
        self.ledger().find_job(job).ok_or(Refusal::NoSuchJob(job))
    }

    fn find_worker(&self, worker: &WorkerRef) -> Result<WorkerHandle, Refusal> {
        match worker {
            WorkerRef::Id(id) => {
                let found = self.ledger().workers().find(*id);
                found.ok_or_else(|| Refusal::NoSuchWorker(Name::from(id.0.to_string())))
            }
            WorkerRef::Name { group, name } => {
                let group = self.find_group(group)?;
                let found = self.ledger().workers().find_name(group, name);
                found.ok_or_else(|| Refusal::NoSuchWorker(name.clone()))
            }
            WorkerRef::Of { group, name, dialect } => {
                let group = self.find_group(group)?;
                let found = self.ledger().workers().find_name(group, name);
                let is_its = |&handle: &WorkerHandle| {
                    self.ledger().workers().get(handle).dialect.bytes() == dialect.as_bytes()
                };
                found.filter(is_its).ok_or_else(|| Refusal::NoSuchWorker(name.clone()))
            }
        }
    }

    /// The id of a task that is there; of a whole array when its name is meant.
    fn find_task(&self, group: Option<GroupId>, task: &TaskRef) -> Option<TaskId> {
        let ledger = self.ledger();
        match task {
            TaskRef::Id(id) => {
                let job = ledger.job(ledger.find_job(id.job)?);
                if id.is_whole() {
                    return ledger.record_of(*id).map(|_| *id);
                }
                job.state_of(id.index).map(|_| *id)
            }
            TaskRef::Own(id) => {
                let job = ledger.job(ledger.find_job(id.job)?);
                group.filter(|&group| group == job.group)?;
                self.find_task(group, &TaskRef::Id(*id))
            }
            TaskRef::Name(name) => {
                let group = group?;
                let found = ledger.find_named(NameScope::Group(group), name);
                found.or_else(|| ledger.find_in_job(group, name))
            }
        }
    }

    /// The same, where a peer says what it was shown: a task without a name is meant by its number, and one of a job with
    /// names of its own also without its job, if it is the newest.
    fn find_shown(&self, group: Option<GroupId>, task: &TaskRef) -> Option<TaskId> {
        let otherwise = || match task {
            TaskRef::Id(_) | TaskRef::Own(_) => None,
            TaskRef::Name(name) => {
                let unnamed = self.ledger().find_unnamed(group?, name);
                unnamed.or_else(|| self.ledger().find_in_newest(group?, name))
            }
        };
        self.find_task(group, task).or_else(otherwise)
    }

    /// After a restart workers have one period to come back. `before` is when anything last happened.
    fn expect_workers_back(&mut self, before: Time) {
        let now = self.ledger.now();
        let workers = self.ledger.read().workers();
        let back: Vec<(WorkerHandle, Option<u64>, bool)> = (workers.from(Default::default()))
            .map(|handle| (handle, workers.get(handle)))
            .map(|(handle, worker)| (handle, worker.period_ms, worker.leases > 0))
            .collect();
        for (handle, period_ms, holds_something) in back {
            if holds_something {
                self.presence.admit(handle);
                self.presence.set_alive_until(handle, period_ms.map(|ms| now.after_ms(ms)));
            } else {
                self.expect_back(handle);
            }
            self.expect_standing_due(handle, before);
        }
    }
}

fn is_about(change: &Change, wanted: JobId) -> bool {
    match change {
        Change::Tasks { job, .. } | Change::Job { job } => *job == wanted,
        Change::Worker { .. } | Change::Group { .. } => false,
    }
}

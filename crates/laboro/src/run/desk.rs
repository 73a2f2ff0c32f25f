//! What the hub of a run and its worker say to each other: grants become assignments, ends become reports. What is
//! printed is kept, and people are told; an end is shown when the hub has recorded it, so what a person has seen is
//! never undone.

mod ends;
mod setup;

pub(crate) use setup::Setup;

use super::attempt::Attempt;
use super::attempts::Attempts;
use super::collected::ValueTable;
use super::joblog::JobLog;
use super::order::OrderedOutput;
use super::results::ResultFiles;
use super::show::{Display, EndView, ProgressCounts};
use super::summary::Tally;
use super::{GROUP, JOB, Layout, Options, WORKER};
use crate::args::halt::{HaltHow, HaltWhat};
use anyhow::anyhow;
use laboro_core::{
    Capacity, Command, Drain, Grant, JobView, Join, Kinds, LeaseRef, Offer, Place, Query, Reply,
    Report, Return, Returned, Route, State, TaskResult, Time, Values, WorkerId, WorkerRef,
};
use laboro_dialects::worker::{Assignment, ElementValue, Key, Order, Orders, Parting};
use laboro_hub::{Asker, Delivery, Underway};
use laboro_journal::outputs::Writer;
use std::collections::{HashMap, VecDeque};
use std::ffi::OsString;
use std::sync::Arc;

/// How a run is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RunEnd {
    Finished,
    Interrupted,
    /// By `--halt`.
    Halted(HaltWhat),
}

pub(crate) struct Desk {
    pub(super) layout: Layout,
    pub(super) options: Options,
    pub(super) asker: Asker,
    /// What the hub has delivered and nobody has looked at.
    pub(super) inbox: Vec<Delivery>,
    pub(super) outputs: Writer,
    pub(super) attempts: Attempts,
    pub(super) display: Display,
    pub(super) order: Option<OrderedOutput>,
    pub(super) results: Option<ResultFiles>,
    pub(super) tally: Tally,
    pub(super) joblog: Option<JobLog>,
    pub(super) table: Option<ValueTable>,
    /// All tasks of the job.
    total: u64,
    /// Tasks may be given beyond the slots, as many as the worker says.
    pub(super) looks_ahead: bool,
    worker: WorkerRef,
    worker_id: WorkerId,
    /// At the worker, begun or not.
    given: HashMap<Key, Attempt>,
    next_key: u64,
    begun: usize,
    /// The same for those who look at this run.
    underway: Underway,
    /// Since when something has ended and is not reported.
    unreported_since: Option<Time>,
    /// Ended, not reported yet.
    ended: Vec<(TaskResult, EndView)>,
    /// Reported and not recorded yet, one entry a report.
    unrecorded: VecDeque<Vec<EndView>>,
    /// To be run again, or by the next run.
    returned: Vec<Returned>,
    /// Asked and not answered.
    unanswered: u32,
    /// Nothing more starts.
    is_stopping: bool,
    tick_at: Time,
    flush_at: Time,
    /// Whether all is over is worth a question.
    looks: bool,
    over: Option<RunEnd>,
    is_halted: bool,
    fatal: Option<anyhow::Error>,
    has_said_settings_differ: bool,
}

/// Tags of what is asked, to tell answers apart.
const OTHER: u64 = 0;
const REPORT: u64 = 1;
const LOOK: u64 = 2;

const TICK_MS: u64 = 100;
const FLUSH_MS: u64 = 200;
/// While there is enough to do, results are reported together: each report costs a sync of the disk.
const REPORT_MS: u64 = 5;

pub(super) const OUTPUTS_TROUBLE: &str = "what tasks print cannot be kept; what was recorded before is safe: make room and type the same \
     command again";

impl Desk {
    pub(crate) fn new(setup: Setup) -> Desk {
        let Setup { layout, options, asker, outputs, attempts, display, .. } = setup;
        let Setup { order, results, looks_ahead, joblog, table, total, underway, .. } = setup;
        Desk {
            layout,
            options,
            asker,
            inbox: Vec::new(),
            outputs,
            attempts,
            display,
            order,
            results,
            tally: Tally::default(),
            joblog,
            table,
            total,
            looks_ahead,
            worker: WorkerRef::Name { group: GROUP.into(), name: WORKER.into() },
            worker_id: WorkerId(0),
            given: HashMap::new(),
            next_key: 1,
            begun: 0,
            underway,
            unreported_since: None,
            ended: Vec::new(),
            unrecorded: VecDeque::new(),
            returned: Vec::new(),
            unanswered: 0,
            is_stopping: false,
            tick_at: Time(0),
            flush_at: Time(0),
            looks: false,
            over: None,
            is_halted: false,
            fatal: None,
            has_said_settings_differ: false,
        }
    }

    pub(super) fn join(&mut self, now: Time) {
        (self.tick_at, self.flush_at) = (now.after_ms(TICK_MS), now.after_ms(FLUSH_MS));
        let resources = &self.options.machine.resources;
        let join = Join {
            kinds: Kinds::ALL,
            tags: self.options.tags.iter().map(|tag| tag.as_str().into()).collect(),
            capacity: Capacity {
                slots: self.options.slots,
                memory: self.options.machine.memory,
                resources: (resources.iter())
                    .map(|(name, supply)| (name.as_str().into(), supply.clone()))
                    .collect(),
                time_left_ms: None,
            },
            // Whatever an earlier run had on loan is not running any more.
            running: Some(Vec::new()),
            ..Join::new(GROUP, WORKER, "local", self.asker.session)
        };
        self.ask(OTHER, Command::Join(join));
        // What waits for a slot would count as running: how many are worth it is known when the first have ended.
        self.offer(0);
    }

    /// With a limit of failures, or memory to watch, nothing is given that is not to start now.
    pub(super) fn offer(&mut self, ahead: u32) {
        let ahead = if self.looks_ahead { ahead } else { 0 };
        let (worker, route) = (self.worker.clone(), Route::Push { ahead });
        self.ask(OTHER, Command::Offer(Offer { worker, route, lease_ms: None }));
    }

    fn ask(&mut self, tag: u64, command: Command) {
        self.unanswered += 1;
        if let Err(lost) = self.asker.ask(tag, command) {
            self.fail(lost.into());
        }
    }

    /// The run cannot go on. The first reason is the one that counts.
    pub(super) fn fail(&mut self, error: anyhow::Error) {
        self.fatal.get_or_insert(error);
    }

    /// Why the run could not go on.
    pub(crate) fn take_fatal(&mut self) -> Option<anyhow::Error> {
        self.fatal.take()
    }

    pub(super) fn hear(&mut self, now: Time, out: &mut Orders) {
        for delivery in std::mem::take(&mut self.inbox) {
            match delivery {
                Delivery::Work { worker, grants } => {
                    self.worker_id = worker;
                    for grant in grants {
                        match self.is_stopping {
                            true => self.give_back(&grant),
                            false => self.give(grant, out),
                        }
                    }
                }
                Delivery::Revoke { leases, .. } => {
                    for (task, _) in leases {
                        let given = self.given.iter_mut().find(|(_, given)| given.task == task);
                        if let Some((&key, attempt)) = given {
                            attempt.is_revoked = true;
                            out.order(Order::Cancel(key));
                        }
                    }
                }
                Delivery::Stop { drain, .. } if !self.is_stopping => {
                    out.order(match drain {
                        Drain::All | Drain::Lift => Order::Drain,
                        Drain::AtOnce => Order::StopNow,
                        Drain::Slots(slots) => Order::GiveUpSlots(slots),
                    });
                }
                Delivery::Stop { .. } | Delivery::Replaced => {}
                Delivery::Reply { tag, reply } => {
                    // An answer to the question itself is no reason to ask again.
                    self.looks |= tag != LOOK;
                    self.answered(tag, reply, out);
                }
            }
        }
        self.go_on(now, out);
    }

    fn give(&mut self, grant: Grant, out: &mut Orders) {
        self.say_once_if_settings_differ(&grant);
        let index = grant.task.index;
        let number = match self.attempts.begin(index, grant.attempt) {
            Ok(number) => number,
            Err(error) => return self.fail(error),
        };
        let key = Key(self.next_key);
        self.next_key += 1;
        let name = self.layout.name(index).unwrap_or_else(|| grant.name.to_string());
        let label = self.layout.label(index).unwrap_or_else(|| name.clone());
        let attempt = Attempt::new(&grant, (name.clone(), label), number, &self.options);
        self.given.insert(key, attempt);
        let place = grant.element.as_ref().map_or(0, |element| element.position);
        let value = grant.element.as_ref().map(|element| ElementValue {
            position: element.position,
            bytes: match &element.values {
                Values::Numbers { first, step } => {
                    let number =
                        first.wrapping_add(i64::from(element.position).wrapping_mul(*step));
                    number.to_string().into()
                }
                Values::List(list) => {
                    let value = list.get(element.position as usize);
                    value.map_or_else(Default::default, |value| value.to_vec().into())
                }
            },
        });
        out.order(Order::Start(Box::new(Assignment {
            key,
            name,
            job: u64::from(JOB.0),
            index: place + 1,
            attempt: number,
            resources: share(&grant),
            role: grant.role,
            access: None,
            work: grant.work.unwrap_or_else(|| Arc::new(laboro_core::Work::Named)),
            value,
            slots: grant.profile.needs.slots,
            memory: grant.profile.needs.memory,
            time_limit_ms: self.layout.time_limit_ms(index),
        })));
    }

    fn give_back(&mut self, grant: &Grant) {
        let lease = LeaseRef::Number { task: grant.task, lease: grant.lease };
        self.returned.push(Returned { lease, preds: Vec::new() });
    }

    /// A job keeps what it was submitted with; who types other settings later should know.
    fn say_once_if_settings_differ(&mut self, grant: &Grant) {
        if !self.has_said_settings_differ && self.layout.differs(grant) {
            self.has_said_settings_differ = true;
            self.display.note(
                "attempts, needs and priorities stay what they were when this job was first run; \
                 --fresh takes the new ones and runs everything again",
            );
        }
    }

    fn answered(&mut self, tag: u64, reply: Reply, out: &mut Orders) {
        self.unanswered -= 1;
        match (tag, reply) {
            (_, Reply::Refused(refusal)) => self.fail(anyhow!("the hub refused: {refusal}")),
            (REPORT, Reply::Reported(verdicts)) => {
                if let Some(refusal) = verdicts.into_iter().find_map(Result::err) {
                    return self.fail(anyhow!("the hub refused a result: {refusal}"));
                }
                if let Err(error) = self.recorded() {
                    self.fail(error);
                }
                self.halt_if_reached(out);
            }
            (LOOK, Reply::Jobs(jobs)) => {
                if let Some(job) = jobs.first() {
                    self.look(job, out);
                }
            }
            _ => {}
        }
    }

    /// Has the worker stop as a person would, once or twice.
    fn halt_if_reached(&mut self, out: &mut Orders) {
        let Some(halt) = self.options.halt.filter(|_| !self.is_halted && !self.is_stopping) else {
            return;
        };
        if halt.is_reached(self.tally.done, self.tally.failed, self.total) {
            self.is_halted = true;
            out.order(match halt.how {
                HaltHow::Soon => Order::Drain,
                HaltHow::Now => Order::StopNow,
            });
        }
    }

    /// When something is to be done here at the latest.
    pub(super) fn deadline(&self) -> Time {
        if self.fatal.is_some() && self.over.is_none() {
            return Time(0);
        }
        let report = self.unreported_since.map(|since| match self.is_report_urgent() {
            true => Time(0),
            false => since.after_ms(REPORT_MS),
        });
        report.map_or(self.tick_at, |report| report.min(self.tick_at))
    }

    pub(super) fn tick(&mut self, now: Time, out: &mut Orders) {
        if self.tick_at <= now {
            self.tick_at = now.after_ms(TICK_MS);
            let progress = self.progress();
            self.display.tick(&progress);
            self.looks = true;
        }
        if self.flush_at <= now {
            self.flush(now);
        }
        self.go_on(now, out);
    }

    /// Whatever follows from what was heard or told.
    fn go_on(&mut self, now: Time, out: &mut Orders) {
        let is_due = |since: Time| since.after_ms(REPORT_MS) <= now;
        if self.unreported_since.is_some_and(is_due) || self.is_report_urgent() {
            self.report(now);
        }
        // Who stops leaves when nothing runs, whatever is left.
        if self.looks && self.over.is_none() && !self.is_stopping && self.is_idle() {
            self.looks = false;
            self.ask(LOOK, Command::Query(Query::Job(JOB)));
        }
        if let Some(error) = self.fatal.as_ref().filter(|_| self.over.is_none()) {
            self.over = Some(RunEnd::Interrupted);
            out.hang_up(Parting::Refused(format!("{error:#}")));
        }
    }

    fn is_report_urgent(&self) -> bool {
        let to_do = self.given.len() - self.begun;
        let is_something = !self.ended.is_empty() || !self.returned.is_empty();
        is_something && (to_do < self.options.slots as usize || self.is_stopping)
    }

    fn flush(&mut self, now: Time) {
        self.flush_at = now.after_ms(FLUSH_MS);
        if let Err(error) = self.outputs.flush() {
            self.fail(anyhow::Error::new(error).context(OUTPUTS_TROUBLE));
        }
    }

    /// Results go to the hub in one report, after what the tasks printed has left this program.
    fn report(&mut self, now: Time) {
        self.unreported_since = None;
        self.flush(now);
        if self.fatal.is_some() {
            return;
        }
        if !self.ended.is_empty() {
            let (results, views) = std::mem::take(&mut self.ended).into_iter().unzip();
            self.unrecorded.push_back(views);
            self.ask(REPORT, Command::Report(Report { worker: self.worker.clone(), results }));
        }
        if !self.returned.is_empty() {
            let tasks = std::mem::take(&mut self.returned);
            let worker = self.worker.clone();
            self.ask(OTHER, Command::Return(Return { worker, tasks, place: Place::Front }));
        }
    }

    /// Nothing is under way, at the worker or at the hub.
    fn is_idle(&self) -> bool {
        self.given.is_empty() && self.is_settled()
    }

    pub(super) fn is_settled(&self) -> bool {
        self.ended.is_empty() && self.returned.is_empty() && self.unanswered == 0
    }

    /// Nothing is under way: is there anything left to do?
    fn look(&mut self, job: &JobView, out: &mut Orders) {
        if !self.is_idle() || self.is_stopping {
            return;
        }
        let (leased, ready) = (job.counts.of(State::Leased), job.counts.of(State::Ready));
        // What a person holds is waited for.
        let is_idle = job.counts.active() == 0 && job.counts.of(State::Held) == 0;
        let is_finished = is_idle || job.stopped && leased == 0;
        if is_finished {
            self.over = Some(RunEnd::Finished);
            out.hang_up(Parting::Finished);
        } else if ready > 0 && leased == 0 && !job.held {
            // Nothing runs and all of this machine is free: it will not fit later either.
            self.fail(anyhow!(
                "nothing more can start: of {ready} ready, each needs more than this machine had when \
                 they were first run; raise -j or say --with, or use --fresh"
            ));
        }
    }

    /// The worker takes nothing more.
    pub(super) fn stop(&mut self) {
        self.is_stopping = true;
        if self.over.is_none() {
            self.ask(OTHER, Command::Drain(self.worker.clone(), Drain::All));
        }
    }

    pub(super) fn launching(&mut self, key: Key, words: &[OsString]) {
        if let Some(attempt) = self.given.get_mut(&key)
            && let Err(error) = attempt.launching(words, &self.options, &self.layout)
        {
            self.fail(error);
        }
    }

    pub(crate) fn progress(&self) -> ProgressCounts {
        let running = self.begun as u64;
        ProgressCounts { done: self.tally.done, failed: self.tally.failed, running }
    }

    /// How the run is over, by the counts of its job.
    pub(crate) fn how(&self, job: &JobView) -> RunEnd {
        match self.over {
            Some(how) => how,
            None if job.counts.active() == 0 => RunEnd::Finished,
            None => match self.options.halt.filter(|_| self.is_halted) {
                Some(halt) => RunEnd::Halted(halt.what),
                None => RunEnd::Interrupted,
            },
        }
    }
}

fn share(grant: &Grant) -> Vec<(String, Vec<u32>)> {
    let portions = grant.share.iter().flat_map(|share| &share.portions);
    let bits = |bits: u128| (0..128).filter(|bit| bits >> bit & 1 == 1).collect();
    let visible = portions.filter(|(_, portion)| portion.visible() != 0);
    visible.map(|(name, portion)| (name.to_string(), bits(portion.visible()))).collect()
}

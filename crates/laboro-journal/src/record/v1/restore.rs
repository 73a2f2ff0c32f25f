//! The pieces of a condensed ledger. A task is a byte of flags and what is not as expected, because there
//! are millions of them and somebody waits for a hub to start.

use super::attempts::is_full;
use super::deltas::Line;
use super::{Decoder, Encoder, Form, tag};
use crate::record::RecordError;
use laboro_core::restore::{
    Restore, RestoredArray, RestoredAttempt, RestoredExtra, RestoredJob, RestoredPhase,
    RestoredTask, RestoredTasks, RestoredWorker,
};
use laboro_core::{Demand, Fields, JobOptions, LeaseNo, Share, State, TaskId, WorkKind};
use std::sync::Arc;

const INDEX_GIVEN: u8 = 1;
const PROFILE_GIVEN: u8 = 2;
const WORK_GIVEN: u8 = 4;
const COUNTS_GIVEN: u8 = 8;
const EXTRA_GIVEN: u8 = 16;
/// The three bits above the flags.
const PHASE_SHIFT: u8 = 5;

/// What a task of a piece is told by: the one before it.
#[derive(Clone, Copy)]
struct Before {
    index: u32,
    profile: u32,
}

impl Encoder {
    pub(super) fn restored(&mut self, piece: &Restore) {
        match piece {
            Restore::Counters { life, seed, next_lease, next_job, next_worker, front, back } => {
                self.out.u8(tag::RESTORED_COUNTERS);
                self.out.u32(*life);
                self.out.u64(*seed);
                self.out.u64(*next_lease);
                self.out.u32(*next_job);
                self.out.u32(*next_worker);
                self.out.i64(*front);
                self.out.i64(*back);
            }
            Restore::BlockedIsOver => self.out.u8(tag::RESTORED_BLOCKED_IS_OVER),
            Restore::Group { group, name, paused, ever_used } => {
                self.out.u8(tag::RESTORED_GROUP);
                self.out.u32(group.0);
                self.name(name);
                self.out.bool(*paused);
                self.out.bool(*ever_used);
            }
            Restore::Worker(worker) => self.restored_worker(worker),
            Restore::Job(job) => self.restored_job(job),
            Restore::Array(array) => self.restored_array(array),
            Restore::Elements { job, state, ranges } => {
                self.job_ranges(tag::RESTORED_ELEMENTS, *job, ranges);
                self.state(*state);
            }
            Restore::FailedElements { job, outcome, ranges } => {
                self.job_ranges(tag::RESTORED_FAILED_ELEMENTS, *job, ranges);
                self.outcome(*outcome);
            }
            Restore::FailedBecause { job, why, ranges } => {
                self.job_ranges(tag::RESTORED_FAILED_BECAUSE, *job, ranges);
                self.out.string(why.as_bytes());
            }
            Restore::Tasks(tasks) => self.restored_tasks(tasks),
            Restore::Followers(pairs) => self.pairs(tag::RESTORED_FOLLOWERS, pairs),
            Restore::Edges(pairs) => self.pairs(tag::RESTORED_EDGES, pairs),
            Restore::Lane { job, profile, kind, turn, tasks } => {
                self.out.u8(tag::RESTORED_LANE_TAGGED);
                self.job(*job);
                self.profile(profile);
                self.out.u8(match kind.kind {
                    WorkKind::Named => 0,
                    WorkKind::Command => 1,
                    WorkKind::Script => 2,
                    WorkKind::Indexed => 3,
                    WorkKind::Call => 4,
                });
                self.list(&kind.fields.tags().collect::<Vec<_>>(), |to, tag| to.out.u32(*tag));
                self.out.i64(*turn);
                self.tasks(Line::Other, tasks);
            }
            Restore::Lease { task, lease, worker, started, until, period_ms, share } => {
                let has_nodes = share.as_ref().is_some_and(|share| !share.nodes.is_empty());
                let full = share.as_deref().filter(|share| has_nodes || is_full(share));
                let plain = share.as_deref().filter(|_| full.is_none());
                let tag = match full {
                    Some(_) if has_nodes => tag::RESTORED_LEASE_NODES,
                    Some(_) => tag::RESTORED_LEASE_FULL,
                    None => tag::RESTORED_LEASE,
                };
                self.out.u8(tag);
                self.task(Line::Leased, *task);
                self.lease(*lease);
                self.worker(*worker);
                self.time(*started);
                self.option(*until, Encoder::time);
                self.option(*period_ms, |to, ms| to.out.u64(ms));
                match full {
                    Some(share) => self.full_share(share),
                    None => self.option(plain, Encoder::share),
                }
                if let Some(share) = full.filter(|_| has_nodes) {
                    self.nodes(share);
                }
            }
        }
    }

    fn restored_worker(&mut self, from: &RestoredWorker) {
        self.out.u8(tag::RESTORED_WORKER);
        self.worker(from.worker);
        self.out.u32(from.group.0);
        self.name(&from.name);
        self.out.string(from.dialect.bytes());
        self.time(from.seen);
        self.option(from.period_ms, |to, period| to.out.u64(period));
        self.out.u64(from.good);
        self.out.u64(from.bad);
        self.out.u32(from.since);
        self.list(&from.recent, |to, &(job, good)| {
            to.job(job);
            to.out.bool(good);
        });
        self.list(&from.tallies, |to, &(job, good, bad)| {
            to.job(job);
            to.out.u32(good);
            to.out.u32(bad);
        });
        self.standing(from.standing);
        self.option(from.reason.as_deref(), |to, reason| to.out.string(reason.as_bytes()));
        self.option(from.until, Encoder::time);
        self.out.u32(from.holds);
    }

    fn restored_job(&mut self, from: &RestoredJob) {
        self.out.u8(match (from.options.own_names, &from.options.owner) {
            _ if from.options.has_later_fields() => tag::RESTORED_JOB_TAGGED,
            (true, _) => tag::RESTORED_JOB_NAMING,
            (false, Some(_)) => tag::RESTORED_JOB_BY,
            (false, None) => tag::RESTORED_JOB,
        });
        self.job(from.job);
        self.out.u32(from.group.0);
        self.job_options(&from.options);
        self.out.bool(from.stopped);
        self.out.u32(from.forgiven);
        self.time(from.submitted);
        self.option(from.ended, Encoder::time);
        self.out.u32(from.next_index);
        self.list(&from.failures, |to, &(outcome, count)| {
            to.outcome(outcome);
            to.out.u32(count);
        });
        self.out.u32(from.good);
        self.out.u32(from.bad);
    }

    fn restored_array(&mut self, from: &RestoredArray) {
        self.out.u8(tag::RESTORED_ARRAY_TAGGED);
        self.job(from.job);
        self.out.u32(from.first);
        self.new_array(&from.array);
        self.profile(&from.profile);
        self.out.u32(from.waiting);
        self.out.u32(from.failed);
        self.out.u32(from.unfinished);
        self.out.u32(from.bad);
    }

    fn state(&mut self, state: State) {
        self.out.u8(match state {
            State::Waiting => 0,
            State::Blocked => 1,
            State::Ready => 2,
            State::Delayed => 3,
            State::Held => 4,
            State::Leased => 5,
            State::Done => 6,
            State::Failed => 7,
            State::Cancelled => 8,
        });
    }

    fn restored_tasks(&mut self, from: &RestoredTasks) {
        self.out.u8(tag::RESTORED_TASKS_TAGGED);
        self.job(from.job);
        self.list(&from.profiles, Encoder::profile);
        let mut before = Before { index: 0, profile: 0 };
        self.list(&from.tasks, |to, task| {
            to.restored_task(task, before);
            before = Before { index: task.index, profile: task.profile };
        });
    }

    fn restored_task(&mut self, task: &RestoredTask, before: Before) {
        let counts = [task.waiting, task.failed, u32::from(task.fails), u32::from(task.lost)];
        let phase = match &task.phase {
            RestoredPhase::Waiting => 0,
            RestoredPhase::Blocked => 1,
            RestoredPhase::Ready => 2,
            RestoredPhase::Delayed(_) => 3,
            RestoredPhase::Held => 4,
            RestoredPhase::Leased => 5,
            RestoredPhase::Finished(_) => 6,
            RestoredPhase::Cancelled => 7,
        };
        let mut flags: u8 = phase << PHASE_SHIFT;
        let mut mark = |flag, given: bool| flags |= if given { flag } else { 0 };
        mark(INDEX_GIVEN, task.index != before.index.wrapping_add(1));
        mark(PROFILE_GIVEN, task.profile != before.profile);
        mark(WORK_GIVEN, task.work.is_some());
        mark(COUNTS_GIVEN, counts != [0; 4]);
        mark(EXTRA_GIVEN, task.extra.is_some());
        self.out.u8(flags);
        self.name(&task.name);
        if flags & INDEX_GIVEN != 0 {
            self.step(task.index, before.index);
        }
        if flags & PROFILE_GIVEN != 0 {
            self.out.u32(task.profile);
        }
        if let Some(work) = &task.work {
            self.work(work);
        }
        if flags & COUNTS_GIVEN != 0 {
            counts.into_iter().for_each(|count| self.out.u32(count));
        }
        match &task.phase {
            RestoredPhase::Delayed(until) => self.time(*until),
            RestoredPhase::Finished(attempt) => self.attempt(attempt),
            RestoredPhase::Waiting
            | RestoredPhase::Blocked
            | RestoredPhase::Ready
            | RestoredPhase::Held
            | RestoredPhase::Leased
            | RestoredPhase::Cancelled => {}
        }
        if let Some(extra) = &task.extra {
            self.extra(extra);
        }
    }

    fn attempt(&mut self, attempt: &RestoredAttempt) {
        self.outcome(attempt.outcome);
        self.worker(attempt.worker);
        self.time(attempt.started);
        self.out.u32(attempt.took_ms);
    }

    fn extra(&mut self, extra: &RestoredExtra) {
        let RestoredExtra { memo, message, past, lapsed } = extra;
        self.option(memo.as_deref(), |to, memo| to.out.string(memo));
        self.option(message.as_deref(), |to, message| to.out.string(message.as_bytes()));
        self.list(past, Encoder::attempt);
        self.option(*lapsed, |to, (lease, worker): (LeaseNo, _)| {
            to.lease(lease);
            to.worker(worker);
        });
    }

    fn pairs(&mut self, tag: u8, pairs: &[(TaskId, TaskId)]) {
        self.out.u8(tag);
        self.list(pairs, |to, &(pred, succ)| {
            to.task(Line::Pred, pred);
            to.task(Line::Succ, succ);
        });
    }
}

impl Decoder<'_> {
    /// `None` if no piece has this tag.
    pub(super) fn restored(&mut self, tag: u8) -> Result<Option<Restore>, RecordError> {
        Ok(Some(match tag {
            tag::RESTORED_COUNTERS => Restore::Counters {
                life: self.from.u32()?,
                seed: self.from.u64()?,
                next_lease: self.from.u64()?,
                next_job: self.from.u32()?,
                next_worker: self.from.u32()?,
                front: self.from.i64()?,
                back: self.from.i64()?,
            },
            tag::RESTORED_BLOCKED_IS_OVER => Restore::BlockedIsOver,
            tag::RESTORED_GROUP => Restore::Group {
                group: self.group()?,
                name: self.name()?,
                paused: self.from.bool()?,
                ever_used: self.from.bool()?,
            },
            tag::RESTORED_WORKER => Restore::Worker(Box::new(self.restored_worker()?)),
            tag::RESTORED_JOB => Restore::Job(Box::new(self.restored_job(Decoder::job_options)?)),
            tag::RESTORED_JOB_BY => {
                Restore::Job(Box::new(self.restored_job(Decoder::owned_job_options)?))
            }
            tag::RESTORED_JOB_NAMING => {
                Restore::Job(Box::new(self.restored_job(Decoder::naming_job_options)?))
            }
            tag::RESTORED_JOB_TAGGED => {
                Restore::Job(Box::new(self.restored_job(Decoder::tagged_job_options)?))
            }
            tag::RESTORED_ARRAY | tag::RESTORED_ARRAY_TAGGED => {
                Restore::Array(Box::new(self.restored_array()?))
            }
            tag::RESTORED_ELEMENTS => {
                let (job, ranges) = (self.job()?, self.ranges()?);
                Restore::Elements { job, state: self.state()?, ranges }
            }
            tag::RESTORED_FAILED_ELEMENTS => {
                let (job, ranges) = (self.job()?, self.ranges()?);
                Restore::FailedElements { job, outcome: self.outcome()?, ranges }
            }
            tag::RESTORED_FAILED_BECAUSE => {
                let (job, ranges) = (self.job()?, self.ranges()?);
                Restore::FailedBecause { job, why: self.from.text()?.into(), ranges }
            }
            tag::RESTORED_TASKS | tag::RESTORED_TASKS_TAGGED => {
                Restore::Tasks(Box::new(self.restored_tasks()?))
            }
            tag::RESTORED_FOLLOWERS => Restore::Followers(self.pairs()?),
            tag::RESTORED_EDGES => Restore::Edges(self.pairs()?),
            tag::RESTORED_LANE | tag::RESTORED_LANE_TAGGED => Restore::Lane {
                job: self.job()?,
                profile: self.profile()?,
                kind: self.demand()?,
                turn: self.from.i64()?,
                tasks: self.tasks(Line::Other)?,
            },
            tag::RESTORED_LEASE | tag::RESTORED_LEASE_FULL | tag::RESTORED_LEASE_NODES => {
                Restore::Lease {
                    task: self.task(Line::Leased)?,
                    lease: self.lease()?,
                    worker: self.worker()?,
                    started: self.time()?,
                    until: self.option(Decoder::time)?,
                    period_ms: self.option(|from| from.from.u64())?,
                    share: match tag {
                        tag::RESTORED_LEASE_NODES => {
                            let share = self.full_share()?;
                            Some(Arc::new(Share { nodes: self.nodes()?, ..share }))
                        }
                        tag::RESTORED_LEASE_FULL => Some(Arc::new(self.full_share()?)),
                        _ => self.option(|from| from.share().map(Arc::new))?,
                    },
                }
            }
            _ => return Ok(None),
        }))
    }

    fn restored_worker(&mut self) -> Result<RestoredWorker, RecordError> {
        Ok(RestoredWorker {
            worker: self.worker()?,
            group: self.group()?,
            name: self.name()?,
            dialect: self.plain_name()?,
            seen: self.time()?,
            period_ms: self.option(|from| from.from.u64())?,
            good: self.from.u64()?,
            bad: self.from.u64()?,
            since: self.from.u32()?,
            recent: self.list(|from| Ok((from.job()?, from.from.bool()?)))?,
            tallies: self.list(|from| Ok((from.job()?, from.from.u32()?, from.from.u32()?)))?,
            standing: self.standing()?,
            reason: self.option(|from| Ok(from.from.text()?.into()))?,
            until: self.option(Decoder::time)?,
            holds: self.from.u32()?,
        })
    }

    fn restored_job(
        &mut self,
        options: impl FnOnce(&mut Self) -> Result<JobOptions, RecordError>,
    ) -> Result<RestoredJob, RecordError> {
        Ok(RestoredJob {
            job: self.job()?,
            group: self.group()?,
            options: options(self)?,
            stopped: self.from.bool()?,
            forgiven: self.from.u32()?,
            submitted: self.time()?,
            ended: self.option(Decoder::time)?,
            next_index: self.from.u32()?,
            failures: self.list(|from| Ok((from.outcome()?, from.from.u32()?)))?,
            good: self.from.u32()?,
            bad: self.from.u32()?,
        })
    }

    fn restored_array(&mut self) -> Result<RestoredArray, RecordError> {
        Ok(RestoredArray {
            job: self.job()?,
            first: self.from.u32()?,
            array: self.new_array()?,
            profile: self.profile()?,
            waiting: self.from.u32()?,
            failed: self.from.u32()?,
            unfinished: self.from.u32()?,
            bad: self.from.u32()?,
        })
    }

    fn state(&mut self) -> Result<State, RecordError> {
        Ok(match self.from.u8()? {
            0 => State::Waiting,
            1 => State::Blocked,
            2 => State::Ready,
            3 => State::Delayed,
            4 => State::Held,
            5 => State::Leased,
            6 => State::Done,
            7 => State::Failed,
            8 => State::Cancelled,
            _ => return self.from.malformed("no such state"),
        })
    }

    fn restored_tasks(&mut self) -> Result<RestoredTasks, RecordError> {
        let job = self.job()?;
        let profiles = self.list(Decoder::profile)?;
        let mut before = Before { index: 0, profile: 0 };
        let tasks = self.list(|from| {
            let task = from.restored_task(before)?;
            before = Before { index: task.index, profile: task.profile };
            Ok(task)
        })?;
        Ok(RestoredTasks { job, profiles, tasks })
    }

    fn restored_task(&mut self, before: Before) -> Result<RestoredTask, RecordError> {
        let flags = self.from.u8()?;
        let name = self.name()?;
        let index = match flags & INDEX_GIVEN {
            0 => before.index.wrapping_add(1),
            _ => self.step(before.index)?,
        };
        let profile = match flags & PROFILE_GIVEN {
            0 => before.profile,
            _ => self.from.u32()?,
        };
        let work = match flags & WORK_GIVEN {
            0 => None,
            _ => Some(self.work()?),
        };
        let (waiting, failed, fails, lost) = match flags & COUNTS_GIVEN {
            0 => (0, 0, 0, 0),
            _ => (self.from.u32()?, self.from.u32()?, self.from.u16()?, self.from.u16()?),
        };
        let phase = match flags >> PHASE_SHIFT {
            0 => RestoredPhase::Waiting,
            1 => RestoredPhase::Blocked,
            2 => RestoredPhase::Ready,
            3 => RestoredPhase::Delayed(self.time()?),
            4 => RestoredPhase::Held,
            5 => RestoredPhase::Leased,
            6 => RestoredPhase::Finished(self.attempt()?),
            _ => RestoredPhase::Cancelled,
        };
        let extra = match flags & EXTRA_GIVEN {
            0 => None,
            _ => Some(Box::new(self.extra()?)),
        };
        Ok(RestoredTask { index, name, profile, work, waiting, failed, fails, lost, phase, extra })
    }

    fn demand(&mut self) -> Result<Demand, RecordError> {
        let kind = match self.from.u8()? {
            0 => WorkKind::Named,
            1 => WorkKind::Command,
            2 => WorkKind::Script,
            3 => WorkKind::Indexed,
            4 => WorkKind::Call,
            _ => return self.from.malformed("no such kind of work"),
        };
        let tags = match self.form {
            Form::Positional => Vec::new(),
            Form::Tagged => self.list(|from| from.from.u32())?,
        };
        Ok(Demand { kind, fields: tags.into_iter().fold(Fields::NONE, Fields::with) })
    }

    fn attempt(&mut self) -> Result<RestoredAttempt, RecordError> {
        Ok(RestoredAttempt {
            outcome: self.outcome()?,
            worker: self.worker()?,
            started: self.time()?,
            took_ms: self.from.u32()?,
        })
    }

    fn extra(&mut self) -> Result<RestoredExtra, RecordError> {
        Ok(RestoredExtra {
            memo: self.option(|from| Ok(from.from.string()?.into()))?,
            message: self.option(|from| Ok(from.from.text()?.into()))?,
            past: self.list(Decoder::attempt)?,
            lapsed: self.option(|from| Ok((from.lease()?, from.worker()?)))?,
        })
    }

    fn pairs(&mut self) -> Result<Vec<(TaskId, TaskId)>, RecordError> {
        self.list(|from| Ok((from.task(Line::Pred)?, from.task(Line::Succ)?)))
    }
}

//! Version 1 of the record format: which byte means which event, and what follows it. A tag's meaning
//! never changes; an event that gets another field gets another tag, and the old one is read for ever.
//! `spec/journal/README.md` says the same in words.

mod attempts;
mod deltas;
mod positional;
mod restore;
mod tasks;
mod work;

use super::RecordError;
use super::bytes::{ByteReader, ByteWriter};
use deltas::{Last, Line};
use laboro_core::restore::Restore;
use laboro_core::{DocumentChange, DocumentId, Event, Standing, Time};

pub(super) use work::Held;

pub(super) const VERSION: u8 = 1;

pub(super) mod tag {
    pub const BEGAN: u8 = 1;
    pub const GROUP_MADE: u8 = 2;
    pub const GROUP_PAUSED: u8 = 3;
    pub const JOB_MADE: u8 = 4;
    pub const JOB_CLOSED: u8 = 5;
    pub const JOB_HELD: u8 = 6;
    pub const JOB_STOPPED: u8 = 7;
    pub const JOB_LIMITED: u8 = 8;
    pub const JOB_FORGOTTEN: u8 = 9;
    pub const ADDED: u8 = 10;
    pub const PREDS_ADDED: u8 = 11;
    pub const RENEWED: u8 = 12;
    pub const WORKER_MET: u8 = 13;
    pub const WORKER_FORGOTTEN: u8 = 14;
    pub const LEASED: u8 = 15;
    pub const FINISHED: u8 = 16;
    pub const RETURNED: u8 = 17;
    pub const WOKEN: u8 = 18;
    pub const CANCELLED: u8 = 19;
    pub const HELD: u8 = 20;
    pub const RELEASED: u8 = 21;
    pub const RETRIED: u8 = 22;
    pub const PRIORITISED: u8 = 23;
    pub const TASKS_FORGOTTEN: u8 = 24;
    pub const JUDGED: u8 = 25;
    pub const HELD_BACK: u8 = 30;
    pub const GROUP_FORGOTTEN: u8 = 31;
    pub const ADDED_TAGGED: u8 = 32;
    /// A job with an owner.
    pub const JOB_MADE_BY: u8 = 33;
    /// They were done elsewhere.
    pub const MARKED_DONE: u8 = 40;
    /// A job whose names are its own, with or without an owner.
    pub const JOB_MADE_NAMING: u8 = 41;
    /// A job with tagged fields.
    pub const JOB_MADE_TAGGED: u8 = 42;
    /// The time of a job has come.
    pub const JOB_DUE: u8 = 45;
    pub const JOB_DEFERRED: u8 = 46;
    pub const DOCUMENT_CHANGED: u8 = 50;
    pub const RESTORED_COUNTERS: u8 = 64;
    pub const RESTORED_GROUP: u8 = 65;
    pub const RESTORED_WORKER: u8 = 66;
    pub const RESTORED_JOB: u8 = 67;
    pub const RESTORED_ARRAY: u8 = 68;
    pub const RESTORED_ELEMENTS: u8 = 69;
    pub const RESTORED_FAILED_ELEMENTS: u8 = 70;
    pub const RESTORED_TASKS: u8 = 71;
    pub const RESTORED_FOLLOWERS: u8 = 72;
    pub const RESTORED_EDGES: u8 = 73;
    pub const RESTORED_LANE: u8 = 74;
    pub const RESTORED_LEASE: u8 = 75;
    pub const RESTORED_JOB_BY: u8 = 96;
    pub const RESTORED_JOB_NAMING: u8 = 100;
    pub const RESTORED_JOB_TAGGED: u8 = 101;
    /// A lease with fractions, counts or a variant.
    pub const RESTORED_LEASE_FULL: u8 = 97;
    /// A lease with several workers.
    pub const RESTORED_LEASE_NODES: u8 = 110;
    pub const RESTORED_ARRAY_TAGGED: u8 = 80;
    pub const RESTORED_TASKS_TAGGED: u8 = 81;
    pub const RESTORED_LANE_TAGGED: u8 = 82;
    pub const RESTORED_BLOCKED_IS_OVER: u8 = 83;
    pub const RESTORED_FAILED_BECAUSE: u8 = 84;
}

/// How an event has its profiles and settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// Read only.
    Positional,
    Tagged,
}

impl Form {
    pub fn of(tag: u8) -> Form {
        match tag {
            tag::ADDED | tag::RESTORED_ARRAY | tag::RESTORED_TASKS | tag::RESTORED_LANE => {
                Form::Positional
            }
            _ => Form::Tagged,
        }
    }
}

/// What a record builds on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Start {
    Alone,
    /// What earlier records hold may be pointed at.
    Continued,
}

#[derive(Debug, Default)]
pub(super) struct Encoder {
    out: ByteWriter,
    last: Last,
    shelved: work::Shelved,
}

impl Encoder {
    pub fn begin(&mut self, at: Time, start: Start) {
        if start == Start::Alone {
            self.shelved.clear();
        }
        self.last.begin(at);
        self.out.clear();
        self.out.u8(VERSION);
        self.out.bool(start == Start::Continued);
        self.out.u64(at.0);
    }

    pub fn bytes(&self) -> &[u8] {
        self.out.all()
    }

    pub fn event(&mut self, event: &Event) {
        match event {
            Event::Began { life, seed } => {
                self.out.u8(tag::BEGAN);
                self.out.u32(*life);
                self.out.u64(*seed);
            }
            Event::GroupMade { group, name } => {
                self.out.u8(tag::GROUP_MADE);
                self.out.u32(group.0);
                self.name(name);
            }
            Event::GroupPaused { group, paused } => {
                self.out.u8(tag::GROUP_PAUSED);
                self.out.u32(group.0);
                self.out.bool(*paused);
            }
            Event::GroupForgotten { group } => {
                self.out.u8(tag::GROUP_FORGOTTEN);
                self.out.u32(group.0);
            }
            Event::JobMade { job, group, options } => {
                self.out.u8(match (options.own_names, &options.owner) {
                    _ if options.has_later_fields() => tag::JOB_MADE_TAGGED,
                    (true, _) => tag::JOB_MADE_NAMING,
                    (false, Some(_)) => tag::JOB_MADE_BY,
                    (false, None) => tag::JOB_MADE,
                });
                self.job(*job);
                self.out.u32(group.0);
                self.job_options(options);
            }
            Event::JobClosed { job } => {
                self.out.u8(tag::JOB_CLOSED);
                self.job(*job);
            }
            Event::JobHeld { job, held } => {
                self.out.u8(tag::JOB_HELD);
                self.job(*job);
                self.out.bool(*held);
            }
            Event::JobStopped { job, stopped } => {
                self.out.u8(tag::JOB_STOPPED);
                self.job(*job);
                self.out.bool(*stopped);
            }
            Event::JobLimited { job, max_running, max_fails } => {
                self.out.u8(tag::JOB_LIMITED);
                self.job(*job);
                self.option(*max_running, |to, max| to.out.u32(max));
                self.option(*max_fails, |to, max| to.out.u32(max));
            }
            Event::JobDue { job } => {
                self.out.u8(tag::JOB_DUE);
                self.job(*job);
            }
            Event::JobDeferred { job, begin } => {
                self.out.u8(tag::JOB_DEFERRED);
                self.job(*job);
                self.option(*begin, Encoder::time);
            }
            Event::JobForgotten { job } => {
                self.out.u8(tag::JOB_FORGOTTEN);
                self.job(*job);
            }
            Event::Added(added) => {
                self.out.u8(tag::ADDED_TAGGED);
                self.added(added);
            }
            Event::PredsAdded { task, preds } => {
                self.out.u8(tag::PREDS_ADDED);
                self.task(Line::Other, *task);
                self.tasks(Line::Pred, preds);
            }
            Event::Renewed { task, preds, memo } => {
                self.out.u8(tag::RENEWED);
                self.task(Line::Other, *task);
                self.tasks(Line::Pred, preds);
                self.option(memo.as_deref(), |to, memo| to.out.string(memo));
            }
            Event::WorkerMet { worker, group, name, dialect, period_ms } => {
                self.out.u8(tag::WORKER_MET);
                self.worker(*worker);
                self.out.u32(group.0);
                self.name(name);
                self.out.string(dialect.bytes());
                self.option(*period_ms, |to, period| to.out.u64(period));
            }
            Event::WorkerForgotten { worker } => {
                self.out.u8(tag::WORKER_FORGOTTEN);
                self.worker(*worker);
            }
            Event::Leased { task, lease, worker, until, share } => {
                self.out.u8(tag::LEASED);
                self.leased(*task, *lease, *worker, *until, share.as_deref());
            }
            Event::Finished { task, worker, outcome, then, words } => {
                self.out.u8(tag::FINISHED);
                self.finished(*task, *worker, *outcome, *then, words.as_deref());
            }
            Event::Returned { task, why, preds } => {
                self.out.u8(tag::RETURNED);
                self.task(Line::Other, *task);
                self.back(*why);
                self.tasks(Line::Pred, preds);
            }
            Event::HeldBack { task, why, reason } => {
                self.out.u8(tag::HELD_BACK);
                self.task(Line::Other, *task);
                self.back(*why);
                self.out.string(reason.as_bytes());
            }
            Event::Woken { task } => {
                self.out.u8(tag::WOKEN);
                self.task(Line::Other, *task);
            }
            Event::Cancelled { job, ranges } => self.job_ranges(tag::CANCELLED, *job, ranges),
            Event::MarkedDone { job, ranges } => self.job_ranges(tag::MARKED_DONE, *job, ranges),
            Event::Held { job, ranges } => self.job_ranges(tag::HELD, *job, ranges),
            Event::Released { job, ranges } => self.job_ranges(tag::RELEASED, *job, ranges),
            Event::Retried { job, ranges } => self.job_ranges(tag::RETRIED, *job, ranges),
            Event::Prioritised { job, ranges, priority } => {
                self.job_ranges(tag::PRIORITISED, *job, ranges);
                self.out.i64(i64::from(*priority));
            }
            Event::TasksForgotten { job, ranges } => {
                self.job_ranges(tag::TASKS_FORGOTTEN, *job, ranges);
            }
            Event::Judged { worker, standing, reason, until } => {
                self.out.u8(tag::JUDGED);
                self.worker(*worker);
                self.standing(*standing);
                self.out.string(reason.as_bytes());
                self.option(*until, Encoder::time);
            }
            Event::DocumentChanged(change) => {
                self.out.u8(tag::DOCUMENT_CHANGED);
                self.out.string(change.id.kind.bytes());
                self.out.string(change.id.name.bytes());
                self.option(change.body.as_deref(), |to, body| to.out.string(body));
            }
            Event::Restored(piece) => self.restored(piece),
        }
    }

    fn standing(&mut self, standing: Standing) {
        self.out.u8(match standing {
            Standing::Good => 0,
            Standing::OnHold => 1,
            Standing::Probation => 2,
            Standing::Ejected => 3,
        });
    }

    fn option<T>(&mut self, value: Option<T>, write: impl FnOnce(&mut Encoder, T)) {
        self.out.bool(value.is_some());
        if let Some(value) = value {
            write(self, value);
        }
    }

    fn list<T>(&mut self, entries: &[T], mut write: impl FnMut(&mut Encoder, &T)) {
        self.out.u64(entries.len() as u64);
        entries.iter().for_each(|entry| write(self, entry));
    }
}

#[derive(Debug)]
pub(super) struct Decoder<'a> {
    from: ByteReader<'a>,
    last: Last,
    held: &'a mut Held,
    form: Form,
}

impl<'a> Decoder<'a> {
    /// `bytes` start with the version.
    pub fn new(held: &'a mut Held, bytes: &'a [u8]) -> Result<Decoder<'a>, RecordError> {
        let mut from = ByteReader::new(bytes);
        from.u8()?;
        if !from.bool()? {
            held.clear();
        }
        let mut last = Last::default();
        last.begin(Time(from.u64()?));
        Ok(Decoder { from, last, held, form: Form::Tagged })
    }

    pub fn at(&self) -> Time {
        self.last.at
    }

    pub fn is_at_end(&self) -> bool {
        self.from.is_at_end()
    }

    pub fn event(&mut self) -> Result<Event, RecordError> {
        let offset = self.from.offset();
        let tag = self.from.u8()?;
        self.form = Form::of(tag);
        Ok(match tag {
            tag::BEGAN => Event::Began { life: self.from.u32()?, seed: self.from.u64()? },
            tag::GROUP_FORGOTTEN => Event::GroupForgotten { group: self.group()? },
            tag::GROUP_MADE => Event::GroupMade { group: self.group()?, name: self.name()? },
            tag::GROUP_PAUSED => {
                Event::GroupPaused { group: self.group()?, paused: self.from.bool()? }
            }
            tag::JOB_MADE => Event::JobMade {
                job: self.job()?,
                group: self.group()?,
                options: Box::new(self.job_options()?),
            },
            tag::JOB_MADE_BY => Event::JobMade {
                job: self.job()?,
                group: self.group()?,
                options: Box::new(self.owned_job_options()?),
            },
            tag::JOB_MADE_NAMING => Event::JobMade {
                job: self.job()?,
                group: self.group()?,
                options: Box::new(self.naming_job_options()?),
            },
            tag::JOB_MADE_TAGGED => Event::JobMade {
                job: self.job()?,
                group: self.group()?,
                options: Box::new(self.tagged_job_options()?),
            },
            tag::JOB_DUE => Event::JobDue { job: self.job()? },
            tag::JOB_DEFERRED => {
                Event::JobDeferred { job: self.job()?, begin: self.option(Decoder::time)? }
            }
            tag::JOB_CLOSED => Event::JobClosed { job: self.job()? },
            tag::JOB_HELD => Event::JobHeld { job: self.job()?, held: self.from.bool()? },
            tag::JOB_STOPPED => Event::JobStopped { job: self.job()?, stopped: self.from.bool()? },
            tag::JOB_LIMITED => Event::JobLimited {
                job: self.job()?,
                max_running: self.option(|from| from.from.u32())?,
                max_fails: self.option(|from| from.from.u32())?,
            },
            tag::JOB_FORGOTTEN => Event::JobForgotten { job: self.job()? },
            tag::ADDED | tag::ADDED_TAGGED => Event::Added(Box::new(self.added()?)),
            tag::PREDS_ADDED => {
                Event::PredsAdded { task: self.task(Line::Other)?, preds: self.tasks(Line::Pred)? }
            }
            tag::RENEWED => Event::Renewed {
                task: self.task(Line::Other)?,
                preds: self.tasks(Line::Pred)?,
                memo: self.option(|from| Ok(from.from.string()?.into()))?,
            },
            tag::WORKER_MET => Event::WorkerMet {
                worker: self.worker()?,
                group: self.group()?,
                name: self.name()?,
                dialect: self.plain_name()?,
                period_ms: self.option(|from| from.from.u64())?,
            },
            tag::WORKER_FORGOTTEN => Event::WorkerForgotten { worker: self.worker()? },
            tag::LEASED => self.leased()?,
            tag::FINISHED => self.finished()?,
            tag::RETURNED => Event::Returned {
                task: self.task(Line::Other)?,
                why: self.back()?,
                preds: self.tasks(Line::Pred)?,
            },
            tag::HELD_BACK => Event::HeldBack {
                task: self.task(Line::Other)?,
                why: self.back()?,
                reason: self.from.text()?.into(),
            },
            tag::WOKEN => Event::Woken { task: self.task(Line::Other)? },
            tag::CANCELLED => Event::Cancelled { job: self.job()?, ranges: self.ranges()? },
            tag::MARKED_DONE => Event::MarkedDone { job: self.job()?, ranges: self.ranges()? },
            tag::HELD => Event::Held { job: self.job()?, ranges: self.ranges()? },
            tag::RELEASED => Event::Released { job: self.job()?, ranges: self.ranges()? },
            tag::RETRIED => Event::Retried { job: self.job()?, ranges: self.ranges()? },
            tag::PRIORITISED => Event::Prioritised {
                job: self.job()?,
                ranges: self.ranges()?,
                priority: self.from.i32()?,
            },
            tag::TASKS_FORGOTTEN => {
                Event::TasksForgotten { job: self.job()?, ranges: self.ranges()? }
            }
            tag::JUDGED => Event::Judged {
                worker: self.worker()?,
                standing: self.standing()?,
                reason: self.from.text()?.into(),
                until: self.option(Decoder::time)?,
            },
            tag::DOCUMENT_CHANGED => {
                let id = DocumentId { kind: self.plain_name()?, name: self.plain_name()? };
                let body = self.option(|from| Ok(from.from.string()?.into()))?;
                Event::DocumentChanged(Box::new(DocumentChange { id, body }))
            }
            tag => match self.restored(tag)? {
                Some(piece) => Event::Restored(Box::<Restore>::new(piece)),
                None => return Err(RecordError::Tag { offset, tag }),
            },
        })
    }

    fn standing(&mut self) -> Result<Standing, RecordError> {
        Ok(match self.from.u8()? {
            0 => Standing::Good,
            1 => Standing::OnHold,
            2 => Standing::Probation,
            3 => Standing::Ejected,
            _ => return self.from.malformed("no such standing"),
        })
    }

    fn option<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, RecordError>,
    ) -> Result<Option<T>, RecordError> {
        if self.from.bool()? { read(self).map(Some) } else { Ok(None) }
    }

    fn list<T>(
        &mut self,
        mut read: impl FnMut(&mut Self) -> Result<T, RecordError>,
    ) -> Result<Vec<T>, RecordError> {
        let (count, mut entries) = self.from.entries()?;
        for _ in 0..count {
            entries.push(read(self)?);
        }
        Ok(entries)
    }
}

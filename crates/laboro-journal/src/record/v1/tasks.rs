//! Jobs, tasks and arrays as they enter the ledger.

use super::deltas::Line;
use super::{Decoder, Encoder, Form};
use crate::record::RecordError;
use crate::record::bytes::{ByteReader, ByteWriter};
use laboro_core::{Added, JobOptions, NewArray, NewTask, Profile, Time, ValueList, Values};
use std::sync::Arc;

const PROFILE_GIVEN: u8 = 1;
const WORK_GIVEN: u8 = 2;
const PREDS_GIVEN: u8 = 4;
const MEMO_GIVEN: u8 = 8;

/// Fields of a job, by their tags, which never change their meaning.
const ON_END: u32 = 1;
const BEGIN: u32 = 2;

const NUMBERS: u8 = 0;
const LIST: u8 = 1;

impl Encoder {
    pub(super) fn job_options(&mut self, options: &JobOptions) {
        let JobOptions { name, open, held, max_running, max_fails, key, own_names, owner, .. } =
            options;
        self.name(name);
        self.out.bool(*open);
        self.out.bool(*held);
        self.option(*max_running, |to, max| to.out.u32(max));
        self.option(*max_fails, |to, max| to.out.u32(max));
        self.option(key.as_deref(), |to, key| to.out.string(key));
        if options.has_later_fields() {
            self.out.bool(*own_names);
            self.option(owner.as_ref(), Encoder::name);
            self.list(&later_fields(options), |to, (tag, value)| {
                to.out.u32(*tag);
                to.out.string(value.all());
            });
            return;
        }
        match own_names {
            true => self.option(owner.as_ref(), Encoder::name),
            // The tag tells whether there is one.
            false => owner.iter().for_each(|owner| self.name(owner)),
        }
    }

    pub(super) fn added(&mut self, added: &Added) {
        let Added { job, profiles, arrays, tasks } = added;
        self.job(*job);
        self.list(profiles, Encoder::profile);
        self.list(arrays, Encoder::new_array);
        let mut profile_last = 0;
        self.list(tasks, |to, task| {
            to.new_task(task, profile_last);
            profile_last = task.profile;
        });
    }

    fn new_task(&mut self, task: &NewTask, profile_last: u32) {
        let NewTask { name, profile, work, preds, memo } = task;
        let mut flags = 0;
        let mut mark = |flag, given: bool| flags |= if given { flag } else { 0 };
        mark(PROFILE_GIVEN, *profile != profile_last);
        mark(WORK_GIVEN, work.is_some());
        mark(PREDS_GIVEN, !preds.is_empty());
        mark(MEMO_GIVEN, memo.is_some());
        self.out.u8(flags);
        self.name(name);
        if flags & PROFILE_GIVEN != 0 {
            self.out.u32(*profile);
        }
        if let Some(work) = work {
            self.work(work);
        }
        if !preds.is_empty() {
            self.tasks(Line::Pred, preds);
        }
        if let Some(memo) = memo {
            self.out.string(memo);
        }
    }

    pub(super) fn new_array(&mut self, array: &NewArray) {
        let NewArray { name, count, profile, work, values, preds, each } = array;
        self.name(name);
        self.out.u32(*count);
        self.out.u32(*profile);
        self.work(work);
        match values {
            Values::Numbers { first, step } => {
                self.out.u8(NUMBERS);
                self.out.i64(*first);
                self.out.i64(*step);
            }
            Values::List(list) => {
                self.out.u8(LIST);
                // Strings lie in memory as they lie in a record: long lists cost a copy.
                self.out.u64(list.len() as u64);
                self.out.raw(list.packed());
            }
        }
        self.tasks(Line::Pred, preds);
        self.tasks(Line::Pred, each);
    }

    pub(super) fn profile(&mut self, profile: &Profile) {
        self.out.string_of(|to| profile.encode(to));
    }
}

/// What came later than owners, where it is not as usual.
fn later_fields(options: &JobOptions) -> Vec<(u32, ByteWriter)> {
    let mut fields = Vec::new();
    if !options.on_end.is_empty() {
        let mut value = ByteWriter::default();
        options.on_end.iter().for_each(|one| value.string(one.as_bytes()));
        fields.push((ON_END, value));
    }
    if let Some(begin) = options.begin {
        let mut value = ByteWriter::default();
        value.u64(begin.0);
        fields.push((BEGIN, value));
    }
    fields
}

impl Decoder<'_> {
    pub(super) fn job_options(&mut self) -> Result<JobOptions, RecordError> {
        Ok(JobOptions {
            name: self.name()?,
            open: self.from.bool()?,
            held: self.from.bool()?,
            max_running: self.option(|from| from.from.u32())?,
            max_fails: self.option(|from| from.from.u32())?,
            key: self.option(|from| Ok(from.from.string()?.into()))?,
            own_names: false,
            owner: None,
            on_end: Box::default(),
            begin: None,
        })
    }

    /// With whatever came later than owners, as tagged fields.
    pub(super) fn tagged_job_options(&mut self) -> Result<JobOptions, RecordError> {
        let mut options = self.job_options()?;
        options.own_names = self.from.bool()?;
        options.owner = self.option(Decoder::name)?;
        let fields = self.list(|from| Ok((from.from.u32()?, from.from.string()?)))?;
        for (tag, value) in fields {
            match tag {
                ON_END => options.on_end = texts(value)?,
                BEGIN => options.begin = Some(Time(ByteReader::new(value).u64()?)),
                // A job without it would not be what was asked for.
                _ => {
                    return self
                        .from
                        .malformed("a field of a job is not known; use a newer laboro");
                }
            }
        }
        Ok(options)
    }

    pub(super) fn naming_job_options(&mut self) -> Result<JobOptions, RecordError> {
        let options = self.job_options()?;
        Ok(JobOptions { own_names: true, owner: self.option(Decoder::name)?, ..options })
    }

    pub(super) fn owned_job_options(&mut self) -> Result<JobOptions, RecordError> {
        let options = self.job_options()?;
        Ok(JobOptions { owner: Some(self.name()?), ..options })
    }

    pub(super) fn added(&mut self) -> Result<Added, RecordError> {
        let job = self.job()?;
        let profiles = self.list(Decoder::profile)?;
        let arrays = self.list(Decoder::new_array)?;
        let mut profile_last = 0;
        let tasks = self.list(|from| {
            let task = from.new_task(profile_last)?;
            profile_last = task.profile;
            Ok(task)
        })?;
        Ok(Added { job, profiles, arrays, tasks })
    }

    fn new_task(&mut self, profile_last: u32) -> Result<NewTask, RecordError> {
        let flags = self.flags(PROFILE_GIVEN | WORK_GIVEN | PREDS_GIVEN | MEMO_GIVEN)?;
        Ok(NewTask {
            name: self.name()?,
            profile: if flags & PROFILE_GIVEN == 0 { profile_last } else { self.from.u32()? },
            work: if flags & WORK_GIVEN == 0 { None } else { Some(self.work()?) },
            preds: if flags & PREDS_GIVEN == 0 {
                Default::default()
            } else {
                self.tasks(Line::Pred)?.into_iter().collect()
            },
            memo: if flags & MEMO_GIVEN == 0 { None } else { Some(self.from.string()?.into()) },
        })
    }

    fn values(&mut self) -> Result<ValueList, RecordError> {
        let (count, _) = self.from.entries::<()>()?;
        let mut list = self.from.clone();
        (0..count).try_for_each(|_| self.from.string().map(drop))?;
        // All of them are sound.
        let values = std::iter::from_fn(move || list.string().ok()).take(count);
        Ok(ValueList::of_many(values))
    }

    pub(super) fn new_array(&mut self) -> Result<NewArray, RecordError> {
        Ok(NewArray {
            name: self.name()?,
            count: self.from.u32()?,
            profile: self.from.u32()?,
            work: self.work()?,
            values: match self.from.u8()? {
                NUMBERS => Values::Numbers { first: self.from.i64()?, step: self.from.i64()? },
                LIST => Values::List(Arc::new(self.values()?)),
                _ => return self.from.malformed("no such kind of values"),
            },
            preds: self.tasks(Line::Pred)?,
            each: self.tasks(Line::Pred)?,
        })
    }

    pub(super) fn profile(&mut self) -> Result<Profile, RecordError> {
        match self.form {
            Form::Positional => self.positional_profile(),
            Form::Tagged => {
                let fields = self.from.string()?;
                Profile::decode(fields).or_else(|error| self.from.field(error))
            }
        }
    }
}

/// All strings of a field.
fn texts(value: &[u8]) -> Result<Box<[Box<str>]>, RecordError> {
    let mut from = ByteReader::new(value);
    let mut texts = Vec::new();
    while !from.is_at_end() {
        texts.push(from.text()?.into());
    }
    Ok(texts.into())
}

//! Jobs, tasks and arrays as they enter the ledger.

use super::deltas::Line;
use super::{Decoder, Encoder};
use crate::record::RecordError;
use laboro_core::{Added, Backoff, JobOptions, Name, Needs, NewArray, NewTask, Profile, Values};

const PROFILE_GIVEN: u8 = 1;
const WORK_GIVEN: u8 = 2;
const PREDS_GIVEN: u8 = 4;
const MEMO_GIVEN: u8 = 8;

const SAME: u8 = 0;
const NEW: u8 = 1;

const NUMBERS: u8 = 0;
const LIST: u8 = 1;

impl Encoder {
    pub(super) fn job_options(&mut self, options: &JobOptions) {
        let JobOptions { name, open, held, max_running, max_fails, key, owner } = options;
        self.name(name);
        self.out.bool(*open);
        self.out.bool(*held);
        self.option(*max_running, |to, max| to.out.u32(max));
        self.option(*max_fails, |to, max| to.out.u32(max));
        self.option(key.as_deref(), |to, key| to.out.string(key));
        // The tag tells whether there is one.
        owner.iter().for_each(|owner| self.name(owner));
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
                self.list(list, |to, value| to.out.string(value));
            }
        }
        self.tasks(Line::Pred, preds);
        self.tasks(Line::Pred, each);
    }

    pub(super) fn profile(&mut self, profile: &Profile) {
        let plain = Plain::of(profile);
        if plain.is_some() && plain == self.last.profile {
            return self.out.u8(SAME);
        }
        self.out.u8(NEW);
        let Profile {
            needs: Needs { slots, memory, resources, tags },
            priority,
            attempts,
            lost_max,
            backoff: Backoff { first_ms, most_ms },
            retry_on,
            time_limit_ms,
            runs_anyway,
        } = profile;
        self.out.u32(*slots);
        self.out.u64(*memory);
        self.list(resources, |to, (name, count)| {
            to.out.string(name.bytes());
            to.out.u32(*count);
        });
        self.list(tags, |to, tag: &Name| to.out.string(tag.bytes()));
        self.out.i64(i64::from(*priority));
        self.out.u32(u32::from(*attempts));
        self.out.u32(u32::from(*lost_max));
        self.out.u64(*first_ms);
        self.out.u64(*most_ms);
        self.list(retry_on, |to, code| to.out.i64(i64::from(*code)));
        self.option(*time_limit_ms, |to, limit| to.out.u64(limit));
        self.out.bool(*runs_anyway);
        self.last.profile = plain;
    }
}

/// A profile without lists. Only such a one is worth a repeat: a byte that stood for long lists could be
/// there a million times. It is also much faster to compare: the C library takes some 50 ns to find two
/// empty lists equal when nothing was ever in them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Plain {
    slots: u32,
    memory: u64,
    priority: i32,
    attempts: u16,
    lost_max: u16,
    backoff: Backoff,
    time_limit_ms: Option<u64>,
    runs_anyway: bool,
}

impl Plain {
    fn of(profile: &Profile) -> Option<Plain> {
        let Profile {
            needs: Needs { slots, memory, ref resources, ref tags },
            priority,
            attempts,
            lost_max,
            backoff,
            ref retry_on,
            time_limit_ms,
            runs_anyway,
        } = *profile;
        let is_plain = resources.is_empty() && tags.is_empty() && retry_on.is_empty();
        is_plain.then_some(Plain {
            slots,
            memory,
            priority,
            attempts,
            lost_max,
            backoff,
            time_limit_ms,
            runs_anyway,
        })
    }

    fn profile(self) -> Profile {
        Profile {
            needs: Needs {
                slots: self.slots,
                memory: self.memory,
                resources: Vec::new(),
                tags: Vec::new(),
            },
            priority: self.priority,
            attempts: self.attempts,
            lost_max: self.lost_max,
            backoff: self.backoff,
            retry_on: Vec::new(),
            time_limit_ms: self.time_limit_ms,
            runs_anyway: self.runs_anyway,
        }
    }
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
            owner: None,
        })
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

    pub(super) fn new_array(&mut self) -> Result<NewArray, RecordError> {
        Ok(NewArray {
            name: self.name()?,
            count: self.from.u32()?,
            profile: self.from.u32()?,
            work: self.work()?,
            values: match self.from.u8()? {
                NUMBERS => Values::Numbers { first: self.from.i64()?, step: self.from.i64()? },
                LIST => Values::List(self.list(|from| Ok(from.from.string()?.into()))?.into()),
                _ => return self.from.malformed("no such kind of values"),
            },
            preds: self.tasks(Line::Pred)?,
            each: self.tasks(Line::Pred)?,
        })
    }

    pub(super) fn profile(&mut self) -> Result<Profile, RecordError> {
        match self.from.u8()? {
            SAME => match self.last.profile {
                Some(plain) => return Ok(plain.profile()),
                None => return self.from.malformed("no profile to repeat"),
            },
            NEW => {}
            _ => return self.from.malformed("neither a new profile nor the last one"),
        }
        let profile = Profile {
            needs: Needs {
                slots: self.from.u32()?,
                memory: self.from.u64()?,
                resources: self.list(|from| Ok((from.plain_name()?, from.from.u32()?)))?,
                tags: self.list(Decoder::plain_name)?,
            },
            priority: self.from.i32()?,
            attempts: self.from.u16()?,
            lost_max: self.from.u16()?,
            backoff: Backoff { first_ms: self.from.u64()?, most_ms: self.from.u64()? },
            retry_on: self.list(|from| from.from.i32())?,
            time_limit_ms: self.option(|from| from.from.u64())?,
            runs_anyway: self.from.bool()?,
        };
        self.last.profile = Plain::of(&profile);
        Ok(profile)
    }
}

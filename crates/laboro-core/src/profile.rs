//! What many tasks have in common of how the hub treats them: needs, priority, attempts, limits. Kept once, however
//! many share it. How their processes run is a `setting`.

use crate::fields::{FieldError, Fields, Reader, Writer, put_number, put_string, zigzag};
use crate::id::Name;

/// What a task needs of a worker. Resources and tags are sorted and without repeats.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)]
pub struct Needs {
    pub slots: u32,
    pub memory: u64,
    pub resources: Vec<(Name, u32)>,
    pub tags: Vec<Name>,
}

impl Default for Needs {
    fn default() -> Needs {
        Needs { slots: 1, memory: 0, resources: Vec::new(), tags: Vec::new() }
    }
}

impl Needs {
    /// Sorts what must be sorted and joins what stands twice.
    pub fn tidy(&mut self) {
        self.slots = self.slots.max(1);
        self.tags.sort();
        self.tags.dedup();
        self.resources.sort();
        self.resources.dedup_by(|later, kept| {
            let same = later.0 == kept.0;
            if same {
                kept.1 = kept.1.saturating_add(later.1);
            }
            same
        });
        self.resources.retain(|(_, count)| *count > 0);
    }
}

/// Everything about a task that many tasks have in common. Kept once, however many share it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub struct Profile {
    pub needs: Needs,
    pub priority: i32,
    /// How many attempts may fail before the task has failed, at least 1.
    pub attempts: u16,
    /// How many attempts may be lost with their worker. One that was lost so often runs alone on a worker, and if that
    /// one is lost, too, the task is held.
    pub lost_max: u16,
    pub backoff: Backoff,
    /// Only these exit codes are worth another attempt. Empty: every failure is.
    pub retry_on: Vec<i32>,
    /// How long one attempt may take. The worker ends it, the hub only remembers.
    pub time_limit_ms: Option<u64>,
    /// Runs also when a predecessor failed or was cancelled.
    pub runs_anyway: bool,
}

impl Default for Profile {
    fn default() -> Profile {
        Profile {
            needs: Needs::default(),
            priority: 0,
            attempts: 1,
            lost_max: 5,
            backoff: Backoff::default(),
            retry_on: Vec::new(),
            time_limit_ms: None,
            runs_anyway: false,
        }
    }
}

/// Waits `first_ms` before the second attempt and twice as long before each further one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub struct Backoff {
    pub first_ms: u64,
    pub most_ms: u64,
}

impl Default for Backoff {
    fn default() -> Backoff {
        Backoff { first_ms: 0, most_ms: 600_000 }
    }
}

impl Backoff {
    /// How long to wait after so many failed attempts.
    pub fn wait_ms(self, failed_attempts: u16) -> u64 {
        let doublings = u32::from(failed_attempts.saturating_sub(1)).min(40);
        self.first_ms.saturating_mul(1 << doublings).min(self.most_ms)
    }
}

const SLOTS: u32 = 1;
const MEMORY: u32 = 2;
const RESOURCES: u32 = 3;
const TAGS: u32 = 4;
const PRIORITY: u32 = 5;
const ATTEMPTS: u32 = 6;
const LOST_MAX: u32 = 7;
const BACKOFF_FIRST: u32 = 8;
const BACKOFF_MOST: u32 = 9;
const RETRY_ON: u32 = 10;
const TIME_LIMIT: u32 = 11;
const RUNS_ANYWAY: u32 = 12;

/// The others say only how soon or how often a task runs.
const MUST_UNDERSTAND: Fields = (Fields::NONE.with(SLOTS).with(MEMORY).with(RESOURCES).with(TAGS))
    .with(TIME_LIMIT)
    .with(RUNS_ANYWAY);

impl Profile {
    /// Appends the fields that are not as usual.
    pub fn encode(&self, to: &mut Vec<u8>) {
        let usual = Profile::default();
        let Profile { needs, priority, attempts, lost_max, backoff, retry_on, .. } = self;
        let mut to = Writer { to, must_understand: MUST_UNDERSTAND };
        if needs.slots != usual.needs.slots {
            to.number(SLOTS, needs.slots.into());
        }
        if needs.memory != usual.needs.memory {
            to.number(MEMORY, needs.memory);
        }
        if !needs.resources.is_empty() {
            to.list(RESOURCES, |to| {
                for (name, count) in &needs.resources {
                    put_string(to, name.bytes());
                    put_number(to, (*count).into());
                }
            });
        }
        if !needs.tags.is_empty() {
            to.list(TAGS, |to| needs.tags.iter().for_each(|tag| put_string(to, tag.bytes())));
        }
        if *priority != usual.priority {
            to.signed(PRIORITY, *priority);
        }
        if *attempts != usual.attempts {
            to.number(ATTEMPTS, (*attempts).into());
        }
        if *lost_max != usual.lost_max {
            to.number(LOST_MAX, (*lost_max).into());
        }
        if backoff.first_ms != usual.backoff.first_ms {
            to.number(BACKOFF_FIRST, backoff.first_ms);
        }
        if backoff.most_ms != usual.backoff.most_ms {
            to.number(BACKOFF_MOST, backoff.most_ms);
        }
        if !retry_on.is_empty() {
            to.list(RETRY_ON, |to| {
                retry_on.iter().for_each(|&code| put_number(to, zigzag(code)));
            });
        }
        if let Some(limit_ms) = self.time_limit_ms {
            to.number(TIME_LIMIT, limit_ms);
        }
        if self.runs_anyway {
            to.number(RUNS_ANYWAY, 1);
        }
    }

    /// Reads what `encode` wrote; fields that are not there are as usual.
    pub fn decode(bytes: &[u8]) -> Result<Profile, FieldError> {
        let mut profile = Profile::default();
        Reader(bytes).each(|tag, value| {
            let Profile { needs, backoff, .. } = &mut profile;
            match tag {
                SLOTS => needs.slots = value.small()?,
                MEMORY => needs.memory = value.number()?,
                RESOURCES => {
                    needs.resources =
                        value.list(|from| Ok((Name::new(from.string()?), from.small()?)))?;
                }
                TAGS => needs.tags = value.list(|from| Ok(Name::new(from.string()?)))?,
                PRIORITY => profile.priority = value.signed()?,
                ATTEMPTS => profile.attempts = value.small()?,
                LOST_MAX => profile.lost_max = value.small()?,
                BACKOFF_FIRST => backoff.first_ms = value.number()?,
                BACKOFF_MOST => backoff.most_ms = value.number()?,
                RETRY_ON => profile.retry_on = value.list(Reader::signed)?,
                TIME_LIMIT => profile.time_limit_ms = Some(value.number()?),
                RUNS_ANYWAY => profile.runs_anyway = value.number()? != 0,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(profile)
    }
}

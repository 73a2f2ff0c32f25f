//! What many tasks have in common of how the hub treats them: needs, priority, attempts, limits. Kept once, however
//! many share it. How their processes run is a `setting`.

use crate::fields::{FieldError, Fields, Reader, Writer, put_number, put_string, zigzag};
use crate::id::Name;
use crate::resources::{Amount, Request};
use std::fmt;

/// What a task needs of a worker. Resources and tags are sorted and without repeats.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)]
pub struct Needs {
    pub slots: u32,
    pub memory: u64,
    pub resources: Vec<(Name, Request)>,
    pub tags: Vec<Name>,
    /// How many whole workers it takes at once, each of which has what it needs. 0: a part of one.
    pub nodes: u32,
    /// Other ways to run it, none of which has others: the first that fits is taken, this one before all.
    pub variants: Vec<Needs>,
}

/// What is as usual is not told: records of old stay what they are called when a field is added.
impl fmt::Debug for Needs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Needs { slots, memory, resources, tags, nodes, variants } = self;
        let mut needs = f.debug_struct("Needs");
        needs.field("slots", slots).field("memory", memory);
        needs.field("resources", &Resources(resources)).field("tags", tags);
        if *nodes > 0 {
            needs.field("nodes", nodes);
        }
        if !variants.is_empty() {
            needs.field("variants", variants);
        }
        needs.finish()
    }
}

struct Resources<'a>(&'a [(Name, Request)]);

impl fmt::Debug for Resources<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let said = self.0.iter().map(|(name, request)| format!("({name:?}, {request})"));
        write!(f, "[{}]", said.collect::<Vec<_>>().join(", "))
    }
}

impl Default for Needs {
    fn default() -> Needs {
        Needs {
            slots: 1,
            memory: 0,
            resources: Vec::new(),
            tags: Vec::new(),
            nodes: 0,
            variants: Vec::new(),
        }
    }
}

impl Needs {
    /// Sorts what must be sorted and joins what stands twice.
    pub fn tidy(&mut self) {
        self.tidy_one();
        for variant in &mut self.variants {
            variant.tidy_one();
            variant.variants.clear();
        }
    }

    /// What its owner has in use while it runs.
    pub(crate) fn slots_in_all(&self) -> u32 {
        self.slots.saturating_mul(self.nodes.max(1))
    }

    /// The first way to run it, and the others.
    pub(crate) fn ways(&self) -> impl Iterator<Item = (u8, &Needs)> {
        (0..=u8::MAX).zip(std::iter::once(self).chain(&self.variants))
    }

    /// What a lease that goes this way takes.
    pub(crate) fn way(&self, variant: u8) -> &Needs {
        match variant.checked_sub(1) {
            None => self,
            Some(other) => self.variants.get(usize::from(other)).unwrap_or(self),
        }
    }

    fn tidy_one(&mut self) {
        self.slots = self.slots.max(1);
        self.tags.sort();
        self.tags.dedup();
        self.resources.sort();
        self.resources.dedup_by(|later, kept| {
            let same = later.0 == kept.0;
            if same {
                kept.1 = kept.1.and(later.1);
            }
            same
        });
        self.resources.retain(|(_, request)| *request != Request::whole(0));
    }
}

/// Everything about a task that many tasks have in common. Kept once, however many share it.
#[derive(Clone, PartialEq, Eq, Hash)]
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
    /// How long a worker must still be there for an attempt to start at it. `None`: as long as one may take.
    pub time_request_ms: Option<u64>,
    /// Runs also when a predecessor failed or was cancelled.
    pub runs_anyway: bool,
}

impl fmt::Debug for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut profile = f.debug_struct("Profile");
        profile.field("needs", &self.needs).field("priority", &self.priority);
        profile.field("attempts", &self.attempts).field("lost_max", &self.lost_max);
        profile.field("backoff", &self.backoff).field("retry_on", &self.retry_on);
        profile.field("time_limit_ms", &self.time_limit_ms);
        if let Some(request_ms) = &self.time_request_ms {
            profile.field("time_request_ms", request_ms);
        }
        profile.field("runs_anyway", &self.runs_anyway).finish()
    }
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
            time_request_ms: None,
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
const PARTIAL_RESOURCES: u32 = 13;
const TIME_REQUEST: u32 = 14;
const VARIANTS: u32 = 15;
const NODES: u32 = 16;

/// More are not looked at.
pub(crate) const VARIANTS_MAX: usize = 16;
/// More workers than this are not one task's.
pub const NODES_MAX: u32 = 4096;

/// The others say only how soon or how often a task runs.
const MUST_UNDERSTAND: Fields = (Fields::NONE.with(SLOTS).with(MEMORY).with(RESOURCES).with(TAGS))
    .with(TIME_LIMIT)
    .with(RUNS_ANYWAY)
    .with(PARTIAL_RESOURCES)
    .with(TIME_REQUEST)
    .with(VARIANTS)
    .with(NODES);

impl Profile {
    /// Appends the fields that are not as usual.
    pub fn encode(&self, to: &mut Vec<u8>) {
        let usual = Profile::default();
        let Profile { needs, priority, attempts, lost_max, backoff, retry_on, .. } = self;
        let mut to = Writer { to, must_understand: MUST_UNDERSTAND };
        encode_needs(needs, &mut to);
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
        encode_partial(needs, &mut to);
        if let Some(request_ms) = self.time_request_ms {
            to.number(TIME_REQUEST, request_ms);
        }
        if needs.nodes > 0 {
            to.number(NODES, needs.nodes.into());
        }
        if !needs.variants.is_empty() {
            to.list(VARIANTS, |to| {
                for variant in &needs.variants {
                    let mut fields = Vec::new();
                    let mut one = Writer { to: &mut fields, must_understand: MUST_UNDERSTAND };
                    encode_needs(variant, &mut one);
                    encode_partial(variant, &mut one);
                    put_string(to, &fields);
                }
            });
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
                    needs.resources = value.list(|from| {
                        let name = Name::new(from.string()?);
                        Ok((name, Request::whole(from.small::<u32>()?.into())))
                    })?;
                }
                PARTIAL_RESOURCES => {
                    let more = value.list(|from| {
                        let name = Name::new(from.string()?);
                        Ok((
                            name,
                            match from.number()? {
                                0 => Request::All,
                                parts => Request::Some(Amount::of_parts(parts)),
                            },
                        ))
                    })?;
                    needs.resources.extend(more);
                    needs.resources.sort();
                }
                NODES => needs.nodes = value.small()?,
                TIME_REQUEST => profile.time_request_ms = Some(value.number()?),
                VARIANTS => {
                    needs.variants =
                        value.list(|from| Ok(Profile::decode(from.string()?)?.needs))?;
                    let nested = needs.variants.iter().any(|variant| !variant.variants.is_empty());
                    if nested || needs.variants.len() > VARIANTS_MAX {
                        return Err(FieldError::Malformed("variants of variants, or too many"));
                    }
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

/// What every version reads.
fn encode_needs(needs: &Needs, to: &mut Writer<'_>) {
    let usual = Needs::default();
    if needs.slots != usual.slots {
        to.number(SLOTS, needs.slots.into());
    }
    if needs.memory != usual.memory {
        to.number(MEMORY, needs.memory);
    }
    let whole = |request: Request| match request {
        Request::Some(amount) if amount.fraction() == 0 => u32::try_from(amount.wholes()).ok(),
        Request::Some(_) | Request::All => None,
    };
    if needs.resources.iter().any(|(_, request)| whole(*request).is_some()) {
        to.list(RESOURCES, |to| {
            for (name, request) in &needs.resources {
                if let Some(count) = whole(*request) {
                    put_string(to, name.bytes());
                    put_number(to, count.into());
                }
            }
        });
    }
    if !needs.tags.is_empty() {
        to.list(TAGS, |to| needs.tags.iter().for_each(|tag| put_string(to, tag.bytes())));
    }
}

/// Fractions, all there is, and counts beyond what older versions read.
fn encode_partial(needs: &Needs, to: &mut Writer<'_>) {
    let parts = |request: Request| match request {
        Request::All => Some(0),
        Request::Some(amount) if amount.fraction() == 0 && amount.wholes() <= u32::MAX.into() => {
            None
        }
        Request::Some(amount) => Some(amount.parts()),
    };
    if needs.resources.iter().any(|(_, request)| parts(*request).is_some()) {
        to.list(PARTIAL_RESOURCES, |to| {
            for (name, request) in &needs.resources {
                if let Some(parts) = parts(*request) {
                    put_string(to, name.bytes());
                    put_number(to, parts);
                }
            }
        });
    }
}

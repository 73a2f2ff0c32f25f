//! The names of things: ids are counted, never random, and distinct types. Nothing here knows state.

use smallvec::SmallVec;
use std::fmt;

/// Milliseconds since the Unix epoch, always handed in from outside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub u64);

impl Time {
    /// Later than anything.
    pub const NEVER: Time = Time(u64::MAX);

    /// So much later.
    pub fn after_ms(self, ms: u64) -> Time {
        Time(self.0.saturating_add(ms))
    }

    /// How long after another time, or 0.
    pub fn since_ms(self, earlier: Time) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// A group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupId(pub u32);

impl GroupId {
    /// Its place in tables of groups: numbers are small, and those of forgotten groups are used again.
    pub(crate) fn at(self) -> usize {
        self.0 as usize
    }
}

/// A job, counted from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobId(pub u32);

/// A worker that the hub has met.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkerId(pub u32);

impl WorkerId {
    /// Whoever ran an element that lost its record since.
    pub(crate) const UNKNOWN: WorkerId = WorkerId(u32::MAX);
}

/// One task: its job and its number in the job, counted from 1.
///
/// The same type also names a whole array, by the number of its first element and a mark, so that a
/// predecessor is one kind of thing whether it is a task or an array.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)]
pub struct TaskId {
    pub job: JobId,
    pub index: u32,
}

impl TaskId {
    const WHOLE: u32 = 1 << 31;
    /// The largest number of a task in its job.
    pub const INDEX_MAX: u32 = Self::WHOLE - 1;

    /// The task with this number.
    pub fn new(job: JobId, index: u32) -> TaskId {
        TaskId { job, index }
    }

    /// The array that starts at `first`, as a whole.
    pub fn whole(job: JobId, first: u32) -> TaskId {
        TaskId { job, index: first | Self::WHOLE }
    }

    /// Is a whole array meant?
    pub fn is_whole(self) -> bool {
        self.index & Self::WHOLE != 0
    }

    /// The number without the mark: of the task, or of the array's first element.
    pub fn number(self) -> u32 {
        self.index & Self::INDEX_MAX
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.job.0, self.number())?;
        if self.is_whole() { f.write_str("..") } else { Ok(()) }
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// The number of a lease: the life of the hub and a counter in it. Never used twice, also when the
/// dispatch that used it was not saved, because a new life begins with every start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeaseNo(pub u64);

impl LeaseNo {
    const COUNT_BITS: u32 = 40;

    /// The lease of this count in this life.
    pub fn new(life: u32, count: u64) -> LeaseNo {
        debug_assert!(count < 1 << Self::COUNT_BITS, "a life grants fewer than 2^40 leases");
        LeaseNo(u64::from(life) << Self::COUNT_BITS | count)
    }

    /// The life of the hub that granted it.
    pub fn life(self) -> u32 {
        u32::try_from(self.0 >> Self::COUNT_BITS).expect("24 bits are left of 64")
    }

    /// Counted in that life, from 0.
    pub fn count(self) -> u64 {
        self.0 & ((1 << Self::COUNT_BITS) - 1)
    }
}

impl fmt::Display for LeaseNo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.life(), self.count())
    }
}

/// Where the answer to one command goes. Chosen by whoever asks, opaque here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(pub u64);

/// One conversation with one peer. Chosen by the transports, opaque here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub u64);

/// A name as a peer gave it: opaque bytes, up to 16 without an allocation.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(SmallVec<[u8; 16]>);

impl Name {
    /// A name of these bytes.
    pub fn new(bytes: &[u8]) -> Name {
        Name(SmallVec::from_slice(bytes))
    }

    /// As it was given.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Is it no name?
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// `array.7` as the name of the array and the number.
    pub(crate) fn split_element(&self) -> Option<(Name, u32)> {
        let dot = self.0.iter().rposition(|&byte| byte == b'.')?;
        let number = std::str::from_utf8(&self.0[dot + 1..]).ok()?.parse().ok()?;
        Some((Name::new(&self.0[..dot]), number))
    }

    /// In bytes.
    pub fn len(&self) -> usize {
        self.0.len()
    }
}

impl From<&str> for Name {
    fn from(text: &str) -> Name {
        Name::new(text.as_bytes())
    }
}

impl From<String> for Name {
    fn from(text: String) -> Name {
        Name::new(text.as_bytes())
    }
}

/// Text as it is; anything that could confuse a terminal or a log as `\xNN`.
impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for chunk in self.0.utf8_chunks() {
            for c in chunk.valid().chars() {
                if c.is_control() || c == '\\' {
                    let mut buffer = [0; 4];
                    for byte in c.encode_utf8(&mut buffer).bytes() {
                        write!(f, "\\x{byte:02x}")?;
                    }
                } else {
                    write!(f, "{c}")?;
                }
            }
            for byte in chunk.invalid() {
                write!(f, "\\x{byte:02x}")?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}

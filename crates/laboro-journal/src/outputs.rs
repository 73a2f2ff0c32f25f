//! What tasks wrote to stdout and stderr, and how each attempt ended, in a few large files.
//! One process writes, any number read at the same time. Not a journal: by default nothing is
//! synced, and a crash may lose what was not flushed, but never what lies before it.
//!
//! A store is one directory:
//!
//! | file | what it is |
//! |---|---|
//! | `0000000001.out` | a segment: a head, then records of many attempts in order of arrival |
//! | `0000000001.idx` | the sorted index of a sealed segment; rebuilt from it when missing |
//! | `forgotten` | the jobs nobody needs any more, one range a line |
//! | `lock` | held by the writer while it lives |

mod error;
mod jobs;
mod record;
mod scan;
mod segment;

mod active;
mod forgotten;
mod index;
mod recover;
mod writer;

mod reader;
mod results;
mod table;
mod walk;

#[cfg(test)]
mod tests;

pub use error::Error;
pub use reader::Reader;
pub use results::{KeptResult, Wanted};
pub use scan::Damage;
pub use walk::{Chunks, Follow};
pub use writer::{Config, NotTaken, Writer};

use laboro_core::Outcome;

/// Whose output it is: one attempt at one task of one job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)]
pub struct Key {
    pub job: u32,
    pub index: u32,
    pub attempt: u16,
}

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "job {} task {} attempt {}", self.job, self.index, self.attempt)
    }
}

/// Which stream of a task was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Stream {
    Stdout,
    Stderr,
    /// What the attempt gave back.
    Result,
}

impl std::fmt::Display for Stream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Stream::Stdout => "stdout",
            Stream::Stderr => "stderr",
            Stream::Result => "result",
        })
    }
}

/// What a reader wants to see of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Streams {
    Stdout,
    Stderr,
    /// All that was printed.
    Both,
    Result,
}

impl Streams {
    fn include(self, stream: Stream) -> bool {
        match self {
            Streams::Stdout => stream == Stream::Stdout,
            Streams::Stderr => stream == Stream::Stderr,
            Streams::Both => stream != Stream::Result,
            Streams::Result => stream == Stream::Result,
        }
    }
}

/// How an attempt ended, as told by whoever ran it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Ending {
    /// One of `EXITED` to `MEMORY`; what a later version writes is carried as it is.
    pub kind: u8,
    /// An exit code or a signal, as `kind` has it.
    pub code: i32,
    /// Unix time.
    pub started_ms: u64,
    pub wall_us: u64,
    pub user_us: u64,
    pub sys_us: u64,
    pub max_rss_kib: u64,
}

impl Ending {
    /// It ended by itself.
    pub const EXITED: u8 = 0;
    /// A signal ended it.
    pub const SIGNALLED: u8 = 1;
    /// It ran longer than it may.
    pub const TIMED_OUT: u8 = 2;
    /// It could not be started.
    pub const NOT_STARTED: u8 = 3;
    /// It was ended on request.
    pub const STOPPED: u8 = 4;
    /// Its worker went away.
    pub const LOST: u8 = 5;
    /// It took more memory than it asked for.
    pub const MEMORY: u8 = 6;

    /// Without times and usage.
    #[must_use]
    pub fn of(outcome: Outcome) -> Ending {
        let (kind, code) = match outcome {
            Outcome::Success => (Ending::EXITED, 0),
            Outcome::Exit(code) => (Ending::EXITED, code),
            Outcome::Signal(signal) => (Ending::SIGNALLED, signal),
            Outcome::TimedOut => (Ending::TIMED_OUT, 0),
            Outcome::Error => (Ending::NOT_STARTED, 0),
            Outcome::Lost => (Ending::LOST, 0),
            Outcome::Memory => (Ending::MEMORY, 0),
        };
        Ending { kind, code, ..Ending::default() }
    }

    /// The same as the core says it.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        match (self.kind, self.code) {
            (Ending::EXITED, 0) => Outcome::Success,
            (Ending::EXITED, code) => Outcome::Exit(code),
            (Ending::SIGNALLED, signal) => Outcome::Signal(signal),
            (Ending::TIMED_OUT, _) => Outcome::TimedOut,
            (Ending::NOT_STARTED, _) => Outcome::Error,
            (Ending::MEMORY, _) => Outcome::Memory,
            _ => Outcome::Lost,
        }
    }
}

/// Who ran an attempt, where there is more than one who could have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Worker {
    pub number: u32,
    /// At most the first 255 bytes of it.
    pub name: Vec<u8>,
}

/// An attempt that is over.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct EndedAttempt {
    pub key: Key,
    pub end: End,
    pub worker: Option<Worker>,
}

/// How much of one stream is in the store. What is kept is always its head.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Amount {
    pub kept: u64,
    /// Beyond the limit of a stream.
    pub dropped: u64,
    /// Within that limit, and not in the store: it could not be written, or the store was full.
    pub lost: u64,
}

impl Amount {
    /// All that is known of the stream.
    #[must_use]
    pub fn heard(&self) -> u64 {
        self.kept + self.dropped + self.lost
    }

    /// What counted as kept is not there.
    fn lose(&mut self, bytes: u64) {
        self.kept = self.kept.saturating_sub(bytes);
        self.lost += bytes;
    }
}

/// The amounts of the streams of an attempt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Amounts {
    stdout: Amount,
    stderr: Amount,
    result: Amount,
}

impl Amounts {
    fn has_lost(&self) -> bool {
        self.stdout.lost + self.stderr.lost + self.result.lost > 0
    }

    fn of(&self, stream: Stream) -> Amount {
        match stream {
            Stream::Stdout => self.stdout,
            Stream::Stderr => self.stderr,
            Stream::Result => self.result,
        }
    }

    fn of_mut(&mut self, stream: Stream) -> &mut Amount {
        match stream {
            Stream::Stdout => &mut self.stdout,
            Stream::Stderr => &mut self.stderr,
            Stream::Result => &mut self.result,
        }
    }
}

/// The closing record of an attempt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct End {
    pub ending: Ending,
    pub stdout: Amount,
    pub stderr: Amount,
    pub result: Amount,
}

impl End {
    /// Whether the attempt wrote more than is kept of a stream.
    #[must_use]
    pub fn truncated(&self) -> bool {
        self.stdout.dropped + self.stderr.dropped + self.result.dropped > 0
    }

    /// Bytes that should have been kept and were not.
    #[must_use]
    pub fn lost(&self) -> u64 {
        let printed = self.stdout.lost.saturating_add(self.stderr.lost);
        printed.saturating_add(self.result.lost)
    }
}

//! What a worker tells: output, results, tasks it gives back, and what it wants. With nothing in it, it is a
//! sign of life. A result is a tuple `[job, index, lease, outcome, code, message, wall, user, system, peak,
//! attempt, ago]` that ends where the rest is zero.

use super::super::pack::{
    PackError, PackReader, write_array, write_bin, write_bool, write_int, write_map, write_str,
    write_uint,
};
use super::super::payload::TASKS_MAX;
use super::{LABORO, text};
use crate::session::{Chunk, Stream};
use crate::worker::{TaskEnd, Used};
use bytes::{Bytes, BytesMut};
use laboro_core::{JobId, LeaseNo, LeaseRef, Outcome, TaskId, TaskResult, Time};

const KEYS: [&str; 6] = ["Chunks", "Results", "Back", "Ahead", "Drain", "Leave"];

/// One thing that a worker has to say about a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) enum Item {
    Chunk(Chunk),
    Ended {
        task: TaskId,
        lease: LeaseNo,
        attempt: u16,
        at: Time,
        how: TaskEnd,
    },
    /// With a reason: this worker cannot run it at all.
    Back {
        task: TaskId,
        lease: LeaseNo,
        reason: Option<Box<str>>,
    },
}

impl Item {
    pub(in super::super) fn lease(&self) -> LeaseNo {
        match self {
            Item::Chunk(chunk) => chunk.lease,
            Item::Ended { lease, .. } | Item::Back { lease, .. } => *lease,
        }
    }
}

/// An UPDATE as it arrives.
#[derive(Debug, Default)]
pub(in super::super) struct Update {
    pub(in super::super) chunks: Vec<Chunk>,
    pub(in super::super) results: Vec<TaskResult>,
    /// Beside the results, one each.
    pub(in super::super) facts: Vec<Facts>,
    pub(in super::super) back: Vec<Back>,
    pub(in super::super) ahead: Option<u32>,
    pub(in super::super) drains: bool,
    pub(in super::super) leaves: bool,
}

/// A task that is given back: `[job, index, lease, reason]`.
#[derive(Debug, PartialEq, Eq)]
pub(in super::super) struct Back {
    pub(in super::super) task: TaskId,
    pub(in super::super) lease: LeaseNo,
    pub(in super::super) reason: Option<Box<str>>,
}

/// What is said of an attempt beside its result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Facts {
    /// 0: not said.
    pub(in super::super) attempt: u16,
    /// How long before this was said it ended. Not a time of day, because clocks differ.
    pub(in super::super) ago_ms: u64,
    pub(in super::super) used: Used,
}

/// What is said of the worker itself, beside the items.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Wishes {
    pub(in super::super) ahead: Option<u32>,
    pub(in super::super) drains: bool,
    pub(in super::super) leaves: bool,
}

pub(in super::super) fn write_update(to: &mut BytesMut, now: Time, items: &[Item], wishes: Wishes) {
    let count = |wanted: fn(&Item) -> bool| items.iter().filter(|item| wanted(item)).count();
    let chunks = count(|item| matches!(item, Item::Chunk(_)));
    let results = count(|item| matches!(item, Item::Ended { .. }));
    let back = items.len() - chunks - results;
    let keys =
        [chunks > 0, results > 0, back > 0, wishes.ahead.is_some(), wishes.drains, wishes.leaves];

    write_map(to, 1);
    write_str(to, LABORO.as_bytes());
    write_map(to, keys.iter().filter(|&&present| present).count());
    for (at, key) in KEYS.iter().enumerate().filter(|&(at, _)| keys[at]) {
        write_str(to, key.as_bytes());
        match at {
            0 => {
                write_array(to, chunks);
                items.iter().for_each(|item| {
                    if let Item::Chunk(chunk) = item {
                        write_chunk(to, chunk);
                    }
                });
            }
            1 => {
                write_array(to, results);
                items.iter().for_each(|item| {
                    if let Item::Ended { task, lease, attempt, at, how } = item {
                        let (attempt, ago_ms) = (*attempt, now.since_ms(*at));
                        let facts = Facts { attempt, ago_ms, used: how.used };
                        write_result(to, (*task, *lease), how, &facts);
                    }
                });
            }
            2 => {
                write_array(to, back);
                items.iter().for_each(|item| {
                    if let Item::Back { task, lease, reason } = item {
                        write_back(to, (*task, *lease), reason.as_deref());
                    }
                });
            }
            3 => write_uint(to, wishes.ahead.unwrap_or(0).into()),
            _ => write_bool(to, true),
        }
    }
}

/// The same as a lease where no reason is given, so that hubs without reasons read it, too.
fn write_back(to: &mut BytesMut, (task, lease): (TaskId, LeaseNo), reason: Option<&str>) {
    write_array(to, 3 + usize::from(reason.is_some()));
    write_uint(to, task.job.0.into());
    write_uint(to, task.index.into());
    write_uint(to, lease.0);
    if let Some(reason) = reason {
        write_str(to, reason.as_bytes());
    }
}

fn read_back(from: &mut PackReader<'_>) -> Result<Back, PackError> {
    let mut back = Back { task: TaskId::default(), lease: LeaseNo(0), reason: None };
    from.tuple(4, |at, from| {
        match at {
            0 => back.task.job = JobId(from.small()?),
            1 => back.task.index = from.small()?,
            2 => back.lease = LeaseNo(from.uint()?),
            _ => {
                let words = from.bytes()?;
                back.reason = (!words.is_empty()).then(|| text(words).into_boxed_str());
            }
        }
        Ok(())
    })?;
    Ok(back)
}

/// `[job, index, lease, attempt, stream, bytes, offset]`
fn write_chunk(to: &mut BytesMut, chunk: &Chunk) {
    write_array(to, 6 + usize::from(chunk.offset.is_some()));
    write_uint(to, chunk.task.job.0.into());
    write_uint(to, chunk.task.index.into());
    write_uint(to, chunk.lease.0);
    write_uint(to, chunk.attempt.into());
    write_uint(
        to,
        match chunk.stream {
            Stream::Out => 1,
            Stream::Err => 2,
            Stream::Result => 3,
        },
    );
    write_bin(to, &chunk.bytes);
    if let Some(offset) = chunk.offset {
        write_uint(to, offset);
    }
}

fn write_result(to: &mut BytesMut, (task, lease): (TaskId, LeaseNo), how: &TaskEnd, facts: &Facts) {
    let (outcome, code) = match how.outcome {
        Outcome::Success => (0, 0),
        Outcome::Exit(code) => (1, code),
        Outcome::Signal(signal) => (2, signal),
        Outcome::TimedOut => (3, 0),
        Outcome::Error => (4, 0),
        Outcome::Lost => (5, 0),
        Outcome::Memory => (6, 0),
    };
    let message = how.message.as_deref().unwrap_or("");
    let used = &facts.used;
    let numbers = [
        used.wall_us,
        used.user_us,
        used.system_us,
        used.peak_kib,
        facts.attempt.into(),
        facts.ago_ms,
    ];
    let length = match numbers.iter().rposition(|&number| number != 0) {
        Some(at) => 7 + at,
        None if !message.is_empty() => 6,
        None => 4 + usize::from(code != 0),
    };
    write_array(to, length);
    write_uint(to, task.job.0.into());
    write_uint(to, task.index.into());
    write_uint(to, lease.0);
    write_uint(to, outcome);
    for at in 4..length {
        match at {
            4 => write_int(to, code.into()),
            5 => write_str(to, message.as_bytes()),
            at => write_uint(to, numbers[at - 6]),
        }
    }
}

impl Update {
    pub(in super::super) fn read(body: &Bytes) -> Result<Update, PackError> {
        let mut update = Update::default();
        if body.is_empty() {
            return Ok(update);
        }
        PackReader::new(body).fields(&[LABORO], |_, from| {
            from.fields(&KEYS, |at, from| update.read_field(at, from))
        })?;
        Ok(update)
    }

    fn read_field(&mut self, at: usize, from: &mut PackReader<'_>) -> Result<(), PackError> {
        match at {
            0 => self.chunks = from.list(TASKS_MAX, read_chunk)?,
            1 => {
                let both = from.list(TASKS_MAX, read_result)?;
                (self.results, self.facts) = both.into_iter().unzip();
            }
            2 => self.back = from.list(TASKS_MAX, read_back)?,
            3 => self.ahead = Some(from.small()?),
            4 => self.drains = from.bool()?,
            _ => self.leaves = from.bool()?,
        }
        Ok(())
    }
}

fn read_chunk(from: &mut PackReader<'_>) -> Result<Chunk, PackError> {
    let mut chunk = Chunk {
        task: TaskId::default(),
        lease: LeaseNo(0),
        attempt: 0,
        stream: Stream::Out,
        offset: None,
        bytes: Bytes::new(),
    };
    from.tuple(7, |at, from| {
        match at {
            0 => chunk.task.job = JobId(from.small()?),
            1 => chunk.task.index = from.small()?,
            2 => chunk.lease = LeaseNo(from.uint()?),
            3 => {
                let wanted = "the number of an attempt";
                chunk.attempt =
                    u16::try_from(from.small()?).map_err(|_| PackError::Range { wanted })?;
            }
            4 => {
                chunk.stream = match from.uint()? {
                    2 => Stream::Err,
                    3 => Stream::Result,
                    _ => Stream::Out,
                }
            }
            5 => chunk.bytes = from.shared()?,
            _ => chunk.offset = Some(from.uint()?),
        }
        Ok(())
    })?;
    Ok(chunk)
}

fn read_result(from: &mut PackReader<'_>) -> Result<(TaskResult, Facts), PackError> {
    let (mut task, mut lease) = (TaskId::default(), LeaseNo(0));
    let (mut outcome, mut code, mut message) = (0, 0, None);
    let mut facts = Facts::default();
    from.tuple(12, |at, from| {
        match at {
            0 => task.job = JobId(from.small()?),
            1 => task.index = from.small()?,
            2 => lease = LeaseNo(from.uint()?),
            3 => outcome = from.uint()?,
            4 => {
                let wanted = "an exit code";
                code = i32::try_from(from.int()?).map_err(|_| PackError::Range { wanted })?;
            }
            5 => {
                let words = from.bytes()?;
                message = (!words.is_empty()).then(|| text(words).into_boxed_str());
            }
            6 => facts.used.wall_us = from.uint()?,
            7 => facts.used.user_us = from.uint()?,
            8 => facts.used.system_us = from.uint()?,
            9 => facts.used.peak_kib = from.uint()?,
            10 => {
                let wanted = "the number of an attempt";
                facts.attempt =
                    u16::try_from(from.small()?).map_err(|_| PackError::Range { wanted })?;
            }
            _ => facts.ago_ms = from.uint()?,
        }
        Ok(())
    })?;
    let outcome = match outcome {
        0 => Outcome::Success,
        1 => Outcome::Exit(code),
        2 => Outcome::Signal(code),
        3 => Outcome::TimedOut,
        5 => Outcome::Lost,
        6 => Outcome::Memory,
        // And whatever a later version has: it has words at least.
        _ => Outcome::Error,
    };
    let lease = LeaseRef::Number { task, lease };
    Ok((TaskResult { lease, outcome, message, memo: None }, facts))
}

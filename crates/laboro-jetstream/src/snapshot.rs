//! Snapshots: what all messages up to one of them come to, in a stream beside the journal's. One counts when
//! its end is there; only then is anything trimmed that it covers. So a crash at any point leaves either the
//! old snapshot and all that followed it, or the new one.

use crate::message::{Kind, Message};
use crate::pen::{Mark, Pen, PenError};
use crate::read::{Assembler, ReadError, Reader};
use crate::stream::{Stream, Unclear};
use crc32c::crc32c_append;
use laboro_journal::Replay;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::runtime::Runtime;

/// What the end of a snapshot says.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct End {
    /// The journal's last message that is in it.
    covers: Mark,
    /// The sequence of its own first message.
    first: u64,
    records: u64,
    bytes: u64,
    crc: u32,
}

const END_BYTES: usize = 48;

impl End {
    fn add(&mut self, record: &[u8]) {
        self.records += 1;
        self.bytes += record.len() as u64;
        self.crc = crc32c_append(self.crc, record);
    }

    fn encode(&self) -> [u8; END_BYTES] {
        let mut bytes = [0; END_BYTES];
        let (covers, crc) = (self.covers, u64::from(self.crc));
        let chains = crc << 32 | u64::from(covers.chain);
        let fields = [covers.sequence, covers.number, self.first, self.records, self.bytes, chains];
        for (field, at) in fields.iter().zip(bytes.chunks_exact_mut(8)) {
            at.copy_from_slice(&field.to_le_bytes());
        }
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<End> {
        if bytes.len() != END_BYTES {
            return None;
        }
        let mut fields = bytes.chunks_exact(8).map(|field| {
            u64::from_le_bytes(field.try_into().expect("chunks of eight have eight bytes"))
        });
        let mut next = || fields.next();
        let (sequence, number) = (next()?, next()?);
        let (first, records, bytes, chains) = (next()?, next()?, next()?, next()?);
        let covers = Mark { sequence, number, chain: chains as u32 };
        Some(End { covers, first, records, bytes, crc: (chains >> 32) as u32 })
    }
}

pub(crate) struct Snapshot {
    pub replay: Replay,
    pub covers: Mark,
    pub bytes: u64,
}

/// The newest whole one, added up.
pub(crate) async fn read<S: Stream>(snapshots: &mut S) -> Result<Option<Snapshot>, ReadError> {
    let Some((end_at, end)) = newest(snapshots).await? else { return Ok(None) };
    let damaged = |sequence: u64, reason: &str| ReadError::Damaged {
        stream: "snapshots",
        sequence,
        reason: reason.to_owned(),
    };
    let mark = Mark { sequence: end.first - 1, ..Mark::default() };
    let mut assembler = Assembler::after("snapshots", mark);
    let mut sums = End { covers: end.covers, first: end.first, ..End::default() };
    let mut replay = Replay::default();
    while assembler.mark().sequence < end_at {
        let some = assembler.next(snapshots).await?;
        for (sequence, bytes) in some.into_iter().take_while(|(sequence, _)| *sequence <= end_at) {
            let (_, record) = assembler.take(sequence, bytes)?;
            if let Some(record) = record {
                sums.add(&record);
                replay.absorb(&record).map_err(|reason| damaged(sequence, &reason))?;
            }
        }
    }
    if sums != end {
        return Err(damaged(end_at, "the snapshot's sums do not match"));
    }
    Ok(Some(Snapshot { replay, covers: end.covers, bytes: end.bytes }))
}

async fn newest<S: Stream>(snapshots: &mut S) -> Result<Option<(u64, End)>, ReadError> {
    let Some((sequence, bytes)) = snapshots.last_end().await? else { return Ok(None) };
    let damaged =
        |reason: &str| ReadError::Damaged { stream: "snapshots", sequence, reason: reason.into() };
    let message = Message::open(bytes).map_err(damaged)?;
    let end = (message.head.kind == Kind::End).then(|| End::decode(&message.body)).flatten();
    let sound = |end: &End| (1..=sequence).contains(&end.first);
    Ok(Some((
        sequence,
        end.filter(sound).ok_or_else(|| damaged("it is not the end of a snapshot"))?,
    )))
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum CondenseError {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Write(#[from] PenError),
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("NATS did not trim what the snapshot covers: {0}")]
    Trim(#[from] Unclear),
    #[error("another hub has made a newer snapshot")]
    Older,
}

/// Who makes a snapshot, and up to where.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Task {
    pub upto: Mark,
    pub writer: u64,
    pub life: u32,
    pub part_bytes: usize,
}

/// Reads the journal up to `upto` from the stream alone, writes down what it comes to, and trims. Blocks, so
/// it wants a thread of its own. Any hub may do this, also one that was fenced meanwhile: what it writes is
/// true of the messages it covers, and its pen yields to any other.
pub(crate) fn condense<S: Stream>(
    runtime: &Runtime,
    journal: &mut S,
    mut snapshots: S,
    task: Task,
    stop: &AtomicBool,
) -> Result<u64, CondenseError> {
    let reader = runtime.block_on(Reader::load(journal, &mut snapshots, Some(task.upto.sequence)));
    let reader = reader.map_err(|error| match error {
        ReadError::Gap { .. } => CondenseError::Older,
        error => error.into(),
    })?;
    if reader.mark() != task.upto {
        return Err(CondenseError::Older);
    }
    let (end, mut snapshots) = write(runtime, snapshots, &reader.replay, task, stop)?;
    runtime.block_on(journal.trim(task.upto.sequence + 1))?;
    runtime.block_on(snapshots.trim(end.first))?;
    Ok(end.bytes)
}

/// Writes a snapshot. It counts when this returns.
fn write<S: Stream>(
    runtime: &Runtime,
    mut snapshots: S,
    replay: &Replay,
    task: Task,
    stop: &AtomicBool,
) -> Result<(End, S), CondenseError> {
    let newest = runtime.block_on(newest(&mut snapshots))?;
    if newest.is_some_and(|(_, end)| end.covers.sequence >= task.upto.sequence) {
        return Err(CondenseError::Older);
    }
    let last = runtime.block_on(snapshots.bounds())?.last;
    let mark = Mark { sequence: last, ..Mark::default() };
    let mut end = End { covers: task.upto, first: last + 1, ..End::default() };
    let mut pen = Pen::new(snapshots, mark, task.writer, task.life, task.part_bytes);
    replay.condense(&mut |record| {
        if stop.load(Ordering::Relaxed) {
            return Err(io::Error::other("the hub is being stopped"));
        }
        end.add(record);
        runtime.block_on(pen.record(record)).map(drop).map_err(io::Error::other)
    })?;
    if stop.load(Ordering::Relaxed) {
        return Err(io::Error::other("the hub is being stopped").into());
    }
    runtime.block_on(pen.word(Kind::End, &end.encode()))?;
    Ok((end, pen.into_stream()))
}

/// The same with a ledger from elsewhere, for a journal that has none yet.
pub(crate) fn install<S: Stream>(
    runtime: &Runtime,
    snapshots: S,
    replay: &Replay,
    task: Task,
    stop: &AtomicBool,
) -> Result<u64, CondenseError> {
    write(runtime, snapshots, replay, task, stop).map(|(end, _)| end.bytes)
}

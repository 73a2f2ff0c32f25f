//! Reads all of a journal in NATS and says what it holds and whether it adds up. Changes nothing, and does not
//! mind a hub that is writing meanwhile.

use crate::journal::StreamError;
use crate::nats::Nats;
use crate::options::Options;
use crate::read::{ReadError, Reader};
use laboro_core::{Ledger, State};
use laboro_journal::JournalError;
use std::sync::Arc;

#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Check {
    pub last_number: u64,
    pub last_sequence: u64,
    /// After the snapshot.
    pub messages: u64,
    pub bytes: u64,
    pub snapshot_bytes: u64,
    pub events: u64,
    pub jobs: u64,
    pub workers: u64,
    pub tasks: [(State, u64); State::COUNT],
    /// What keeps a hub from starting on this journal.
    pub problem: Option<String>,
}

/// What was found, and the ledger that it comes to.
pub fn check(options: &Options) -> Result<(Check, Ledger), JournalError> {
    let no_thread = |source| JournalError::NoThread { source: Arc::new(source) };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(no_thread)?.block_on(read(options)).map_err(JournalError::from)
}

async fn read(options: &Options) -> Result<(Check, Ledger), StreamError> {
    let nats = Nats::connect_only(options).await?;
    let mut streams = nats.existing(options);
    let read = Reader::load(&mut streams.journal, &mut streams.snapshots, None).await;
    let (reader, problem) = match read {
        Ok(reader) => (reader, None),
        Err(ReadError::Unclear(reason)) => return Err(ReadError::Unclear(reason).into()),
        Err(damage) => (Reader::empty(), Some(damage.to_string())),
    };
    let ledger = &reader.replay.ledger;
    let check = Check {
        last_number: reader.mark().number,
        last_sequence: reader.mark().sequence,
        messages: reader.messages,
        bytes: reader.bytes,
        snapshot_bytes: reader.snapshot_bytes,
        events: reader.replay.events,
        jobs: ledger.job_count() as u64,
        workers: ledger.worker_count() as u64,
        tasks: State::ALL.map(|state| (state, ledger.tasks_in(state))),
        problem: problem.or_else(|| ledger.check().err()),
    };
    Ok((check, reader.replay.ledger))
}

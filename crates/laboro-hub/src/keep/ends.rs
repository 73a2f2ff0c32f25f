//! What is remembered of attempts that are over, on its way to the disk: gathered for a moment, so that a
//! million short tasks make a few thousand hand-overs. Whoever asks for it before is given it all the same.

use super::writer::key;
use super::{KeepError, Outputs, Piece};
use crate::history::History;
use laboro_core::TaskId;
use laboro_dialects::session::Ends;
use laboro_journal::outputs::EndedAttempt;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// Gathered at most for so long.
const GATHER: Duration = Duration::from_millis(20);

/// Or until so many are there.
const GATHER_MAX: usize = 4096;

/// What one takes of the writer's room.
const END_BYTES: usize = 64;

#[derive(Debug, Default)]
pub(super) struct WaitingEnds {
    batch: Mutex<Batch>,
    there: Notify,
}

#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) ends: Vec<Ends>,
    count: usize,
    /// To be given back to the room.
    pub(super) permits: usize,
}

impl WaitingEnds {
    /// True: it is time to pass them on.
    fn add(&self, ends: &mut Vec<Ends>, count: usize, permits: usize) -> bool {
        let mut batch = self.batch.lock().unwrap_or_else(PoisonError::into_inner);
        let was_empty = batch.ends.is_empty();
        batch.ends.append(ends);
        batch.count += count;
        batch.permits += permits;
        let is_much = batch.count >= GATHER_MAX;
        drop(batch);
        if was_empty {
            self.there.notify_one();
        }
        is_much
    }

    fn is_empty(&self) -> bool {
        self.batch.lock().unwrap_or_else(PoisonError::into_inner).ends.is_empty()
    }

    /// What is there.
    pub(super) fn take(&self) -> Batch {
        std::mem::take(&mut *self.batch.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Outputs {
    /// Who is told how long attempts took.
    pub(crate) fn tell_times(&self, history: &History) {
        let _ = self.shared.history.set(history.clone());
    }

    /// Attempts that are over. Waits while more is on its way to the disk than memory should hold.
    pub async fn note_ends(&self, ends: &mut Vec<Ends>) -> Result<(), KeepError> {
        if let Some(history) = self.shared.history.get() {
            history.note_times(ends);
        }
        let count: usize = ends.iter().map(|ends| ends.ends.len()).sum();
        let permits = (count * END_BYTES).min(super::BYTES_MAX);
        let room = self.shared.room.acquire_many(permits as u32).await;
        // Given back by the writer.
        room.map_err(|_| KeepError::Closed)?.forget();
        let is_much = self.shared.ends.add(ends, count, permits);
        // That output is lost stands with the end, so no result goes before it.
        if self.shared.has_lost.load(Ordering::Acquire) {
            self.keep(Vec::new()).await
        } else if is_much {
            self.pass_on().await
        } else {
            Ok(())
        }
    }

    /// Puts what was gathered into the writer's queue. Before output is put there, too, so that everything is
    /// written in the order in which it was told.
    pub(super) async fn pass_on(&self) -> Result<(), KeepError> {
        if self.shared.ends.is_empty() {
            return Ok(());
        }
        // First the place, so that nothing is lost if nobody waits for it any more.
        let place = self.shared.pieces.reserve().await.map_err(|_| KeepError::Closed)?;
        place.send(Piece::Ends(self.shared.ends.take()));
        Ok(())
    }

    /// How the attempts at these tasks ended, by task and attempt. The tasks of one job, ascending.
    pub async fn ends(&self, tasks: Vec<TaskId>) -> Result<Vec<EndedAttempt>, KeepError> {
        let mut all = Vec::new();
        let mut left = tasks.as_slice();
        while let Some(&first) = left.first() {
            let (store, there) = self.of(first.index);
            let together = self.together_from(first.index);
            let is_there =
                |task: &&TaskId| task.job == first.job && task.index - first.index < together;
            let (tasks, rest) = left.split_at(left.iter().take_while(is_there).count());
            left = rest;
            let shift = |task: &TaskId| TaskId::new(task.job, there + (task.index - first.index));
            let tasks: Vec<TaskId> = tasks.iter().map(shift).collect();
            let mut ends = store.ends_here(tasks).await?;
            ends.iter_mut().for_each(|end| end.key.index = end.key.index - there + first.index);
            all.append(&mut ends);
        }
        Ok(all)
    }

    async fn ends_here(&self, tasks: Vec<TaskId>) -> Result<Vec<EndedAttempt>, KeepError> {
        self.read(move |reader| {
            let mut ends = Vec::new();
            for run in tasks.chunk_by(|a, b| a.job == b.job && a.index + 1 == b.index) {
                let (first, last) = (run[0], run[run.len() - 1]);
                ends.extend(reader.ends(key(first, 0), key(last, u16::MAX))?);
            }
            Ok(ends)
        })
        .await
    }
}

/// Goes on until the store is gone.
pub(crate) async fn pass_on_ends(outputs: Outputs) {
    loop {
        outputs.shared.ends.there.notified().await;
        tokio::time::sleep(GATHER).await;
        if outputs.pass_on().await.is_err() {
            return;
        }
    }
}

//! The thread that writes outputs: appends what it is handed, ends what has ended, and lets readers see it
//! whenever its queue is empty.

use super::{Ended, KeepError, Piece, Shared};
use laboro_core::{LeaseNo, Outcome, TaskId};
use laboro_dialects::session::{self, Chunk};
use laboro_journal::outputs::{self, Ending, Error, Key, Stream, Writer};
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

pub(super) struct Writing {
    writer: Writer,
    shared: Arc<Shared>,
    /// By task: no two attempts at one task are written at the same time.
    open: HashMap<TaskId, Open>,
    is_dirty: bool,
    complained: Option<Instant>,
}

struct Open {
    attempt: u16,
    /// Number 0 is never granted: it stands for one from before a restart.
    lease: LeaseNo,
    grown: Instant,
}

/// Memory for attempts that never end is bounded too. More tasks than this do not run at once.
const OPEN_MAX: usize = 1 << 20;

/// Without a new byte for so long an attempt counts as quiet, and somebody looks whether it still runs.
const QUIET: Duration = Duration::from_secs(60);

/// A full disk is told of once in a while, not for each line of output.
const COMPLAIN_EVERY: Duration = Duration::from_secs(60);

impl Writing {
    pub fn open(
        dir: &Path,
        config: outputs::Config,
        shared: Arc<Shared>,
    ) -> Result<Writing, KeepError> {
        let writer = Writer::open(dir, config)?;
        let mut open: HashMap<TaskId, Open> = HashMap::new();
        for key in writer.running() {
            let new = Open { attempt: key.attempt, lease: LeaseNo(0), grown: Instant::now() };
            let known = open.entry(task(key)).or_insert(new);
            known.attempt = known.attempt.max(key.attempt);
        }
        shared.open.store(open.len(), Ordering::Release);
        Ok(Writing { writer, shared, open, is_dirty: false, complained: None })
    }

    pub fn run(mut self, mut queue: mpsc::Receiver<Piece>) {
        let mut pieces = Vec::new();
        let mut is_over = false;
        while !is_over {
            match queue.try_recv() {
                Ok(piece) => pieces.push(piece),
                // Nobody waits behind this: time to let readers see it.
                Err(_) => {
                    self.flush();
                    if queue.blocking_recv_many(&mut pieces, super::PIECES_MAX) == 0 {
                        break;
                    }
                }
            }
            let mut came = 0;
            for piece in pieces.drain(..) {
                came += usize::from(matches!(piece, Piece::Chunks { .. }));
                is_over |= self.take(piece);
            }
            self.shared.open.store(self.open.len(), Ordering::Release);
            self.shared.coming.fetch_sub(came, Ordering::Release);
        }
        self.flush();
    }

    /// True: there will be no more.
    fn take(&mut self, piece: Piece) -> bool {
        match piece {
            Piece::Chunks { chunks, permits } => {
                chunks.iter().for_each(|chunk| self.append(chunk));
                self.shared.room.add_permits(permits as usize);
            }
            Piece::Ended(ended) => ended.iter().for_each(|ended| self.note_end(ended)),
            Piece::Abandoned(keys) => {
                for key in keys {
                    let is_open =
                        self.open.get(&task(key)).is_some_and(|open| open.attempt == key.attempt);
                    if is_open {
                        self.open.remove(&task(key));
                        self.end(key, Outcome::Lost);
                    }
                }
            }
            Piece::Forget(jobs) => {
                self.open.retain(|task, _| !jobs.iter().any(|range| range.contains(&task.job.0)));
                let forgotten = self.writer.forget_all(jobs);
                self.note(forgotten.map(drop), 0);
                self.is_dirty = true;
            }
            Piece::Quiet(most, answer) => {
                let quiet = self.open.iter().filter(|(_, open)| open.grown.elapsed() >= QUIET);
                let quiet = quiet.map(|(task, open)| (key(*task, open.attempt), open.lease));
                // Whoever asked may have gone.
                let _ = answer.send(quiet.take(most).collect());
            }
            Piece::Settle(done) => {
                self.flush();
                let _ = done.send(());
            }
            Piece::Close => return true,
        }
        false
    }

    fn append(&mut self, chunk: &Chunk) {
        let bytes = chunk.bytes.len();
        let known = self.open.get(&chunk.task).map(|open| open.attempt);
        match known {
            // A worker that was given up on still talks; another has the task now.
            Some(attempt) if attempt > chunk.attempt => return self.lose(bytes),
            Some(attempt) if attempt < chunk.attempt => {
                self.end(key(chunk.task, attempt), Outcome::Lost);
            }
            Some(_) => {}
            None if self.open.len() >= OPEN_MAX => return self.lose(bytes),
            None => {}
        }
        let (attempt, lease) = (chunk.attempt, chunk.lease);
        self.open.insert(chunk.task, Open { attempt, lease, grown: Instant::now() });
        let stream = match chunk.stream {
            session::Stream::Out => Stream::Stdout,
            session::Stream::Err => Stream::Stderr,
        };
        let appended = self.writer.append(key(chunk.task, attempt), stream, &chunk.bytes);
        self.note(appended, bytes);
        self.is_dirty = true;
    }

    fn note_end(&mut self, ended: &Ended) {
        let Some(open) = self.open.get(&ended.task) else { return };
        let is_other = ended.lease.is_some_and(|lease| open.lease != lease);
        // After a restart the lease of an attempt is not known until it prints again.
        if is_other && open.lease != LeaseNo(0) {
            return;
        }
        let key = key(ended.task, open.attempt);
        self.open.remove(&ended.task);
        self.end(key, ended.outcome);
    }

    fn end(&mut self, key: Key, outcome: Outcome) {
        let ended = self.writer.end(key, ending(outcome));
        self.note(ended.map(drop), 0);
        self.is_dirty = true;
    }

    fn flush(&mut self) {
        if std::mem::take(&mut self.is_dirty) {
            let flushed = self.writer.flush();
            self.note(flushed, 0);
            self.shared.flushed.send_modify(|count| *count += 1);
        }
    }

    fn note(&mut self, result: Result<(), Error>, bytes: usize) {
        let Err(error) = result else { return };
        self.lose(bytes);
        // Output that comes after its job was forgotten is nobody's loss.
        let is_news = self.complained.is_none_or(|last| last.elapsed() >= COMPLAIN_EVERY);
        if is_news && !matches!(error, Error::Forgotten { .. }) {
            tracing::error!("output of tasks is lost: {error}");
            self.complained = Some(Instant::now());
        }
    }

    fn lose(&self, bytes: usize) {
        self.shared.lost.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

fn key(task: TaskId, attempt: u16) -> Key {
    Key { job: task.job.0, index: task.index, attempt }
}

fn task(key: Key) -> TaskId {
    TaskId::new(laboro_core::JobId(key.job), key.index)
}

/// In the numbers that `laboro run` uses too. What the attempt used is not known here.
fn ending(outcome: Outcome) -> Ending {
    let (kind, code) = match outcome {
        Outcome::Success => (0, 0),
        Outcome::Exit(code) => (0, code),
        Outcome::Signal(signal) => (1, signal),
        Outcome::TimedOut => (2, 0),
        Outcome::Error => (3, 0),
        Outcome::Lost => (5, 0),
    };
    Ending { kind, code, ..Ending::default() }
}

//! The thread that writes outputs: appends what it is handed, ends what has ended, and lets readers see it
//! whenever its queue is empty. What is said twice is written once.

mod room;

use super::recent::Recent;
use super::reserve::Reserve;
use super::{AttemptOutcome, KeepAnswer, KeepError, OnWriteError, Piece, SharedStore};
use laboro_core::{LeaseNo, Outcome, TaskId};
use laboro_dialects::session::{self, AttemptEnd, Chunk, Ends};
use laboro_journal::outputs::{self, End, Ending, Error, Key, NotTaken, Reader, Stream, Writer};
use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

pub(super) struct Writing {
    writer: Writer,
    shared: Arc<SharedStore>,
    /// By task: no two attempts at one task are written at the same time.
    open: HashMap<TaskId, OpenAttempt>,
    /// Of those that were open.
    ended: Recent,
    /// The hub's.
    life: u32,
    is_dirty: bool,
    reserve: Reserve,
    /// Since output could not be written: when it was last looked whether it can.
    tried: Option<Instant>,
    /// Taken, and answered when it is in its file.
    taken: Vec<KeepAnswer>,
}

struct OpenAttempt {
    attempt: u16,
    /// Number 0 is never granted: it stands for one from before a restart.
    lease: LeaseNo,
    grown: Instant,
    /// By stream: how much of what the worker said never arrived here.
    missed: [u64; 3],
}

impl OpenAttempt {
    fn new(attempt: u16, lease: LeaseNo) -> OpenAttempt {
        OpenAttempt { attempt, lease, grown: Instant::now(), missed: [0; 3] }
    }
}

/// Memory for attempts that never end is bounded too. More tasks than this do not run at once.
const OPEN_MAX: usize = 1 << 20;

/// Without a new byte for so long an attempt counts as quiet, and somebody looks whether it still runs.
const QUIET: Duration = Duration::from_secs(60);

impl Writing {
    pub fn open(
        dir: &Path,
        config: outputs::Config,
        life: u32,
        shared: Arc<SharedStore>,
    ) -> Result<Writing, KeepError> {
        let writer = Writer::open(dir, config)?;
        let mut open: HashMap<TaskId, OpenAttempt> = HashMap::new();
        for key in writer.running() {
            let new = || OpenAttempt::new(key.attempt, LeaseNo(0));
            let known = open.entry(task(key)).or_insert_with(new);
            known.attempt = known.attempt.max(key.attempt);
        }
        shared.open.store(open.len(), Ordering::Release);
        shared.has_lost.store(writer.has_lost(), Ordering::Release);
        let reserve = Reserve::new(dir);
        match shared.trouble.on_error {
            // Without it, less can be marked.
            OnWriteError::Mark => drop(reserve.make()),
            OnWriteError::Wait | OnWriteError::Stop => reserve.release(),
        }
        Ok(Writing {
            writer,
            shared,
            open,
            ended: Recent::default(),
            life,
            is_dirty: false,
            reserve,
            tried: None,
            taken: Vec::new(),
        })
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
            Piece::Chunks { chunks, permits, answer } => {
                match self.append_all(chunks) {
                    Ok(()) => self.taken.push(answer),
                    // The session may have gone.
                    Err(rest) => drop(answer.send(Err(rest))),
                }
                self.shared.room.add_permits(permits as usize);
            }
            Piece::Ended(ended) => ended.iter().for_each(|ended| self.note_end(ended)),
            Piece::Ends(batch) => {
                for ends in &batch.ends {
                    ends.ends.iter().for_each(|end| self.write_end(ends, end));
                }
                self.shared.room.add_permits(batch.permits);
            }
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
                self.note(forgotten.map(drop));
                self.is_dirty = true;
            }
            Piece::Quiet(most, answer) => {
                self.notice_room();
                let quiet = self.open.iter().filter(|(_, open)| open.grown.elapsed() >= QUIET);
                let quiet = quiet.map(|(task, open)| (key(*task, open.attempt), open.lease));
                // Whoever asked may have gone.
                let _ = answer.send(quiet.take(most).collect());
            }
            Piece::Settle(done) => {
                self.notice_room();
                self.flush();
                let _ = done.send(());
            }
            Piece::Close => return true,
        }
        false
    }

    /// Gives back what has to be offered again.
    fn append_all(&mut self, mut chunks: Vec<Chunk>) -> Result<(), Vec<Chunk>> {
        let marks = self.shared.trouble.on_error == OnWriteError::Mark;
        let mut writes = self.tried.is_none() || self.look_for_room();
        if !writes && !marks {
            return Err(chunks);
        }
        for at in 0..chunks.len() {
            let Err(taken) = self.append(&chunks[at], writes) else { continue };
            if !marks {
                let mut rest = chunks.split_off(at);
                drop(rest[0].bytes.split_to(taken));
                rest[0].offset = rest[0].offset.map(|offset| offset + taken as u64);
                return Err(rest);
            }
            writes = false;
        }
        Ok(())
    }

    /// The error: so many of its bytes are dealt with. Where what is not taken is lost, all of them are. Without `writes`
    /// nothing is tried: the little room there is is needed for ends.
    fn append(&mut self, chunk: &Chunk, writes: bool) -> Result<(), usize> {
        let Chunk { task, attempt, lease, .. } = *chunk;
        match self.open.get(&task).map(|open| open.attempt) {
            // A worker that was given up on still talks; another has the task now.
            Some(before) if before > attempt => {
                self.lose(chunk.bytes.len());
                return Ok(());
            }
            Some(before) if before < attempt => {
                self.end(key(task, before), Outcome::Lost);
                self.open.insert(task, OpenAttempt::new(attempt, lease));
            }
            Some(_) => {}
            None if chunk.offset.is_some() && self.is_over(lease, key(task, attempt)) => {
                return Ok(());
            }
            None if self.open.len() >= OPEN_MAX => {
                self.lose(chunk.bytes.len());
                return Ok(());
            }
            None => {}
        }
        let open = self.open.entry(task).or_insert_with(|| OpenAttempt::new(attempt, lease));
        (open.lease, open.grown) = (lease, Instant::now());
        let (at, stream) = match chunk.stream {
            session::Stream::Out => (0, Stream::Stdout),
            session::Stream::Err => (1, Stream::Stderr),
            session::Stream::Result => (2, Stream::Result),
        };
        let key = key(task, attempt);
        let known = match chunk.offset {
            Some(offset) => self.known(key, (at, stream), offset, chunk.bytes.len()),
            None => 0,
        };
        let bytes = &chunk.bytes[known..];
        self.is_dirty = true;
        let offered = match writes {
            true => self.writer.offer(key, stream, bytes),
            false => {
                self.writer.lose(key, stream, bytes.len() as u64);
                self.lose(bytes.len());
                Ok(())
            }
        };
        let taken = match offered {
            // Output that comes after its job was forgotten is nobody's loss.
            Err(NotTaken { error: Error::Forgotten { .. }, .. }) => {
                self.open.remove(&task);
                self.lose(bytes.len());
                Ok(())
            }
            Err(NotTaken { taken, error }) => {
                self.begin_trouble(&error);
                if self.shared.trouble.on_error == OnWriteError::Mark {
                    self.writer.lose(key, stream, (bytes.len() - taken) as u64);
                    self.lose(bytes.len() - taken);
                }
                Err(known + taken)
            }
            Ok(()) => Ok(()),
        };
        self.note_loss();
        taken
    }

    /// How many bytes of a piece that begins at `offset` of its stream are here already.
    fn known(
        &mut self,
        key: Key,
        (at, stream): (usize, Stream),
        offset: u64,
        length: usize,
    ) -> usize {
        let amount = self.writer.amount(key, stream);
        let open = self.open.get_mut(&task(key)).expect("opened before anything is added to it");
        let heard = amount.heard() + open.missed[at];
        // Answered, and lost with an earlier life of the hub.
        let missed = offset.saturating_sub(heard);
        open.missed[at] += missed;
        if missed > 0 {
            self.shared.has_lost.store(true, Ordering::Release);
        }
        usize::try_from(heard.saturating_sub(offset)).map_or(length, |known| known.min(length))
    }

    /// The attempt is not open because it has ended: it is told of once more after a lost link.
    fn is_over(&mut self, lease: LeaseNo, key: Key) -> bool {
        if self.ended.has(lease) {
            return true;
        }
        if lease.life() >= self.life {
            return false;
        }
        // Rare enough for a look at the disk: a task that began before the hub did.
        self.flush();
        let mut reader = self.shared.reader.lock().unwrap_or_else(PoisonError::into_inner);
        let reader = match &mut *reader {
            Some(reader) => reader,
            none => match Reader::open(&self.shared.dir) {
                Ok(reader) => none.insert(reader),
                Err(_) => return false,
            },
        };
        let end = reader.refresh().and_then(|()| reader.end(key));
        end.is_ok_and(|end| end.is_some())
    }

    fn write_end(&mut self, ends: &Ends, end: &AttemptEnd) {
        let printed = self.open.get(&end.task).map(|open| open.attempt);
        let attempt = match (end.attempt, printed) {
            // It did not say, and printed nothing either: nobody could find it.
            (0, None) => return,
            (0, Some(attempt)) => attempt,
            (attempt, Some(before)) if before < attempt => {
                self.end(key(end.task, before), Outcome::Lost);
                attempt
            }
            (attempt, _) => attempt,
        };
        let key = key(end.task, attempt);
        if printed.is_some_and(|printed| printed <= attempt) {
            if let Some(open) = self.open.remove(&end.task) {
                self.lose_missed(key, &open);
            }
            self.ended.add(end.lease);
        } else if self.writer.is_full() || self.is_over(end.lease, key) {
            // What an attempt used takes little, but a limit is a limit.
            return;
        }
        let used = &end.used;
        let ending = Ending {
            started_ms: end.ended.0.saturating_sub(used.wall_us / 1000),
            wall_us: used.wall_us,
            user_us: used.user_us,
            sys_us: used.system_us,
            max_rss_kib: used.peak_kib,
            ..Ending::of(end.outcome)
        };
        let worker = (ends.worker.0, ends.name.bytes());
        let written = self.writer.end_by(key, ending, worker);
        self.note_written_end(written);
    }

    /// An end without an attempt to it: whatever is open ends.
    fn note_end(&mut self, ended: &AttemptOutcome) {
        let Some(open) = self.open.get(&ended.task) else { return };
        let is_other = ended.lease.is_some_and(|lease| open.lease != lease);
        // After a restart the lease of an attempt is not known until it prints again.
        if is_other && open.lease != LeaseNo(0) {
            return;
        }
        let key = key(ended.task, open.attempt);
        if let Some(open) = self.open.remove(&ended.task) {
            self.lose_missed(key, &open);
        }
        self.end(key, ended.outcome);
    }

    fn end(&mut self, key: Key, outcome: Outcome) {
        let ended = self.writer.end(key, Ending::of(outcome));
        self.note_written_end(ended);
    }

    /// What a worker was answered for and an earlier life of the hub took with it is lost too.
    fn lose_missed(&mut self, key: Key, open: &OpenAttempt) {
        let streams = [Stream::Stdout, Stream::Stderr, Stream::Result];
        for (stream, missed) in streams.into_iter().zip(open.missed) {
            self.writer.lose(key, stream, missed);
        }
    }

    fn note_written_end(&mut self, written: Result<End, Error>) {
        if written.as_ref().is_ok_and(|end| end.lost() > 0) {
            self.shared.trouble.count_attempt();
        }
        self.note(written.map(drop));
        self.is_dirty = true;
    }
}

pub(super) fn key(task: TaskId, attempt: u16) -> Key {
    Key { job: task.job.0, index: task.index, attempt }
}

fn task(key: Key) -> TaskId {
    TaskId::new(laboro_core::JobId(key.job), key.index)
}

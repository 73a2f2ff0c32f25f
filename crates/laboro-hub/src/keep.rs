//! Keeps what tasks print and what each attempt used, beside the engine: one thread writes, behind a queue with a bound in bytes, and
//! readers see it as it comes. Output counts as kept once it is in its file, and a session passes a result on only then. What happens
//! where that cannot be is a setting.

mod cursor;
mod elsewhere;
mod ends;
mod housekeeping;
mod recent;
mod reserve;
mod results;
mod retention;
mod trouble;
mod writer;

#[cfg(test)]
mod tests;

pub use cursor::Cursor;
pub use elsewhere::Elsewhere;
pub(crate) use ends::pass_on_ends;
pub(crate) use housekeeping::housekeeping;
pub(crate) use results::TaskEnd;
pub use trouble::OnWriteError;

use crate::history::History;
use ends::WaitingEnds;
use laboro_core::{Command, LeaseNo, LeaseRef, Outcome, TaskId, TaskRef};
use laboro_dialects::session::Chunk;
use laboro_journal::outputs::{self, End, Key, Reader, Streams};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{Semaphore, mpsc, oneshot, watch};
use trouble::WriteTrouble;

/// What waits for the writer, in pieces and in bytes.
const PIECES_MAX: usize = 4096;
const BYTES_MAX: usize = 16 << 20;

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeepError {
    #[error(transparent)]
    Store(#[from] outputs::Error),
    #[error("the store of outputs is closed")]
    Closed,
    #[error("cannot start the thread that writes outputs: {0}")]
    NoThread(std::io::Error),
}

/// After output could not be written, it is offered again this often.
const AGAIN: Duration = Duration::from_millis(250);

/// The store of a running hub. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Outputs {
    shared: Arc<SharedStore>,
}

#[derive(Debug)]
struct SharedStore {
    dir: PathBuf,
    /// Somebody else writes, and nobody tells when there is more.
    only_reads: bool,
    pieces: mpsc::Sender<Piece>,
    room: Semaphore,
    /// Pieces with output on their way to the writer, which counts them down when `open` knows of them.
    coming: AtomicUsize,
    /// Attempts with output and without an end.
    open: AtomicUsize,
    /// Bytes that could not be kept.
    lost: AtomicU64,
    trouble: WriteTrouble,
    /// An attempt without an end may have lost output.
    has_lost: AtomicBool,
    /// Who wants to know how long attempts took.
    history: OnceLock<History>,
    /// Ends on their way to the writer's queue: they are many and small, and waking a thread for each would
    /// cost more than they do.
    ends: WaitingEnds,
    /// Counts up whenever something new can be read.
    flushed: watch::Sender<u64>,
    reader: Mutex<Option<Reader>>,
    /// Tasks whose outputs are in other stores.
    elsewhere: OnceLock<Vec<Elsewhere>>,
}

/// What the writer's thread is told.
#[derive(Debug)]
enum Piece {
    Chunks {
        chunks: Vec<Chunk>,
        permits: u32,
        answer: KeepAnswer,
    },
    Ended(Vec<AttemptOutcome>),
    Ends(ends::Batch),
    /// Those of these that are still open will never end by themselves.
    Abandoned(Vec<Key>),
    Forget(Vec<RangeInclusive<u32>>),
    /// Attempts that have not grown for a while, at most so many.
    Quiet(usize, oneshot::Sender<Vec<(Key, LeaseNo)>>),
    /// Answered when everything before it can be read.
    Settle(oneshot::Sender<()>),
    Close,
}

/// Given when everything up to this piece is in its file. Otherwise what has to be offered again, which is nothing
/// where the writer has it all and could not write it yet.
type KeepAnswer = oneshot::Sender<Result<(), Vec<Chunk>>>;

#[derive(Debug, Clone, Copy)]
struct AttemptOutcome {
    task: TaskId,
    /// `None`: whichever this task is running under.
    lease: Option<LeaseNo>,
    outcome: Outcome,
}

/// The thread that writes, for as long as this is kept.
#[derive(Debug)]
pub struct Keeper {
    outputs: Outputs,
    thread: Option<JoinHandle<()>>,
}

impl Keeper {
    /// `life` is the hub's: what belongs to leases of an earlier one may be there already.
    pub fn open(
        dir: &Path,
        config: outputs::Config,
        life: u32,
        on_error: OnWriteError,
    ) -> Result<Keeper, KeepError> {
        let (shared, queue) = SharedStore::new(dir, on_error, false);
        let writer = writer::Writing::open(dir, config, life, Arc::clone(&shared))?;
        let thread = std::thread::Builder::new()
            .name("laboro-outputs".into())
            .spawn(move || writer.run(queue))
            .map_err(KeepError::NoThread)?;
        Ok(Keeper { outputs: Outputs { shared }, thread: Some(thread) })
    }

    pub fn outputs(&self) -> Outputs {
        self.outputs.clone()
    }

    /// Writes what is there and waits for it. The same as dropping it, and easier to see.
    pub fn close(self) {}
}

impl Drop for Keeper {
    fn drop(&mut self) {
        let shared = &self.outputs.shared;
        let last = [Piece::Ends(shared.ends.take()), Piece::Close];
        for mut piece in last {
            // A queue that is full becomes emptier; a thread that is gone already has said why.
            while let Err(TrySendError::Full(unsent)) = shared.pieces.try_send(piece) {
                piece = unsent;
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl SharedStore {
    fn new(
        dir: &Path,
        on_error: OnWriteError,
        only_reads: bool,
    ) -> (Arc<SharedStore>, mpsc::Receiver<Piece>) {
        let (pieces, queue) = mpsc::channel(PIECES_MAX);
        let shared = SharedStore {
            dir: dir.to_owned(),
            only_reads,
            pieces,
            room: Semaphore::new(BYTES_MAX),
            coming: AtomicUsize::new(0),
            open: AtomicUsize::new(0),
            lost: AtomicU64::new(0),
            trouble: WriteTrouble::new(on_error),
            has_lost: AtomicBool::new(false),
            history: OnceLock::new(),
            ends: WaitingEnds::default(),
            flushed: watch::Sender::new(0),
            reader: Mutex::new(None),
            elsewhere: OnceLock::new(),
        };
        (Arc::new(shared), queue)
    }
}

impl Outputs {
    /// Of a store that somebody else writes, or has written.
    pub fn reading(dir: &Path) -> Outputs {
        let (shared, _) = SharedStore::new(dir, OnWriteError::Stop, true);
        Outputs { shared }
    }

    /// Waits until all of it is in its file, or, where that is the setting, counted as lost. A caller that does not
    /// want to wait for a full disk drops this: what was taken until then is known when it comes again.
    pub async fn keep(&self, mut chunks: Vec<Chunk>) -> Result<(), KeepError> {
        loop {
            let bytes: usize = chunks.iter().map(|chunk| chunk.bytes.len()).sum();
            let permits = u32::try_from(bytes.min(BYTES_MAX)).unwrap_or(u32::MAX);
            // First the place, so that what is counted below also arrives.
            let room = self.shared.room.acquire_many(permits).await;
            let room = room.map_err(|_| KeepError::Closed)?;
            self.pass_on().await?;
            let place = self.shared.pieces.reserve().await.map_err(|_| KeepError::Closed)?;
            // Given back by the writer.
            room.forget();
            self.shared.coming.fetch_add(1, Ordering::Release);
            let (answer, written) = oneshot::channel();
            place.send(Piece::Chunks { chunks, permits, answer });
            match written.await.map_err(|_| KeepError::Closed)? {
                Ok(()) => return Ok(()),
                Err(rest) => chunks = rest,
            }
            tokio::time::sleep(AGAIN).await;
        }
    }

    /// Looks at what a session asks that has nothing else to say of its results: an attempt whose result is
    /// reported writes nothing more.
    pub(crate) async fn note_results(&self, asks: &[(u64, Command)]) -> Result<(), KeepError> {
        // Most tasks print nothing, and cost nothing here.
        let shared = &self.shared;
        if shared.coming.load(Ordering::Acquire) == 0 && shared.open.load(Ordering::Acquire) == 0 {
            return Ok(());
        }
        let reports = asks.iter().filter_map(|(_, command)| match command {
            Command::Report(report) => Some(&report.results),
            _ => None,
        });
        let ended = reports.flatten().filter_map(|result| {
            let (task, lease) = match &result.lease {
                LeaseRef::Number { task, lease } => (*task, Some(*lease)),
                LeaseRef::Held(task) | LeaseRef::HeldOrFree(task) | LeaseRef::Anyones(task) => {
                    match task {
                        TaskRef::Id(task) | TaskRef::Own(task) => (*task, None),
                        // Dialects that know tasks by name carry no output.
                        TaskRef::Name(_) => return None,
                    }
                }
            };
            Some(AttemptOutcome { task, lease, outcome: result.outcome })
        });
        match ended.collect::<Vec<AttemptOutcome>>() {
            none if none.is_empty() => Ok(()),
            ended => self.send(Piece::Ended(ended)).await,
        }
    }

    /// Why output cannot be written now, in words that name the file.
    pub(crate) fn trouble(&self) -> Option<String> {
        self.shared.trouble.now()
    }

    /// Ends when output could not be written and the hub is to stop for it; gives the reason.
    pub(crate) fn fatal(&self) -> impl Future<Output = String> + Send + 'static {
        let shared = Arc::clone(&self.shared);
        async move { shared.trouble.fatal().await }
    }

    pub(crate) fn on_error(&self) -> OnWriteError {
        self.shared.trouble.on_error
    }

    /// Attempts that ended since the hub started and lost output.
    pub(crate) fn attempts_with_loss(&self) -> u64 {
        self.shared.trouble.attempts()
    }

    /// Bytes that came since the start and are kept nowhere: for errors of the disk, because too many attempts were open,
    /// or because their attempt or job was over. What is beyond the limits of a stream or of all is not counted here.
    pub(crate) fn bytes_lost(&self) -> u64 {
        self.shared.lost.load(Ordering::Relaxed)
    }

    /// The attempts at a task that printed something or have ended, ascending.
    pub async fn attempts(&self, task: TaskId) -> Result<Vec<u16>, KeepError> {
        let (store, index) = self.of(task.index);
        store.read(move |reader| Ok(reader.attempts(task.job.0, index)?)).await
    }

    /// How an attempt ended and how much of it was kept. `None`: it has not, or it printed nothing.
    pub async fn end(&self, key: Key) -> Result<Option<End>, KeepError> {
        let (store, key) = self.of_key(key);
        store.read(move |reader| Ok(reader.end(key)?)).await
    }

    /// How many bytes of an attempt can be read now.
    pub async fn size(&self, key: Key, streams: Streams) -> Result<u64, KeepError> {
        let (store, key) = self.of_key(key);
        let size = store.read(move |reader| {
            if let Some(end) = reader.end(key)? {
                return Ok(match streams {
                    Streams::Stdout => end.stdout.kept,
                    Streams::Stderr => end.stderr.kept,
                    Streams::Both => end.stdout.kept + end.stderr.kept,
                    Streams::Result => end.result.kept,
                });
            }
            let chunks = reader.read(key, streams).filter_map(Result::ok);
            Ok(chunks.map(|(_, bytes)| bytes.len() as u64).sum())
        });
        size.await
    }

    /// Goes through what an attempt printed, from its beginning.
    pub async fn cursor(&self, key: Key, streams: Streams) -> Result<Cursor, KeepError> {
        // Before the first look, so that nothing comes unnoticed in between.
        let (store, key) = self.of_key(key);
        let flushed = store.shared.flushed.subscribe();
        let follow = store.read(move |reader| Ok(reader.follow(key, streams))).await?;
        Ok(Cursor::new(store.clone(), follow, flushed))
    }

    /// Everything that was kept so far can be read afterwards.
    async fn flush_all(&self) -> Result<(), KeepError> {
        if self.shared.only_reads {
            return Ok(());
        }
        let (done, settled) = oneshot::channel();
        self.pass_on().await?;
        self.send(Piece::Settle(done)).await?;
        settled.await.map_err(|_| KeepError::Closed)
    }

    async fn send(&self, piece: Piece) -> Result<(), KeepError> {
        self.shared.pieces.send(piece).await.map_err(|_| KeepError::Closed)
    }

    /// Whatever a reader does is done away from the runtime's thread, on all that was kept by now.
    async fn read<T: Send + 'static>(
        &self,
        look: impl FnOnce(&Reader) -> Result<T, KeepError> + Send + 'static,
    ) -> Result<T, KeepError> {
        self.flush_all().await?;
        self.with_reader(|reader| {
            reader.refresh()?;
            look(reader)
        })
        .await
    }

    async fn with_reader<T: Send + 'static>(
        &self,
        look: impl FnOnce(&mut Reader) -> Result<T, KeepError> + Send + 'static,
    ) -> Result<T, KeepError> {
        let shared = Arc::clone(&self.shared);
        let looked = tokio::task::spawn_blocking(move || {
            let mut reader = shared.reader.lock().unwrap_or_else(PoisonError::into_inner);
            // Opened when first needed: many hubs are never asked.
            let reader = match &mut *reader {
                Some(reader) => reader,
                none => none.insert(Reader::open(&shared.dir)?),
            };
            look(reader)
        });
        looked.await.map_err(|_| KeepError::Closed)?
    }
}

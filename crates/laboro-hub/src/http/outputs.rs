//! Reads what tasks printed, away from the runtime's thread and a piece at a time, so that neither a large output
//! nor a slow reader holds anything up. Writing it is somebody else's part.

use bytes::Bytes;
use laboro_journal::outputs::{Error, Follow, Key, Reader, Streams};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::watch;

/// The store in one directory. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Outputs {
    shared: Arc<Shared>,
    appended: watch::Receiver<u64>,
}

#[derive(Debug)]
struct Shared {
    dir: PathBuf,
    /// Opened when first needed: many hubs are never asked.
    reader: Mutex<Option<Reader>>,
}

/// Read with one hand-over, unless a single record is larger.
const PIECE_BYTES: usize = 256 << 10;

impl Outputs {
    /// `appended` changes whenever something new was flushed to the store.
    pub fn new(dir: impl AsRef<Path>, appended: watch::Receiver<u64>) -> Outputs {
        let shared = Shared { dir: dir.as_ref().to_owned(), reader: Mutex::new(None) };
        Outputs { shared: Arc::new(shared), appended }
    }

    /// The attempts that printed something, ascending.
    pub(super) async fn attempts(&self, job: u32, task: u32) -> Result<Vec<u16>, Error> {
        self.look(move |reader| {
            reader.refresh()?;
            reader.attempts(job, task)
        })
        .await
    }

    /// How many bytes of an attempt can be read now.
    pub(super) async fn size(&self, key: Key, streams: Streams) -> Result<u64, Error> {
        self.look(move |reader| {
            reader.refresh()?;
            if let Some(end) = reader.end(key)? {
                return Ok(match streams {
                    Streams::Stdout => end.stdout.kept,
                    Streams::Stderr => end.stderr.kept,
                    Streams::Both => end.stdout.kept + end.stderr.kept,
                });
            }
            let mut size = 0;
            for chunk in reader.read(key, streams) {
                size += chunk?.1.len() as u64;
            }
            Ok(size)
        })
        .await
    }

    pub(super) async fn cursor(&self, key: Key, streams: Streams) -> Result<Cursor, Error> {
        let follow = self.look(move |reader| Ok(reader.follow(key, streams))).await?;
        Ok(Cursor { outputs: self.clone(), follow: Some(follow), trouble: None })
    }

    async fn look<T: Send + 'static>(
        &self,
        look: impl FnOnce(&mut Reader) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let shared = self.shared.clone();
        let looked = tokio::task::spawn_blocking(move || {
            let mut reader = shared.reader.lock().unwrap_or_else(PoisonError::into_inner);
            let reader = match &mut *reader {
                Some(reader) => reader,
                none => none.insert(Reader::open(&shared.dir)?),
            };
            look(reader)
        });
        match looked.await {
            Ok(looked) => looked,
            Err(error) => Err(Error::Io {
                path: self.shared.dir.clone(),
                source: std::io::Error::other(error),
            }),
        }
    }
}

/// A place in the output of one attempt.
pub(super) struct Cursor {
    outputs: Outputs,
    /// Away only while a look is being taken.
    follow: Option<Follow>,
    /// Met after the piece given last.
    trouble: Option<Error>,
}

impl Cursor {
    /// The next piece of what is there; empty when there is nothing more for now. What is damaged or missing is
    /// an error: whoever counts bytes must not be given others in its place.
    pub(super) async fn next(&mut self) -> Result<Bytes, Error> {
        if let Some(trouble) = self.trouble.take() {
            return Err(trouble);
        }
        let mut follow = self.follow.take().expect("a cursor is used by one at a time");
        let looked = self.outputs.look(move |reader| {
            let mut piece = Vec::new();
            while piece.len() < PIECE_BYTES {
                match follow.poll(reader) {
                    None => break,
                    Some(Ok((_, bytes))) => piece.extend_from_slice(&bytes),
                    Some(Err(error)) => return Ok((follow, piece, Some(error))),
                }
            }
            Ok((follow, piece, None))
        });
        let (follow, piece, trouble) = looked.await?;
        self.follow = Some(follow);
        match trouble {
            Some(trouble) if piece.is_empty() => return Err(trouble),
            // What was read before it is given out first.
            trouble => self.trouble = trouble,
        }
        Ok(piece.into())
    }

    /// Everything was given out, and nothing more will come.
    pub(super) fn is_over(&self) -> bool {
        self.follow.as_ref().is_some_and(|follow| follow.end().is_some())
    }

    /// To be marked before a look and waited for after it.
    pub(super) fn appended(&self) -> watch::Receiver<u64> {
        let mut appended = self.outputs.appended.clone();
        appended.mark_unchanged();
        appended
    }
}

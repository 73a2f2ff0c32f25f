//! A place in the output of one attempt.

use super::{KeepError, Outputs};
use bytes::Bytes;
use laboro_journal::outputs::{Follow, Stream};
use std::time::Duration;
use tokio::sync::watch;

#[derive(Debug)]
pub struct Cursor {
    outputs: Outputs,
    /// Away only while a look is being taken.
    follow: Option<Follow>,
    flushed: watch::Receiver<u64>,
    /// Read ahead, the next one last.
    ahead: Vec<(Stream, Bytes)>,
}

/// Read with one hand-over, unless a single record is larger.
const AHEAD_BYTES: usize = 256 << 10;

/// Someone who follows need not see more often than this that there is more.
const BREATH: Duration = Duration::from_millis(20);

impl Cursor {
    pub(super) fn new(outputs: Outputs, follow: Follow, flushed: watch::Receiver<u64>) -> Cursor {
        Cursor { outputs, follow: Some(follow), flushed, ahead: Vec::new() }
    }

    /// The next piece of what is there. `None`: nothing more for now. A damaged piece is an error in its
    /// place, and what follows it still comes.
    pub async fn next(&mut self) -> Result<Option<(Stream, Bytes)>, KeepError> {
        if self.ahead.is_empty() {
            // If an earlier look was given up halfway, the place is lost with it.
            let mut follow = self.follow.take().ok_or(KeepError::Closed)?;
            let look = move |reader: &mut laboro_journal::outputs::Reader| {
                let mut pieces = Vec::new();
                let mut bytes = 0;
                let mut trouble = None;
                while bytes < AHEAD_BYTES {
                    match follow.poll(reader) {
                        None => break,
                        Some(Ok((stream, piece))) => {
                            bytes += piece.len();
                            pieces.push((stream, Bytes::from(piece)));
                        }
                        Some(Err(error)) => {
                            trouble = Some(error);
                            break;
                        }
                    }
                }
                pieces.reverse();
                Ok((follow, pieces, trouble))
            };
            let (follow, pieces, trouble) = self.outputs.with_reader(look).await?;
            self.follow = Some(follow);
            self.ahead = pieces;
            if let Some(trouble) = trouble {
                if self.ahead.is_empty() {
                    return Err(trouble.into());
                }
                tracing::warn!("output left out: {trouble}");
            }
        }
        Ok(self.ahead.pop())
    }

    /// Waits for the next piece. `None`: the attempt has ended. One that prints nothing at all has no end
    /// here: whoever follows looks at the task too.
    pub async fn more(&mut self) -> Result<Option<(Stream, Bytes)>, KeepError> {
        loop {
            self.flushed.borrow_and_update();
            if let Some(piece) = self.next().await? {
                return Ok(Some(piece));
            }
            if self.is_over() {
                return Ok(None);
            }
            self.flushed.changed().await.map_err(|_| KeepError::Closed)?;
            tokio::time::sleep(BREATH).await;
        }
    }

    /// Everything was given out, and nothing more will come.
    pub fn is_over(&self) -> bool {
        self.ahead.is_empty() && self.follow.as_ref().is_some_and(|follow| follow.end().is_some())
    }
}

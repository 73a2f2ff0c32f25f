//! A place in the output of one attempt.

use super::{KeepError, Outputs};
use bytes::Bytes;
use laboro_journal::outputs::{self, Follow, Reader};
use std::time::Duration;
use tokio::sync::watch;

#[derive(Debug)]
pub struct Cursor {
    outputs: Outputs,
    /// Away only while a look is being taken.
    follow: Option<Follow>,
    flushed: watch::Receiver<u64>,
    /// Met after the piece given last.
    trouble: Option<outputs::Error>,
}

/// Read with one hand-over, unless a single record is larger.
const PIECE_BYTES: usize = 256 << 10;

/// Someone who follows need not see more often than this that there is more.
const BREATH: Duration = Duration::from_millis(20);

/// Without news the task itself is looked at: an attempt that was lost or printed nothing has no end here.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// Where nobody brings news.
const LOOK_SOON: Duration = Duration::from_millis(100);

impl Cursor {
    pub(super) fn new(outputs: Outputs, follow: Follow, flushed: watch::Receiver<u64>) -> Cursor {
        Cursor { outputs, follow: Some(follow), flushed, trouble: None }
    }

    /// The next piece of what is there; empty when there is nothing more for now. What is damaged or missing
    /// is an error: whoever counts bytes must not be given others in its place.
    pub async fn next(&mut self) -> Result<Bytes, KeepError> {
        // Before the look, so that nothing comes unnoticed after it.
        self.flushed.borrow_and_update();
        if let Some(trouble) = self.trouble.take() {
            return Err(trouble.into());
        }
        // If an earlier look was given up halfway, the place is lost with it.
        let mut follow = self.follow.take().ok_or(KeepError::Closed)?;
        let look = move |reader: &mut Reader| {
            let mut piece = Vec::new();
            while piece.len() < PIECE_BYTES {
                match follow.poll(reader) {
                    None => break,
                    Some(Ok((_, bytes))) => piece.extend_from_slice(&bytes),
                    Some(Err(error)) => return Ok((follow, piece, Some(error))),
                }
            }
            Ok((follow, piece, None))
        };
        let (follow, piece, trouble) = self.outputs.with_reader(look).await?;
        self.follow = Some(follow);
        match trouble {
            Some(trouble) if piece.is_empty() => return Err(trouble.into()),
            // What was read before it is given out first.
            trouble => self.trouble = trouble,
        }
        Ok(piece.into())
    }

    /// Waits until something was written since the last look, by whichever task.
    pub async fn news(&mut self) -> Result<(), KeepError> {
        self.flushed.changed().await.map_err(|_| KeepError::Closed)?;
        tokio::time::sleep(BREATH).await;
        Ok(())
    }

    /// How long to wait for news before looking again all the same.
    pub(crate) fn patience(&self) -> Duration {
        match self.outputs.shared.only_reads {
            true => LOOK_SOON,
            false => LOOK_AGAIN,
        }
    }

    /// Everything was given out, and nothing more will come. An attempt that was lost may have no end here:
    /// whoever follows looks at the task too.
    pub fn is_over(&self) -> bool {
        self.trouble.is_none() && self.follow.as_ref().is_some_and(|follow| follow.end().is_some())
    }
}

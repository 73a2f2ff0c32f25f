//! The bytes of one connection: read as they come, sent as they are taken, without ever waiting for one
//! while the other could go on.

use super::ConnectionLimits;
use bytes::{Buf, BytesMut};
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio_util::io::{poll_read_buf, poll_write_buf};

/// Read in one turn at most, so that a fast peer leaves the others their time.
pub(super) const TURN_BYTES: usize = 256 << 10;

/// Room made for a read: little at first, because most connections are quiet.
const READ_BYTES_MIN: usize = 2 << 10;
const READ_BYTES_MAX: usize = 64 << 10;

/// After the last word, for the peer to read it and close.
const GOODBYE: Duration = Duration::from_secs(1);

pub(super) struct PeerStream<I> {
    io: I,
    /// The beginning of what the session has not taken yet.
    pub input: BytesMut,
    unsent: BytesMut,
    needs_flush: bool,
    read_bytes: usize,
    /// It broke because the peer's machine does not answer any more.
    pub is_lost: bool,
}

impl<I: AsyncRead + AsyncWrite + Unpin> PeerStream<I> {
    pub fn new(io: I) -> PeerStream<I> {
        PeerStream {
            io,
            input: BytesMut::new(),
            unsent: BytesMut::new(),
            needs_flush: false,
            read_bytes: READ_BYTES_MIN,
            is_lost: false,
        }
    }

    pub fn say(&mut self, bytes: BytesMut) {
        match self.unsent.is_empty() {
            true => self.unsent = bytes,
            false => self.unsent.extend_from_slice(&bytes),
        }
    }

    pub fn unsent_bytes(&self) -> usize {
        self.unsent.len()
    }

    /// Also true while TLS holds something back that we gave it.
    pub fn has_unsent(&self) -> bool {
        !self.unsent.is_empty() || self.needs_flush
    }

    /// Sends what the peer takes now. Says how much that was.
    pub fn poll_send(&mut self, context: &mut Context<'_>) -> io::Result<usize> {
        let before = self.unsent.len();
        while self.unsent.has_remaining() {
            match poll_write_buf(Pin::new(&mut self.io), context, &mut self.unsent) {
                Poll::Ready(Ok(0)) => return Err(io::ErrorKind::WriteZero.into()),
                Poll::Ready(Ok(_)) => self.needs_flush = true,
                Poll::Ready(Err(error)) => {
                    self.is_lost |= error.kind() == io::ErrorKind::TimedOut;
                    return Err(error);
                }
                Poll::Pending => break,
            }
        }
        if self.needs_flush
            && let Poll::Ready(flushed) = Pin::new(&mut self.io).poll_flush(context)
        {
            flushed?;
            self.needs_flush = false;
        }
        Ok(before - self.unsent.len())
    }

    /// Reads all that is there, up to a turn's worth, and says how much; as an error if the connection
    /// has ended after that.
    pub fn poll_hear(&mut self, context: &mut Context<'_>) -> Result<usize, usize> {
        let mut heard = 0;
        while heard < TURN_BYTES {
            self.input.reserve(self.read_bytes);
            match poll_read_buf(Pin::new(&mut self.io), context, &mut self.input) {
                Poll::Ready(Ok(0)) => return Err(heard),
                Poll::Ready(Err(error)) => {
                    self.is_lost |= error.kind() == io::ErrorKind::TimedOut;
                    return Err(heard);
                }
                Poll::Ready(Ok(read)) => {
                    heard += read;
                    if read >= self.read_bytes {
                        self.read_bytes = (2 * self.read_bytes).min(READ_BYTES_MAX);
                    }
                }
                Poll::Pending => return Ok(heard),
            }
        }
        Ok(heard)
    }

    /// Sends the last words and closes. Says how many bytes still went out.
    pub async fn finish(&mut self, limits: &ConnectionLimits) -> usize {
        let before = self.unsent.len();
        let said = poll_fn(|context| match self.poll_send(context) {
            Err(error) => Poll::Ready(Err(error)),
            Ok(_) if !self.has_unsent() => Poll::Ready(Ok(())),
            Ok(_) => Poll::Pending,
        });
        let limit = Duration::from_millis(limits.write_ms).min(5 * GOODBYE);
        if let Ok(Ok(())) = tokio::time::timeout(limit, said).await {
            let _ = tokio::time::timeout(GOODBYE, self.part()).await;
        }
        before - self.unsent.len()
    }

    /// Closing with unread bytes would take our last words away from the peer, so they are read.
    async fn part(&mut self) -> io::Result<()> {
        self.io.shutdown().await?;
        let mut left = TURN_BYTES;
        while left > 0 {
            self.input.clear();
            self.input.reserve(READ_BYTES_MIN);
            match self.io.read_buf(&mut self.input).await? {
                0 => break,
                read => left = left.saturating_sub(read),
            }
        }
        Ok(())
    }
}

//! A stream that gives up on a peer that is slow to ask: the head of a request has to come in time, and whoever
//! is not known may not stay without one. Nodes that are known may, for they work meanwhile. A peer that takes
//! nothing is the affair of the stream below.

use crate::listen::DoorStats;
use crate::listen::stats::count;
use crate::transport::Stall;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

/// What the peer is waited for. Shared with whoever answers.
#[derive(Debug, Clone)]
pub(super) struct Pace(Arc<AtomicU8>);

const HURRY: u8 = 0;
const BUSY: u8 = 1;
const FREE: u8 = 2;

impl Pace {
    pub(super) fn new() -> Pace {
        Pace(Arc::new(AtomicU8::new(HURRY)))
    }

    /// A request is being answered.
    pub(super) fn busy(&self) {
        self.0.store(BUSY, Ordering::Relaxed);
    }

    /// The next request may come, from a known peer at any time.
    pub(super) fn next(&self, is_known: bool) {
        self.0.store(if is_known { FREE } else { HURRY }, Ordering::Relaxed);
    }
}

#[derive(Debug)]
pub(super) struct Paced<S> {
    stream: Stall<S>,
    pace: Pace,
    patience: Duration,
    stats: Arc<DoorStats>,
    /// For the head of a request, if it is waited for.
    deadline: Pin<Box<Sleep>>,
    hurries: bool,
}

impl<S> Paced<S> {
    pub(super) fn new(stream: S, pace: Pace, patience: Duration, stats: Arc<DoorStats>) -> Self {
        let deadline = Box::pin(tokio::time::sleep(patience));
        let stream = Stall::new(stream, patience);
        Paced { stream, pace, patience, stats, deadline, hurries: true }
    }

    pub(super) fn into_inner(self) -> S {
        self.stream.into_inner()
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Paced<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        if read.is_ready() {
            let bytes = buffer.filled().len() - before;
            count(&self.stats.bytes_in, bytes);
            // The head of a request has begun.
            let state = &self.pace.0;
            let _ = state.compare_exchange(FREE, HURRY, Ordering::Relaxed, Ordering::Relaxed);
            return read;
        }
        if self.pace.0.load(Ordering::Relaxed) != HURRY {
            self.hurries = false;
            return Poll::Pending;
        }
        // Nobody asks the next thing before it has all of the answer to the last.
        if !self.hurries || self.stream.waits() {
            self.hurries = true;
            let deadline = Instant::now() + self.patience;
            self.deadline.as_mut().reset(deadline);
        }
        ready!(self.deadline.as_mut().poll(context));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "no request came")))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Paced<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        if let Poll::Ready(Ok(written)) = written {
            count(&self.stats.bytes_out, written);
        }
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

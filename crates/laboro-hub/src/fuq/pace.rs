//! A stream that gives up on a peer that is slow to ask: the head of a request has to come in time, and whoever
//! is not known may not stay without one. Nodes that are known may, for they work meanwhile.

use crate::listen::DoorStats;
use crate::listen::stats::count;
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
    stream: S,
    pace: Pace,
    patience: Duration,
    stats: Arc<DoorStats>,
    deadline: Pin<Box<Sleep>>,
    hurries: bool,
    /// The peer has not taken anything since the deadline was set.
    stalls: bool,
}

impl<S> Paced<S> {
    pub(super) fn new(stream: S, pace: Pace, patience: Duration, stats: Arc<DoorStats>) -> Self {
        let deadline = Box::pin(tokio::time::sleep(patience));
        Paced { stream, pace, patience, stats, deadline, hurries: true, stalls: false }
    }

    pub(super) fn into_inner(self) -> S {
        self.stream
    }

    fn late<T>(&mut self, context: &mut Context<'_>, what: &'static str) -> Poll<io::Result<T>> {
        ready!(self.deadline.as_mut().poll(context));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, what)))
    }

    fn set_deadline(&mut self) {
        self.deadline.as_mut().reset(Instant::now() + self.patience);
    }

    fn judge<T>(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stalls = false;
            return written;
        }
        if !self.stalls {
            (self.stalls, self.hurries) = (true, false);
            self.set_deadline();
        }
        self.late(context, "the peer takes nothing of what is sent to it")
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
        if !self.hurries && !self.stalls {
            self.hurries = true;
            self.set_deadline();
        }
        self.late(context, "no request came")
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
        self.judge(context, written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.judge(context, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shut = Pin::new(&mut self.stream).poll_shutdown(context);
        self.judge(context, shut)
    }
}

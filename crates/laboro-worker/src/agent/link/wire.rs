//! One standing connection: what is to be said is written as there is room, what comes is read as there is
//! need. What waits to be said has a limit, beyond which nothing more is read.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, BytesMut};
use laboro_net::Linger;
use tokio::io::AsyncWrite;
use tokio::time::{Sleep, sleep};

use super::ByteStream;

pub(super) struct Wire {
    stream: Box<dyn ByteStream>,
    unsaid: BytesMut,
    needs_flush: bool,
    linger: Linger,
    was_full: bool,
    /// How long the last words may take.
    closing: Option<Pin<Box<Sleep>>>,
}

#[derive(Debug)]
pub(super) enum WireEvent {
    Heard,
    Room,
    Closed(String),
}

/// A peer that does not read what we say gets no chance to say more.
const UNSAID_MAX: usize = 1 << 20;

/// How much is read at a time.
const READ_BYTES: usize = 64 * 1024;

const LAST_WORDS: Duration = Duration::from_secs(2);

impl Wire {
    pub(super) fn new(stream: Box<dyn ByteStream>, linger: Linger) -> Wire {
        Wire {
            stream,
            unsaid: BytesMut::new(),
            needs_flush: false,
            linger,
            was_full: false,
            closing: None,
        }
    }

    pub(super) fn say(&mut self, bytes: BytesMut) {
        if self.is_closing() {
            return;
        }
        if self.unsaid.is_empty() {
            self.unsaid = bytes;
        } else {
            self.unsaid.extend_from_slice(&bytes);
        }
        self.was_full |= self.is_full();
    }

    pub(super) fn is_full(&self) -> bool {
        self.unsaid.len() > UNSAID_MAX
    }

    pub(super) fn close(&mut self) {
        self.closing.get_or_insert_with(|| Box::pin(sleep(LAST_WORDS)));
    }

    pub(super) fn is_closing(&self) -> bool {
        self.closing.is_some()
    }

    pub(super) fn poll(
        &mut self,
        context: &mut Context<'_>,
        input: &mut BytesMut,
    ) -> Poll<WireEvent> {
        let written = match self.write(context) {
            Poll::Ready(Err(error)) => return Poll::Ready(WireEvent::Closed(told(&error))),
            Poll::Ready(Ok(())) => true,
            Poll::Pending => false,
        };
        if self.was_full && !self.is_full() {
            self.was_full = false;
            return Poll::Ready(WireEvent::Room);
        }
        if let Some(end) = &mut self.closing {
            let is_over = end.as_mut().poll(context).is_ready();
            let mut is_shut =
                || written && Pin::new(&mut self.stream).poll_shutdown(context).is_ready();
            return match is_over || is_shut() {
                true => Poll::Ready(WireEvent::Closed("closed".into())),
                false => Poll::Pending,
            };
        }
        if self.is_full() {
            return Poll::Pending;
        }
        input.reserve(READ_BYTES);
        Poll::Ready(match ready!(self.linger.poll_read(context, &mut self.stream, input)) {
            Ok(0) => WireEvent::Closed("the hub closed the connection".into()),
            Ok(_) => WireEvent::Heard,
            Err(error) => WireEvent::Closed(told(&error)),
        })
    }

    /// Ready when all is said.
    fn write(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.unsaid.is_empty() {
            let written = ready!(Pin::new(&mut self.stream).poll_write(context, &self.unsaid))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.unsaid.advance(written);
            self.needs_flush = true;
        }
        if self.needs_flush {
            ready!(Pin::new(&mut self.stream).poll_flush(context))?;
            self.needs_flush = false;
            self.linger.said();
        }
        Poll::Ready(Ok(()))
    }
}

/// A hub that is killed says no goodbye, and what a library advises its users about that is nothing to people.
fn told(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => "the hub closed the connection without a reason".into(),
        _ => error.to_string(),
    }
}

//! How long a connection has been without a request. One is under way from the end of its head until the last of
//! its answer was handed over to be sent. Neither half a head nor a sign of life of HTTP/2 is a request.

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::Instant;

/// Of one connection.
#[derive(Clone, Debug)]
pub(super) struct Quiet(Arc<Mutex<OpenRequests>>);

#[derive(Debug)]
struct OpenRequests {
    under_way: usize,
    has_asked: bool,
    /// When the last one ended.
    since: Instant,
}

impl Quiet {
    pub(super) fn new() -> Quiet {
        Quiet(Arc::new(Mutex::new(OpenRequests {
            under_way: 0,
            has_asked: false,
            since: Instant::now(),
        })))
    }

    pub(super) fn interrupt(&self) -> UnderWay {
        let mut requests = self.requests();
        requests.under_way += 1;
        requests.has_asked = true;
        drop(requests);
        UnderWay(self.clone())
    }

    /// Whether it ever asked something, and since when it asks nothing. `None`: a request is under way.
    pub(super) fn since(&self) -> Option<(bool, Instant)> {
        let requests = self.requests();
        (requests.under_way == 0).then_some((requests.has_asked, requests.since))
    }

    /// Comes when there was no request for so long, counted from now at the earliest.
    pub(super) async fn lasts(&self, patience: Duration) {
        let begun = Instant::now();
        loop {
            let (under_way, since) = {
                let requests = self.requests();
                (requests.under_way, requests.since.max(begun))
            };
            let now = Instant::now();
            // One that is under way now ends no earlier than now.
            let due = if under_way == 0 { since } else { now } + patience;
            if under_way == 0 && due <= now {
                return;
            }
            tokio::time::sleep_until(due).await;
        }
    }

    fn requests(&self) -> MutexGuard<'_, OpenRequests> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request that is under way for as long as this is there.
pub(super) struct UnderWay(Quiet);

impl UnderWay {
    pub(super) fn until_sent(self, body: Body) -> QuietBody {
        QuietBody { body, _under_way: self }
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let mut requests = self.0.requests();
        requests.under_way -= 1;
        requests.since = Instant::now();
    }
}

/// The body of an answer.
pub(super) struct QuietBody {
    body: Body,
    _under_way: UnderWay,
}

impl HttpBody for QuietBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

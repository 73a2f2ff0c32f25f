//! What a client still sends when its answer is ready is taken and thrown away, for a while. Over HTTP/2 an answer
//! that comes before the end of the body takes the rest of the stream with it, and some clients then tell of
//! the cut instead of the answer.

use super::extract::drain;
use super::standing::TokenEnded;
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::Request;
use axum::http::Version;
use axum::middleware::Next;
use axum::response::Response;
use hyper::body::{Frame, SizeHint};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

/// More than this is not waited for: a large upload that is refused is cut off.
const LEFTOVER_BYTES_MAX: usize = 64 << 20;

pub(super) async fn take(request: Request, next: Next) -> Response {
    // An older connection carries one request at a time, and is closed in order by the server itself.
    if request.version() != Version::HTTP_2 || request.body().is_end_stream() {
        return next.run(request).await;
    }
    let (parts, body) = request.into_parts();
    let left = Lent(Arc::new(Mutex::new(body)));
    let response = next.run(Request::from_parts(parts, Body::new(left.clone()))).await;
    // Whose token ended has no time left.
    if response.extensions().get::<TokenEnded>().is_none() {
        drain(Body::new(left), LEFTOVER_BYTES_MAX).await;
    }
    response
}

/// A body that is still there when its reader is gone.
#[derive(Clone)]
struct Lent(Arc<Mutex<Body>>);

impl Lent {
    fn body(&self) -> MutexGuard<'_, Body> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HttpBody for Lent {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut *self.body()).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body().is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body().size_hint()
    }
}

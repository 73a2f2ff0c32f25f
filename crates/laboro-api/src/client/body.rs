//! Bodies on their way: whole ones, uploads fed piece by piece, downloads read piece by piece.

use super::connect::Sender;
use super::{ClientError, innermost};
use crate::ATTEMPT_HEADER;
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::Response;
use hyper::body::{Body, Frame, Incoming};
use hyper::header::CONTENT_RANGE;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::sync::mpsc;

/// What a request carries.
#[derive(Debug)]
pub(super) enum Outgoing {
    Whole(Option<Bytes>),
    Pieces(mpsc::Receiver<Bytes>),
}

impl Outgoing {
    pub(super) fn empty() -> Outgoing {
        Outgoing::Whole(None)
    }

    pub(super) fn whole(bytes: Bytes) -> Outgoing {
        Outgoing::Whole((!bytes.is_empty()).then_some(bytes))
    }
}

impl Body for Outgoing {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut *self {
            Outgoing::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Outgoing::Pieces(pieces) => {
                pieces.poll_recv(context).map(|piece| piece.map(|piece| Ok(Frame::data(piece))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Outgoing::Whole(None))
    }

    fn size_hint(&self) -> hyper::body::SizeHint {
        match self {
            Outgoing::Whole(bytes) => {
                hyper::body::SizeHint::with_exact(bytes.as_ref().map_or(0, Bytes::len) as u64)
            }
            Outgoing::Pieces(_) => hyper::body::SizeHint::default(),
        }
    }
}

/// The far end of a channel whose pieces make up a body. The body ends when the near end is dropped.
#[derive(Debug)]
pub struct Upload(mpsc::Receiver<Bytes>);

impl Upload {
    /// A few pieces wait at most, so that whoever makes them goes no faster than the hub takes them.
    pub fn new() -> (mpsc::Sender<Bytes>, Upload) {
        let (sender, receiver) = mpsc::channel(4);
        (sender, Upload(receiver))
    }

    pub(super) fn into_outgoing(self) -> Outgoing {
        Outgoing::Pieces(self.0)
    }
}

/// A body as it comes.
#[derive(Debug)]
pub struct Download {
    body: Incoming,
    address: String,
    content_range: Option<String>,
    attempt: Option<u16>,
    // Dropping it would end the connection.
    _sender: Sender,
}

impl Download {
    pub(super) fn new(response: Response<Incoming>, sender: Sender, address: String) -> Download {
        let range = response.headers().get(CONTENT_RANGE).and_then(|value| value.to_str().ok());
        let content_range = range.map(str::to_owned);
        let attempt = response.headers().get(ATTEMPT_HEADER).and_then(|value| value.to_str().ok());
        let attempt = attempt.and_then(|text| text.parse().ok());
        Download { body: response.into_body(), address, content_range, attempt, _sender: sender }
    }

    /// Which bytes these are, if a part was asked for: `bytes 0-99/1000`.
    pub fn content_range(&self) -> Option<&str> {
        self.content_range.as_deref()
    }

    /// Which attempt of a task printed it.
    pub fn attempt(&self) -> Option<u16> {
        self.attempt
    }

    pub(super) fn malformed(&self, why: &str) -> ClientError {
        ClientError::Malformed { address: self.address.clone(), why: why.to_owned() }
    }

    /// `None`: that was all.
    pub async fn next(&mut self) -> Result<Option<Bytes>, ClientError> {
        while let Some(frame) = self.body.frame().await {
            let frame = frame.map_err(|error| ClientError::Broken {
                address: self.address.clone(),
                why: innermost(&error),
            })?;
            if let Ok(data) = frame.into_data()
                && !data.is_empty()
            {
                return Ok(Some(data));
            }
        }
        Ok(None)
    }
}

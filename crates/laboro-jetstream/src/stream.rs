//! What is asked of a stream, and the few ways in which it can answer. NATS is one implementation; the tests
//! have another with the same rules and worse luck.

use bytes::Bytes;

pub(crate) trait Stream: Send {
    /// Stores a message right after the one of sequence `after`, or not at all, and gives its sequence.
    fn append(
        &mut self,
        after: u64,
        message: Bytes,
    ) -> impl Future<Output = Result<u64, NotStored>> + Send;

    fn bounds(&mut self) -> impl Future<Output = Result<Bounds, Unclear>> + Send;

    /// One message; `None` if the stream does not have it, or not any more.
    fn get(&mut self, sequence: u64)
    -> impl Future<Output = Result<Option<Bytes>, Unclear>> + Send;

    /// The newest message of the kind `End`.
    fn last_end(&mut self) -> impl Future<Output = Result<Option<(u64, Bytes)>, Unclear>> + Send;

    /// Some messages from this sequence on, in order and without a gap between them. The first may be a later
    /// one, if the one asked for is gone. Empty: there is nothing more at the moment.
    fn read(
        &mut self,
        from: u64,
    ) -> impl Future<Output = Result<Vec<(u64, Bytes)>, Unclear>> + Send;

    /// Forgets all messages before this sequence.
    fn trim(&mut self, before: u64) -> impl Future<Output = Result<(), Unclear>> + Send;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Bounds {
    pub first: u64,
    /// 0: nothing was ever stored.
    pub last: u64,
    pub messages: u64,
    pub bytes: u64,
}

#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum NotStored {
    /// Something else came after `after`, or is about to.
    #[error("{0}")]
    Refused(String),
    /// It may be stored, now or later, or never.
    #[error(transparent)]
    Unclear(#[from] Unclear),
}

/// No answer, or one that says nothing.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Unclear(pub String);

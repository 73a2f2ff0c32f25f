//! Batches as bytes and back. The format is our own and versioned: what the core calls things today is
//! not what a journal written last year has to be read with. Files and durability are `log`'s business.

mod bytes;
mod v1;

#[cfg(test)]
pub(crate) mod tests;

use laboro_core::{Event, FieldError, Time};

/// A buffer grown by one huge batch is not kept.
const BUFFER_BYTES_KEPT: usize = 4 << 20;

/// Why bytes are not a batch.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)]
pub enum RecordError {
    #[error("a record without a byte")]
    Empty,

    #[error("record format {version} is not known, only up to {}; use a newer laboro", v1::VERSION)]
    Version { version: u8 },

    #[error("byte {offset}: event kind {tag} is not known; use a newer laboro")]
    Tag { offset: usize, tag: u8 },

    #[error("byte {offset}: {error}")]
    Field { offset: usize, error: FieldError },

    #[error("byte {offset}: {problem}")]
    Malformed { offset: usize, problem: &'static str },
}

/// Writes records, one at a time, into a buffer that it keeps.
#[derive(Debug, Default)]
pub struct Encoder(v1::Encoder);

impl Encoder {
    /// Starts a record that can be read alone.
    pub fn begin(&mut self, at: Time) {
        self.0.begin(at, v1::Start::Alone);
    }

    /// Starts a record that is read after the one before it, and may point at what that holds: a
    /// snapshot of a million tasks has the script they share once.
    pub fn go_on(&mut self, at: Time) {
        self.0.begin(at, v1::Start::Continued);
    }

    /// Appends one event.
    pub fn event(&mut self, event: &Event) {
        self.0.event(event);
    }

    /// The record so far.
    pub fn bytes(&self) -> &[u8] {
        self.0.bytes()
    }

    /// A batch as one record.
    pub fn batch(&mut self, at: Time, events: &[Event]) -> &[u8] {
        self.begin(at);
        events.iter().for_each(|event| self.event(event));
        self.bytes()
    }
}

/// Reads records in the order they were written.
#[derive(Debug, Default)]
pub struct Decoder(v1::Held);

impl Decoder {
    /// The events come one by one, so that a large record is never there twice.
    pub fn record<'a>(&'a mut self, bytes: &'a [u8]) -> Result<Events<'a>, RecordError> {
        match bytes.first() {
            None => Err(RecordError::Empty),
            Some(&v1::VERSION) => {
                Ok(Events { from: v1::Decoder::new(&mut self.0, bytes)?, ended: false })
            }
            Some(&version) => Err(RecordError::Version { version }),
        }
    }
}

/// What is left of one record. Ends after the first error.
#[derive(Debug)]
pub struct Events<'a> {
    from: v1::Decoder<'a>,
    ended: bool,
}

impl Events<'_> {
    /// When all of the record's events happened.
    pub fn at(&self) -> Time {
        self.from.at()
    }
}

impl Iterator for Events<'_> {
    type Item = Result<Event, RecordError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended || self.from.is_at_end() {
            return None;
        }
        let event = self.from.event();
        self.ended = event.is_err();
        Some(event)
    }
}

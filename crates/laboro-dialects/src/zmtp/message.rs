//! One message: frames in order, each a slice of what was read. Keeping a frame keeps the buffer it was read into; code
//! that keeps messages for long calls `compact` first.

use bytes::{Bytes, BytesMut};
use smallvec::SmallVec;

/// The frames of one message, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Message(pub SmallVec<[Bytes; 4]>);

impl Message {
    /// Without frames.
    pub fn new() -> Message {
        Message::default()
    }

    /// Adds a frame at the end.
    pub fn push(&mut self, frame: impl Into<Bytes>) {
        self.0.push(frame.into());
    }

    /// How many frames there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// There are no frames. A message with one empty frame is not empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The frame at this place, counted from 0.
    pub fn get(&self, index: usize) -> Option<&Bytes> {
        self.0.get(index)
    }

    /// The frames, in order.
    pub fn iter(&self) -> std::slice::Iter<'_, Bytes> {
        self.0.iter()
    }

    /// The frames as `Connection::send` takes them.
    pub fn slices(&self) -> impl Iterator<Item = &[u8]> {
        self.0.iter().map(|frame| &frame[..])
    }

    /// How many bytes the frames hold together.
    pub fn bytes(&self) -> usize {
        self.0.iter().map(Bytes::len).sum()
    }

    /// About how much memory the message takes when it is kept `compact`.
    pub fn held_bytes(&self) -> usize {
        self.bytes() + size_of::<Message>() + self.len() * size_of::<Bytes>()
    }

    /// The same message in one piece of memory of its own.
    pub fn compact(&self) -> Message {
        let mut all = BytesMut::with_capacity(self.bytes());
        self.0.iter().for_each(|frame| all.extend_from_slice(frame));
        let mut all = all.freeze();
        Message(self.0.iter().map(|frame| all.split_to(frame.len())).collect())
    }
}

impl<F: Into<Bytes>> FromIterator<F> for Message {
    fn from_iter<I: IntoIterator<Item = F>>(frames: I) -> Message {
        Message(frames.into_iter().map(Into::into).collect())
    }
}

impl<'a> IntoIterator for &'a Message {
    type Item = &'a Bytes;
    type IntoIter = std::slice::Iter<'a, Bytes>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl IntoIterator for Message {
    type Item = Bytes;
    type IntoIter = smallvec::IntoIter<[Bytes; 4]>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

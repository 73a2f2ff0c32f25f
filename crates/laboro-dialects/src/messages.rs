//! Messages that were written one after the other, taken apart again. Both sides of a conversation do it.

use bytes::{Bytes, BytesMut};

/// Shows each to `take`. Nothing is left.
pub(crate) fn drain(say: &mut BytesMut, ends: &mut Vec<usize>, mut take: impl FnMut(&[u8])) {
    let mut from = 0;
    for end in ends.drain(..) {
        take(&say[from..end]);
        from = end;
    }
    say.clear();
}

/// Each for itself, without a copy. Nothing is left.
pub(crate) fn take(say: &mut BytesMut, ends: &mut Vec<usize>) -> Vec<Bytes> {
    let mut from = 0;
    let all = say.split().freeze();
    let cut = |end: usize| {
        let message = all.slice(from..end);
        from = end;
        message
    };
    ends.drain(..).map(cut).collect()
}

//! Takes whole messages off a stream of bytes. A body is taken as it comes and never allocated ahead of its
//! bytes; what it says is not looked at here.

use super::header::{HEADER_BYTES, MAGIC, MessageHeader, Numbering};
use bytes::{Buf, Bytes, BytesMut};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    pub(super) header: MessageHeader,
    pub(super) body: Bytes,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FrameError {
    #[error("a message begins with {0:#06x} instead of 0xc047: this is not fuq")]
    Magic(u16),
    #[error("there is no message type {0}")]
    Kind(u16),
    #[error("a message of {length} bytes is larger than the {most} that are taken")]
    TooLarge { length: u64, most: usize },
}

/// The next whole message, if all of it is there. `body_max` bounds what its body may have.
pub(super) fn take(
    input: &mut BytesMut,
    numbering: Numbering,
    body_max: usize,
) -> Result<Option<Frame>, FrameError> {
    let Some(mut head) = input.get(..HEADER_BYTES) else {
        return Ok(None);
    };
    let magic = head.get_u16_le();
    if magic != MAGIC {
        return Err(FrameError::Magic(magic));
    }
    let number = head.get_u8();
    let kind = numbering.kind(number).ok_or(FrameError::Kind(number.into()))?;
    let header = MessageHeader {
        kind,
        subtype: head.get_u8(),
        seq: head.get_u32_le(),
        padding: head.get_u32_le(),
        arg0: head.get_u32_le(),
    };
    let length = if header.has_body() { header.arg0 as usize } else { 0 };
    if length > body_max {
        return Err(FrameError::TooLarge { length: length as u64, most: body_max });
    }
    if input.len() - HEADER_BYTES < length {
        return Ok(None);
    }
    input.advance(HEADER_BYTES);
    Ok(Some(Frame { header, body: input.split_to(length).freeze() }))
}

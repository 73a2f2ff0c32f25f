//! The frame: one byte of flags, a length of one or eight bytes, the body. What is in the body is not known
//! here.

use super::error::ZmtpError;
use bytes::{BufMut, BytesMut};

pub(super) const MORE: u8 = 1;
const LONG: u8 = 2;
pub(super) const COMMAND: u8 = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FrameHeader {
    pub has_more: bool,
    pub is_command: bool,
    /// Of the header itself.
    pub bytes: usize,
    /// Of the body, as the peer claims.
    pub body: u64,
}

/// The header at the front, once it is whole.
#[inline]
pub(super) fn header(input: &[u8]) -> Result<Option<FrameHeader>, ZmtpError> {
    let Some(&flags) = input.first() else { return Ok(None) };
    // A command is never a part of something.
    if flags & !(MORE | LONG | COMMAND) != 0 || flags & (MORE | COMMAND) == MORE | COMMAND {
        return Err(ZmtpError::Flags(flags));
    }
    let (bytes, body) = if flags & LONG == 0 {
        let Some(&body) = input.get(1) else { return Ok(None) };
        (2, u64::from(body))
    } else {
        let Some(&body) = input[1..].first_chunk() else { return Ok(None) };
        (9, u64::from_be_bytes(body))
    };
    Ok(Some(FrameHeader {
        has_more: flags & MORE != 0,
        is_command: flags & COMMAND != 0,
        bytes,
        body,
    }))
}

#[inline]
pub(super) fn write_header(flags: u8, body: usize, say: &mut BytesMut) {
    match u8::try_from(body) {
        Ok(short) => say.put_slice(&[flags, short]),
        Err(_) => {
            say.put_u8(flags | LONG);
            say.put_u64(body as u64);
        }
    }
}

#[inline]
pub(super) fn write(flags: u8, body: &[u8], say: &mut BytesMut) {
    write_header(flags, body.len(), say);
    say.put_slice(body);
}

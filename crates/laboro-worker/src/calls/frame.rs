//! What a worker and a runner say to each other, as bytes. `spec/runner.md` says the same in words, with golden bytes
//! under `spec/golden/runner`. Opens and reads nothing.

use bytes::{Buf, BufMut, Bytes, BytesMut};

use laboro_core::CALL_BYTES_MAX;

/// Said by the worker: what the calls that follow are for, one call, and a call that shall not begin.
const PAYLOAD: u8 = 1;
const CALL: u8 = 2;
const SKIP: u8 = 3;

/// Said by the runner.
const READY: u8 = 1;
const DONE: u8 = 2;
const FAILED: u8 = 3;
const SKIPPED: u8 = 4;

/// A result with what stands around it.
const FRAME_BYTES_MAX: usize = CALL_BYTES_MAX + (64 << 10);

/// Words that go with a failure; more of them are cut.
const MESSAGE_BYTES_MAX: usize = 16 << 10;

/// One call, beside its payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Call<'a> {
    pub(crate) id: u64,
    pub(crate) job: u32,
    pub(crate) task: u32,
    /// In its array or its job, from 1.
    pub(crate) index: u32,
    pub(crate) attempt: u32,
    pub(crate) name: &'a str,
    pub(crate) value: Option<&'a [u8]>,
}

pub(crate) fn write_payload(to: &mut BytesMut, payload: &[u8]) {
    head(to, PAYLOAD, payload.len());
    to.put_slice(payload);
}

pub(crate) fn write_call(to: &mut BytesMut, call: &Call<'_>) {
    let value = call.value.unwrap_or_default();
    head(to, CALL, 32 + call.name.len() + value.len());
    to.put_u64_le(call.id);
    to.put_u32_le(call.job);
    to.put_u32_le(call.task);
    to.put_u32_le(call.index);
    to.put_u32_le(call.attempt);
    to.put_u32_le(u32::from(call.value.is_some()));
    to.put_u32_le(call.name.len() as u32);
    to.put_slice(call.name.as_bytes());
    to.put_slice(value);
}

pub(crate) fn write_skip(to: &mut BytesMut, id: u64) {
    head(to, SKIP, 8);
    to.put_u64_le(id);
}

fn head(to: &mut BytesMut, kind: u8, length: usize) {
    to.reserve(5 + length);
    to.put_u32_le(1 + length as u32);
    to.put_u8(kind);
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// It takes calls now, and so many beyond the one under way. What it is, in words.
    Ready {
        ahead: u32,
        words: String,
    },
    Done {
        id: u64,
        result: Bytes,
    },
    Failed {
        id: u64,
        code: i32,
        message: String,
        result: Bytes,
    },
    /// It did not begin.
    Skipped {
        id: u64,
    },
}

/// What no runner says.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BadAnswer {
    #[error("the runner answered with {0} bytes; a result has at most {CALL_BYTES_MAX}")]
    TooLarge(usize),
    #[error("the runner answered with what the protocol does not have (kind {0})")]
    Unknown(u8),
    #[error("the runner's answer is cut short")]
    Short,
    #[error("the runner speaks version {0} of the protocol; this worker speaks 1")]
    Version(u32),
}

/// Takes the first whole answer off the front of what was read.
pub(crate) fn take_answer(from: &mut BytesMut) -> Result<Option<Answer>, BadAnswer> {
    let Some(length) = from.first_chunk::<4>() else { return Ok(None) };
    let length = u32::from_le_bytes(*length) as usize;
    if length > FRAME_BYTES_MAX {
        return Err(BadAnswer::TooLarge(length));
    }
    if from.len() < 4 + length {
        return Ok(None);
    }
    from.advance(4);
    let mut body = from.split_to(length).freeze();
    let kind = number(&mut body, Bytes::try_get_u8)?;
    Ok(Some(match kind {
        READY => {
            let version = number(&mut body, Bytes::try_get_u32_le)?;
            if version != 1 {
                return Err(BadAnswer::Version(version));
            }
            let ahead = number(&mut body, Bytes::try_get_u32_le)?;
            Answer::Ready { ahead, words: String::from_utf8_lossy(&body).into_owned() }
        }
        DONE => Answer::Done { id: number(&mut body, Bytes::try_get_u64_le)?, result: body },
        FAILED => {
            let id = number(&mut body, Bytes::try_get_u64_le)?;
            let code = number(&mut body, Bytes::try_get_i32_le)?;
            let length = number(&mut body, Bytes::try_get_u32_le)? as usize;
            if length > body.len() {
                return Err(BadAnswer::Short);
            }
            let words = body.split_to(length);
            let words = String::from_utf8_lossy(&words[..length.min(MESSAGE_BYTES_MAX)]);
            Answer::Failed { id, code, message: words.into_owned(), result: body }
        }
        SKIPPED => Answer::Skipped { id: number(&mut body, Bytes::try_get_u64_le)? },
        kind => return Err(BadAnswer::Unknown(kind)),
    }))
}

fn number<N, E>(
    from: &mut Bytes,
    take: impl FnOnce(&mut Bytes) -> Result<N, E>,
) -> Result<N, BadAnswer> {
    take(from).map_err(|_| BadAnswer::Short)
}

#[cfg(test)]
mod tests;

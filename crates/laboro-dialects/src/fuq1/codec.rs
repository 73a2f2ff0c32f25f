//! Messages of version 1, both ways. A JOB is one task.

use crate::fuq2::{FrameError, JobStatusUpdate, MAGIC, PackError, PackReader, Task};
use bytes::{Buf, BufMut, BytesMut};

const HEADER_BYTES: usize = 12;
const OK: u16 = 1;
const JOB: u16 = 2;
const UPDATE: u16 = 3;
const STOP: u16 = 4;
/// The originals have none; this is the next free number.
const ERROR: u16 = 5;
/// The only error there is: cannot run the job.
pub(super) const CANNOT_RUN_JOB: u32 = 1;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Message {
    Ok(u32),
    Job(Task),
    Update(JobStatusUpdate),
    Stop(u32),
    Error(u32),
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum CodecError {
    #[error(transparent)]
    Frame(#[from] FrameError),
    #[error("the body of message type {kind}: {error}")]
    Body { kind: u16, error: PackError },
}

impl Message {
    pub(super) fn write(&self, say: &mut BytesMut) {
        let at = say.len();
        let (kind, number) = match self {
            Message::Ok(n) => (OK, *n),
            Message::Job(_) => (JOB, 0),
            Message::Update(_) => (UPDATE, 0),
            Message::Stop(n) => (STOP, *n),
            Message::Error(code) => (ERROR, *code),
        };
        say.put_u16_le(MAGIC);
        say.put_u16_le(kind);
        say.put_u32_le(0);
        say.put_u32_le(number);
        let start = say.len();
        match self {
            Message::Job(task) => task.write(say),
            Message::Update(update) => update.write(say),
            Message::Ok(_) | Message::Stop(_) | Message::Error(_) => return,
        }
        let length = u32::try_from(say.len() - start).expect("messages stay far below 4 GiB");
        say[at + 8..at + 12].copy_from_slice(&length.to_le_bytes());
    }

    /// The next whole message, if all of it is there.
    pub(super) fn take(
        input: &mut BytesMut,
        body_max: usize,
    ) -> Result<Option<Message>, CodecError> {
        let Some(mut head) = input.get(..HEADER_BYTES) else { return Ok(None) };
        let magic = head.get_u16_le();
        if magic != MAGIC {
            return Err(FrameError::Magic(magic).into());
        }
        let kind = head.get_u16_le();
        head.advance(4);
        let arg0 = head.get_u32_le();
        let message = match kind {
            OK => Message::Ok(arg0),
            STOP => Message::Stop(arg0),
            ERROR => Message::Error(arg0),
            JOB | UPDATE => return Message::take_body(input, kind, arg0 as usize, body_max),
            other => return Err(FrameError::Kind(other).into()),
        };
        input.advance(HEADER_BYTES);
        Ok(Some(message))
    }

    fn take_body(
        input: &mut BytesMut,
        kind: u16,
        length: usize,
        most: usize,
    ) -> Result<Option<Message>, CodecError> {
        if length > most {
            return Err(FrameError::TooLarge { length: length as u64, most }.into());
        }
        if input.len() - HEADER_BYTES < length {
            return Ok(None);
        }
        input.advance(HEADER_BYTES);
        let body = input.split_to(length).freeze();
        let mut from = PackReader::new(&body);
        // A body of nothing is a zero value.
        let message = match (kind, body.is_empty()) {
            (JOB, true) => Ok(Message::Job(Task::default())),
            (JOB, false) => Task::read(&mut from).map(Message::Job),
            (_, true) => Ok(Message::Update(JobStatusUpdate::default())),
            (_, false) => JobStatusUpdate::read(&mut from).map(Message::Update),
        };
        message.map(Some).map_err(|error| CodecError::Body { kind, error })
    }
}

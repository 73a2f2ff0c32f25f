//! Messages out of frames: pieces are put together, control frames come between them, and nothing is kept
//! beyond the largest message that is taken.

use super::frame::{self, Broken, Opcode};
use bytes::{Buf, BytesMut};

#[derive(Debug)]
pub(super) struct Messages {
    /// Whether the peer is a client.
    is_masked: bool,
    bytes_max: usize,
    /// The beginning of a message in pieces.
    partial: Option<BytesMut>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    Message(BytesMut),
    Ping(BytesMut),
    Pong,
    /// With its code, if it says one.
    Close(Option<u16>),
}

impl Messages {
    pub(super) fn new(is_masked: bool, bytes_max: usize) -> Messages {
        Messages { is_masked, bytes_max, partial: None }
    }

    /// A new connection.
    pub(super) fn restart(&mut self) {
        self.partial = None;
    }

    /// The next one, if all of it is there.
    pub(super) fn next(&mut self, input: &mut BytesMut) -> Result<Option<Arrival>, Broken> {
        while let Some(head) = frame::head(input, self.is_masked)? {
            let before = match (head.opcode, &self.partial) {
                (Opcode::Text, _) => return Err(Broken::Text),
                (Opcode::Binary, Some(_)) | (Opcode::Continuation, None) => {
                    return Err(Broken::Order);
                }
                (Opcode::Continuation, Some(partial)) => partial.len() as u64,
                _ => 0,
            };
            let bytes = before.saturating_add(head.payload_bytes);
            if bytes > self.bytes_max as u64 && !head.opcode.is_control() {
                return Err(Broken::TooLarge { bytes, most: self.bytes_max });
            }
            let payload_bytes = head.payload_bytes as usize;
            if input.len() - head.head_bytes < payload_bytes {
                return Ok(None);
            }
            input.advance(head.head_bytes);
            let mut payload = input.split_to(payload_bytes);
            if let Some(mask) = head.mask {
                frame::apply(mask, &mut payload);
            }
            match head.opcode {
                Opcode::Ping => return Ok(Some(Arrival::Ping(payload))),
                Opcode::Pong => return Ok(Some(Arrival::Pong)),
                Opcode::Close => {
                    let code = payload.first_chunk().map(|code| u16::from_be_bytes(*code));
                    return Ok(Some(Arrival::Close(code)));
                }
                Opcode::Binary | Opcode::Text | Opcode::Continuation => {}
            }
            let whole = match self.partial.take() {
                None => payload,
                Some(mut partial) => {
                    partial.extend_from_slice(&payload);
                    partial
                }
            };
            if head.is_last {
                return Ok(Some(Arrival::Message(whole)));
            }
            self.partial = Some(whole);
        }
        Ok(None)
    }
}

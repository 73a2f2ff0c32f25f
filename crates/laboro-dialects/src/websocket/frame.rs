//! One frame: its head is read and written here, its payload masked. What a row of frames means is not known.

use bytes::{BufMut, BytesMut};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Opcode {
    Continuation,
    Text,
    Binary,
    Close,
    Ping,
    Pong,
}

impl Opcode {
    fn of(number: u8) -> Option<Opcode> {
        Some(match number {
            0 => Opcode::Continuation,
            1 => Opcode::Text,
            2 => Opcode::Binary,
            8 => Opcode::Close,
            9 => Opcode::Ping,
            10 => Opcode::Pong,
            _ => return None,
        })
    }

    fn number(self) -> u8 {
        match self {
            Opcode::Continuation => 0,
            Opcode::Text => 1,
            Opcode::Binary => 2,
            Opcode::Close => 8,
            Opcode::Ping => 9,
            Opcode::Pong => 10,
        }
    }

    pub(super) fn is_control(self) -> bool {
        matches!(self, Opcode::Close | Opcode::Ping | Opcode::Pong)
    }
}

pub(super) type Mask = [u8; 4];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) is_last: bool,
    pub(super) opcode: Opcode,
    pub(super) mask: Option<Mask>,
    pub(super) payload_bytes: u64,
    pub(super) head_bytes: usize,
}

/// What no websocket says.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Broken {
    #[error("a frame has bits set that mean nothing here")]
    Reserved,
    #[error("there is no frame type {0}")]
    Opcode(u8),
    #[error("a frame is masked that must not be, or the other way round")]
    Masking,
    #[error("a control frame is in pieces or has {0} bytes")]
    Control(u64),
    #[error("a piece belongs to no message, or a message begins within another")]
    Order,
    #[error("a message is text")]
    Text,
    #[error("a message of {bytes} bytes is larger than the {most} that are taken")]
    TooLarge { bytes: u64, most: usize },
}

impl Broken {
    /// What the close frame says.
    pub(super) fn code(&self) -> u16 {
        match self {
            Broken::Text => 1003,
            Broken::TooLarge { .. } => 1009,
            _ => 1002,
        }
    }
}

/// A payload of a control frame is no larger.
pub(super) const CONTROL_BYTES_MAX: u64 = 125;

/// `None`: the head is not all there yet.
pub(super) fn head(input: &[u8], is_masked: bool) -> Result<Option<Head>, Broken> {
    let [first, second, rest @ ..] = input else { return Ok(None) };
    if first & 0x70 != 0 {
        return Err(Broken::Reserved);
    }
    let opcode = Opcode::of(first & 0x0F).ok_or(Broken::Opcode(first & 0x0F))?;
    let is_last = first & 0x80 != 0;
    if (second & 0x80 != 0) != is_masked {
        return Err(Broken::Masking);
    }
    let (payload_bytes, rest, more) = match second & 0x7F {
        126 => match rest.split_first_chunk() {
            Some((length, rest)) => (u64::from(u16::from_be_bytes(*length)), rest, 2),
            None => return Ok(None),
        },
        127 => match rest.split_first_chunk() {
            Some((length, rest)) => (u64::from_be_bytes(*length), rest, 8),
            None => return Ok(None),
        },
        length => (u64::from(length), rest, 0),
    };
    if opcode.is_control() && (!is_last || payload_bytes > CONTROL_BYTES_MAX) {
        return Err(Broken::Control(payload_bytes));
    }
    let mask = match (is_masked, rest.first_chunk::<4>()) {
        (false, _) => None,
        (true, Some(mask)) => Some(*mask),
        (true, None) => return Ok(None),
    };
    let head_bytes = 2 + more + if is_masked { 4 } else { 0 };
    Ok(Some(Head { is_last, opcode, mask, payload_bytes, head_bytes }))
}

/// A whole message, or a control frame.
pub(super) fn write(to: &mut BytesMut, opcode: Opcode, payload: &[u8], mask: Option<Mask>) {
    let masked = if mask.is_some() { 0x80 } else { 0 };
    to.reserve(payload.len() + 14);
    to.put_u8(0x80 | opcode.number());
    match payload.len() {
        length @ 0..126 => to.put_u8(masked | length as u8),
        length @ 126..65_536 => {
            to.put_u8(masked | 126);
            to.put_u16(length as u16);
        }
        length => {
            to.put_u8(masked | 127);
            to.put_u64(length as u64);
        }
    }
    if let Some(mask) = mask {
        to.put_slice(&mask);
    }
    let at = to.len();
    to.put_slice(payload);
    if let Some(mask) = mask {
        apply(mask, &mut to[at..]);
    }
}

/// Masks and unmasks.
pub(super) fn apply(mask: Mask, payload: &mut [u8]) {
    let wide = u64::from_ne_bytes([
        mask[0], mask[1], mask[2], mask[3], mask[0], mask[1], mask[2], mask[3],
    ]);
    let (eights, rest) = payload.as_chunks_mut::<8>();
    for eight in eights {
        *eight = (u64::from_ne_bytes(*eight) ^ wide).to_ne_bytes();
    }
    rest.iter_mut().zip(mask.iter().cycle()).for_each(|(byte, mask)| *byte ^= mask);
}

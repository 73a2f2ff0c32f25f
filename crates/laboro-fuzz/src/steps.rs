//! A conversation as bytes: what happens, one step after the other. Any bytes are a conversation, and a small
//! change of the bytes is a small change of the conversation, so that a fuzzer can find its way.

/// One thing that happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step<'a> {
    pub deed: Deed,
    /// Which peer, or what else there is to choose.
    pub which: u8,
    pub payload: &'a [u8],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    /// The peer says these bytes, all at once.
    Say,
    /// The peer says these bytes one by one.
    SayInPieces,
    /// The peer says these bytes as one message of whatever carries the dialect.
    SayMessage,
    /// Time passes: as many milliseconds as the payload spells.
    Wait,
    /// The connection is lost, and there is a new one.
    Reconnect,
    /// Something happens on this side: a command of a person, or news of a task.
    Act,
    /// This side stops.
    Stop,
    /// The peer connects with the handshake of its carrier behind it.
    Greet,
}

const DEEDS: [Deed; 8] = [
    Deed::Say,
    Deed::SayInPieces,
    Deed::SayMessage,
    Deed::Wait,
    Deed::Reconnect,
    Deed::Act,
    Deed::Stop,
    Deed::Greet,
];

/// A conversation has an end, so that no input takes for ever.
const STEPS_MAX: usize = 256;

/// The deed and which, the length of the payload in two bytes, the payload. The last one may be cut off.
pub(crate) fn read(bytes: &[u8]) -> impl Iterator<Item = Step<'_>> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let (&first, after) = rest.split_first()?;
        let (length, after) = match after.split_first_chunk() {
            Some((length, after)) => (usize::from(u16::from_le_bytes(*length)), after),
            None => (after.len(), after),
        };
        let payload;
        (payload, rest) = after.split_at(length.min(after.len()));
        Some(Step { deed: DEEDS[usize::from(first & 7)], which: first >> 3, payload })
    })
    .take(STEPS_MAX)
}

/// The bytes of a conversation, for whoever makes the first ones by hand.
pub fn write(steps: &[(Deed, u8, &[u8])]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (deed, which, payload) in steps {
        let deed = DEEDS.iter().position(|known| known == deed).unwrap_or(0);
        let payload = &payload[..payload.len().min(usize::from(u16::MAX))];
        bytes.push(u8::try_from(deed).unwrap_or(0) | which << 3);
        bytes.extend_from_slice(&(payload.len() as u16).to_le_bytes());
        bytes.extend_from_slice(payload);
    }
    bytes
}

/// A number out of a payload, little end first.
pub(crate) fn number(payload: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    let length = payload.len().min(8);
    bytes[..length].copy_from_slice(&payload[..length]);
    u64::from_le_bytes(bytes)
}

//! The words of the protocol itself: READY, ERROR, PING and PONG, and the metadata in READY. Which of them may come
//! when is decided by the connection.

use super::error::{ZmtpError, shown};
use super::{SocketType, frame};
use bytes::{BufMut, Bytes, BytesMut};

const IDENTITY_BYTES_MAX: usize = 255;
const CONTEXT_BYTES_MAX: usize = 16;

/// The name of a command and what follows it.
pub(super) fn split(body: &[u8]) -> Result<(&[u8], &[u8]), ZmtpError> {
    let malformed = |why| Err(ZmtpError::Malformed { command: "command", why });
    match body.split_first() {
        None => malformed("it is empty"),
        Some((0, _)) => malformed("its name is empty"),
        Some((&len, rest)) => match rest.split_at_checked(usize::from(len)) {
            Some(parts) => Ok(parts),
            None => malformed("its name is longer than itself"),
        },
    }
}

pub(super) fn other(name: &[u8], wanted: &'static str) -> ZmtpError {
    ZmtpError::OtherCommand { name: shown(name), wanted }
}

/// What a peer tells about itself.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Metadata {
    pub socket: SocketType,
    pub identity: Bytes,
}

impl Metadata {
    pub fn bytes(&self) -> usize {
        let socket = 1 + 11 + 4 + self.socket.name().len();
        let identity =
            if self.socket.tells_identity() { 1 + 8 + 4 + self.identity.len() } else { 0 };
        socket + identity
    }

    pub fn write(&self, say: &mut impl BufMut) {
        let mut put = |name: &str, value: &[u8]| {
            say.put_u8(u8::try_from(name.len()).expect("names of properties are short"));
            say.put_slice(name.as_bytes());
            say.put_u32(u32::try_from(value.len()).expect("identities are short"));
            say.put_slice(value);
        };
        put("Socket-Type", self.socket.name().as_bytes());
        if self.socket.tells_identity() {
            put("Identity", &self.identity);
        }
    }

    pub fn read(command: &'static str, mut input: &[u8]) -> Result<Metadata, ZmtpError> {
        let malformed = |why| ZmtpError::Malformed { command, why };
        let (mut socket, mut identity) = (None, &b""[..]);
        while !input.is_empty() {
            let (name, value);
            (name, value, input) = property(input).ok_or(malformed("a property is cut off"))?;
            if name.eq_ignore_ascii_case(b"Socket-Type") {
                let known = SocketType::from_name(value);
                socket = Some(known.ok_or_else(|| ZmtpError::UnknownSocket(shown(value)))?);
            } else if name.eq_ignore_ascii_case(b"Identity") {
                identity = value;
            }
        }
        if identity.len() > IDENTITY_BYTES_MAX {
            return Err(malformed("its identity is longer than 255 bytes"));
        }
        let socket = socket.ok_or(malformed("it has no Socket-Type"))?;
        Ok(Metadata { socket, identity: Bytes::copy_from_slice(identity) })
    }
}

/// One property off the front: its name, its value, what follows.
fn property(input: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let (&len, rest) = input.split_first()?;
    let (name, rest) = rest.split_at_checked(usize::from(len))?;
    let (&len, rest) = rest.split_first_chunk()?;
    let len = usize::try_from(u32::from_be_bytes(len)).ok()?;
    let (value, rest) = rest.split_at_checked(len)?;
    Some((name, value, rest))
}

pub(super) fn write_ready(metadata: &Metadata, say: &mut BytesMut) {
    frame::write_header(frame::COMMAND, 6 + metadata.bytes(), say);
    say.put_slice(b"\x05READY");
    metadata.write(say);
}

/// The reason is one of our own, under 256 bytes.
pub(super) fn write_error(reason: &str, say: &mut BytesMut) {
    frame::write_header(frame::COMMAND, 7 + reason.len(), say);
    say.put_slice(b"\x05ERROR");
    say.put_u8(u8::try_from(reason.len()).expect("reasons are short"));
    say.put_slice(reason.as_bytes());
}

pub(super) fn read_error(rest: &[u8]) -> ZmtpError {
    match rest.split_first() {
        Some((&len, reason)) if usize::from(len) == reason.len() => {
            ZmtpError::Refused(shown(reason))
        }
        _ => ZmtpError::Malformed { command: "ERROR", why: "its reason has another length" },
    }
}

/// Asks for a PONG, and that the peer give up when it hears nothing for `ttl_ms`.
pub(super) fn ping(ttl_ms: u64) -> [u8; 7] {
    let tenths = u16::try_from(ttl_ms / 100).unwrap_or(u16::MAX).to_be_bytes();
    [4, b'P', b'I', b'N', b'G', tenths[0], tenths[1]]
}

/// How long the sender may be silent, in milliseconds, and what it wants to hear again.
pub(super) fn read_ping(rest: &[u8]) -> Result<(u64, &[u8]), ZmtpError> {
    match rest.split_first_chunk() {
        Some((_, context)) if context.len() > CONTEXT_BYTES_MAX => {
            Err(ZmtpError::Malformed { command: "PING", why: "its context is over 16 bytes" })
        }
        Some((&tenths, context)) => Ok((u64::from(u16::from_be_bytes(tenths)) * 100, context)),
        None => Err(ZmtpError::Malformed { command: "PING", why: "it has no time to live" }),
    }
}

/// A PONG with this context, as a command without its frame.
pub(super) fn pong(context: &[u8]) -> smallvec::SmallVec<[u8; 24]> {
    let mut body = smallvec::SmallVec::from_slice(b"\x04PONG");
    body.extend_from_slice(context);
    body
}

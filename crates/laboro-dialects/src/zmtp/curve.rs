//! CURVE: both sides prove that they have the secret of a public key, and everything after is sealed with
//! keys of this connection alone. Boxes, nonces and sealed frames are here; the two handshakes are beside.

mod client;
mod server;

pub(super) use client::CurveClient;
pub(super) use server::CurveServer;

use super::error::ZmtpError;
use super::frame;
use bytes::{Buf, BufMut, Bytes, BytesMut};
use crypto_box::aead::AeadInPlace;
use crypto_box::{Nonce, SalsaBox, Tag};

const TAG_BYTES: usize = 16;
const HELLO_BYTES: usize = 200;
const WELCOME_BYTES: usize = 168;
const COOKIE_BYTES: usize = 96;
/// A nonce, the box of two public keys.
const VOUCH_BYTES: usize = 16 + TAG_BYTES + 64;
const MESSAGE_NAME: &[u8; 8] = b"\x07MESSAGE";

/// Which side of the connection this is: their boxes never have the same nonce.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Client,
    Server,
}

impl Role {
    fn message_nonce(self) -> &'static [u8; 16] {
        match self {
            Role::Client => b"CurveZMQMESSAGEC",
            Role::Server => b"CurveZMQMESSAGES",
        }
    }

    fn peer(self) -> Role {
        match self {
            Role::Client => Role::Server,
            Role::Server => Role::Client,
        }
    }
}

/// The counted nonces of both sides, from the first command to the last message.
#[derive(Debug, Default)]
struct Nonces {
    ours: u64,
    theirs: Option<u64>,
}

impl Nonces {
    fn next(&mut self) -> u64 {
        self.ours += 1;
        self.ours
    }

    /// A number that does not grow is a frame played again, or a peer that would give its key away.
    fn check(&self, number: u64) -> Result<(), ZmtpError> {
        match self.theirs {
            Some(last) if number <= last => Err(ZmtpError::Nonce { number, last }),
            _ => Ok(()),
        }
    }

    fn heard(&mut self, number: u64) {
        self.theirs = Some(number);
    }
}

/// Seals and opens the frames of one connection, once both sides have proven themselves.
pub(super) struct Seal {
    role: Role,
    key: SalsaBox,
    numbers: Nonces,
}

impl Seal {
    /// By how much a sealed frame is longer than what is in it: name, nonce, tag and flags.
    pub const OVERHEAD: usize = MESSAGE_NAME.len() + 8 + TAG_BYTES + 1;
    const MORE: u8 = 1;
    const COMMAND: u8 = 2;

    /// One frame, written as the body of a message frame: so does libzmq, and it takes nothing else.
    pub fn write(&mut self, flags: u8, body: &[u8], say: &mut BytesMut) {
        let sealed_flags = match flags {
            frame::MORE => Seal::MORE,
            frame::COMMAND => Seal::COMMAND,
            _ => 0,
        };
        let number = self.numbers.next();
        frame::write_header(0, Seal::OVERHEAD + body.len(), say);
        say.put_slice(MESSAGE_NAME);
        say.put_u64(number);
        seal(&self.key, counted(self.role.message_nonce(), number), say, |say| {
            say.put_u8(sealed_flags);
            say.put_slice(body);
        });
    }

    /// Opens a frame in place: whether more frames follow, whether it is a command, and what was in it.
    pub fn open(&mut self, mut sealed: BytesMut) -> Result<(bool, bool, Bytes), ZmtpError> {
        let malformed = |why| ZmtpError::Malformed { command: "MESSAGE", why };
        if !sealed.starts_with(MESSAGE_NAME) {
            return Err(malformed("it is not sealed"));
        }
        sealed.advance(MESSAGE_NAME.len());
        if sealed.len() < Seal::OVERHEAD - MESSAGE_NAME.len() {
            return Err(malformed("it is too short"));
        }
        let number = sealed.get_u64();
        self.numbers.check(number)?;
        let nonce = counted(self.role.peer().message_nonce(), number);
        open(&self.key, nonce, &mut sealed, "MESSAGE")?;
        self.numbers.heard(number);
        sealed.advance(TAG_BYTES);
        let flags = sealed.get_u8();
        if flags & !(Seal::MORE | Seal::COMMAND) != 0 || flags == Seal::MORE | Seal::COMMAND {
            return Err(ZmtpError::Flags(flags));
        }
        let body = if sealed.is_empty() { Bytes::new() } else { sealed.freeze() };
        Ok((flags & Seal::MORE != 0, flags & Seal::COMMAND != 0, body))
    }
}

fn counted(prefix: &[u8; 16], number: u64) -> Nonce {
    let mut nonce = [0; 24];
    nonce[..16].copy_from_slice(prefix);
    nonce[16..].copy_from_slice(&number.to_be_bytes());
    nonce.into()
}

fn random_nonce(prefix: &[u8; 8], tail: &[u8; 16]) -> Nonce {
    let mut nonce = [0; 24];
    nonce[..8].copy_from_slice(prefix);
    nonce[8..].copy_from_slice(tail);
    nonce.into()
}

fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the system has random bytes");
    bytes
}

/// Appends a box: its tag, then what `plain` writes, sealed.
fn seal(key: &SalsaBox, nonce: Nonce, say: &mut BytesMut, plain: impl FnOnce(&mut BytesMut)) {
    let start = say.len();
    say.put_bytes(0, TAG_BYTES);
    plain(say);
    let (tag, text) = say[start..].split_at_mut(TAG_BYTES);
    let sealed = key.encrypt_in_place_detached(&nonce, b"", text);
    tag.copy_from_slice(&sealed.expect("boxes of this size always seal"));
}

/// Opens a box in place and gives what was in it.
fn open<'a>(
    key: &SalsaBox,
    nonce: Nonce,
    sealed: &'a mut [u8],
    command: &'static str,
) -> Result<&'a [u8], ZmtpError> {
    let (tag, text) = sealed
        .split_at_mut_checked(TAG_BYTES)
        .ok_or(ZmtpError::Malformed { command, why: "its box is cut off" })?;
    let tag = Tag::clone_from_slice(tag);
    key.decrypt_in_place_detached(&nonce, b"", text, &tag)
        .map_err(|_| ZmtpError::Box { command })?;
    Ok(text)
}

impl std::fmt::Debug for Seal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Seal").field("role", &self.role).finish_non_exhaustive()
    }
}

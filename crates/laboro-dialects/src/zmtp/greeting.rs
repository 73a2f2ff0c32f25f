//! The first 64 bytes of each side: a signature, the version, the mechanism and who is the server. A peer
//! that is not ZMTP 3 is refused at the first byte that shows it.

use super::error::{ZmtpError, shown};
use bytes::{BufMut, BytesMut};

pub(super) const GREETING_BYTES: usize = 64;
const SIGNATURE_BYTES: usize = 10;
const MECHANISM: std::ops::Range<usize> = 12..32;
const AS_SERVER: usize = 32;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Greeting {
    /// 3.0 has no PING.
    pub minor: u8,
    pub is_server: bool,
}

pub(super) fn write(mechanism: &str, is_server: bool, identity_bytes: usize, say: &mut BytesMut) {
    let start = say.len();
    say.put_u8(0xff);
    // For peers of version 1 these eight bytes are the length of a frame with the identity and a flag.
    // For all others they are padding; libzmq fills them like this.
    say.put_u64(identity_bytes as u64 + 1);
    say.put_slice(&[0x7f, 3, 1]);
    say.put_slice(mechanism.as_bytes());
    say.put_bytes(0, start + AS_SERVER - say.len());
    say.put_u8(u8::from(is_server));
    say.put_bytes(0, start + GREETING_BYTES - say.len());
}

/// Looks at what is there of the greeting; gives it once it is whole.
pub(super) fn read(input: &[u8], mechanism: &'static str) -> Result<Option<Greeting>, ZmtpError> {
    match input.first() {
        None => return Ok(None),
        Some(0xff) => {}
        // A version 1 peer begins with its identity frame: a length of at least one, then a zero flag.
        Some(1..) if input.get(1) == Some(&0) => return Err(ZmtpError::TooOld("1.0")),
        Some(_) => return Err(ZmtpError::NotZmtp(shown(input))),
    }
    match input.get(SIGNATURE_BYTES - 1) {
        Some(last) if last & 1 == 0 => return Err(ZmtpError::NotZmtp(shown(input))),
        _ => {}
    }
    match input.get(SIGNATURE_BYTES) {
        Some(0) => return Err(ZmtpError::TooOld("1.0")),
        Some(1 | 2) => return Err(ZmtpError::TooOld("2.0")),
        _ => {}
    }
    if input.len() < GREETING_BYTES {
        return Ok(None);
    }
    let name = &input[MECHANISM];
    let end = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
    let is_padded = name[end..].iter().all(|&byte| byte == 0);
    if !is_padded || &name[..end] != mechanism.as_bytes() {
        let peer = shown(&name[..end]);
        return Err(ZmtpError::OtherMechanism { ours: mechanism, peer });
    }
    // A newer major version must still understand ours, so it speaks 3.1 with us.
    let minor = if input[SIGNATURE_BYTES] == 3 { input[SIGNATURE_BYTES + 1] } else { 1 };
    Ok(Some(Greeting { minor, is_server: input[AS_SERVER] != 0 }))
}

//! Any door through the native one: programs whose dialect has no authentication reach theirs over TLS and
//! with a token. What is said before the bytes of the door, and both ends of it. Which door it is makes no
//! difference here: bytes are carried, not read.
//!
//! A client that wants a tunnel says so in its TLS handshake (ALPN), then `TOKEN DOOR` or `TOKEN DOOR/GROUP` in
//! a line, and is answered `ok` or `no` and why. From there on the connection is the door's.

mod client;
mod hub;

pub use client::{TunnelError, enter};
pub(crate) use hub::receive;

use std::io;
use tokio::io::{AsyncRead, AsyncReadExt};

/// What a client offers in its handshake.
pub(crate) const PROTOCOL: &[u8] = b"laboro-tunnel/1";

/// A token, a door and a group fit, and so does a reason.
const LINE_BYTES_MAX: usize = 2048;

/// In each direction. More than this is not read before the other side has taken it.
pub const BUFFER_BYTES: usize = 32 << 10;

/// One line without its end. Not a byte behind it is taken.
async fn read_line(from: &mut (impl AsyncRead + Unpin)) -> io::Result<String> {
    let mut line = Vec::new();
    loop {
        match from.read_u8().await? {
            b'\n' => break,
            byte if line.len() < LINE_BYTES_MAX => line.push(byte),
            _ => return Err(io::Error::new(io::ErrorKind::InvalidData, "the line has no end")),
        }
    }
    String::from_utf8(line).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

//! TCP connections as every client wants them: small messages leave at once, and a peer that is gone is noticed. What
//! is said on them, and whether to try again, is the caller's business.

use crate::set_keepalive;
use std::io;
use std::time::Duration;
use tokio::net::{TcpStream, ToSocketAddrs};

/// After so long without an answer to anything, nobody is there.
pub const LOST_AFTER: Duration = Duration::from_secs(60);

/// Connects, for as long as the system tries.
pub async fn dial(address: impl ToSocketAddrs) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address).await?;
    // Small messages that wait for each other would stand still for 40 ms at a time.
    stream.set_nodelay(true)?;
    set_keepalive(&stream, LOST_AFTER)?;
    Ok(stream)
}

/// The same as `opening`, or an error of kind `TimedOut` after so long.
pub async fn within<T>(
    patience: Duration,
    opening: impl Future<Output = io::Result<T>>,
) -> io::Result<T> {
    let late = || {
        let words = format!("no answer within {} seconds", patience.as_secs());
        io::Error::new(io::ErrorKind::TimedOut, words)
    };
    tokio::time::timeout(patience, opening).await.unwrap_or_else(|_| Err(late()))
}

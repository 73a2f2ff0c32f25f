//! Noticing that a peer's machine is gone, by the system's own probes.

use rustix::net::sockopt;
use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

/// While a task runs nothing is said in some dialects, for days maybe, and what is said to a machine that is gone is
/// sent again and again for a quarter of an hour. With this the connection breaks after `lost_after`, also if the
/// machine comes back and knows nothing of the connection any more.
pub fn set_keepalive(stream: impl AsFd, lost_after: Duration) -> io::Result<()> {
    // The system counts seconds here.
    let share = |parts| (lost_after / parts).max(Duration::from_secs(1));
    sockopt::set_socket_keepalive(&stream, true)?;
    sockopt::set_tcp_keepidle(&stream, share(2))?;
    sockopt::set_tcp_keepintvl(&stream, share(12))?;
    sockopt::set_tcp_keepcnt(&stream, 6)?;
    let ms = u32::try_from(lost_after.as_millis()).unwrap_or(u32::MAX);
    sockopt::set_tcp_user_timeout(&stream, ms)?;
    Ok(())
}

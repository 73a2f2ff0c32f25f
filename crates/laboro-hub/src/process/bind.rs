//! Sockets that listen, made before anything runs, so that a taken port is an error of the start.

use super::HubError;
use std::net::{SocketAddr, TcpListener};

/// Connections that may wait to be taken: a whole cluster may come back at once after a restart.
const BACKLOG: i32 = 1024;

/// The socket, and where it really listens.
pub(crate) fn listener(
    door: &'static str,
    address: SocketAddr,
) -> Result<(TcpListener, SocketAddr), HubError> {
    let bound = || {
        let listener = TcpListener::bind(address)?;
        rustix::net::listen(&listener, BACKLOG)?;
        // Inherited by what it accepts: a peer whose machine is gone is noticed some day.
        rustix::net::sockopt::set_socket_keepalive(&listener, true)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        Ok((listener, address))
    };
    bound().map_err(|source| HubError::Bind { door, address, source })
}

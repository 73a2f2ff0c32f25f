//! Sockets that listen, made before anything runs, so that a taken port is an error of the start.

use super::HubError;
use crate::config::{Listen, Settings};
use laboro_jetstream::About;
use std::net::{SocketAddr, TcpListener};

/// Connections that may wait to be taken: a whole cluster may come back at once after a restart.
const BACKLOG: i32 = 1024;

/// The socket, and where it really listens.
pub fn listener(
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

/// A socket, and where it really listens.
pub(super) type BoundSocket = (TcpListener, SocketAddr);

/// Sockets that a hub has before it leads: whoever comes meanwhile is sent on, or waits in line.
#[derive(Debug, Default)]
pub(super) struct Front {
    pub http: Option<BoundSocket>,
    pub native: Option<BoundSocket>,
}

impl Front {
    pub fn bind(settings: &Settings) -> Result<Front, HubError> {
        let bound = |door, listen| match listen {
            Listen::Off => Ok(None),
            Listen::At(address) => listener(door, address).map(Some),
        };
        Ok(Front { http: bound("http", settings.http)?, native: bound("native", settings.native)? })
    }

    /// What others are told of this hub.
    pub fn about(&self, settings: &Settings) -> About {
        let place = |bound: &Option<BoundSocket>| {
            bound.as_ref().map_or_else(String::new, |(_, at)| from_elsewhere(*at, settings))
        };
        let (http, native) = (place(&self.http), place(&self.native));
        About { host: crate::security::host_name(), http, native }
    }
}

/// Where other machines find what is bound here, as far as this one can know.
pub(super) fn from_elsewhere(bound: SocketAddr, settings: &Settings) -> String {
    match &settings.advertise {
        Some(host) if host.contains(':') => format!("[{host}]:{}", bound.port()),
        Some(host) => format!("{host}:{}", bound.port()),
        None if bound.ip().is_unspecified() => {
            format!("{}:{}", crate::security::host_name(), bound.port())
        }
        None => bound.to_string(),
    }
}

//! From the greeting to the first message, whatever the mechanism.

use super::command::{self, Metadata};
use super::curve::{CurveClient, CurveServer, Seal};
use super::error::ZmtpError;
use super::key::KeyBytes;
use super::{Mechanism, SocketType};
use bytes::BytesMut;

pub(super) enum Handshake {
    Null,
    CurveServer(Box<CurveServer>),
    CurveClient(Box<CurveClient>),
}

/// Who the peer is, and how what follows is sealed, if it is.
pub(super) struct Met {
    pub peer: Metadata,
    pub seal: Option<Box<Seal>>,
    /// The key that the peer has proven to have the secret of.
    pub key: Option<KeyBytes>,
}

impl Handshake {
    /// Says what comes first, where it is on this side to begin.
    pub fn begin(mechanism: &Mechanism, own: &Metadata, say: &mut BytesMut) -> Handshake {
        match mechanism {
            Mechanism::Null => {
                command::write_ready(own, say);
                Handshake::Null
            }
            Mechanism::CurveServer { secret, public, allow } => {
                let server = CurveServer::new(*secret, *public, allow.clone());
                Handshake::CurveServer(Box::new(server))
            }
            Mechanism::CurveClient { server_public, secret, public } => {
                let client = CurveClient::begin(*server_public, *secret, *public, say);
                Handshake::CurveClient(Box::new(client))
            }
        }
    }

    /// One command of the peer; `Some` when it was the last.
    pub fn receive(
        &mut self,
        body: &mut [u8],
        own: &Metadata,
        say: &mut BytesMut,
    ) -> Result<Option<Met>, ZmtpError> {
        match self {
            Handshake::Null => {
                let peer = match command::split(body)? {
                    (b"READY", rest) => Metadata::read("READY", rest)?,
                    (b"ERROR", rest) => return Err(command::read_error(rest)),
                    (name, _) => return Err(command::other(name, "READY")),
                };
                fits(own.socket, peer.socket, say)?;
                Ok(Some(Met { peer, seal: None, key: None }))
            }
            Handshake::CurveServer(server) => server.receive(body, own, say),
            Handshake::CurveClient(client) => client.receive(body, own, say),
        }
    }
}

/// A peer whose socket does not fit is told so before the connection ends.
pub(super) fn fits(
    ours: SocketType,
    peer: SocketType,
    say: &mut BytesMut,
) -> Result<(), ZmtpError> {
    if ours.talks_to(peer) {
        return Ok(());
    }
    command::write_error("Invalid socket type", say);
    Err(ZmtpError::OtherSocket { ours, peer })
}

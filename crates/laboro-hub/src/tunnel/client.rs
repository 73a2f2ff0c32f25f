//! The client's end: a connection to the hub that is as good as one to the door.

use super::{PROTOCOL, read_line};
use crate::security::{Access, SecurityError, client_config};
use rustls::pki_types::ServerName;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TunnelError {
    #[error(transparent)]
    Access(#[from] SecurityError),
    #[error("the access file names no native door, which tunnels go through")]
    NoDoor,
    #[error("hub {address}: {source}")]
    Unreachable { address: String, source: io::Error },
    #[error("hub {address} does not know of tunnels: it needs a newer version")]
    Unknown { address: String },
    #[error("the hub refuses: {0}")]
    Refused(String),
}

const CONNECT_TIME_MAX: Duration = Duration::from_secs(10);

/// A connection to a door of the hub: `dwork`, or `dwork/GROUP` where there are several.
pub async fn enter(access: &Access, door: &str) -> Result<TlsStream<TcpStream>, TunnelError> {
    let addresses = access.native.as_deref().ok_or(TunnelError::NoDoor)?;
    let mut entered = Err(TunnelError::NoDoor);
    // Of several hubs one leads, and the others do not answer.
    for address in Access::each(addresses) {
        entered = enter_at(access, door, address.to_owned()).await;
        if !matches!(entered, Err(TunnelError::Unreachable { .. })) {
            break;
        }
    }
    entered
}

async fn enter_at(
    access: &Access,
    door: &str,
    address: String,
) -> Result<TlsStream<TcpStream>, TunnelError> {
    let mut config = client_config(access)?;
    config.alpn_protocols = vec![PROTOCOL.to_vec()];
    let entering = async {
        let stream = TcpStream::connect(address.as_str()).await?;
        stream.set_nodelay(true)?;
        // Whatever it is called: exactly one certificate is trusted.
        let name = ServerName::try_from("hub.invalid").map_err(io::Error::other)?;
        let mut stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await?;
        if stream.get_ref().1.alpn_protocol() != Some(PROTOCOL) {
            return Ok(None);
        }
        stream.write_all(format!("{} {door}\n", access.token.expose()).as_bytes()).await?;
        stream.flush().await?;
        let answer = read_line(&mut stream).await?;
        Ok(Some((stream, answer)))
    };
    let entered = tokio::time::timeout(CONNECT_TIME_MAX, entering).await;
    let late = |_| Err(io::Error::new(io::ErrorKind::TimedOut, "no answer within 10 seconds"));
    let unreachable = |source| TunnelError::Unreachable { address: address.clone(), source };
    match entered.unwrap_or_else(late).map_err(unreachable)? {
        None => Err(TunnelError::Unknown { address }),
        Some((stream, answer)) if answer == "ok" => Ok(stream),
        Some((_, answer)) => {
            let words = answer.strip_prefix("no ").unwrap_or(&answer);
            Err(TunnelError::Refused(words.to_owned()))
        }
    }
}

//! Any door of a hub through its native one: programs whose dialect has no authentication reach theirs over TLS and
//! with a token. What both ends say before the bytes of the door, and the client's end. Bytes are carried, not read.
//!
//! A client that wants a tunnel says so in its TLS handshake (ALPN), then `TOKEN DOOR` or `TOKEN DOOR/GROUP` in
//! a line, and is answered `ok` or `no` and why. From there on the connection is the door's.

use crate::access::{Access, client_config, host_name};
use laboro_dialects::fuq2::STANDBY_REDIRECT_PROTOCOL;
use laboro_net::{SecurityError, dial, within};
use rustls::pki_types::ServerName;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// What a client offers in its handshake.
pub const PROTOCOL: &[u8] = b"laboro-tunnel/1";

/// In each direction. More than this is not read before the other side has taken it.
pub const BUFFER_BYTES: usize = 32 << 10;

/// A token, a door and a group fit, and so does a reason.
const LINE_BYTES_MAX: usize = 2048;

/// One line without its end. Not a byte behind it is taken.
pub async fn read_line(from: &mut (impl AsyncRead + Unpin)) -> io::Result<String> {
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

/// Why there is no tunnel.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)]
pub enum TunnelError {
    #[error(transparent)]
    Access(#[from] SecurityError),
    #[error("the access file names no native door, which tunnels go through")]
    NoDoor,
    #[error("hub {address}: {source}")]
    Unreachable { address: String, source: io::Error },
    #[error("hub {address} does not support tunnels: it needs a newer version")]
    Unknown { address: String },
    #[error("the hub at {address} is a standby, and the leader cannot be reached")]
    Follows { address: String },
    #[error("the hub refuses: {0}")]
    Refused(String),
}

const CONNECT_TIME_MAX: Duration = Duration::from_secs(10);

/// A connection to a door of the hub: `dwork`, or `dwork/GROUP` where there are several.
pub async fn enter(access: &Access, door: &str) -> Result<TlsStream<TcpStream>, TunnelError> {
    let addresses = access.native.as_deref().ok_or(TunnelError::NoDoor)?;
    let mut refused = TunnelError::NoDoor;
    let addresses = access.in_order(addresses, &host_name());
    let mut places: VecDeque<String> = addresses.into_iter().map(str::to_owned).collect();
    // Of several hubs one leads; the others do not answer, or tell which one does.
    for _ in 0..places.len() + SENT_ON_MAX {
        let Some(address) = places.pop_front() else { break };
        refused = match enter_at(access, door, address).await {
            Ok(Entered::Door(stream)) => return Ok(*stream),
            Ok(Entered::SentTo { leader, by }) => {
                places.retain(|place| *place != leader);
                places.push_front(leader);
                TunnelError::Follows { address: by }
            }
            Err(error @ (TunnelError::Unreachable { .. } | TunnelError::Follows { .. })) => error,
            Err(error) => return Err(error),
        };
    }
    Err(refused)
}

enum Entered {
    Door(Box<TlsStream<TcpStream>>),
    SentTo { leader: String, by: String },
}

/// A hub that was overtaken may send to one that sends on.
const SENT_ON_MAX: usize = 3;

/// What there was to hear.
enum TunnelReply {
    Answer(Box<TlsStream<TcpStream>>, String),
    Leader(String),
    Nothing,
}

async fn enter_at(access: &Access, door: &str, address: String) -> Result<Entered, TunnelError> {
    let mut config = client_config(access)?;
    config.alpn_protocols = [PROTOCOL, STANDBY_REDIRECT_PROTOCOL].map(<[u8]>::to_vec).into();
    let entering = async {
        let stream = dial(address.as_str()).await?;
        // Whatever it is called: exactly one certificate is trusted.
        let name = ServerName::try_from("hub.invalid").map_err(io::Error::other)?;
        let mut stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await?;
        match stream.get_ref().1.alpn_protocol() {
            Some(PROTOCOL) => {}
            Some(STANDBY_REDIRECT_PROTOCOL) => {
                return Ok(TunnelReply::Leader(read_line(&mut stream).await?));
            }
            _ => return Ok(TunnelReply::Nothing),
        }
        stream.write_all(format!("{} {door}\n", access.token.expose()).as_bytes()).await?;
        stream.flush().await?;
        let answer = read_line(&mut stream).await?;
        Ok(TunnelReply::Answer(Box::new(stream), answer))
    };
    let unreachable = |source| TunnelError::Unreachable { address: address.clone(), source };
    match within(CONNECT_TIME_MAX, entering).await.map_err(unreachable)? {
        TunnelReply::Nothing => Err(TunnelError::Unknown { address }),
        TunnelReply::Leader(leader) if leader.is_empty() => Err(TunnelError::Follows { address }),
        TunnelReply::Leader(leader) => Ok(Entered::SentTo { leader, by: address }),
        TunnelReply::Answer(stream, answer) if answer == "ok" => Ok(Entered::Door(stream)),
        TunnelReply::Answer(_, answer) => {
            let words = answer.strip_prefix("no ").unwrap_or(&answer);
            Err(TunnelError::Refused(words.to_owned()))
        }
    }
}

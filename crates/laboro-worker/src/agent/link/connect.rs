//! Ways to a hub. Each gives a stream of bytes that stands, or says why not; trying again is the link's affair.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use laboro_dialects::fuq2::STANDBY_REDIRECT_PROTOCOL;
use laboro_net::dial;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{self, AlertDescription, ClientConfig};

pub trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> ByteStream for S {}

pub type Connecting =
    Pin<Box<dyn Future<Output = Result<Box<dyn ByteStream>, ConnectError>> + Send>>;

pub trait Connect: Send {
    fn connect(&self) -> Connecting;

    /// For people.
    fn target(&self) -> String;
}

#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    #[error("{target}: {source}")]
    Unreachable { target: String, source: io::Error },
    #[error("{target}: no answer within {} s", PATIENCE.as_secs())]
    Silent { target: String },
    /// It is the wrong one of several hubs, and says which is the right one, if it knows.
    #[error("{target}: this hub only follows, and the one that leads{} cannot be reached", at(.leader))]
    Follows { target: String, leader: String },
    /// Trying again does not help.
    #[error("{target}: it does not have a certificate that is trusted here: {why}")]
    Stranger { target: String, why: String },
    /// Nor here: it will not have this worker.
    #[error("{target}: {why}")]
    Denied { target: String, why: String },
}

fn at(leader: &str) -> String {
    if leader.is_empty() { String::new() } else { format!(" at {leader}") }
}

impl ConnectError {
    /// Trying again does not help.
    pub(in super::super) fn is_final(&self) -> bool {
        matches!(self, ConnectError::Stranger { .. } | ConnectError::Denied { .. })
    }

    pub fn from_io(target: String, source: io::Error) -> ConnectError {
        match stranger(&source) {
            Some(why) => ConnectError::Stranger { target, why },
            None => ConnectError::Unreachable { target, source },
        }
    }
}

/// For a name to be found, a connection to stand and a handshake to be over.
const PATIENCE: Duration = Duration::from_secs(10);

/// Plain TCP, for dialects that know nothing else.
#[derive(Clone, Debug)]
pub struct Tcp {
    /// `host:port`.
    pub address: String,
}

impl Connect for Tcp {
    fn connect(&self) -> Connecting {
        let address = self.address.clone();
        Box::pin(async move {
            let stream = within(&address, dial(&address)).await?;
            Ok(Box::new(stream) as Box<dyn ByteStream>)
        })
    }

    fn target(&self) -> String {
        self.address.clone()
    }
}

#[derive(Clone, Debug)]
pub struct Tls {
    /// `host:port`.
    pub address: String,
    pub name: ServerName<'static>,
    /// Says whom to trust.
    pub config: Arc<ClientConfig>,
}

impl Connect for Tls {
    fn connect(&self) -> Connecting {
        let way = self.clone();
        Box::pin(async move {
            let dialled = async {
                let mut stream = match way.shake_hands(Arc::clone(&way.config)).await {
                    Err(error) if is_unknown_protocol(&error) => {
                        way.shake_hands(way.config_without_protocols()).await?
                    }
                    shaken => shaken?,
                };
                let is_redirect =
                    stream.get_ref().1.alpn_protocol() == Some(STANDBY_REDIRECT_PROTOCOL);
                let leader = if is_redirect { Some(line(&mut stream).await?) } else { None };
                Ok((stream, leader))
            };
            match within(&way.address, dialled).await? {
                (stream, None) => Ok(Box::new(stream) as Box<dyn ByteStream>),
                (_, Some(leader)) => Err(ConnectError::Follows { target: way.address, leader }),
            }
        })
    }

    fn target(&self) -> String {
        self.address.clone()
    }
}

impl Tls {
    async fn shake_hands(&self, config: Arc<ClientConfig>) -> io::Result<TlsStream<TcpStream>> {
        let stream = dial(&self.address).await?;
        TlsConnector::from(config).connect(self.name.clone(), stream).await
    }

    /// For a hub from before workers named their protocol: what is said afterwards is the same.
    fn config_without_protocols(&self) -> Arc<ClientConfig> {
        let mut config = ClientConfig::clone(&self.config);
        config.alpn_protocols.clear();
        Arc::new(config)
    }
}

/// Several ways to hubs of which one leads: the others refuse or tell which one does. Each is tried, the last good
/// one first.
#[derive(Clone, Debug)]
pub struct Several {
    ways: Arc<Mutex<VecDeque<Tls>>>,
}

/// Hubs that are told of are added up to here.
const WAYS_MAX: usize = 16;

/// A hub that was overtaken may send to one that sends on.
const SENT_ON_MAX: usize = 3;

impl Several {
    pub fn new(ways: Vec<Tls>) -> Several {
        Several { ways: Arc::new(Mutex::new(ways.into())) }
    }

    fn ways(&self) -> VecDeque<Tls> {
        self.ways.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// This one is tried first from now on.
    fn prefer(&self, way: Tls) {
        let mut ways = self.ways.lock().unwrap_or_else(PoisonError::into_inner);
        ways.retain(|other| other.address != way.address);
        ways.push_front(way);
        ways.truncate(WAYS_MAX);
    }
}

impl Connect for Several {
    fn connect(&self) -> Connecting {
        let several = self.clone();
        Box::pin(async move {
            let mut ways = several.ways();
            let mut failed: Option<ConnectError> = None;
            for _ in 0..ways.len() + SENT_ON_MAX {
                let Some(way) = ways.pop_front() else { break };
                let error = match way.connect().await {
                    Ok(stream) => {
                        several.prefer(way);
                        return Ok(stream);
                    }
                    Err(error) => error,
                };
                if let ConnectError::Follows { leader, .. } = &error
                    && !leader.is_empty()
                {
                    ways.retain(|other| other.address != *leader);
                    ways.push_front(Tls { address: leader.clone(), ..way });
                }
                // What can be got over says more than what cannot: the next try may find a hub. Most of all does
                // one that is there already.
                let is_there = matches!(error, ConnectError::Follows { .. });
                if is_there || failed.as_ref().is_none_or(ConnectError::is_final) {
                    failed = Some(error);
                }
            }
            let target = String::new();
            let nowhere = || io::Error::new(io::ErrorKind::InvalidInput, "no address is known");
            Err(failed.unwrap_or_else(|| ConnectError::Unreachable { target, source: nowhere() }))
        })
    }

    fn target(&self) -> String {
        let ways = self.ways();
        ways.iter().map(|way| way.address.as_str()).collect::<Vec<_>>().join(",")
    }
}

/// Of a standby's redirect, without its end.
async fn line(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<String> {
    let mut line = String::new();
    // A host name and a port fit.
    stream.take(300).read_to_string(&mut line).await?;
    Ok(line.trim_end().to_owned())
}

async fn within<S>(
    target: &str,
    connecting: impl Future<Output = io::Result<S>>,
) -> Result<S, ConnectError> {
    let target = target.to_owned();
    match timeout(PATIENCE, connecting).await {
        Err(_) => Err(ConnectError::Silent { target }),
        Ok(Err(source)) => Err(ConnectError::from_io(target, source)),
        Ok(Ok(stream)) => Ok(stream),
    }
}

/// Whether it was us who turned away the certificate.
fn stranger(error: &io::Error) -> Option<String> {
    match tls_error(error)? {
        error @ rustls::Error::InvalidCertificate(_) => Some(error.to_string()),
        _ => None,
    }
}

/// Whether the other side knows none of the protocols that were named, and says so.
fn is_unknown_protocol(error: &io::Error) -> bool {
    let unknown = AlertDescription::NoApplicationProtocol;
    matches!(tls_error(error), Some(rustls::Error::AlertReceived(alert)) if *alert == unknown)
}

fn tls_error(error: &io::Error) -> Option<&rustls::Error> {
    error.get_ref()?.downcast_ref()
}

#[cfg(test)]
mod tests;

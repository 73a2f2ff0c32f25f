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
    #[error("{target}: this hub is a standby, and the leader{} cannot be reached", at(.leader))]
    Follows { target: String, leader: String },
    /// Trying again does not help.
    #[error("{target}: its certificate is not trusted here: {why}")]
    Stranger { target: String, why: String },
    /// None of several addresses led to a hub.
    #[error("no hub was found at {}{}", .tried.join(", "), hinted(.hint))]
    Nowhere { tried: Vec<String>, hint: String },
    /// Nor here: it will not have this worker.
    #[error("{target}: {why}")]
    Denied { target: String, why: String },
}

fn at(leader: &str) -> String {
    if leader.is_empty() { String::new() } else { format!(" at {leader}") }
}

fn hinted(hint: &str) -> String {
    if hint.is_empty() { String::new() } else { format!("; {hint}") }
}

impl ConnectError {
    /// For a list of what was tried: the address, and what came of it.
    fn words(&self) -> String {
        match self {
            ConnectError::Unreachable { target, source } => format!("{target} ({source})"),
            ConnectError::Silent { target } => format!("{target} (no answer)"),
            ConnectError::Stranger { target, .. } => format!("{target} (that is another hub)"),
            other => other.to_string(),
        }
    }

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

/// For a connection to stand, where there are further addresses: one behind a firewall never answers.
const DIAL_OF_SEVERAL: Duration = Duration::from_secs(3);

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
        self.connect_within(PATIENCE)
    }

    fn target(&self) -> String {
        self.address.clone()
    }
}

impl Tls {
    /// `dial` is for the connection alone; what is said on it has the usual time.
    fn connect_within(&self, dial: Duration) -> Connecting {
        let way = self.clone();
        Box::pin(async move {
            let dialled = async {
                let mut stream = match way.shake_hands(Arc::clone(&way.config), dial).await {
                    Err(error) if is_unknown_protocol(&error) => {
                        way.shake_hands(way.config_without_protocols(), dial).await?
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

    async fn shake_hands(
        &self,
        config: Arc<ClientConfig>,
        patience: Duration,
    ) -> io::Result<TlsStream<TcpStream>> {
        let stream = laboro_net::within(patience, dial(&self.address)).await?;
        TlsConnector::from(config).connect(self.name.clone(), stream).await
    }

    /// For a hub from before workers named their protocol: what is said afterwards is the same.
    fn config_without_protocols(&self) -> Arc<ClientConfig> {
        let mut config = ClientConfig::clone(&self.config);
        config.alpn_protocols.clear();
        Arc::new(config)
    }
}

/// Several ways to one hub, or to hubs of which one leads: the others refuse or tell which one does. Each is tried, the
/// last good one first.
#[derive(Clone, Debug)]
pub struct Several {
    ways: Arc<Mutex<VecDeque<Tls>>>,
    source: Option<Source>,
}

/// What is known of a hub now.
#[derive(Debug, Default)]
pub struct Ways {
    pub ways: Vec<Tls>,
    /// For people, if none of them leads anywhere.
    pub hint: String,
}

/// Where the ways are written down, to be read again when none of them leads anywhere: a hub may have begun anew elsewhere.
#[derive(Clone)]
struct Source(Arc<dyn Fn() -> Option<Ways> + Send + Sync>);

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Source")
    }
}

/// Hubs that are told of are added up to here.
const WAYS_MAX: usize = 16;

/// A hub that was overtaken may send to one that sends on.
const SENT_ON_MAX: usize = 3;

impl Several {
    pub fn new(ways: Vec<Tls>) -> Several {
        Several { ways: Arc::new(Mutex::new(ways.into())), source: None }
    }

    /// `read` tells the ways as they are at that time. It may block.
    pub fn reading(ways: Ways, read: impl Fn() -> Option<Ways> + Send + Sync + 'static) -> Several {
        Several { source: Some(Source(Arc::new(read))), ..Several::new(ways.ways) }
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

    /// What to try the next time, and what to say meanwhile.
    async fn read_again(&self) -> String {
        let Some(Source(read)) = self.source.clone() else { return String::new() };
        let Ok(Some(found)) = tokio::task::spawn_blocking(move || read()).await else {
            return String::new();
        };
        *self.ways.lock().unwrap_or_else(PoisonError::into_inner) = found.ways.into();
        found.hint
    }

    /// Of all that was tried, what says most.
    async fn failed(&self, failed: Vec<ConnectError>) -> ConnectError {
        // A hub that is there already will soon lead.
        let is_there = |error: &ConnectError| matches!(error, ConnectError::Follows { .. });
        let mut failed = failed;
        if let Some(at) = failed.iter().rposition(is_there) {
            return failed.swap_remove(at);
        }
        let hint = self.read_again().await;
        // What can be got over says more than what cannot: the next try may find a hub.
        if !failed.is_empty() && failed.iter().all(ConnectError::is_final) {
            return failed.swap_remove(0);
        }
        if hint.is_empty() && failed.len() == 1 {
            return failed.swap_remove(0);
        }
        ConnectError::Nowhere { tried: failed.iter().map(ConnectError::words).collect(), hint }
    }
}

impl Connect for Several {
    fn connect(&self) -> Connecting {
        let several = self.clone();
        Box::pin(async move {
            let mut ways = several.ways();
            let mut failed = Vec::new();
            let patience = if ways.len() > 1 { DIAL_OF_SEVERAL } else { PATIENCE };
            for _ in 0..ways.len() + SENT_ON_MAX {
                let Some(way) = ways.pop_front() else { break };
                let error = match way.connect_within(patience).await {
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
                failed.push(error);
            }
            Err(several.failed(failed).await)
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

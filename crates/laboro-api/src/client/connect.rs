//! One connection to a hub: a unix socket on its own machine, else TCP, TLS where there is a configuration; HTTP/1.1.

use super::body::Outgoing;
use super::places::Places;
use super::{ClientError, Target, innermost};
use hyper::client::conn::http1;
use laboro_net::{dial, http, within};
use rustls::pki_types::ServerName;
use std::io;
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::UnixStream;
use tokio_rustls::TlsConnector;

pub(super) type Sender = http1::SendRequest<Outgoing>;

const CONNECT_TIME_MAX: Duration = Duration::from_secs(10);

/// Where there are further addresses: a firewall that drops packets answers at none of them, and the next may be the one.
const DIAL_TIME_OF_SEVERAL: Duration = Duration::from_secs(3);

/// While one hub takes over from another, none answers. Longer than that takes, an election in NATS included.
pub(super) const TAKEOVER: Duration = Duration::from_secs(20);
const PAUSE: Duration = Duration::from_millis(200);

/// To the first place that answers. Only where there are several hubs is it worth trying again.
pub(super) async fn connect(target: &Target, places: &Places) -> Result<Sender, ClientError> {
    if let Some(dial) = &target.within {
        let address = target.address();
        let unreachable = |source| ClientError::Unreachable { address: address.clone(), source };
        return shake_hands(dial().map_err(unreachable)?, &address).await;
    }
    if let Some(sender) = connect_here(target).await {
        return Ok(sender);
    }
    let begun = Instant::now();
    loop {
        let mut failed = Vec::new();
        let all = places.all();
        let patience = if all.len() > 1 { DIAL_TIME_OF_SEVERAL } else { CONNECT_TIME_MAX };
        for (host, port) in all {
            match connect_to(target, &host, port, patience).await {
                Ok(sender) => {
                    places.prefer((host, port));
                    return Ok(sender);
                }
                Err(error) => failed.push(error),
            }
        }
        if !places.are_several_hubs() || begun.elapsed() > TAKEOVER {
            return Err(all_failed(failed));
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// What was tried and what came of it, in one error.
fn all_failed(mut failed: Vec<ClientError>) -> ClientError {
    let kind = failed.iter().find_map(|error| match error {
        ClientError::Unreachable { source, .. } => Some(source.kind()),
        _ => None,
    });
    let (Some(kind), true) = (kind, failed.len() > 1) else { return failed.swap_remove(0) };
    let mut tried = failed.into_iter().map(|error| match error {
        ClientError::Unreachable { address, source } => (address, source.to_string()),
        ClientError::Stranger { address, .. } => (address, "that is another hub".to_owned()),
        ClientError::Broken { address, why } => (address, why),
        other => (String::new(), other.to_string()),
    });
    let (address, mut words) = tried.next().expect("there are several");
    for (address, why) in tried {
        words.push_str(&format!("; nor at {address}: {why}"));
    }
    ClientError::Unreachable { address, source: io::Error::new(kind, words) }
}

/// Over the hub's own socket, if it has one and the same user, or root, has made it: what follows has a token in it.
async fn connect_here(target: &Target) -> Option<Sender> {
    let path = target.local.as_ref()?;
    let stream = within(CONNECT_TIME_MAX, UnixStream::connect(path)).await.ok()?;
    let own = rustix::process::geteuid();
    let is_trusted = |uid: u32| own.is_root() || uid == own.as_raw() || uid == 0;
    let peer = stream.peer_cred().ok()?;
    if !is_trusted(peer.uid()) {
        return None;
    }
    shake_hands(stream, &path.display().to_string()).await.ok()
}

async fn connect_to(
    target: &Target,
    host: &str,
    port: u16,
    patience: Duration,
) -> Result<Sender, ClientError> {
    let address = Target::new(host, port).address();
    let unreachable = |source| ClientError::Unreachable { address: address.clone(), source };
    let stream = within(patience, dial((host, port))).await.map_err(unreachable)?;
    let Some(tls) = &target.tls else { return shake_hands(stream, &address).await };
    let name = ServerName::try_from(host.to_owned());
    let name = name.map_err(|error| unreachable(io::Error::other(error)))?;
    let secured = TlsConnector::from(tls.clone()).connect(name, stream);
    let secured = within(CONNECT_TIME_MAX, secured).await.map_err(|error| match distrust(&error) {
        Some(why) => ClientError::Stranger { address: address.clone(), why },
        None if is_hang_up(&error) => {
            ClientError::Broken { address: address.clone(), why: TURNED_AWAY.to_owned() }
        }
        None => unreachable(error),
    });
    shake_hands(secured?, &address).await
}

/// Somebody is there, with a certificate of somebody else.
fn distrust(error: &io::Error) -> Option<String> {
    let error = error.get_ref()?.downcast_ref::<rustls::Error>()?;
    matches!(error, rustls::Error::InvalidCertificate(_)).then(|| error.to_string())
}

/// Somebody is there and does not want to talk. A hub does that to those over its limits and those not on its list,
/// before anything is said.
fn is_hang_up(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    matches!(error.kind(), BrokenPipe | ConnectionAborted | ConnectionReset | UnexpectedEof)
}

const TURNED_AWAY: &str = "it was closed before an answer. A hub does so if there are too many connections from this address, or if this address is not allowed";

async fn shake_hands<S>(stream: S, address: &str) -> Result<Sender, ClientError>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let broken = |error: hyper::Error| ClientError::Broken {
        address: address.to_owned(),
        why: innermost(&error),
    };
    http::handshake(stream).await.map_err(broken)
}

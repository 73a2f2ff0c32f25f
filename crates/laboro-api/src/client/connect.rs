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

/// While one hub takes over from another, none answers. Longer than that takes, an election in NATS included.
pub(super) const TAKEOVER: Duration = Duration::from_secs(20);
const PAUSE: Duration = Duration::from_millis(200);

/// To the first place that answers. Only where there are several is it worth trying again.
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
        let mut failed = None;
        let all = places.all();
        let count = all.len();
        for (host, port) in all {
            match connect_to(target, &host, port).await {
                Ok(sender) => {
                    places.prefer((host, port));
                    return Ok(sender);
                }
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        if let Some(error) = failed
            && (count == 1 || begun.elapsed() > TAKEOVER)
        {
            return Err(error);
        }
        tokio::time::sleep(PAUSE).await;
    }
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

async fn connect_to(target: &Target, host: &str, port: u16) -> Result<Sender, ClientError> {
    let address = Target::new(host, port).address();
    let unreachable = |source| ClientError::Unreachable { address: address.clone(), source };
    let stream = within(CONNECT_TIME_MAX, dial((host, port))).await.map_err(unreachable)?;
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

const TURNED_AWAY: &str = "it was closed before anything was said. A hub does so when there are too many connections \
                           from this address, or when this address may not come in";

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

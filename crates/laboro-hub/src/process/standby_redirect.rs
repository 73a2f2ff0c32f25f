//! Stands at the doors of a hub that does not lead, and tells whoever comes where the one that leads is. It has a
//! thread of its own, and is gone, with all its connections, before the hub opens the same doors itself.

use super::bind::{BoundSocket, Front};
use super::{HubError, shared_identity};
use crate::config::Settings;
use crate::http::{self, Limits, ServeStats, serve};
use crate::listen::{Network, allows};
use crate::security::Identity;
use laboro_dialects::fuq2::STANDBY_REDIRECT_PROTOCOL;
use laboro_jetstream::{Following, SharedIdentity};
use rustls::ServerConfig;
use std::net::TcpListener;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::runtime::Builder;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

pub(super) struct RedirectThread {
    stop: CancellationToken,
    thread: JoinHandle<()>,
}

/// Nobody stays: an answer is a line.
const VISIT: Duration = Duration::from_secs(5);
/// For those who wait to hear who leads: this hub does. Not for those who are slow to read it.
const FAREWELL: Duration = Duration::from_millis(300);
const VISITORS_MAX: usize = 256;
const PAUSE: Duration = Duration::from_millis(100);

impl RedirectThread {
    /// Stands as soon as the certificate of the hubs is known.
    pub fn put_up(
        settings: &Settings,
        front: &Front,
        following: watch::Receiver<Following>,
        mut identity: watch::Receiver<SharedIdentity>,
    ) -> Result<RedirectThread, HubError> {
        let clone = |bound: &Option<BoundSocket>| {
            let cloned = bound.as_ref().map(|(listener, _)| listener.try_clone());
            cloned.transpose().map_err(HubError::Thread)
        };
        let (http, native) = (clone(&front.http)?, clone(&front.native)?);
        let stop = CancellationToken::new();
        let own = front.about(settings).http;
        let (settings, told) = (settings.clone(), stop.clone());
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(HubError::Thread)?;
        let work = move || {
            runtime.block_on(async {
                if let Some(tls) = certificate(&settings, &mut identity, &told).await {
                    let leads = told.clone();
                    let shown = http::StandbyRedirect { following: following.clone(), own, leads };
                    let web = show_http(&settings, http, &tls, shown);
                    let workers = show_native(native, &tls, &settings.native_allow, following);
                    tokio::select! {
                        () = web => {}
                        () = workers => {}
                        () = keep_up(&settings, &mut identity) => {}
                    }
                }
            });
        };
        let thread = std::thread::Builder::new().name("laboro-standby".into()).spawn(work);
        Ok(RedirectThread { stop, thread: thread.map_err(HubError::Thread)? })
    }

    pub fn take_down(self) {
        self.stop.cancel();
        // It only tells, so however it ended is no reason not to lead.
        let _ = self.thread.join();
    }
}

/// The one that all hubs of this name have, once it is known. `None`: it is not needed any more.
async fn certificate(
    settings: &Settings,
    identity: &mut watch::Receiver<SharedIdentity>,
    stop: &CancellationToken,
) -> Option<Arc<ServerConfig>> {
    loop {
        tokio::select! {
            () = stop.cancelled() => return None,
            changed = identity.changed() => changed.ok()?,
        }
        if let Some(tls) = identify(settings, &identity.borrow_and_update()) {
            return Some(tls);
        }
    }
}

/// So that commands on this machine know of the others too. Never returns.
async fn keep_up(settings: &Settings, identity: &mut watch::Receiver<SharedIdentity>) {
    while identity.changed().await.is_ok() {
        identify(settings, &identity.borrow_and_update());
    }
    std::future::pending::<()>().await;
}

/// Makes this hub the same as the others, as far as it is known.
fn identify(settings: &Settings, identity: &SharedIdentity) -> Option<Arc<ServerConfig>> {
    if !shared_identity::is_known(identity) {
        return None;
    }
    let known = shared_identity::take(&settings.dir, identity).and_then(|()| {
        let identity = Identity::open(&settings.dir, &settings.names)?;
        identity.server_config()
    });
    known.map(Arc::new).map_err(|error| tracing::warn!("cannot answer as a standby: {error}")).ok()
}

async fn show_http(
    settings: &Settings,
    listener: Option<TcpListener>,
    tls: &Arc<ServerConfig>,
    shown: http::StandbyRedirect,
) {
    let stop = shown.leads.clone();
    let Some(listener) = listener.and_then(into_tokio) else { return stop.cancelled().await };
    let (allow, farewell) = (settings.http_allow.clone(), FAREWELL);
    let limits = Limits { allow, farewell, ..settings.http_limits.limits() };
    let stats = Arc::<ServeStats>::default();
    serve(listener, Some(Arc::clone(tls)), shown.routes(), limits, stats, stop.cancelled()).await;
}

/// Never returns. Workers and tunnels: whoever knows of redirects says so in the handshake and is told in a line.
async fn show_native(
    listener: Option<TcpListener>,
    tls: &ServerConfig,
    allow: &[Network],
    following: watch::Receiver<Following>,
) {
    let Some(listener) = listener.and_then(into_tokio) else {
        return std::future::pending::<()>().await;
    };
    let mut tls = tls.clone();
    tls.alpn_protocols = vec![STANDBY_REDIRECT_PROTOCOL.to_vec()];
    let tls = TlsAcceptor::from(Arc::new(tls));
    let mut visitors = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept(), if visitors.len() < VISITORS_MAX => accepted,
            Some(_) = visitors.join_next() => continue,
        };
        match accepted {
            Ok((stream, peer)) if allows(allow, peer.ip()) => {
                let native = following.borrow().leader.as_ref().map(|leader| leader.native.clone());
                let told = tell(tls.clone(), stream, native.unwrap_or_default());
                visitors.spawn(tokio::time::timeout(VISIT, told));
            }
            Ok(_) => {}
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}

/// An empty line: nobody leads.
async fn tell(tls: TlsAcceptor, stream: TcpStream, native: String) -> std::io::Result<()> {
    let mut stream = tls.accept(stream).await?;
    stream.write_all(format!("{native}\n").as_bytes()).await?;
    stream.shutdown().await
}

fn into_tokio(listener: TcpListener) -> Option<tokio::net::TcpListener> {
    let made = tokio::net::TcpListener::from_std(listener);
    made.map_err(|error| tracing::warn!("cannot answer as a standby: {error}")).ok()
}

//! `laboro tunnel`: a door of a hub elsewhere, as if it were on this machine. Programs that know nothing of TLS
//! and tokens connect here; what they say goes to the hub through its native door. Nothing is read on the way.

mod metered;

use crate::args::hub::HubArgs;
use crate::exit::{Exit, refused, usage};
use crate::files::read_access;
use crate::hub_client::access_path;
use crate::output::{counted, print, safe, say};
use crate::run::Signals;
use anyhow::Context;
use clap::Args;
use laboro_api::access::Access;
use laboro_api::tunnel::{BUFFER_BYTES, TunnelError, enter};
use metered::Metered;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::copy_bidirectional_with_sizes;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

const HELP: &str = "\
Examples:
  laboro tunnel dwork --listen 127.0.0.1:6125 --access hub.toml
  laboro tunnel fuq2/night --listen 127.0.0.1:7912

The token needs the role submit for dwork and rrmq, whose peers create work, and work for the others.
Exit status: 0 stopped, 2 wrong usage, 3 the hub cannot be reached, 4 it refuses.";

#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct Tunnel {
    /// Which door of the hub: its dialect, or DIALECT/GROUP where it has several.
    #[arg(value_name = "DOOR")]
    door: String,

    /// Where programs of this machine connect. Port 0 takes a free one.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    listen: SocketAddr,

    /// Also listen on addresses that other machines can reach: anyone who connects can do what the token allows.
    #[arg(long)]
    insecure: bool,

    #[command(flatten)]
    hub: HubArgs,
}

/// At once. Each is a connection to the hub.
const CONNECTIONS_MAX: usize = 1024;

/// When the system has no more sockets to give, this long until the next try.
const OUT_OF_SOCKETS: Duration = Duration::from_millis(100);

pub(crate) fn run(args: &Tunnel) -> anyhow::Result<Exit> {
    if !args.listen.ip().is_loopback() && !args.insecure {
        return Err(usage(format!(
            "{}: anyone who can reach it gets in without a token; use a loopback address, or say --insecure",
            args.listen
        )));
    }
    if args.door.contains(char::is_whitespace) {
        return Err(usage(format!("{}: not the name of a door", safe(&args.door))));
    }
    let access = read_access(&access_path(&args.hub)?)?;
    crate::hub::raise_open_files();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(serve(args, access))
}

struct Ends {
    access: Access,
    door: String,
    connections: AtomicU64,
    sent: AtomicU64,
    received: AtomicU64,
    /// Whether trouble was told since something last went well.
    has_told: AtomicBool,
}

async fn serve(args: &Tunnel, access: Access) -> anyhow::Result<Exit> {
    let mut signals = Signals::listen()?;
    let listener = TcpListener::bind(args.listen)
        .await
        .with_context(|| format!("cannot listen on {}", args.listen))?;
    // What is wrong is said now, not to the first program that comes.
    drop(enter(&access, &args.door).await.map_err(explain)?);
    let hub = access.native.as_deref().unwrap_or_default();
    let words = format!("{} on {}, at hub {hub}", safe(&args.door), listener.local_addr()?);
    print(words)?;
    let ends = Arc::new(Ends {
        access,
        door: args.door.clone(),
        connections: AtomicU64::new(0),
        sent: AtomicU64::new(0),
        received: AtomicU64::new(0),
        has_told: AtomicBool::new(false),
    });
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let mut open = JoinSet::new();
    loop {
        let place = Arc::clone(&places).acquire_owned();
        tokio::select! {
            () = signals.next() => break,
            Some(_) = open.join_next() => {}
            // Nobody is taken from the line for whom there is no place.
            (place, accepted) = async { (place.await, listener.accept().await) } => {
                let (Ok(place), Ok((stream, _))) = (place, accepted) else {
                    tokio::time::sleep(OUT_OF_SOCKETS).await;
                    continue;
                };
                let ends = Arc::clone(&ends);
                open.spawn(async move {
                    ends.carry(stream).await;
                    drop(place);
                });
            }
        }
    }
    open.shutdown().await;
    let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
    let (connections, sent, received) = (of(&ends.connections), of(&ends.sent), of(&ends.received));
    say(format_args!(
        "{}, {sent} bytes to the hub, {received} from it",
        counted(connections, "connection")
    ));
    Ok(Exit::Done)
}

impl Ends {
    async fn carry(&self, mut near: TcpStream) {
        // Without it everything is only slower.
        let _ = near.set_nodelay(true);
        let far = match enter(&self.access, &self.door).await {
            Ok(far) => far,
            Err(error) => {
                if !self.has_told.swap(true, Ordering::Relaxed) {
                    say(format_args!("laboro: {}", safe(&error.to_string())));
                }
                return;
            }
        };
        self.has_told.store(false, Ordering::Relaxed);
        self.connections.fetch_add(1, Ordering::Relaxed);
        let mut far = Metered { stream: far, written: &self.sent, read: &self.received };
        // A connection that broke counts as one that ended: both programs see it.
        let _ =
            copy_bidirectional_with_sizes(&mut near, &mut far, BUFFER_BYTES, BUFFER_BYTES).await;
    }
}

fn explain(error: TunnelError) -> anyhow::Error {
    match error {
        TunnelError::Refused(why) => refused(safe(&why)),
        other => other.into(),
    }
}

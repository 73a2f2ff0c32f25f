//! Opens the journal in its own thread: connects, waits until this hub leads, and then takes orders.

use super::scribe::Scribe;
use super::{JetStreamJournal, Lease, Recovery, StreamError};
use crate::hubs::{self, announce};
use crate::lead::{Following, Led, Terms, Wish, take_lead};
use crate::nats::{Nats, NatsError, NatsStream, Shelf};
use crate::options::Options;
use bytes::Bytes;
use futures_util::StreamExt;
use laboro_core::Ledger;
use laboro_journal::{JournalError, wait};
use ring::rand::{SecureRandom, SystemRandom};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, sleep};

/// Commits wait for one another, so there is never more than one; the rest is for what is shared.
const ORDERS: usize = 16;
/// How long a hub that wants to lead looks for servers.
const CONNECT: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(200);
/// How often one that follows looks whether what is shared has changed.
const PAPERS: Duration = Duration::from_secs(5);

/// A journal that is on its way.
#[derive(Debug)]
pub struct Opening {
    ready: oneshot::Receiver<Result<Opened, JournalError>>,
    following: watch::Receiver<Following>,
    shared_identity: watch::Receiver<SharedIdentity>,
}

/// What hubs of a name share, by its key.
pub type SharedIdentity = Vec<(String, Vec<u8>)>;

type Opened = (JetStreamJournal, Ledger, Recovery);

impl Opening {
    /// Starts to read. Never blocks.
    pub fn begin(options: Options, wish: Wish) -> Result<Opening, JournalError> {
        let no_thread = |source| JournalError::NoThread { source: Arc::new(source) };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(no_thread)?;
        let (tell, ready) = oneshot::channel();
        let (follow, following) = watch::channel(Following::default());
        let (share, shared_identity) = watch::channel(SharedIdentity::new());
        let (handle_to, handle) = std::sync::mpsc::channel();
        let work = move || {
            runtime.block_on(async {
                match open(&options, wish, &follow, share).await {
                    Err(error) => {
                        let _ = tell.send(Err(error.into()));
                    }
                    Ok(opened) => serve(opened, options, handle.recv().ok(), tell).await,
                }
            });
        };
        let thread = std::thread::Builder::new().name("journal".to_owned()).spawn(work);
        // The journal that the thread makes is the one that waits for the thread.
        let _ = handle_to.send(thread.map_err(no_thread)?);
        Ok(Opening { ready, following, shared_identity })
    }

    /// How far it has come, as it changes.
    pub fn following(&self) -> watch::Receiver<Following> {
        self.following.clone()
    }

    /// What hubs of this name share, as it changes; empty at first.
    pub fn shared_identity(&self) -> watch::Receiver<SharedIdentity> {
        self.shared_identity.clone()
    }

    /// Blocks until this hub leads, or cannot.
    pub fn wait(self) -> Result<Opened, JournalError> {
        wait(self.ready).unwrap_or(Err(JournalError::Died))
    }
}

/// All that a hub has when it begins to lead.
struct Begun {
    nats: Nats,
    snapshots: NatsStream,
    led: Led<NatsStream>,
    writer: u64,
    shared_identity: Vec<(String, Bytes)>,
    elapsed: Duration,
}

async fn open(
    options: &Options,
    wish: Wish,
    follow: &watch::Sender<Following>,
    share: watch::Sender<SharedIdentity>,
) -> Result<Begun, StreamError> {
    let begun = Instant::now();
    // A wrong address is a mistake that somebody waits to hear of; a hub that follows may have come first.
    let first = match wish {
        Wish::Lead => options.patience.min(CONNECT),
        Wish::Follow => options.patience,
    };
    let nats = patiently(first, || Nats::connect(options)).await?;
    let streams = patiently(options.patience, || nats.streams(options)).await?;
    let (writer, mut snapshots) = (random(), streams.snapshots);
    let terms = Terms {
        writer,
        part_bytes: nats.part_bytes,
        lease: options.lease,
        patience: options.patience,
        wish,
        about: options.about.clone(),
    };
    patiently(options.patience, || nats.make_shelves(options)).await?;
    let told =
        tokio::spawn(announce(nats.clone(), options.clone(), writer, false, follow.subscribe()));
    let shared = tokio::spawn(read_shared_identity(nats.clone(), options.clone(), share));
    let led = take_lead(streams.journal, &mut snapshots, &terms, follow).await;
    told.abort();
    shared.abort();
    let led = led?;
    let shared_identity =
        patiently(options.patience, || nats.texts(options, Shelf::Identity)).await?;
    Ok(Begun { nats, snapshots, led, writer, shared_identity, elapsed: begun.elapsed() })
}

/// For as long as this hub follows: it has to be known to whoever comes, and where they shall go.
async fn read_shared_identity(nats: Nats, options: Options, share: watch::Sender<SharedIdentity>) {
    loop {
        if let Ok(texts) = nats.texts(&options, Shelf::Identity).await {
            let texts = texts.into_iter().map(|(key, text)| (key, text.to_vec())).collect();
            share.send_if_modified(|known| {
                let is_new = *known != texts;
                *known = texts;
                is_new
            });
        }
        let is_known = !share.borrow().is_empty();
        sleep(if is_known { PAPERS } else { PAUSE }).await;
    }
}

/// Servers that were just killed or started may be without a leader for some seconds.
async fn patiently<T, F>(patience: Duration, mut work: impl FnMut() -> F) -> Result<T, NatsError>
where
    F: Future<Output = Result<T, NatsError>>,
{
    let begun = Instant::now();
    let mut is_told = false;
    loop {
        match work().await {
            Err(error) if error.is_passing() && begun.elapsed() < patience => {
                if !std::mem::replace(&mut is_told, true) {
                    tracing::warn!("{error}; trying again for {} s", patience.as_secs());
                }
                sleep(PAUSE).await;
            }
            done => return done,
        }
    }
}

async fn serve(
    begun: Begun,
    options: Options,
    thread: Option<std::thread::JoinHandle<()>>,
    tell: oneshot::Sender<Result<Opened, JournalError>>,
) {
    let Begun { nats, snapshots, led: Led { pen, reader }, writer, shared_identity, elapsed } =
        begun;
    let (orders, inbox) = mpsc::channel(ORDERS);
    let (failed, lost) = watch::channel(None);
    let lease = Arc::new(Lease::new(options.lease));
    let recovery = Recovery {
        last_number: reader.mark().number,
        at: reader.replay.at,
        messages: reader.messages,
        bytes: reader.bytes,
        snapshot_bytes: reader.snapshot_bytes,
        elapsed,
        shared_identity: shared_identity
            .into_iter()
            .map(|(key, text)| (key, text.to_vec()))
            .collect(),
    };
    let (asked, leave) = watch::channel(false);
    let (sequence, life) = (reader.mark().sequence, reader.replay.ledger.life() + 1);
    let (tell_others, written) =
        watch::channel(Following { sequence, last: sequence, life, leader: None });
    let scribe = Scribe::new(nats.clone(), pen, snapshots, writer, &options, Arc::clone(&lease))
        .found(&reader)
        .telling(tell_others);
    let journal = JetStreamJournal { orders, lease, lost, leave, thread };
    tokio::spawn(announce(nats.clone(), options.clone(), writer, true, written));
    tokio::spawn(hear_of_leaving(nats, options, asked));
    if tell.send(Ok((journal, reader.replay.ledger, recovery))).is_ok() {
        scribe.run(inbox, failed).await;
    }
}

/// Answers, so that whoever asked knows that it was heard.
async fn hear_of_leaving(nats: Nats, options: Options, asked: watch::Sender<bool>) {
    let Ok(mut requests) = nats.client.subscribe(hubs::subject(&options)).await else { return };
    while let Some(request) = requests.next().await {
        if let Some(reply) = request.reply {
            let _ = nats.client.publish(reply, "".into()).await;
        }
        asked.send_replace(true);
    }
}

/// Two hubs must not get the same.
fn random() -> u64 {
    let mut bytes = [0; 8];
    SystemRandom::new().fill(&mut bytes).expect("the system has random numbers");
    u64::from_le_bytes(bytes)
}

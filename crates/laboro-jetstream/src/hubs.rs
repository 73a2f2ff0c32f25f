//! Who else is there: what each hub of a name says of itself once a second, and how one is asked to go. For
//! people; who leads is settled by the journal alone.

use crate::journal::StreamError;
use crate::lead::Following;
use crate::nats::{Nats, NatsError, Shelf};
use crate::options::Options;
use laboro_journal::JournalError;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::sleep;

const EVERY: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct HubView {
    pub id: String,
    pub leads: bool,
    pub host: String,
    pub pid: u32,
    /// Where it listens, or will.
    pub http: String,
    pub native: String,
    pub life: u32,
    /// The last message that it has read or written, and the last one it knows of.
    pub sequence: u64,
    pub last: u64,
}

/// Says it again and again. Nothing depends on it, so nothing is made of failures.
pub(crate) async fn announce(
    nats: Nats,
    options: Options,
    id: u64,
    leads: bool,
    following: watch::Receiver<Following>,
) {
    loop {
        let Following { sequence, last, life, .. } = following.borrow().clone();
        let id = format!("{id:016x}");
        let about = options.about.clone();
        let view = HubView {
            leads,
            host: about.host,
            pid: std::process::id(),
            http: about.http,
            native: about.native,
            life,
            sequence,
            last: last.max(sequence),
            id: id.clone(),
        };
        if let Ok(text) = serde_json::to_vec(&view) {
            let _ = nats.put(&options, Shelf::Hubs, &id, text.into()).await;
        }
        sleep(EVERY).await;
    }
}

/// All hubs of this name that were heard of lately, the one that leads first.
pub fn hubs(options: &Options) -> Result<Vec<HubView>, JournalError> {
    run(async {
        let nats = Nats::connect_only(options).await?;
        let texts = nats.texts(options, Shelf::Hubs).await?;
        let views = texts.iter().filter_map(|(_, text)| serde_json::from_slice(text).ok());
        let mut views: Vec<HubView> = views.collect();
        // One that was overtaken may still be told of for some seconds.
        let newest = views.iter().filter(|hub| hub.leads).map(|hub| hub.life).max();
        views.iter_mut().for_each(|hub| hub.leads &= Some(hub.life) == newest);
        views.sort_by_key(|hub| (!hub.leads, hub.id.clone()));
        Ok(views)
    })
}

/// Asks the hub that leads to let another one lead. It answers before it goes.
pub fn ask_to_leave(options: &Options) -> Result<(), JournalError> {
    run(async {
        let nats = Nats::connect_only(options).await?;
        let answer = nats.client.request(subject(options), "".into()).await;
        answer.map(drop).map_err(|error| {
            let reason = format!("the leader does not answer: {error}");
            NatsError::Connect { servers: options.servers.join(","), reason }.into()
        })
    })
}

/// Where the hub that leads listens for this.
pub(crate) fn subject(options: &Options) -> String {
    format!("laboro.{}.hand-over", options.name)
}

fn run<T>(work: impl Future<Output = Result<T, StreamError>>) -> Result<T, JournalError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|source| JournalError::NoThread { source: Arc::new(source) })?;
    Ok(runtime.block_on(work)?)
}

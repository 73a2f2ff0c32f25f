//! Copies between the files of an output store and a stream. Each message says which file it belongs to, by its
//! subject, and where in it, by a header. One writes at a time, by the rule of the journal: whoever leads begins
//! with a message of its own, after which whatever others send is refused.

use super::known::Known;
use crate::nats::{Nats, NatsError};
use crate::options::Options;
use crate::stream::{NotStored, Unclear};
use async_nats::HeaderMap;
use async_nats::jetstream::consumer::pull::Config as Reading;
use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy};
use async_nats::jetstream::stream::{Config, DiscardPolicy, StorageType, Stream};
use bytes::Bytes;
use futures_util::StreamExt;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::PathBuf;
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// Where in its file a message begins.
const AT: &str = "Laboro-At";
/// The subject of the message with which a hub begins to lead.
const LEAD: &str = "lead";

const READ: Duration = Duration::from_secs(3);
const READ_MESSAGES: usize = 500;
const READ_BYTES: usize = 8 << 20;
const PAUSE: Duration = Duration::from_millis(100);
const TRIES: usize = 20;
/// Beside the bytes of the files, each message takes some.
const SPARE: u64 = 64 << 20;

#[derive(Debug, thiserror::Error)]
pub(super) enum CopyError {
    #[error("{0}")]
    Nats(String),
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("another hub copies now")]
    Fenced,
}

impl From<NatsError> for CopyError {
    fn from(error: NatsError) -> CopyError {
        CopyError::Nats(error.to_string())
    }
}

pub(super) struct Copier {
    options: Options,
    dir: PathBuf,
    bytes_max: Option<u64>,
    nats: Option<Nats>,
    known: Known,
}

/// What the stream has.
struct Held {
    last: u64,
    files: BTreeSet<u32>,
}

impl Copier {
    pub fn new(options: &Options, dir: PathBuf, bytes_max: Option<u64>) -> Copier {
        let known = Known::read(&dir);
        Copier { options: options.clone(), dir, bytes_max, nats: None, known }
    }

    /// Brings the files up to what the stream has, and gives its last sequence.
    pub async fn catch_up(&mut self) -> Result<u64, CopyError> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.dir)?;
        let held = self.held().await?;
        if held.last < self.known.sequence {
            // It is another stream than the one that was known, so nothing is known of it.
            self.known = Known::default();
        }
        let gone = self.known.files.keys().filter(|number| !held.files.contains(number));
        for number in gone.copied().collect::<Vec<_>>() {
            self.remove(number)?;
        }
        if held.last > self.known.sequence {
            // What was added here and never copied is not what others went on from.
            for (number, bytes) in self.known.files.clone() {
                self.cut(number, bytes)?;
            }
            self.read(held.last).await?;
        }
        self.known.write(&self.dir)?;
        Ok(held.last)
    }

    /// Makes sure that nobody else adds anything, and that all is here that anybody has added.
    pub async fn lead(&mut self) -> Result<(), CopyError> {
        for _ in 0..TRIES {
            let last = self.catch_up().await?;
            // Ours or not: all of it is here.
            self.known.sequence = last;
            let (subject, headers) = (self.subject(LEAD), HeaderMap::new());
            let nats = self.nats().await?;
            match nats.publish_after(last, subject, headers, Bytes::new()).await {
                Ok(sequence) => {
                    self.known.sequence = sequence;
                    self.known.write(&self.dir)?;
                    let (stream, subject) = (self.stream().await?, self.subject(LEAD));
                    // Earlier ones say nothing any more; if they stay, they are small.
                    let _ = stream.purge().filter(subject).keep(1).await;
                    return Ok(());
                }
                Err(NotStored::Refused(_)) => {}
                Err(NotStored::Unclear(reason)) => return Err(CopyError::Nats(reason.to_string())),
            }
            sleep(PAUSE).await;
        }
        Err(CopyError::Fenced)
    }

    /// Adds what the files have and the stream has not.
    pub async fn ship(&mut self) -> Result<(), CopyError> {
        let before = self.known.clone();
        let shipped = self.ship_all().await;
        if self.known != before {
            self.known.write(&self.dir)?;
        }
        shipped
    }

    async fn ship_all(&mut self) -> Result<(), CopyError> {
        let here = self.here()?;
        for number in &here {
            let file = File::open(self.path(*number))?;
            let (size, mut at) = (file.metadata()?.len(), self.size_of(*number));
            if size < at {
                // Its end was damaged, and was cut off when the store was opened.
                self.publish(*number, size, Bytes::new()).await?;
                at = size;
            }
            while at < size {
                let part = self.nats().await?.part_bytes as u64;
                let mut bytes = vec![0; part.min(size - at) as usize];
                file.read_exact_at(&mut bytes, at)?;
                at += bytes.len() as u64;
                self.publish(*number, at - bytes.len() as u64, bytes.into()).await?;
            }
        }
        let gone = self.known.files.keys().filter(|number| !here.contains(number));
        for number in gone.copied().collect::<Vec<_>>() {
            let (stream, subject) = (self.stream().await?, self.subject(&name(number)));
            stream.purge().filter(subject).await.map_err(refused)?;
            self.known.files.remove(&number);
        }
        Ok(())
    }

    fn size_of(&self, number: u32) -> u64 {
        self.known.files.get(&number).copied().unwrap_or(0)
    }

    /// Stores one message after all that are known, however often that has to be tried.
    async fn publish(&mut self, number: u32, at: u64, bytes: Bytes) -> Result<(), CopyError> {
        let (subject, next) = (self.subject(&name(number)), self.known.sequence + 1);
        let length = bytes.len() as u64;
        for _ in 0..TRIES {
            let mut headers = HeaderMap::new();
            headers.insert(AT, at.to_string());
            let nats = self.nats().await?;
            let said = nats.publish_after(next - 1, subject.clone(), headers, bytes.clone()).await;
            let is_stored = match said {
                Ok(sequence) => sequence == next,
                Err(NotStored::Refused(_)) => self.is_ours(next, &subject, at, &bytes).await?,
                Err(NotStored::Unclear(Unclear(reason))) => {
                    tracing::debug!("outputs: {reason}");
                    self.last().await? >= next && self.is_ours(next, &subject, at, &bytes).await?
                }
            };
            if is_stored {
                self.known.sequence = next;
                self.known.files.insert(number, at + length);
                return Ok(());
            }
            sleep(PAUSE).await;
        }
        Err(CopyError::Nats("the servers do not take it".to_owned()))
    }

    /// Whether the message of this sequence is the one that was sent. If another one is there, another hub leads.
    async fn is_ours(
        &mut self,
        sequence: u64,
        subject: &str,
        at: u64,
        bytes: &Bytes,
    ) -> Result<bool, CopyError> {
        if self.last().await? < sequence {
            return Ok(false);
        }
        let found = self.stream().await?.get_raw_message(sequence).await.map_err(refused)?;
        let found_at = found.headers.get(AT).and_then(|at| at.as_str().parse().ok());
        match *found.subject == *subject && found_at == Some(at) && found.payload == *bytes {
            true => Ok(true),
            false => Err(CopyError::Fenced),
        }
    }

    /// Messages after those that are known, into the files.
    async fn read(&mut self, upto: u64) -> Result<(), CopyError> {
        let config = Reading {
            deliver_policy: DeliverPolicy::ByStartSequence {
                start_sequence: self.known.sequence + 1,
            },
            ack_policy: AckPolicy::None,
            inactive_threshold: Duration::from_secs(30),
            num_replicas: 1,
            memory_storage: true,
            ..Reading::default()
        };
        let consumer = self.stream().await?.create_consumer(config).await.map_err(refused)?;
        let mut tries = 0;
        while self.known.sequence < upto {
            let fetch = consumer.fetch().max_messages(READ_MESSAGES).max_bytes(READ_BYTES);
            let batch = timeout(READ, fetch.messages()).await;
            let mut batch = batch.map_err(|_| late())?.map_err(refused)?;
            let mut came = 0;
            while let Some(message) = timeout(READ, batch.next()).await.map_err(|_| late())? {
                // The next one does not fit into this batch; it begins the next.
                let Ok(message) = message else { break };
                let sequence = message.info().map_err(refused)?.stream_sequence;
                let number = message.subject.rsplit('.').next().and_then(|name| name.parse().ok());
                let at = message.headers.as_ref().and_then(|headers| headers.get(AT));
                let at = at.and_then(|at| at.as_str().parse().ok());
                if let (Some(number), Some(at)) = (number, at) {
                    self.write(number, at, &message.payload)?;
                }
                self.known.sequence = sequence;
                came += 1;
            }
            if came > 0 {
                tries = 0;
                continue;
            }
            // What is missing up to there was purged, unless the server that reads for us is behind the others.
            tries += 1;
            match tries < TRIES {
                true => sleep(PAUSE).await,
                false => self.known.sequence = upto,
            }
        }
        Ok(())
    }

    /// A piece of a file, which ends with it.
    fn write(&mut self, number: u32, at: u64, bytes: &[u8]) -> io::Result<()> {
        let path = self.path(number);
        let mut options = File::options();
        options.create(true).truncate(false).write(true).mode(0o600);
        let file = options.open(&path)?;
        if file.metadata()?.len() < at {
            // Its beginning is gone; the rest alone says nothing.
            return Ok(());
        }
        file.write_all_at(bytes, at)?;
        file.set_len(at + bytes.len() as u64)?;
        self.known.files.insert(number, at + bytes.len() as u64);
        self.forget_index(number)
    }

    fn cut(&self, number: u32, bytes: u64) -> io::Result<()> {
        match File::options().write(true).open(self.path(number)) {
            Ok(file) if file.metadata()?.len() > bytes => {
                file.set_len(bytes)?;
                self.forget_index(number)
            }
            Ok(_) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn remove(&mut self, number: u32) -> io::Result<()> {
        self.known.files.remove(&number);
        self.forget_index(number)?;
        missing_is_fine(fs::remove_file(self.path(number)))
    }

    /// It is made again when the store is opened.
    fn forget_index(&self, number: u32) -> io::Result<()> {
        missing_is_fine(fs::remove_file(self.path(number).with_extension("idx")))
    }

    fn path(&self, number: u32) -> PathBuf {
        self.dir.join(format!("{}.out", name(number)))
    }

    /// The numbers of all files.
    fn here(&self) -> io::Result<BTreeSet<u32>> {
        let mut numbers = BTreeSet::new();
        for entry in fs::read_dir(&self.dir)? {
            let file = entry?.file_name();
            let stem = file.to_str().and_then(|file| file.strip_suffix(".out"));
            numbers.extend(stem.and_then(|stem| stem.parse::<u32>().ok()));
        }
        Ok(numbers)
    }

    async fn last(&mut self) -> Result<u64, CopyError> {
        Ok(self.held().await?.last)
    }

    async fn held(&mut self) -> Result<Held, CopyError> {
        #[derive(serde::Deserialize)]
        struct Info {
            state: State,
        }
        #[derive(serde::Deserialize)]
        struct State {
            last_seq: u64,
            #[serde(default)]
            subjects: std::collections::HashMap<String, u64>,
        }
        let filter = serde_json::json!({ "subjects_filter": self.subject("*") });
        let ask = format!("STREAM.INFO.{}", self.name());
        let info: Info = self.nats().await?.context.request(ask, &filter).await.map_err(refused)?;
        let subjects = info.state.subjects.into_keys();
        let files = subjects.filter_map(|subject| subject.rsplit('.').next()?.parse().ok());
        Ok(Held { last: info.state.last_seq, files: files.collect() })
    }

    async fn nats(&mut self) -> Result<&Nats, CopyError> {
        if self.nats.is_none() {
            let nats = Nats::connect_only(&self.options).await?;
            let config = Config {
                name: self.name(),
                subjects: vec![self.subject("*")],
                storage: StorageType::File,
                num_replicas: self.options.replicas,
                discard: DiscardPolicy::New,
                max_bytes: self.bytes_max.map_or(-1, |most| {
                    i64::try_from(most.saturating_add(most / 4).saturating_add(SPARE))
                        .unwrap_or(i64::MAX)
                }),
                ..Config::default()
            };
            nats.context.get_or_create_stream(config).await.map_err(refused)?;
            self.nats = Some(nats);
        }
        Ok(self.nats.as_ref().expect("made when it was missing"))
    }

    async fn stream(&mut self) -> Result<Stream<()>, CopyError> {
        let name = self.name();
        self.nats().await?.context.get_stream_no_info(name).await.map_err(refused)
    }

    fn name(&self) -> String {
        format!("LABORO_{}_OUTPUTS", self.options.name)
    }

    fn subject(&self, last: &str) -> String {
        format!("laboro.{}.outputs.{last}", self.options.name)
    }
}

/// As the store names its files.
fn name(number: u32) -> String {
    format!("{number:010}")
}

fn refused(error: impl std::fmt::Display) -> CopyError {
    CopyError::Nats(error.to_string())
}

fn late() -> CopyError {
    CopyError::Nats("no answer to a read".to_owned())
}

fn missing_is_fine(done: io::Result<()>) -> io::Result<()> {
    match done {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

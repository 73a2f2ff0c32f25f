//! Writes batches, one after the other, and is heard of when there are none. Condenses in the background.

use super::{CommitAnswer, Lease, ScribeOrder, StreamError};
use crate::lead::Following;
use crate::message::Kind;
use crate::nats::{Nats, NatsStream, Shelf};
use crate::options::Options;
use crate::pen::Pen;
use crate::read::Reader;
use crate::snapshot::{self, CondenseError, Task};
use laboro_core::{Event, Time};
use laboro_journal::record::Encoder;
use laboro_journal::{JournalError, Replay};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::sleep_until;

pub(super) struct Scribe {
    pen: Pen<NatsStream>,
    snapshots: NatsStream,
    writer: u64,
    life: u32,
    nats: Nats,
    options: Options,
    lease: Arc<Lease>,
    tell: watch::Sender<Following>,
    /// Said whenever it is heard of.
    about: Vec<u8>,
    /// How often it is heard of at least.
    every: Duration,
    encoder: Encoder,
    condensing: Condensing,
}

/// When to condense, and whether it goes on.
struct Condensing {
    after_bytes: u64,
    after_messages: u64,
    bytes: u64,
    /// The sequence up to which the last snapshot goes.
    covered: u64,
    snapshot_bytes: u64,
    running: Option<Running>,
}

struct Running {
    ended: oneshot::Receiver<Result<u64, CondenseError>>,
    upto: u64,
    bytes: u64,
    stop: Arc<AtomicBool>,
    waits: Option<CommitAnswer>,
}

impl Scribe {
    pub fn new(
        nats: Nats,
        pen: Pen<NatsStream>,
        snapshots: NatsStream,
        writer: u64,
        options: &Options,
        lease: Arc<Lease>,
    ) -> Scribe {
        lease.renew(pen.written());
        let condensing = Condensing {
            after_bytes: options.condense_after_bytes,
            after_messages: options.condense_after_messages,
            bytes: 0,
            covered: 0,
            snapshot_bytes: 0,
            running: None,
        };
        let (every, encoder) = (options.lease / 3, Encoder::default());
        let life = 0;
        let (tell, _) = watch::channel(Following::default());
        let about = options.about.text();
        let options = options.clone();
        Scribe {
            pen,
            snapshots,
            writer,
            life,
            nats,
            options,
            lease,
            tell,
            about,
            every,
            encoder,
            condensing,
        }
    }

    /// Where it says how far it is.
    pub fn telling(self, tell: watch::Sender<Following>) -> Scribe {
        Scribe { tell, ..self }
    }

    /// What was there when the journal was opened.
    pub fn found(mut self, reader: &Reader) -> Scribe {
        self.life = reader.replay.ledger.life() + 1;
        self.condensing.bytes = reader.bytes;
        self.condensing.covered = reader.mark().sequence - reader.messages;
        self.condensing.snapshot_bytes = reader.snapshot_bytes;
        self
    }

    /// Until there are no more orders, or it may not write any more; then everybody is told.
    pub async fn run(
        mut self,
        mut orders: mpsc::Receiver<ScribeOrder>,
        failed: watch::Sender<Option<JournalError>>,
    ) {
        loop {
            let heard = sleep_until(self.pen.written() + self.every);
            let done = tokio::select! {
                biased;
                order = orders.recv() => match order {
                    None => break,
                    Some(ScribeOrder::Close { done }) => {
                        let closed = self.pen.word(Kind::Bye, &[]).await;
                        let _ = done.send(closed.map_err(|error| StreamError::from(error).into()));
                        break;
                    }
                    Some(ScribeOrder::Commit { at, events, done }) => {
                        let written = self.write(at, &events).await;
                        let result = written.clone().map_err(JournalError::from);
                        if result.is_err() {
                            // Before the answer, so that nobody asks again in between.
                            failed.send_replace(result.clone().err());
                        }
                        let _ = done.send(result);
                        written
                    }
                    Some(ScribeOrder::Condense { done }) => {
                        self.condense(None, Some(done));
                        self.alive().await
                    }
                    Some(ScribeOrder::Leave) => {
                        self.about.clear();
                        self.alive().await
                    }
                    Some(ScribeOrder::Share { key, text }) => {
                        tokio::spawn(share(self.nats.clone(), self.options.clone(), key, text));
                        Ok(())
                    }
                    Some(ScribeOrder::Install { replay, done }) => {
                        self.condense(Some(replay), Some(done));
                        Ok(())
                    }
                },
                () = heard => self.alive().await,
                ended = wait(&mut self.condensing.running) => {
                    self.condensing.end(ended);
                    Ok(())
                }
            };
            let done = match done {
                Ok(()) => self.condense_if_due().await,
                failed => failed,
            };
            if let Err(error) = done {
                tracing::error!("{error}");
                failed.send_replace(Some(error.into()));
                break;
            }
            self.lease.renew(self.pen.written());
            let (sequence, life) = (self.pen.mark().sequence, self.life);
            self.tell.send_replace(Following { sequence, last: sequence, life, leader: None });
        }
        if let Some(running) = &self.condensing.running {
            running.stop.store(true, Ordering::Relaxed);
        }
    }

    async fn write(&mut self, at: Time, events: &[Event]) -> Result<(), StreamError> {
        if events.is_empty() {
            return self.alive().await;
        }
        let record = self.encoder.batch(at, events);
        self.condensing.bytes += self.pen.record(record).await?;
        Ok(())
    }

    async fn alive(&mut self) -> Result<(), StreamError> {
        Ok(self.pen.word(Kind::Alive, &self.about).await?)
    }

    async fn condense_if_due(&mut self) -> Result<(), StreamError> {
        if !self.condensing.is_due(self.pen.mark().sequence) {
            return Ok(());
        }
        self.condense(None, None);
        // Whoever begins to read at the new snapshot shall know who leads.
        self.alive().await
    }

    /// From the stream, or from elsewhere. Whoever waits gets an answer in any case.
    fn condense(&mut self, given: Option<Box<Replay>>, waits: Option<CommitAnswer>) {
        if self.condensing.running.is_some() || self.pen.mark().sequence <= self.condensing.covered
        {
            waits.map(|done| done.send(Ok(())));
            return;
        }
        let upto = self.pen.mark();
        let task =
            Task { upto, writer: self.writer, life: self.life, part_bytes: self.nats.part_bytes };
        let (mut journal, snapshots) = (self.pen.stream().clone(), self.snapshots.clone());
        let (tell, ended) = oneshot::channel();
        let stop = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&stop);
        let work = move || {
            let made = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let made = made.map_err(CondenseError::from).and_then(|runtime| match given {
                None => snapshot::condense(&runtime, &mut journal, snapshots, task, &told),
                Some(given) => snapshot::install(&runtime, snapshots, &given, task, &told),
            });
            let _ = tell.send(made);
        };
        // If it cannot start, its end is heard at once.
        let _ = std::thread::Builder::new().name("journal-condense".to_owned()).spawn(work);
        let (upto, bytes) = (upto.sequence, self.condensing.bytes);
        self.condensing.running = Some(Running { ended, upto, bytes, stop, waits });
    }
}

/// The journal does not wait for it.
async fn share(nats: Nats, options: Options, key: String, text: Vec<u8>) {
    if let Err(error) = nats.put(&options, Shelf::Identity, &key, text.into()).await {
        tracing::warn!("what changed is not shared with other hubs: {error}");
    }
}

/// Never, if nothing runs.
async fn wait(running: &mut Option<Running>) -> Result<u64, String> {
    match running {
        None => std::future::pending().await,
        Some(running) => match (&mut running.ended).await {
            Ok(made) => made.map_err(|error| error.to_string()),
            Err(_) => Err("its thread did not start, or panicked".to_owned()),
        },
    }
}

impl Condensing {
    fn is_due(&self, sequence: u64) -> bool {
        let messages = sequence - self.covered;
        let enough = self.after_bytes.max(self.snapshot_bytes.saturating_mul(2));
        self.running.is_none() && (self.bytes > enough || messages > self.after_messages)
    }

    fn end(&mut self, made: Result<u64, String>) {
        let Some(running) = self.running.take() else { return };
        let result = match made {
            Ok(bytes) => {
                self.bytes -= running.bytes;
                self.snapshot_bytes = bytes;
                Ok(())
            }
            // Nothing is lost, only longer. Not tried again before as much has come again.
            Err(reason) => {
                tracing::warn!("the journal was not condensed: {reason}");
                self.bytes = 0;
                Err(JournalError::Elsewhere(Arc::new(NotCondensed(reason))))
            }
        };
        self.covered = running.upto;
        running.waits.map(|done| done.send(result));
    }
}

#[derive(Debug, thiserror::Error)]
#[error("the journal was not condensed: {0}")]
struct NotCondensed(String);

//! Writes to a stream, one message at a time, each only right after the one before it. When an answer is a
//! refusal or missing, it looks at what is in the stream, and goes on only if that is its own.

use crate::message::{HEAD_BYTES, Head, Kind, Message};
use crate::stream::{Bounds, NotStored, Stream, Unclear};
use bytes::Bytes;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How long to wait before trying again; twice as long each time.
const PAUSE_MIN: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_millis(500);

/// Where a stream ends, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Mark {
    pub sequence: u64,
    /// The check of the message there.
    pub chain: u32,
    /// Of the last whole record.
    pub number: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PenError {
    #[error(
        "another hub has taken over (it wrote message {sequence}{}); this one stops and has \
         acknowledged nothing since",
        in_life(.life)
    )]
    Fenced { sequence: u64, life: Option<u32> },

    #[error(
        "the stream ends with message {last}, but {known} was acknowledged: it has lost messages, or \
         is another one; restore it from a backup, or start again under another --name"
    )]
    Lost { last: u64, known: u64 },

    #[error("no clear answer from NATS in {} s, the last one: {reason}", .waited.as_secs())]
    Silent { waited: Duration, reason: String },
}

fn in_life(life: &Option<u32>) -> String {
    life.map(|life| format!(" in life {life}")).unwrap_or_default()
}

#[derive(Debug)]
pub(crate) struct Pen<S> {
    stream: S,
    mark: Mark,
    writer: u64,
    life: u32,
    /// Most bytes of a record in one message.
    part_bytes: usize,
    /// How long it tries before it gives up.
    patience: Duration,
    /// When the newest message that is stored was first sent.
    written: Instant,
}

/// What a look into the stream tells of a message that was sent.
enum Seen {
    Stored,
    /// Not yet, or never.
    Missing {
        last: u64,
    },
    Fenced {
        life: Option<u32>,
    },
}

impl<S: Stream> Pen<S> {
    /// Writes after `mark`, from where nobody else may go on.
    pub fn new(stream: S, mark: Mark, writer: u64, life: u32, part_bytes: usize) -> Pen<S> {
        let (patience, written) = (Duration::from_secs(20), Instant::now());
        Pen { stream, mark, writer, life, part_bytes: part_bytes.max(1), patience, written }
    }

    pub fn with_patience(self, patience: Duration) -> Pen<S> {
        Pen { patience, ..self }
    }

    pub fn mark(&self) -> Mark {
        self.mark
    }

    pub fn into_stream(self) -> S {
        self.stream
    }

    pub fn stream(&mut self) -> &mut S {
        &mut self.stream
    }

    /// Since when nobody else can have written, at least.
    pub fn written(&self) -> Instant {
        self.written
    }

    /// A record, in as many messages as it takes. Returns the bytes they have.
    pub async fn record(&mut self, record: &[u8]) -> Result<u64, PenError> {
        let number = self.mark.number + 1;
        let parts = record.len().div_ceil(self.part_bytes).max(1);
        for part in 0..parts {
            let from = part * self.part_bytes;
            let body = &record[from..record.len().min(from + self.part_bytes)];
            let kind = if part + 1 == parts { Kind::Record } else { Kind::Part };
            self.send(kind, number, part as u32, body).await?;
        }
        self.mark.number = number;
        Ok((record.len() + parts * HEAD_BYTES) as u64)
    }

    /// A message that is no record.
    pub async fn word(&mut self, kind: Kind, body: &[u8]) -> Result<(), PenError> {
        self.send(kind, self.mark.number, 0, body).await
    }

    async fn send(
        &mut self,
        kind: Kind,
        number: u64,
        part: u32,
        body: &[u8],
    ) -> Result<(), PenError> {
        let (writer, life, chain) = (self.writer, self.life, self.mark.chain);
        let head = Head { kind, writer, life, number, part, chain };
        let (message, check) = head.seal(body);
        let begun = Instant::now();
        let mut pause = PAUSE_MIN;
        loop {
            let reason = match self.try_once(&message, check).await {
                Ok(Seen::Stored) => {
                    self.mark.sequence += 1;
                    self.mark.chain = check;
                    self.written = begun;
                    return Ok(());
                }
                Ok(Seen::Fenced { life }) => {
                    return Err(PenError::Fenced { sequence: self.mark.sequence + 1, life });
                }
                // A leader of the stream that is new may not have told all yet, so this is no proof.
                Ok(Seen::Missing { last }) if last < self.mark.sequence => {
                    if begun.elapsed() > self.patience {
                        return Err(PenError::Lost { last, known: self.mark.sequence });
                    }
                    "the stream is shorter than it was".to_owned()
                }
                Ok(Seen::Missing { .. }) => "the message is not there".to_owned(),
                Err(Unclear(reason)) => reason,
            };
            if begun.elapsed() > self.patience {
                return Err(PenError::Silent { waited: begun.elapsed(), reason });
            }
            tracing::debug!(sequence = self.mark.sequence + 1, "not stored yet: {reason}");
            sleep(pause).await;
            pause = PAUSE_MAX.min(pause * 2);
        }
    }

    /// Sending it again is safe: the stream takes one message after the mark, so at most one of all copies.
    async fn try_once(&mut self, message: &Bytes, check: u32) -> Result<Seen, Unclear> {
        let next = self.mark.sequence + 1;
        match self.stream.append(self.mark.sequence, message.clone()).await {
            Ok(sequence) if sequence == next => return Ok(Seen::Stored),
            Ok(sequence) => {
                // Not what was asked for: it can only be another stream of this name.
                return Err(Unclear(format!("it was stored as {sequence}, not as {next}")));
            }
            Err(NotStored::Refused(reason)) => tracing::debug!("refused: {reason}"),
            Err(NotStored::Unclear(unclear)) => {
                tracing::warn!("message {next}: {unclear}; looking whether it is there");
            }
        }
        let Bounds { first, last, .. } = self.stream.bounds().await?;
        if first > next {
            // We trim only what is long behind us.
            return Ok(Seen::Fenced { life: None });
        }
        if last < next {
            return Ok(Seen::Missing { last });
        }
        let Some(found) = self.stream.get(next).await? else {
            // Whoever was asked is behind the one who said that it is there.
            return Err(Unclear(format!("message {next} is there, but not to be had")));
        };
        Ok(match Message::open(found) {
            Ok(found) if found.check == check && found.head.writer == self.writer => {
                // Ours, but if more follows, somebody else goes on from it already.
                if last == next { Seen::Stored } else { Seen::Fenced { life: None } }
            }
            Ok(found) => Seen::Fenced { life: Some(found.head.life) },
            Err(_) => Seen::Fenced { life: None },
        })
    }
}

//! A stream in NATS.

use super::Nats;
use crate::message::Kind;
use crate::stream::{Bounds, NotStored, Stream, Unclear};
use async_nats::HeaderMap;
use async_nats::jetstream;
use async_nats::jetstream::consumer::pull::Config;
use async_nats::jetstream::consumer::{AckPolicy, Consumer, DeliverPolicy};
use async_nats::jetstream::stream::LastRawMessageErrorKind;
use bytes::Bytes;
use futures_util::StreamExt;
use std::fmt;
use std::time::Duration;
use tokio::time::timeout;

const READ: Duration = Duration::from_secs(3);
/// A read takes at most this much at once.
const READ_MESSAGES: usize = 1000;
const READ_BYTES: usize = 8 << 20;
/// A consumer that nobody uses goes away by itself.
const CONSUMER_IDLE: Duration = Duration::from_secs(60);

pub(crate) struct NatsStream {
    nats: Nats,
    name: String,
    subject: String,
    /// Where a consumer goes on, and itself.
    reading: Option<(u64, Consumer<Config>)>,
}

impl NatsStream {
    pub(super) fn new(nats: &Nats, name: String, subject: String) -> NatsStream {
        NatsStream { nats: nats.clone(), name, subject, reading: None }
    }

    async fn handle(&self) -> Result<jetstream::stream::Stream<()>, Unclear> {
        self.nats.context.get_stream_no_info(&self.name).await.map_err(unclear)
    }

    async fn consumer(&mut self, from: u64) -> Result<Consumer<Config>, Unclear> {
        if let Some((at, consumer)) = self.reading.take()
            && at == from
        {
            return Ok(consumer);
        }
        let config = Config {
            deliver_policy: DeliverPolicy::ByStartSequence { start_sequence: from },
            ack_policy: AckPolicy::None,
            inactive_threshold: CONSUMER_IDLE,
            num_replicas: 1,
            memory_storage: true,
            ..Config::default()
        };
        self.handle().await?.create_consumer(config).await.map_err(unclear)
    }
}

impl Clone for NatsStream {
    fn clone(&self) -> NatsStream {
        NatsStream::new(&self.nats, self.name.clone(), self.subject.clone())
    }
}

impl fmt::Debug for NatsStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NatsStream").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Stream for NatsStream {
    async fn append(&mut self, after: u64, message: Bytes) -> Result<u64, NotStored> {
        // The kind is the fifth byte of every message.
        let subject = match message.get(4) {
            Some(kind) if *kind == Kind::End as u8 => format!("{}.end", self.subject),
            _ => self.subject.clone(),
        };
        self.nats.publish_after(after, subject, HeaderMap::new(), message).await
    }

    async fn bounds(&mut self) -> Result<Bounds, Unclear> {
        let state = self.handle().await?.get_info().await.map_err(unclear)?.state;
        Ok(Bounds {
            first: state.first_sequence,
            last: state.last_sequence,
            messages: state.messages,
            bytes: state.bytes,
        })
    }

    async fn get(&mut self, sequence: u64) -> Result<Option<Bytes>, Unclear> {
        match self.handle().await?.get_raw_message(sequence).await {
            Ok(message) => Ok(Some(message.payload)),
            Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => Ok(None),
            Err(error) => Err(unclear(error)),
        }
    }

    async fn last_end(&mut self) -> Result<Option<(u64, Bytes)>, Unclear> {
        let subject = format!("{}.end", self.subject);
        match self.handle().await?.get_last_raw_message_by_subject(&subject).await {
            Ok(message) => Ok(Some((message.sequence, message.payload))),
            Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => Ok(None),
            Err(error) => Err(unclear(error)),
        }
    }

    async fn read(&mut self, from: u64) -> Result<Vec<(u64, Bytes)>, Unclear> {
        let consumer = self.consumer(from).await?;
        let fetch = consumer.fetch().max_messages(READ_MESSAGES).max_bytes(READ_BYTES);
        let mut batch = timeout(READ, fetch.messages())
            .await
            .map_err(|_| Unclear("no answer to a read".to_owned()))?
            .map_err(unclear)?;
        let mut read: Vec<(u64, Bytes)> = Vec::new();
        loop {
            let message = match timeout(READ, batch.next()).await {
                Err(_) => return Err(Unclear("a read stopped half way".to_owned())),
                Ok(None) => break,
                // The next one does not fit into this batch; it begins the next.
                Ok(Some(Err(_))) if !read.is_empty() => break,
                Ok(Some(Err(error))) => return Err(Unclear(error.to_string())),
                Ok(Some(Ok(message))) => message,
            };
            let sequence =
                message.info().map_err(|error| Unclear(error.to_string()))?.stream_sequence;
            // What was lost on the way is read anew.
            if read.last().is_some_and(|(before, _)| before + 1 != sequence) {
                return Ok(read);
            }
            read.push((sequence, message.message.payload));
        }
        drop(batch);
        let next = read.last().map_or(from, |(sequence, _)| sequence + 1);
        let is_first = read.first().is_none_or(|(sequence, _)| *sequence == from);
        if is_first {
            self.reading = Some((next, consumer));
        }
        Ok(read)
    }

    async fn trim(&mut self, before: u64) -> Result<(), Unclear> {
        self.handle().await?.purge().sequence(before).await.map(drop).map_err(unclear)
    }
}

fn unclear(error: impl fmt::Display) -> Unclear {
    Unclear(error.to_string())
}

//! Small texts that all hubs of a name share, the newest of each: who the hub is and whom it lets in, so that the
//! next one is the same to everybody. Also what each hub says of itself, which is forgotten soon.

use super::{Nats, NatsError};
use crate::options::Options;
use async_nats::jetstream::consumer::pull::Config as Reading;
use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy};
use async_nats::jetstream::stream::{Config, StorageType};
use bytes::Bytes;
use futures_util::StreamExt;
use std::time::Duration;

/// A hub that said nothing for so long is not shown any more.
const HUB_AGE: Duration = Duration::from_secs(10);
const TEXTS_MAX: usize = 1000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shelf {
    Identity,
    Hubs,
}

impl Shelf {
    fn name(self, options: &Options) -> String {
        let part = match self {
            Shelf::Identity => "PAPERS",
            Shelf::Hubs => "HUBS",
        };
        format!("LABORO_{}_{part}", options.name)
    }

    fn subject(self, options: &Options, key: &str) -> String {
        let part = match self {
            Shelf::Identity => "papers",
            Shelf::Hubs => "hubs",
        };
        format!("laboro.{}.{part}.{key}", options.name)
    }

    fn config(self, options: &Options) -> Config {
        let (storage, max_age) = match self {
            Shelf::Identity => (StorageType::File, Duration::ZERO),
            Shelf::Hubs => (StorageType::Memory, HUB_AGE),
        };
        Config {
            name: self.name(options),
            subjects: vec![self.subject(options, "*")],
            max_messages_per_subject: 1,
            num_replicas: options.replicas,
            storage,
            max_age,
            ..Config::default()
        }
    }
}

impl Nats {
    pub async fn make_shelves(&self, options: &Options) -> Result<(), NatsError> {
        for shelf in [Shelf::Identity, Shelf::Hubs] {
            let stream = shelf.name(options);
            let made = self.context.get_or_create_stream(shelf.config(options)).await;
            made.map_err(|error| NatsError::Stream { stream, reason: error.to_string() })?;
        }
        Ok(())
    }

    /// Keys hold no dots.
    pub async fn put(
        &self,
        options: &Options,
        shelf: Shelf,
        key: &str,
        text: Bytes,
    ) -> Result<(), NatsError> {
        let stream = shelf.name(options);
        let refused = |reason: String| NatsError::Stream { stream: stream.clone(), reason };
        let sent = self.context.publish(shelf.subject(options, key), text).await;
        let stored = sent.map_err(|error| refused(error.to_string()))?.await;
        stored.map(drop).map_err(|error| refused(error.to_string()))
    }

    /// All that is there, by its key.
    pub async fn texts(
        &self,
        options: &Options,
        shelf: Shelf,
    ) -> Result<Vec<(String, Bytes)>, NatsError> {
        let stream = shelf.name(options);
        let refused = |reason: String| NatsError::Stream { stream: stream.clone(), reason };
        let handle = self.context.get_stream_no_info(&stream).await;
        let config = Reading {
            deliver_policy: DeliverPolicy::LastPerSubject,
            filter_subject: shelf.subject(options, "*"),
            ack_policy: AckPolicy::None,
            inactive_threshold: Duration::from_secs(5),
            num_replicas: 1,
            memory_storage: true,
            ..Reading::default()
        };
        let handle = handle.map_err(|error| refused(error.to_string()))?;
        let consumer = handle.create_consumer(config).await;
        let consumer = consumer.map_err(|error| refused(error.to_string()))?;
        let batch = consumer.fetch().max_messages(TEXTS_MAX).messages().await;
        let mut batch = batch.map_err(|error| refused(error.to_string()))?;
        let mut texts = Vec::new();
        while let Some(message) = batch.next().await {
            let message = message.map_err(|error| refused(error.to_string()))?;
            let key = message.subject.rsplit('.').next().unwrap_or_default().to_owned();
            texts.push((key, message.message.payload));
        }
        Ok(texts)
    }
}

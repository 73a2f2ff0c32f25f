//! The streams of one hub: found, or made as a journal needs them. Never changed: what an administrator set up
//! otherwise is refused with a reason.

use super::{Nats, NatsError, NatsStream};
use crate::options::Options;
use async_nats::jetstream::stream::{Config, DiscardPolicy, Info, RetentionPolicy, StorageType};

/// The journal, and the snapshots beside it.
pub(crate) struct Streams {
    pub journal: NatsStream,
    pub snapshots: NatsStream,
}

const JOURNAL: &str = "JOURNAL";
const SNAPSHOTS: &str = "SNAPSHOTS";

impl Nats {
    pub async fn streams(&self, options: &Options) -> Result<Streams, NatsError> {
        let made = [JOURNAL, SNAPSHOTS].map(|part| {
            let name = format!("LABORO_{}_{part}", options.name);
            config(name, subject(options, part), options.replicas)
        });
        for config in made {
            self.find_or_make(config).await?;
        }
        Ok(self.existing(options))
    }

    /// For whoever only reads; that they are there shows when they are read.
    pub fn existing(&self, options: &Options) -> Streams {
        let stream = |part| {
            NatsStream::new(self, format!("LABORO_{}_{part}", options.name), subject(options, part))
        };
        Streams { journal: stream(JOURNAL), snapshots: stream(SNAPSHOTS) }
    }

    async fn find_or_make(&self, config: Config) -> Result<(), NatsError> {
        let (stream, replicas) = (config.name.clone(), config.num_replicas);
        // Two hubs that start at once both make it, and both get the same.
        let made = self.context.get_or_create_stream(config).await;
        let made = made.map_err(|error| {
            let reason = error.to_string();
            NatsError::Stream { stream: stream.clone(), reason }
        })?;
        let found = made.cached_info();
        if found.config.num_replicas < replicas {
            tracing::warn!("stream {stream} has {} replicas only", found.config.num_replicas);
        }
        fitness(found).map_err(|reason| NatsError::Unfit { stream, reason: reason.to_owned() })
    }
}

fn subject(options: &Options, part: &str) -> String {
    format!("laboro.{}.{}", options.name, part.to_lowercase())
}

fn config(name: String, subject: String, replicas: usize) -> Config {
    Config {
        name,
        // The end of a snapshot has a subject of its own, so that it is found.
        subjects: vec![subject.clone(), format!("{subject}.end")],
        storage: StorageType::File,
        num_replicas: replicas,
        discard: DiscardPolicy::New,
        deny_delete: true,
        ..Config::default()
    }
}

/// Nothing may take messages away but the hub itself.
fn fitness(info: &Info) -> Result<(), &'static str> {
    let config = &info.config;
    match () {
        () if config.storage != StorageType::File => Err("it is kept in memory"),
        () if config.retention != RetentionPolicy::Limits => Err("its retention is not `limits`"),
        () if !config.max_age.is_zero() => Err("it has a `max_age`"),
        () if config.max_messages > 0 && config.discard != DiscardPolicy::New => {
            Err("it has a `max_msgs` and discards old messages")
        }
        () if config.max_bytes > 0 && config.discard != DiscardPolicy::New => {
            Err("it has a `max_bytes` and discards old messages")
        }
        () if config.max_messages_per_subject > 0 => Err("it has a `max_msgs_per_subject`"),
        () if config.no_ack => Err("it acknowledges nothing"),
        () if config.sealed => Err("it is sealed"),
        () if config.mirror.is_some() || config.sources.is_some() => Err("it mirrors another one"),
        () => Ok(()),
    }
}

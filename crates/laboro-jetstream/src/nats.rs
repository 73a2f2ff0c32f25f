//! The connection to NATS, and the streams of one hub there. Servers that cannot keep what they acknowledge are
//! refused here, in words that say what to change.

mod connect;
mod monitor;
mod publish;
mod shelf;
mod stream;
mod streams;

pub(crate) use connect::Nats;
pub(crate) use shelf::Shelf;
pub(crate) use stream::NatsStream;

#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum NatsError {
    #[error(
        "{0} is not a name for a hub in NATS: letters, digits, - and _ are allowed, 64 at most"
    )]
    Name(String),

    #[error("{0} is not the address of a NATS server: write nats://host:port")]
    Address(String),

    #[error("cannot read {file}: {reason}")]
    File { file: String, reason: String },

    #[error(
        "cannot connect to NATS at {servers}: {reason}; are these the right addresses, and do the servers run?"
    )]
    Connect { servers: String, reason: String },

    #[error(
        "the NATS server at {server} is version {version}; 2.10.27 or newer is needed, because older ones \
         cannot write to disk before they acknowledge"
    )]
    Old { server: String, version: String },

    #[error(
        "the NATS server {server} acknowledges before it has written to disk; set `sync_interval: always` \
         in its `jetstream` block, or accept the risk with --nats-accept-unsynced"
    )]
    Unsynced { server: String },

    #[error(
        "cannot tell whether the NATS servers write to disk before they acknowledge{reason}; name their \
         monitoring addresses with --nats-monitor http://host:8222, or accept the risk with \
         --nats-accept-unsynced"
    )]
    Unknown { reason: String },

    #[error(
        "the NATS server at {server} takes messages of {bytes} bytes at most; set `max_payload` to 1MB"
    )]
    Payload { server: String, bytes: usize },

    #[error("cannot use the stream {stream}: {reason}{}", hint(.reason))]
    Stream { stream: String, reason: String },

    #[error("the stream {stream} is not as a journal needs it: {reason}")]
    Unfit { stream: String, reason: String },
}

impl NatsError {
    /// The same may go well in a moment: servers without a leader, or that are just being started. A wrong
    /// password or a missing feature is told at once.
    pub(crate) fn is_passing(&self) -> bool {
        let (NatsError::Connect { reason, .. } | NatsError::Stream { reason, .. }) = self else {
            return false;
        };
        let lasting = ["authorization", "replicas", "not enabled", "peers", "permission"];
        let reason = reason.to_lowercase();
        !lasting.iter().any(|word| reason.contains(word))
    }
}

fn hint(reason: &str) -> &'static str {
    match reason {
        _ if reason.contains("replicas") || reason.contains("peers") => {
            "; three servers are needed for three replicas, --nats-replicas 1 asks for one"
        }
        _ if reason.contains("not enabled") || reason.contains("no responders") => {
            "; JetStream has to be enabled at the servers"
        }
        _ => "",
    }
}

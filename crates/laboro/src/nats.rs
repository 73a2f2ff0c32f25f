//! How commands that work on a journal in NATS are told where it is.

use crate::exit::usage;
use clap::Args;
use laboro_hub::config::Settings;
use laboro_jetstream::Options;
use std::path::{Path, PathBuf};

#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Journal in NATS")]
pub(crate) struct NatsArgs {
    /// Name of the hub in NATS: hubs of one name share a journal.
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,

    // Not a comment for rustdoc, which wants links for addresses.
    #[arg(
        long = "nats-monitor",
        value_name = "URL",
        help = "Monitoring address of a NATS server: http://HOST:8222. One for each server."
    )]
    pub(crate) monitors: Vec<String>,

    /// Number of NATS servers that keep each message (default 3).
    #[arg(long = "nats-replicas", value_name = "N")]
    pub(crate) replicas: Option<usize>,

    /// Accept NATS servers that may acknowledge before they have written to disk.
    #[arg(long = "nats-accept-unsynced")]
    pub(crate) accept_unsynced: bool,
}

impl NatsArgs {
    pub(crate) fn apply(self, settings: &mut Settings) {
        settings.name = self.name.unwrap_or(std::mem::take(&mut settings.name));
        settings.nats.monitors.extend(self.monitors);
        settings.nats.replicas = self.replicas.unwrap_or(settings.nats.replicas);
        settings.nats.accept_unsynced |= self.accept_unsynced;
    }

    /// If this names servers and not a directory.
    pub(crate) fn options(
        &self,
        place: &Path,
        config: Option<&PathBuf>,
    ) -> anyhow::Result<Option<Options>> {
        let Some(servers) = servers(place) else { return Ok(None) };
        let mut settings = match config {
            Some(path) => Settings::read(path).map_err(usage)?,
            None => Settings::default(),
        };
        self.clone().apply(&mut settings);
        Ok(Some(settings.nats.options(servers, &settings.name)))
    }
}

fn servers(place: &Path) -> Option<&str> {
    place.to_str().filter(|text| text.starts_with("nats://") || text.starts_with("tls://"))
}

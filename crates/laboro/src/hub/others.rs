//! `laboro hub status` and `laboro hub hand-over`: the hubs that share a journal in NATS, and which of them leads.

use super::install;
use crate::exit::{Exit, usage};
use crate::nats::NatsArgs;
use crate::output::{counted, print, say};
use anyhow::bail;
use clap::{Args, Subcommand};
use laboro_hub::config::Settings;
use laboro_jetstream::{HubView, Options, ask_to_leave, hubs};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

#[derive(Debug, Subcommand)]
pub(crate) enum Others {
    /// Show which hubs share a journal in NATS, which is the leader, and how far the standbys are behind.
    Status {
        #[command(flatten)]
        place: NatsPlace,
        /// One JSON object per line.
        #[arg(long)]
        json: bool,
    },
    /// Write a systemd unit that runs a hub as a service.
    InstallService(install::InstallService),
    /// Ask the leader to stop and hand over to a standby.
    HandOver {
        #[command(flatten)]
        place: NatsPlace,
    },
}

#[derive(Debug, Args)]
pub(crate) struct NatsPlace {
    /// The servers: nats://HOST:PORT,... . Default: those in --config.
    #[arg(long, value_name = "SERVERS")]
    journal: Option<String>,

    /// A hub's settings, with its login at NATS.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    #[command(flatten)]
    nats: NatsArgs,
}

/// A hand-over takes as long as conversations take to end.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(500);

pub(crate) fn run(others: Others) -> anyhow::Result<Exit> {
    match others {
        Others::Status { place, json } => status(&place.options()?, json),
        Others::InstallService(args) => install::run(&args),
        Others::HandOver { place } => hand_over(&place.options()?),
    }
}

impl NatsPlace {
    fn options(&self) -> anyhow::Result<Options> {
        let from_file = match &self.config {
            Some(path) => Settings::read(path).map_err(usage)?.journal,
            None => None,
        };
        let servers = self.journal.clone().or(from_file);
        let servers = servers.ok_or_else(|| usage("say where: --journal nats://HOST,..."))?;
        let options = self.nats.options(Path::new(&servers), self.config.as_ref())?;
        options.ok_or_else(|| usage(format_args!("{servers}: expected nats://HOST[:PORT],...")))
    }
}

fn status(options: &Options, json: bool) -> anyhow::Result<Exit> {
    let hubs = hubs(options)?;
    if json {
        for hub in &hubs {
            print(serde_json::to_string(hub)?)?;
        }
    } else {
        print(row("ROLE", "HOST", "PID", "HTTP", "NATIVE", "BEHIND"))?;
        let newest = hubs.iter().map(|hub| hub.last).max().unwrap_or(0);
        for hub in &hubs {
            let role = if hub.leads { "leads" } else { "follows" };
            let (pid, behind) = (hub.pid.to_string(), newest.saturating_sub(hub.sequence));
            let behind = if hub.leads { "-".to_owned() } else { counted(behind, "message") };
            print(row(role, &hub.host, &pid, &hub.http, &hub.native, &behind))?;
        }
    }
    if !hubs.iter().any(|hub| hub.leads) {
        say(format_args!("no hub named {} is the leader", options.name));
        return Ok(Exit::Trouble);
    }
    Ok(Exit::Done)
}

fn row(role: &str, host: &str, pid: &str, http: &str, native: &str, behind: &str) -> String {
    format!("{role:<8} {host:<20} {pid:<8} {http:<22} {native:<22} {behind}")
}

fn hand_over(options: &Options) -> anyhow::Result<Exit> {
    let before = hubs(options)?;
    let Some(leader) = before.iter().find(|hub| hub.leads) else {
        bail!("no hub named {} is the leader", options.name);
    };
    if before.iter().all(|hub| hub.leads) {
        bail!("there is no standby of {}: start one with --standby first", leader.host);
    }
    ask_to_leave(options)?;
    let end = Instant::now() + PATIENCE;
    let is_new = |hub: &&HubView| hub.leads && hub.life > leader.life;
    while Instant::now() < end {
        if let Some(hub) = hubs(options)?.iter().find(is_new) {
            print(format_args!("{} (process {}) is the leader now", hub.host, hub.pid))?;
            return Ok(Exit::Done);
        }
        std::thread::sleep(LOOK);
    }
    bail!("the hub was asked to hand over, but no standby has taken over yet");
}

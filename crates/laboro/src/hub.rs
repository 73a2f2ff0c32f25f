//! `laboro hub`: a hub in the foreground, until a signal or trouble ends it. What it does is in `laboro_hub`;
//! here are its arguments, its log, its signals, and the lines that say where it listens.

mod install;
mod log;
pub(crate) mod memory;
mod others;
mod service;
mod signals;

use crate::exit::{Exit, usage};
use crate::output::print;
use clap::{Args, ValueEnum};
use laboro_hub::config::{self, DoorSettings, Listen, LogFormat, LogLevel, Settings};
use laboro_hub::listen::Network;
use laboro_hub::process::{HubError, RunningHub, start};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use service::Notifier;
use signals::{HubSignals, SignalAsked};
use std::path::PathBuf;

const HELP: &str = "\
Examples:
  laboro hub                                      start a hub for this user, on this machine
  laboro hub --native 0.0.0.0:7911                accept workers of other machines, with a token
  laboro hub --door fuq2=127.0.0.1:7912,group=exp open a door for fuq workers
  laboro hub --journal nats://h1,h2,h3 --name prod --nats-monitor http://h1:8222
  laboro hub --standby --journal nats://h1,h2,h3 --name prod --nats-monitor http://h1:8222
  laboro hub --config hub.toml --print-config     print the effective configuration

`laboro access` makes tokens for other users and machines. The first SIGTERM or Ctrl-C stops the hub in order, a second one at
once. SIGHUP rereads the log level of --config and the certificate, and opens --log-file again, as SIGUSR1 does. Exit status: 0 stopped, 2 wrong usage, 3 problem with disk, journal or network, 130 stopped at once.";

#[derive(Debug, Args)]
#[command(after_help = HELP, args_conflicts_with_subcommands = true)]
pub(crate) struct HubCommand {
    #[command(subcommand)]
    command: Option<others::Others>,

    /// Directory of the hub. Default: $LABORO_DIR, else ~/.local/state/laboro/hub.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,

    /// Address of the HTTP API, or `off`; port 0 takes a free one (default 127.0.0.1:7910).
    #[arg(long, value_name = "ADDRESS")]
    http: Option<Listen>,

    /// Address for workers, or `off`; 0.0.0.0:7911 accepts other machines (default 127.0.0.1:7911).
    #[arg(long, value_name = "ADDRESS")]
    native: Option<Listen>,

    /// Accept only these addresses at the HTTP API, such as 10.0.0.0/8. May be given several times.
    #[arg(long, value_name = "NETWORK")]
    http_allow: Vec<Network>,

    /// Accept workers only from these addresses. May be given several times.
    #[arg(long, value_name = "NETWORK")]
    native_allow: Vec<Network>,

    // Not a comment for rustdoc, which takes brackets for links.
    #[arg(
        long = "door",
        value_name = "DOOR",
        help = "Open a further door: DIALECT=ADDRESS[,group=NAME][,allow=NETWORK]...[,curve_allow=KEY]...[,insecure]"
    )]
    doors: Vec<DoorSettings>,

    /// Group of doors that name none (default `default`).
    #[arg(long, value_name = "NAME")]
    group: Option<String>,

    /// How durable a request must be before it is answered; docs/dwork.md says what it costs (default sync).
    #[arg(long, value_enum)]
    durability: Option<HubDurability>,

    /// Keep the journal in NATS JetStream: nats://HOST:PORT,... or tls://...; logins are in --config.
    #[arg(long, value_name = "SERVERS")]
    journal: Option<String>,

    /// With --journal: be a standby: follow the leader, and take over when it is lost.
    #[arg(long)]
    standby: bool,

    /// With --journal: the name or address under which other machines reach this one. Default: where it listens.
    #[arg(long, value_name = "HOST")]
    advertise: Option<String>,

    /// With --journal: copy what tasks print to NATS too, so that it outlives this machine.
    #[arg(long)]
    outputs_in_nats: bool,

    #[command(flatten)]
    nats: crate::nats::NatsArgs,

    /// End when the process with this number has ended, for programs that start their own hub.
    #[arg(long, value_name = "PID")]
    exit_with: Option<i32>,

    /// Configuration file; command-line options override it.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Print the effective configuration as a file, and exit.
    #[arg(long)]
    print_config: bool,

    /// Log level (default info).
    #[arg(long, value_enum)]
    log_level: Option<Level>,

    /// Log format: lines for people, or one JSON object per line (default text).
    #[arg(long, value_enum)]
    log_format: Option<Format>,

    /// Append the log to a file instead of standard error; SIGUSR1 and SIGHUP open it again, for logrotate.
    #[arg(long, value_name = "FILE")]
    log_file: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum HubDurability {
    /// Survives a power cut: waits for the disk
    Sync,
    /// Survives the end of the program, not a power cut
    Os,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Json,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Level {
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

pub(crate) fn run(mut args: HubCommand) -> anyhow::Result<Exit> {
    if let Some(others) = args.command.take() {
        return others::run(others);
    }
    let only_print = args.print_config;
    let config = args.config.clone();
    let exit_with = args.exit_with;
    let settings = settings(args)?;
    if only_print {
        print(settings.text().trim_end())?;
        return Ok(Exit::Done);
    }
    let log_file = settings.log_file.as_deref();
    let log = log::Log::start(settings.log_level, settings.log_format, log_file)?;
    tracing::info!(
        event = "hub_starting",
        version = laboro_api::VERSION,
        dir = %settings.dir.display(),
        "laboro hub {}",
        laboro_api::VERSION
    );
    let notifier = Notifier::from_environment();
    raise_open_files();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    // Before anything can be asked to end.
    let mut signals = runtime.block_on(async { HubSignals::listen(exit_with) })?;
    if settings.standby {
        print(format_args!("standby of {}: follows its journal in NATS", settings.name))?;
    }
    let Some(started) = runtime.block_on(begin(settings.clone(), &mut signals))? else {
        return Ok(Exit::Done);
    };
    let mut hub = started.map_err(|error| match error {
        HubError::Door(bad) => usage(bad),
        HubError::Runexp(bad) => usage(bad),
        none @ HubError::NoDoor => usage(none),
        other => other.into(),
    })?;
    announce(&hub)?;
    notifier.ready("accepting jobs");
    let reload = Reload { log, config, settings };
    match runtime.block_on(serve(&mut hub, signals, &notifier, &reload)) {
        // The journal is as safe as ever: it is made for worse ends than this one.
        How::AtOnce => Ok(Exit::Interrupted),
        How::InOrder => {
            hub.wait()?;
            tracing::info!(event = "hub_stopped", "stopped");
            Ok(Exit::Done)
        }
    }
}

/// A hub that follows another one takes as long to start as that one lives; a signal ends it.
async fn begin(
    settings: Settings,
    signals: &mut HubSignals,
) -> std::io::Result<Option<Result<RunningHub, HubError>>> {
    let (tell, started) = tokio::sync::oneshot::channel();
    let work = move || drop(tell.send(start(&settings)));
    std::thread::Builder::new().name("laboro-start".into()).spawn(work)?;
    Ok(tokio::select! {
        started = started => Some(started.unwrap_or(Err(HubError::Died))),
        () = signals.end() => None,
    })
}

fn settings(args: HubCommand) -> anyhow::Result<Settings> {
    let mut settings = match &args.config {
        Some(path) => Settings::read(path).map_err(usage)?,
        None => Settings::default(),
    };
    settings.door.extend(args.doors);
    settings.dir = args.dir.unwrap_or(settings.dir);
    settings.http = args.http.unwrap_or(settings.http);
    settings.native = args.native.unwrap_or(settings.native);
    settings.http_allow.extend(args.http_allow);
    settings.native_allow.extend(args.native_allow);
    settings.group = args.group.unwrap_or(settings.group);
    settings.journal = args.journal.or(settings.journal);
    settings.standby |= args.standby;
    settings.advertise = args.advertise.or(settings.advertise);
    settings.log_file = args.log_file.or(settings.log_file);
    if settings.standby && settings.journal.is_none() {
        return Err(usage("--standby: it needs a --journal in NATS"));
    }
    settings.outputs.in_nats |= args.outputs_in_nats;
    if settings.outputs.in_nats && settings.journal.is_none() {
        return Err(usage("--outputs-in-nats: it needs a --journal in NATS"));
    }
    args.nats.apply(&mut settings);
    if let Some(durability) = args.durability {
        settings.durability = match durability {
            HubDurability::Sync => config::Durability::Sync,
            HubDurability::Os => config::Durability::Os,
        };
    }
    if let Some(level) = args.log_level {
        settings.log_level = match level {
            Level::Error => LogLevel::Error,
            Level::Warn => LogLevel::Warn,
            Level::Info => LogLevel::Info,
            Level::Debug => LogLevel::Debug,
            Level::Trace => LogLevel::Trace,
        };
    }
    if let Some(format) = args.log_format {
        settings.log_format = match format {
            Format::Text => LogFormat::Text,
            Format::Json => LogFormat::Json,
        };
    }
    Ok(settings)
}

/// One line a door, for people and for scripts that want to know a port.
fn announce(hub: &RunningHub) -> std::io::Result<()> {
    if let Some(address) = hub.http {
        tracing::info!(event = "door_open", door = "http", %address, "http on {address}");
        print(format_args!("http on https://{address}"))?;
    }
    for door in &hub.doors {
        tracing::info!(event = "door_open", door = door.dialect.word(), address = %door.address, "{door}");
        print(door)?;
    }
    Ok(())
}

enum How {
    InOrder,
    AtOnce,
}

async fn serve(
    hub: &mut RunningHub,
    mut signals: HubSignals,
    notifier: &Notifier,
    reload: &Reload,
) -> How {
    let handle = hub.handle.clone();
    loop {
        tokio::select! {
            () = hub.ended() => return How::InOrder,
            asked = signals.next() => match asked {
                SignalAsked::End => break,
                SignalAsked::Reload => {}
                SignalAsked::ReopenLog => {
                    reload.log.reopen();
                    continue;
                }
            },
            () = notifier.keep_alive(&handle) => {}
            () = memory::give_back() => {}
        }
        notifier.reloading();
        reload.apply(hub);
        notifier.ready("accepting jobs");
    }
    tracing::info!(event = "hub_stopping", "stopping: a second signal ends it at once");
    notifier.stopping();
    hub.stop();
    tokio::select! {
        () = hub.ended() => How::InOrder,
        () = signals.end() => How::AtOnce,
    }
}

/// What is read again when a signal asks for it.
struct Reload {
    log: log::Log,
    config: Option<PathBuf>,
    settings: Settings,
}

impl Reload {
    /// What cannot be read leaves everything as it is.
    fn apply(&self, hub: &mut RunningHub) {
        self.log.reopen();
        match hub.reload_certificate() {
            Ok(true) => tracing::info!(
                event = "certificate_reloaded",
                "the new certificate is in use; make new access files for clients"
            ),
            Ok(false) => {}
            Err(error) => tracing::error!(event = "reload_failed", "the certificate: {error}"),
        }
        let Some(path) = &self.config else {
            tracing::info!(event = "reloaded", "reloaded; there is no configuration file");
            return;
        };
        match Settings::read(path) {
            Ok(found) => {
                self.log.set_level(found.log_level);
                tracing::info!(event = "reloaded", "{}: reloaded", path.display());
                let same = Settings { log_level: self.settings.log_level, ..found };
                if same.text() != self.settings.text() {
                    tracing::info!(
                        event = "restart_needed",
                        "only log_level and the certificate are reread; other settings need a restart"
                    );
                }
            }
            Err(error) => tracing::error!(event = "reload_failed", "{error}"),
        }
    }
}

/// Every connection is an open file, and the usual limit is made for programs with few. Whatever cannot be
/// had is missed only when so many come.
pub(crate) fn raise_open_files() {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}

//! All that a hub can be told, with defaults for everything: from `hub.toml`, and over that from the command
//! line. What is in force can be printed, and what is printed can be read again.

mod address;
mod bounds;
mod door;
mod hooks;
mod nats;
mod owners;
mod pools;
mod scheduler;
mod schedules;
mod traces;
mod web;

#[cfg(test)]
mod tests;

pub use address::Address;
pub(crate) use door::numbering_of;
pub use door::{
    BadDoor, DoorKind, DoorSettings, DworkDoor, Fuq1Door, Fuq2Door, FuqDoor, NativeDoor, RrmqDoor,
    RunexpDoor,
};
pub use hooks::{HookEvent, HookRule, HookSettings};
pub use nats::NatsSettings;
pub use owners::{ChangeJobs, NamedOwner, OwnerSettings};
pub use pools::{NamedPool, PoolSettings};
pub use scheduler::{ConductSettings, KeepSettings, QuotaSettings, TaskSettings};
pub use schedules::{IfRunning, ScheduleSettings};
pub use traces::TraceSettings;
pub use web::{HttpSettings, LoginSettings};

use crate::inbox::ServerOptions;
use crate::keep::OnWriteError;
use crate::listen::Network;
use crate::security::in_line;
use laboro_journal::log;
use laboro_journal::outputs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::str::FromStr;

#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Where the hub keeps everything.
    pub dir: PathBuf,
    pub http: Listen,
    pub native: Listen,
    /// Who may come to the API, and to the native door. Empty: everyone who reaches it.
    pub http_allow: Vec<Network>,
    pub native_allow: Vec<Network>,
    /// The group of doors that name no other.
    pub group: String,
    pub durability: Durability,
    /// Where the journal is kept, as `nats://host:port,...`. Else in the hub's directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub journal: Option<String>,
    /// Of the journal in NATS: one hub of a name leads.
    pub name: String,
    /// Follow the hub that leads, and lead when it is gone.
    pub standby: bool,
    /// The name or address under which other machines reach this one, for those that are sent here by another hub.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advertise: Option<String>,
    pub log_level: LogLevel,
    pub log_format: LogFormat,
    /// Where the log is written. Not given: standard error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_file: Option<PathBuf>,
    /// The dashboard's files are read from here instead of from the program, by whoever changes them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dashboard_dir: Option<PathBuf>,
    /// Further names and addresses for the certificate, when it is made.
    pub names: Vec<String>,
    /// How long the tasks of a worker run on when its connection is lost.
    pub grace_ms: u64,
    /// How long conversations have to end when the hub stops.
    pub stop_ms: u64,
    pub doors_thread: DoorsThread,
    pub limits: DoorLimits,
    pub http_limits: HttpSettings,
    pub logins: LoginSettings,
    pub tasks: TaskSettings,
    pub quotas: QuotaSettings,
    pub owners: OwnerSettings,
    pub conduct: ConductSettings,
    pub keep: KeepSettings,
    pub outputs: OutputSettings,
    pub nats: NatsSettings,
    pub pools: PoolSettings,
    pub hooks: HookSettings,
    pub traces: TraceSettings,
    pub hook: Vec<HookRule>,
    pub schedule: Vec<ScheduleSettings>,
    pub door: Vec<DoorSettings>,
    /// Pools created when the hub starts. A pool whose lines were deleted is removed.
    pub pool: Vec<NamedPool>,
}

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    #[error("{}: cannot read it: {source}", .path.display())]
    Unreadable { path: PathBuf, source: std::io::Error },
    #[error("{}: {reason}", .path.display())]
    Malformed { path: PathBuf, reason: String },
}

impl Settings {
    pub fn read(path: &Path) -> Result<Settings, ConfigError> {
        let unreadable = |source| ConfigError::Unreadable { path: path.to_owned(), source };
        let text = std::fs::read_to_string(path).map_err(unreadable)?;
        Settings::parse(&text)
            .map_err(|reason| ConfigError::Malformed { path: path.to_owned(), reason })
    }

    fn parse(text: &str) -> Result<Settings, String> {
        let settings: Settings = toml::from_str(text).map_err(|error| in_line(text, &error))?;
        bounds::check(&settings)?;
        settings.owners.check()?;
        pools::check(&settings.pool)?;
        hooks::check(&settings.hooks, &settings.hook)?;
        schedules::check(&settings.schedule)?;
        settings.traces.check()?;
        Ok(settings)
    }

    /// In the form of `hub.toml`.
    pub fn text(&self) -> String {
        toml::to_string(self).expect("settings are tables of plain values, tables last")
    }

    /// For tests and measurements: everything below this directory, and ports that are free.
    pub fn in_dir(dir: &Path) -> Settings {
        let any = Listen::At(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
        Settings { dir: dir.to_owned(), http: any, native: any, ..Settings::default() }
    }

    pub(crate) fn core(&self) -> laboro_core::Config {
        laboro_core::Config {
            limits: self.tasks.core(),
            conduct: self.conduct.core(),
            keep: self.keep.core(),
            quotas: self.quotas.core(),
            shares: self.owners.shares().into(),
            work_bytes: self.work_bytes(),
            ..laboro_core::Config::default()
        }
    }

    /// A task with what stands around it has to fit a message.
    fn work_bytes(&self) -> usize {
        let message = self.limits.message_bytes.min(laboro_core::MESSAGE_BYTES_MAX);
        message - laboro_core::MESSAGE_BYTES_BESIDE.min(message / 2)
    }

    pub(crate) fn journal_log(&self) -> log::Options {
        let durability = match self.durability {
            Durability::Sync => log::Durability::Sync,
            Durability::Os => log::Durability::Os,
        };
        log::Options { durability, ..log::Options::default() }
    }

    /// `None`: the journal is in the hub's directory.
    pub(crate) fn stream(&self) -> Option<laboro_jetstream::Options> {
        self.journal.as_deref().map(|servers| self.nats.options(servers, &self.name))
    }

    /// Where what tasks print is kept.
    pub(crate) fn outputs_dir(&self) -> PathBuf {
        self.dir.join("outputs")
    }

    pub(crate) fn server(&self) -> ServerOptions {
        ServerOptions {
            inbox: self.limits.inbox.max(1),
            step: self.limits.step.max(1),
            session: self.limits.session_queue.max(2),
        }
    }
}

impl Default for Settings {
    fn default() -> Settings {
        let at = |port| Listen::At(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
        Settings {
            dir: default_dir(),
            http: at(7910),
            native: at(7911),
            http_allow: Vec::new(),
            native_allow: Vec::new(),
            group: "default".into(),
            durability: Durability::Sync,
            journal: None,
            name: "laboro".into(),
            standby: false,
            advertise: None,
            log_level: LogLevel::Info,
            log_format: LogFormat::Text,
            log_file: None,
            dashboard_dir: None,
            names: Vec::new(),
            grace_ms: 60_000,
            stop_ms: 5000,
            doors_thread: DoorsThread::Shared,
            limits: DoorLimits::default(),
            http_limits: HttpSettings::default(),
            logins: LoginSettings::default(),
            tasks: TaskSettings::default(),
            quotas: QuotaSettings::default(),
            owners: OwnerSettings::default(),
            conduct: ConductSettings::default(),
            keep: KeepSettings::default(),
            outputs: OutputSettings::default(),
            nats: NatsSettings::default(),
            pools: PoolSettings::default(),
            hooks: HookSettings::default(),
            traces: TraceSettings::default(),
            hook: Vec::new(),
            schedule: Vec::new(),
            door: Vec::new(),
            pool: Vec::new(),
        }
    }
}

/// The directory of the hub of this user: `LABORO_DIR`, or below the place for state.
pub fn default_dir() -> PathBuf {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    if let Some(dir) = variable("LABORO_DIR") {
        return dir.into();
    }
    let state = variable("XDG_STATE_HOME")
        .map(PathBuf::from)
        .or_else(|| variable("HOME").map(|home| PathBuf::from(home).join(".local/state")));
    state.unwrap_or_default().join("laboro/hub")
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Listen {
    Off,
    At(SocketAddr),
}

impl FromStr for Listen {
    type Err = BadDoor;

    fn from_str(text: &str) -> Result<Listen, BadDoor> {
        match text {
            "off" => Ok(Listen::Off),
            address => address.parse().map(|address: Address| Listen::At(address.at())),
        }
    }
}

impl TryFrom<String> for Listen {
    type Error = BadDoor;

    fn try_from(text: String) -> Result<Listen, BadDoor> {
        text.parse()
    }
}

impl From<Listen> for String {
    fn from(listen: Listen) -> String {
        match listen {
            Listen::Off => "off".into(),
            Listen::At(address) => address.to_string(),
        }
    }
}

/// When something counts as done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Durability {
    /// Survives a power cut.
    Sync,
    /// Survives the end of the program.
    Os,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

/// How the hub's log is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogFormat {
    /// A line for people.
    Text,
    /// One JSON object a line.
    Json,
}

/// Which thread the doors run on. A hop between threads costs more than most of what a door does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DoorsThread {
    /// On the engine's.
    Shared,
    /// On one of their own. For measuring.
    Own,
}

#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DoorLimits {
    pub connections: usize,
    #[serde(alias = "connections_a_door")]
    pub connections_per_door: u64,
    pub message_bytes: usize,
    /// For the first word of a peer, and for a TLS handshake before it.
    pub handshake_ms: u64,
    /// A peer that takes nothing for so long is cut off.
    pub write_ms: u64,
    /// A peer whose machine does not answer for so long is gone.
    pub lost_ms: u64,
    /// A token that was revoked or has expired ends its connections within this time.
    pub admission_ms: u64,
    /// Turns of sessions that may wait for the engine. All that a peer asked at once is one, however many commands it
    /// is.
    pub inbox: usize,
    /// Commands of sessions that one step takes at most.
    pub step: usize,
    /// Answers and work that may wait for one session before it is cut off.
    pub session_queue: usize,
}

impl Default for DoorLimits {
    fn default() -> DoorLimits {
        let ServerOptions { inbox, step, session } = ServerOptions::default();
        DoorLimits {
            connections: 20_000,
            connections_per_door: 10_000,
            message_bytes: laboro_core::MESSAGE_BYTES_MAX,
            handshake_ms: 10_000,
            write_ms: 30_000,
            lost_ms: 120_000,
            admission_ms: 5000,
            inbox,
            step,
            session_queue: session,
        }
    }
}

/// How much of what tasks print is kept.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OutputSettings {
    /// Of each stream of an attempt.
    pub stream_bytes: u64,
    /// Of everything. 0: no limit.
    pub total_bytes: u64,
    /// Also in NATS, beside the journal, so that it outlives this machine.
    pub in_nats: bool,
    /// What happens to tasks whose output cannot be written, as on a full disk.
    pub on_write_error: OnWriteError,
}

impl Default for OutputSettings {
    fn default() -> OutputSettings {
        let store = outputs::Config::default();
        let total_bytes = store.total_bytes_max.unwrap_or(0);
        OutputSettings {
            stream_bytes: store.stream_bytes_max,
            total_bytes,
            in_nats: false,
            on_write_error: OnWriteError::default(),
        }
    }
}

impl OutputSettings {
    pub(crate) fn store(&self) -> outputs::Config {
        outputs::Config {
            stream_bytes_max: self.stream_bytes,
            total_bytes_max: (self.total_bytes > 0).then_some(self.total_bytes),
            // Every attempt has a record, so many of them pass: less memory is worth more files.
            segment_records_max: 1 << 18,
            ..outputs::Config::default()
        }
    }
}

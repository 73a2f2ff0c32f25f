//! The hub's log on standard error or in a file, for people or for programs. Its level can be changed while the hub runs, and
//! the file can be opened again after somebody has moved it away. It does not rotate by itself: logrotate does.

use anyhow::Context;
use laboro_hub::config::{LogFormat, LogLevel};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use tracing_subscriber::Layer;
use tracing_subscriber::Registry;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::writer::BoxMakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::reload::{self, Handle};
use tracing_subscriber::util::SubscriberInitExt;

pub(super) struct Log {
    levels: Handle<Targets, Registry>,
    file: Option<LogFile>,
}

/// What is written goes to whatever file is open at that moment; each line is one write at its end.
struct LogFile {
    path: PathBuf,
    open: Arc<RwLock<Arc<File>>>,
}

impl Log {
    pub(super) fn start(
        level: LogLevel,
        format: LogFormat,
        path: Option<&Path>,
    ) -> anyhow::Result<Log> {
        let (filter, levels) = reload::Layer::new(targets(level));
        let file = path.map(LogFile::open).transpose()?;
        let writer = match &file {
            Some(LogFile { open, .. }) => {
                let open = Arc::clone(open);
                BoxMakeWriter::new(move || {
                    Arc::clone(&open.read().unwrap_or_else(PoisonError::into_inner))
                })
            }
            None => BoxMakeWriter::new(std::io::stderr),
        };
        let lines = tracing_subscriber::fmt::layer().with_writer(writer).with_target(false);
        let lines = match format {
            LogFormat::Text => {
                let is_terminal = std::io::IsTerminal::is_terminal(&std::io::stderr());
                lines.with_ansi(file.is_none() && is_terminal).boxed()
            }
            LogFormat::Json => lines.json().flatten_event(true).boxed(),
        };
        tracing_subscriber::registry().with(filter).with(lines).init();
        Ok(Log { levels, file })
    }

    pub(super) fn set_level(&self, level: LogLevel) {
        // It fails only when there is no log any more.
        let _ = self.levels.reload(targets(level));
    }

    /// Writes from now on to the file that has the log's name, made if there is none. If that cannot be, the old one is
    /// written on, and it says so.
    pub(super) fn reopen(&self) {
        let Some(file) = &self.file else { return };
        match append(&file.path) {
            Ok(new) => {
                *file.open.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(new);
                tracing::info!(event = "log_reopened", "{}: opened again", file.path.display());
            }
            Err(error) => tracing::error!(event = "log_not_reopened", "{error:#}"),
        }
    }
}

impl LogFile {
    fn open(path: &Path) -> anyhow::Result<LogFile> {
        let open = Arc::new(RwLock::new(Arc::new(append(path)?)));
        Ok(LogFile { path: path.to_owned(), open })
    }
}

fn append(path: &Path) -> anyhow::Result<File> {
    let file = OpenOptions::new().append(true).create(true).mode(0o640).open(path);
    file.with_context(|| format!("{}: the log cannot be written", path.display()))
}

/// The libraries of HTTP complain of each peer that resets too much, as often as it comes: a hub counts those.
fn targets(level: LogLevel) -> Targets {
    let level = match level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    };
    let quiet = if level >= LevelFilter::DEBUG { level } else { LevelFilter::ERROR.min(level) };
    Targets::new().with_default(level).with_target("h2", quiet).with_target("hyper", quiet)
}

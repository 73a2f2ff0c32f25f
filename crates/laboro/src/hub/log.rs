//! The hub's log on standard error, for people or for programs. Its level can be changed while the hub runs.

use laboro_hub::config::{LogFormat, LogLevel};
use tracing_subscriber::Layer;
use tracing_subscriber::Registry;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::reload::{self, Handle};
use tracing_subscriber::util::SubscriberInitExt;

pub(super) struct Log(Handle<Targets, Registry>);

impl Log {
    pub(super) fn start(level: LogLevel, format: LogFormat) -> Log {
        let (filter, handle) = reload::Layer::new(targets(level));
        let lines =
            tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_target(false);
        let lines = match format {
            LogFormat::Text => {
                let ansi = std::io::IsTerminal::is_terminal(&std::io::stderr());
                lines.with_ansi(ansi).boxed()
            }
            LogFormat::Json => lines.json().flatten_event(true).boxed(),
        };
        tracing_subscriber::registry().with(filter).with(lines).init();
        Log(handle)
    }

    pub(super) fn set_level(&self, level: LogLevel) {
        // It fails only when there is no log any more.
        let _ = self.0.reload(targets(level));
    }
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

//! One task while it runs here: how much of its output was passed on, the file it is copied to, and the file
//! that it may be.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use laboro_core::Outcome;
use laboro_dialects::worker::{TaskEnd, Used};

use super::confine::Excess;
use super::node_file::NodeFile;
use crate::{Ending, Refusal, Script, Stream, Usage};

#[derive(Debug)]
pub(super) struct Running {
    pub(super) slots: u32,
    /// Nobody else's while it runs.
    pub(super) place: Option<u32>,
    pub(super) has_begun: bool,
    /// By the hub: its result does not count.
    pub(super) is_cancelled: bool,
    /// How much more of each stream is passed on.
    output_left: [u64; 2],
    was_cut: bool,
    copy: Option<File>,
    copy_failed: Option<String>,
    /// Nobody else's as long as this runs.
    _script: Option<Script>,
    /// Nobody else's while it runs.
    pub(super) cpus: Vec<u32>,
    /// There as long as this runs.
    pub(super) node_file: Option<NodeFile>,
}

impl Running {
    pub(super) fn new(
        slots: u32,
        output_limit: u64,
        log: Option<PathBuf>,
        script: Option<Script>,
    ) -> Result<Running, Refusal> {
        Ok(Running {
            slots,
            place: None,
            has_begun: false,
            is_cancelled: false,
            output_left: [output_limit; 2],
            was_cut: false,
            copy: log.map(open).transpose()?,
            copy_failed: None,
            _script: script,
            cpus: Vec::new(),
            node_file: None,
        })
    }

    /// Keeps what belongs here, and gives how many of these bytes are to be passed on.
    pub(super) fn wrote(&mut self, stream: Stream, bytes: &[u8]) -> usize {
        if let Some(copy) = &mut self.copy
            && let Err(error) = copy.write_all(bytes)
        {
            self.copy_failed = Some(format!("its output file could not be written: {error}"));
            self.copy = None;
        }
        let left = &mut self.output_left[usize::from(stream == Stream::Stderr)];
        let passed = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len());
        *left -= passed as u64;
        self.was_cut |= passed < bytes.len();
        passed
    }

    /// What is told of output that was too long.
    pub(super) fn cut_words(&self) -> Option<String> {
        self.was_cut.then(|| "its output exceeded the limit and was cut".into())
    }

    /// What is told of its end. `excess` is said of what took too much memory.
    pub(super) fn ended(&self, ending: &Ending, usage: &Usage, excess: Option<Excess>) -> TaskEnd {
        let outcome = match ending {
            _ if excess.is_some() => Outcome::Memory,
            Ending::Exited(0) if self.copy_failed.is_some() => Outcome::Error,
            Ending::Exited(0) => Outcome::Success,
            Ending::Exited(code) => Outcome::Exit(*code),
            Ending::Signalled(signal) => Outcome::Signal(*signal),
            Ending::TimedOut { .. } => Outcome::TimedOut,
            Ending::NotStarted { .. } => Outcome::Error,
            Ending::Stopped { .. } | Ending::GuardianLost => Outcome::Lost,
        };
        let peak_kib = excess.as_ref().map_or(0, |excess| excess.bytes / 1024);
        let message = match ending {
            Ending::NotStarted { message, .. } => Some(message.clone()),
            Ending::GuardianLost => Some("the process that watches over tasks was killed".into()),
            _ => (excess.map(|excess| excess.words))
                .or_else(|| self.copy_failed.clone())
                .or_else(|| self.cut_words()),
        };
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let used = Used {
            wall_us: micros(usage.wall),
            user_us: micros(usage.user),
            system_us: micros(usage.system),
            peak_kib: usage.max_rss_kib.max(peak_kib),
        };
        TaskEnd { outcome, message, used }
    }
}

fn open(log: PathBuf) -> Result<File, Refusal> {
    let named = |error| Refusal::of(&format!("output file {}", log.display()), &error);
    open_beside(&log).map_err(named)
}

/// Enough for anybody; then one is overwritten.
const BESIDE_MAX: u32 = 10_000;

fn open_beside(path: &Path) -> io::Result<File> {
    let stem = path.with_extension("");
    for number in 0..BESIDE_MAX {
        let path = match number {
            0 => path.to_owned(),
            number => PathBuf::from(format!("{}-{number}.log", stem.display())),
        };
        match OpenOptions::new().create_new(true).write(true).open(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            opened => return opened,
        }
    }
    File::create(path)
}

//! One attempt while it runs: what it printed last, the files it is copied to, how its end is to be read.

use super::{JOB, Options};
use crate::output::shell_word;
use anyhow::Context;
use laboro_core::{Grant, LeaseNo, LeaseRef, Outcome, Profile, Returned, TaskId};
use laboro_dialects::runexp::result::ResLine;
use laboro_journal::outputs::{Ending as StoredEnding, Key};
use laboro_worker::{Ending, Made, Script, Usage};
use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub(crate) struct Running {
    pub(crate) task: TaskId,
    /// It may have been launched before there was room for it.
    pub(crate) has_begun: bool,
    pub(crate) name: String,
    /// Counted over all runs of the job.
    pub(crate) attempt: u16,
    /// As a person would type it, for result files.
    pub(crate) command: String,
    lease: LeaseNo,
    fails: u16,
    profile: Arc<Profile>,
    stderr_tail: Vec<u8>,
    res_line: Option<ResLine>,
    /// Nobody else's as long as this runs.
    _script: Option<Script>,
    /// Copies of stdout and stderr.
    files: Option<[File; 2]>,
}

/// How much of the end of stderr is shown with a failure.
const TAIL_BYTES: usize = 2048;

impl Running {
    pub(crate) fn new(
        grant: &Grant,
        name: String,
        attempt: u16,
        made: &mut Made,
        options: &Options,
    ) -> anyhow::Result<Running> {
        let copies = |dir: &PathBuf| copies(dir, &name, grant.task.index);
        Ok(Running {
            files: options.output_dir.as_ref().map(copies).transpose()?,
            task: grant.task,
            has_begun: false,
            name,
            attempt,
            command: typed(&made.launch.argv),
            lease: grant.lease,
            fails: grant.fails,
            profile: Arc::clone(&grant.profile),
            stderr_tail: Vec::new(),
            res_line: options.res_line.then(ResLine::default),
            _script: made.script.take(),
        })
    }

    pub(crate) fn slots(&self) -> u32 {
        self.profile.needs.slots
    }

    pub(crate) fn key(&self) -> Key {
        Key { job: JOB.0, index: self.task.index, attempt: self.attempt }
    }

    pub(crate) fn lease(&self) -> LeaseRef {
        LeaseRef::Number { task: self.task, lease: self.lease }
    }

    pub(crate) fn printed(&mut self, is_stderr: bool, bytes: &[u8]) -> std::io::Result<()> {
        if is_stderr {
            self.stderr_tail.extend_from_slice(&bytes[bytes.len().saturating_sub(TAIL_BYTES)..]);
            let over = self.stderr_tail.len().saturating_sub(TAIL_BYTES);
            self.stderr_tail.drain(..over);
        } else if let Some(line) = &mut self.res_line {
            line.take(bytes);
        }
        match &mut self.files {
            Some(files) => files[usize::from(is_stderr)].write_all(bytes),
            None => Ok(()),
        }
    }

    pub(crate) fn stderr_tail(&self) -> &[u8] {
        &self.stderr_tail
    }

    pub(crate) fn outcome(&self, ending: &Ending) -> Outcome {
        match (ending, &self.res_line) {
            (Ending::Exited(_), Some(line)) if line.is_good() => Outcome::Success,
            (Ending::Exited(0), None) => Outcome::Success,
            // Its words decide, and said no: the status would say yes.
            (Ending::Exited(0), Some(_)) => Outcome::Error,
            (Ending::Exited(code), _) => Outcome::Exit(*code),
            (Ending::Signalled(signal), _) => Outcome::Signal(*signal),
            (Ending::TimedOut { .. }, _) => Outcome::TimedOut,
            (Ending::NotStarted { .. }, _) => Outcome::Error,
            (Ending::Stopped { .. } | Ending::GuardianLost, _) => Outcome::Lost,
        }
    }

    /// The hub decides; this says the same, so that people see whether a failure is final.
    pub(crate) fn is_tried_again(&self, outcome: Outcome) -> bool {
        let retry_on = &self.profile.retry_on;
        let worth_it = match outcome {
            Outcome::Success => false,
            Outcome::Exit(code) => retry_on.is_empty() || retry_on.contains(&code),
            _ => true,
        };
        worth_it && self.fails.saturating_add(1) < self.profile.attempts
    }

    /// To be run again as if it had not been started.
    pub(crate) fn given_back(&self) -> Returned {
        Returned { lease: self.lease(), preds: Vec::new() }
    }
}

/// A command line as a person would type it.
fn typed(argv: &[OsString]) -> String {
    let words: Vec<String> = argv.iter().map(|word| shell_word(&word.to_string_lossy())).collect();
    words.join(" ")
}

/// Both are made when the attempt begins, so that nothing of an earlier attempt is left in them.
fn copies(dir: &Path, name: &str, index: u32) -> anyhow::Result<[File; 2]> {
    let make = |ending| {
        let path = dir.join(format!("{}.{ending}", file_name(name, index)));
        File::create(&path).with_context(|| format!("{} cannot be written", path.display()))
    };
    Ok([make("out")?, make("err")?])
}

/// A file system takes no longer names than 255 bytes.
const FILE_NAME_BYTES_MAX: usize = 240;

/// A file name for a task's output: no directories, and no two tasks the same, whatever their names.
fn file_name(name: &str, index: u32) -> String {
    let mut safe = name.replace('%', "%25").replace('/', "%2F").replace('\0', "%00");
    if safe.len() > FILE_NAME_BYTES_MAX {
        let fits = (0..FILE_NAME_BYTES_MAX - 20).rev().find(|&at| safe.is_char_boundary(at));
        safe.truncate(fits.unwrap_or(0));
        safe.push_str(&format!("%~{index}"));
    }
    safe
}

pub(crate) fn stored_ending(ending: &Ending, usage: &Usage, started: SystemTime) -> StoredEnding {
    let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    let (kind, code) = match ending {
        Ending::Exited(code) => (StoredEnding::EXITED, *code),
        Ending::Signalled(signal) => (StoredEnding::SIGNALLED, *signal),
        Ending::TimedOut { .. } => (StoredEnding::TIMED_OUT, 0),
        Ending::NotStarted { .. } => (StoredEnding::NOT_STARTED, ending.exit_code()),
        Ending::Stopped { .. } => (StoredEnding::STOPPED, 0),
        Ending::GuardianLost => (StoredEnding::LOST, 0),
    };
    let since = started.duration_since(UNIX_EPOCH).unwrap_or_default();
    StoredEnding {
        kind,
        code,
        started_ms: u64::try_from(since.as_millis()).unwrap_or(u64::MAX),
        wall_us: micros(usage.wall),
        user_us: micros(usage.user),
        sys_us: micros(usage.system),
        max_rss_kib: usage.max_rss_kib,
    }
}

#[cfg(test)]
mod tests;

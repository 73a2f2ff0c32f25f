//! One attempt at a task of a run: what it printed last, the files it is copied to, how its end is to be read.

use super::collected::{ResultsPlace, task_dir};
use super::layout::Layout;
use super::{JOB, Options};
use crate::output::shell_word;
use anyhow::Context;
use laboro_core::{Grant, LeaseNo, LeaseRef, Outcome, Profile, Returned, TaskId};
use laboro_dialects::runexp::result::ResLine;
use laboro_journal::outputs::Key;
use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

pub(crate) struct Attempt {
    pub(crate) task: TaskId,
    /// It may have been given to the worker before there was room for it.
    pub(crate) has_begun: bool,
    /// The hub has taken it back: its result does not count.
    pub(crate) is_revoked: bool,
    pub(crate) name: String,
    /// What people call it.
    pub(crate) label: String,
    /// Counted over all runs of the job.
    pub(crate) number: u16,
    /// As a person would type it, for result files.
    pub(crate) command: String,
    lease: LeaseNo,
    fails: u16,
    profile: Arc<Profile>,
    stderr_tail: Vec<u8>,
    /// Bytes on standard output.
    pub(crate) printed: u64,
    res_line: Option<ResLine>,
    /// Copies of stdout and stderr.
    files: Vec<[File; 2]>,
}

/// How much of the end of stderr is shown with a failure.
const TAIL_BYTES: usize = 2048;

impl Attempt {
    pub(crate) fn new(
        grant: &Grant,
        (name, label): (String, String),
        number: u16,
        options: &Options,
    ) -> Attempt {
        Attempt {
            task: grant.task,
            has_begun: false,
            is_revoked: false,
            name,
            label,
            number,
            command: String::new(),
            lease: grant.lease,
            fails: grant.fails,
            profile: Arc::clone(&grant.profile),
            stderr_tail: Vec::new(),
            printed: 0,
            res_line: options.res_line.then(ResLine::default),
            files: Vec::new(),
        }
    }

    /// These words are about to be run.
    pub(crate) fn launching(
        &mut self,
        words: &[OsString],
        options: &Options,
        layout: &Layout,
    ) -> anyhow::Result<()> {
        if options.results_dir.is_some() {
            self.command = typed(words);
        }
        if let Some(dir) = &options.output_dir {
            self.files.push(copies(dir, &self.file_name())?);
        }
        if let Some(dir) = options.results.as_ref().and_then(ResultsPlace::dir) {
            let dir = task_dir(dir, layout, self.task.index)?;
            self.files.push([create(&dir.join("stdout"))?, create(&dir.join("stderr"))?]);
        }
        Ok(())
    }

    /// By its name; where that is a number, with its label. Values may be the same twice, numbers are not.
    fn file_name(&self) -> String {
        let is_number = self.name.bytes().all(|byte| byte.is_ascii_digit());
        match is_number && self.label != self.name {
            true => file_name(&format!("{}-{}", self.name, self.label), self.task.index),
            false => file_name(&self.name, self.task.index),
        }
    }

    pub(crate) fn key(&self) -> Key {
        Key { job: JOB.0, index: self.task.index, attempt: self.number }
    }

    pub(crate) fn lease(&self) -> LeaseRef {
        LeaseRef::Number { task: self.task, lease: self.lease }
    }

    pub(crate) fn printed(&mut self, is_stderr: bool, bytes: &[u8]) -> std::io::Result<()> {
        self.printed += if is_stderr { 0 } else { bytes.len() as u64 };
        if is_stderr {
            self.stderr_tail.extend_from_slice(&bytes[bytes.len().saturating_sub(TAIL_BYTES)..]);
            let over = self.stderr_tail.len().saturating_sub(TAIL_BYTES);
            self.stderr_tail.drain(..over);
        } else if let Some(line) = &mut self.res_line {
            line.take(bytes);
        }
        let mut copies = self.files.iter_mut().map(|files| &mut files[usize::from(is_stderr)]);
        copies.try_for_each(|file| file.write_all(bytes))
    }

    pub(crate) fn stderr_tail(&self) -> &[u8] {
        &self.stderr_tail
    }

    /// What it comes to, where its words decide and not its status.
    pub(crate) fn verdict(&self, outcome: Outcome) -> Outcome {
        match (&self.res_line, outcome) {
            (Some(line), Outcome::Success | Outcome::Exit(_)) if line.is_good() => Outcome::Success,
            // Its words said no: the status would say yes.
            (Some(_), Outcome::Success) => Outcome::Error,
            (_, outcome) => outcome,
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
fn copies(dir: &Path, name: &str) -> anyhow::Result<[File; 2]> {
    let make = |ending| create(&dir.join(format!("{name}.{ending}")));
    Ok([make("out")?, make("err")?])
}

fn create(path: &Path) -> anyhow::Result<File> {
    File::create(path).with_context(|| format!("{} cannot be written", path.display()))
}

/// A file system takes no longer names than 255 bytes.
const FILE_NAME_BYTES_MAX: usize = 240;

/// A file name for a task's output: no directories, and no two tasks the same, whatever their names.
pub(crate) fn file_name(name: &str, index: u32) -> String {
    let mut safe = name.replace('%', "%25").replace('/', "%2F").replace('\0', "%00");
    if safe.len() > FILE_NAME_BYTES_MAX {
        let fits = (0..FILE_NAME_BYTES_MAX - 20).rev().find(|&at| safe.is_char_boundary(at));
        safe.truncate(fits.unwrap_or(0));
        safe.push_str(&format!("%~{index}"));
    }
    safe
}

#[cfg(test)]
mod tests;

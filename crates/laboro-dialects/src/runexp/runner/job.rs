//! One job at a runner, from its start to the text of its result.

use super::RunnerOptions;
use crate::runexp::door::Success;
use crate::runexp::result::{ResLine, ResultHeader, date, to_wait_status};
use crate::runexp::words::RunnerWord;
use crate::session::Stream;
use crate::worker::TaskEnd;
use bytes::{Bytes, BytesMut};
use laboro_core::{Outcome, Time, Work};
use std::ffi::OsString;
use std::sync::Arc;

#[derive(Debug)]
pub(super) struct Running {
    pub(super) name: Bytes,
    /// What runs it, once that is known.
    command: String,
    pub(super) work: Arc<Work>,
    began: Time,
    stdout: BytesMut,
    stderr: BytesMut,
    left_out: u64,
    res_line: ResLine,
}

/// A result on its way to the manager.
#[derive(Debug)]
pub(super) struct Handover {
    pub(super) name: Bytes,
    pub(super) is_good: bool,
    /// Never empty: an original manager would say two words at once.
    pub(super) body: Bytes,
    /// How often a connection was lost over it.
    pub(super) tries: u8,
}

impl Handover {
    pub(super) fn word(&self) -> RunnerWord {
        let size = self.body.len() as u64;
        RunnerWord::Rezulto { name: self.name.clone(), is_good: self.is_good, size }
    }
}

impl Running {
    pub(super) fn new(name: Bytes, work: Arc<Work>, began: Time) -> Running {
        let (stdout, stderr) = (BytesMut::new(), BytesMut::new());
        let (command, res_line) = (String::new(), ResLine::default());
        Running { name, command, work, began, stdout, stderr, left_out: 0, res_line }
    }

    /// It has waited for a slot until now.
    pub(super) fn begin(&mut self, now: Time) {
        self.began = now;
    }

    pub(super) fn launching(&mut self, words: &[OsString]) {
        self.command = command_line(words);
    }

    pub(super) fn take(&mut self, stream: Stream, bytes: &[u8], most: usize) {
        let room = most.saturating_sub(self.stdout.len() + self.stderr.len());
        let kept = &bytes[..bytes.len().min(room)];
        self.left_out += (bytes.len() - kept.len()) as u64;
        match stream {
            Stream::Out => {
                self.res_line.take(bytes);
                self.stdout.extend_from_slice(kept);
            }
            Stream::Err => self.stderr.extend_from_slice(kept),
            // The dialect has no word for it.
            Stream::Result => {}
        }
    }

    pub(super) fn end(self, how: &TaskEnd, now: Time, options: &RunnerOptions) -> Handover {
        let is_good = match (options.success, how.outcome) {
            (_, Outcome::TimedOut | Outcome::Memory | Outcome::Error | Outcome::Lost) => false,
            (Success::ExitCode, outcome) => outcome.is_success(),
            // The original never looks at the exit status.
            (Success::ResLine, _) => self.res_line.is_good(),
        };
        self.hand_over(is_good, how.outcome, how.message.as_deref(), now, options)
    }

    fn hand_over(
        self,
        is_good: bool,
        outcome: Outcome,
        message: Option<&str>,
        now: Time,
        options: &RunnerOptions,
    ) -> Handover {
        let header = ResultHeader {
            is_good,
            began: &date(self.began),
            host: &options.host,
            name: &self.name,
            command: &self.command,
            ended: &date(now),
            wait_status: to_wait_status(outcome),
        };
        let mut body = BytesMut::with_capacity(512 + self.stdout.len() + self.stderr.len());
        header.write(&mut body);
        body.extend_from_slice(&self.stdout);
        add_apart(&mut body, &self.stderr);
        if self.left_out > 0 {
            add_apart(&mut body, format!("[{} more bytes left out]\n", self.left_out).as_bytes());
        }
        if let Some(message) = message {
            add_apart(&mut body, format!("[{message}]\n").as_bytes());
        }
        Handover { name: self.name, is_good, body: body.freeze(), tries: 0 }
    }
}

/// Of a header, which has to be found again at the beginning of a result.
const COMMAND_BYTES_MAX: usize = 4096;

/// As it could be typed: paths and whatever else is no plain word in quotes, as an original writes them.
fn command_line(words: &[OsString]) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '=');
    let mut line = String::new();
    for word in words {
        let word = word.to_string_lossy();
        if !line.is_empty() {
            line.push(' ');
        }
        if !word.is_empty() && word.chars().all(is_plain) {
            line.push_str(&word);
        } else {
            // The line is one of several, and they are counted.
            let word = word.replace('\'', "'\\''").replace(char::is_control, "?");
            line.push_str(&format!("'{word}'"));
        }
    }
    while line.len() > COMMAND_BYTES_MAX {
        line.pop();
    }
    line
}

/// On a line of its own.
fn add_apart(body: &mut BytesMut, more: &[u8]) {
    if !more.is_empty() && !body.ends_with(b"\n") {
        body.extend_from_slice(b"\n");
    }
    body.extend_from_slice(more);
}

//! What a result looks like: the text that travels with it and is the result file, and the rule of what a good
//! one is. Reads and writes bytes, never files.

use bytes::BufMut;
use laboro_core::{Outcome, Time};

/// How the first line begins.
pub const SUMMARY: &str = "runexp summary: ";

/// The lines before what the program printed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct ResultHeader<'a> {
    pub is_good: bool,
    pub began: &'a str,
    pub host: &'a str,
    pub name: &'a [u8],
    /// As a person would type it, on one line.
    pub command: &'a str,
    pub ended: &'a str,
    pub wait_status: i32,
}

impl ResultHeader<'_> {
    /// As it stands at the top of a result file.
    pub fn write(&self, text: &mut impl BufMut) {
        let ResultHeader { began, host, command, ended, wait_status, .. } = self;
        let status = if self.is_good { "success" } else { "failure" };
        text.put_slice(format!("{SUMMARY}{status}\n\n{began} -- [{host}] Running ").as_bytes());
        text.put_slice(self.name);
        let rest = format!(
            "\n> {command}\n{ended} -- Finished running\n{EXITED}{wait_status}\n{FOLLOWS}\n\n"
        );
        text.put_slice(rest.as_bytes());
    }
}

const EXITED: &str = "Program exited with status ";
const FOLLOWS: &str = "Program output follows";

/// Longer than any header that a program of ours or an original writes.
pub const HEADER_BYTES_MAX: usize = 8192;

/// The number that wait(2) gave, from the beginning of a result. `None`: there is no header of this form.
pub fn wait_status(text: &[u8]) -> Option<i32> {
    let mut lines = text.split(|&byte| byte == b'\n');
    lines.next()?.strip_prefix(SUMMARY.as_bytes())?;
    // The empty line, who ran what, the command, the end.
    let status = lines.nth(4)?.strip_prefix(EXITED.as_bytes())?;
    (lines.next()? == FOLLOWS.as_bytes()).then_some(())?;
    std::str::from_utf8(status).ok()?.parse().ok()
}

/// What wait(2) says of the shell through which the original runs everything: that one survives a signal and tells
/// of it by its exit code.
pub fn to_wait_status(outcome: Outcome) -> i32 {
    match outcome {
        Outcome::Success => 0,
        Outcome::Exit(code) => (code & 0xff) << 8,
        Outcome::Signal(signal) => (128 + (signal & 0x7f)) << 8,
        // As timeout(1) and shells have it.
        Outcome::TimedOut => 124 << 8,
        Outcome::Memory => (128 + 9) << 8,
        Outcome::Error => 127 << 8,
        Outcome::Lost => 1 << 8,
    }
}

/// The outcome that a wait status stands for.
pub fn of_wait_status(status: i32) -> Outcome {
    match (status & 0x7f, status >> 8) {
        (0, 0) => Outcome::Success,
        (0, code) => Outcome::Exit(code),
        (signal, _) => Outcome::Signal(signal),
    }
}

/// What the first line of a result says.
pub fn summary(text: &[u8]) -> Option<bool> {
    let line = text.split(|&byte| byte == b'\n').next()?;
    match line.strip_prefix(SUMMARY.as_bytes())? {
        b"success" => Some(true),
        b"failure" => Some(false),
        _ => None,
    }
}

/// As `date` prints it, in UTC: what it means is left to people.
pub fn date(time: Time) -> String {
    let ms = i64::try_from(time.0).unwrap_or(i64::MAX);
    let stamp = jiff::Timestamp::from_millisecond(ms).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    stamp.strftime("%a %b %e %H:%M:%S UTC %Y").to_string()
}

/// The last line with `RES:` in it decides: `RES: failed` is failure, any other success, none failure. Keeps no
/// text, so that lines may be of any length.
#[derive(Clone, Debug, Default)]
pub struct ResLine {
    said: Option<bool>,
    /// Of the line that is not over yet.
    has_mark: bool,
    has_failed: bool,
    at: At,
}

/// What may become `RES: failed`, so far.
#[derive(Clone, Copy, Debug, Default)]
enum At {
    #[default]
    Nowhere,
    /// So many bytes of the mark, all of them in capitals?
    Mark {
        count: usize,
        is_exact: bool,
    },
    Space,
    /// So many bytes of the word after it.
    Failed(usize),
}

const MARK: &[u8] = b"RES:";
const FAILED: &[u8] = b"failed";

impl ResLine {
    /// Looks at the next bytes of what the program printed.
    pub fn take(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.step(byte));
    }

    fn step(&mut self, byte: u8) {
        if byte == b'\n' {
            self.said = self.said();
            (self.has_mark, self.has_failed, self.at) = (false, false, At::Nowhere);
            return;
        }
        let begins = || match byte {
            b'R' | b'r' => At::Mark { count: 1, is_exact: byte == b'R' },
            _ => At::Nowhere,
        };
        let after_space = || match byte {
            b' ' | b'\t' | b'\r' | 0x0b | 0x0c => At::Space,
            _ if byte.eq_ignore_ascii_case(&FAILED[0]) => At::Failed(1),
            _ => begins(),
        };
        self.at = match self.at {
            At::Nowhere => begins(),
            // A line needs the mark as it is written; the failure may be told in any case of letters.
            At::Mark { count, is_exact } if byte.eq_ignore_ascii_case(&MARK[count]) => {
                let is_exact = is_exact && byte == MARK[count];
                if count + 1 < MARK.len() {
                    At::Mark { count: count + 1, is_exact }
                } else {
                    self.has_mark |= is_exact;
                    At::Space
                }
            }
            At::Mark { .. } => begins(),
            At::Space => after_space(),
            At::Failed(count) if byte.eq_ignore_ascii_case(&FAILED[count]) => {
                if count + 1 < FAILED.len() {
                    At::Failed(count + 1)
                } else {
                    self.has_failed = true;
                    At::Nowhere
                }
            }
            At::Failed(_) => begins(),
        };
    }

    /// `None`: no such line.
    pub fn said(&self) -> Option<bool> {
        if self.has_mark { Some(!self.has_failed) } else { self.said }
    }

    /// There was such a line, and the last one did not say `failed`.
    pub fn is_good(&self) -> bool {
        self.said().unwrap_or(false)
    }
}

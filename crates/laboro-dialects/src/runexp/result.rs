//! What a result looks like: the text that travels with it and is the result file, and the rule of what a good
//! one is. Reads and writes bytes, never files.

use bytes::{BufMut, BytesMut};
use laboro_core::{Outcome, Time};

/// How the first line begins.
pub const SUMMARY: &str = "runexp summary: ";

/// The lines before what the program printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header<'a> {
    pub is_good: bool,
    pub began: &'a str,
    pub host: &'a str,
    pub name: &'a [u8],
    /// As a person would type it.
    pub command: &'a str,
    pub ended: &'a str,
    pub wait_status: i32,
}

impl Header<'_> {
    pub fn write(&self, text: &mut impl BufMut) {
        let Header { began, host, command, ended, wait_status, .. } = self;
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

/// What wait(2) would say of it.
pub fn to_wait_status(outcome: Outcome) -> i32 {
    match outcome {
        Outcome::Success => 0,
        Outcome::Exit(code) => (code & 0xff) << 8,
        Outcome::Signal(signal) => signal & 0x7f,
        // As timeout(1) and shells have it.
        Outcome::TimedOut => 124 << 8,
        Outcome::Error => 127 << 8,
        Outcome::Lost => 1 << 8,
    }
}

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

/// The last line with `RES:` in it decides: `RES: failed` is failure, any other success, none failure.
#[derive(Clone, Debug, Default)]
pub struct ResLine {
    begun: BytesMut,
    said: Option<bool>,
}

const LINE_BYTES_MAX: usize = 64 * 1024;

impl ResLine {
    pub fn take(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|&byte| byte == b'\n') {
            let room = LINE_BYTES_MAX.saturating_sub(self.begun.len());
            self.begun.extend_from_slice(&piece[..piece.len().min(room)]);
            if piece.ends_with(b"\n") {
                self.said = verdict(&self.begun).or(self.said);
                self.begun.clear();
            }
        }
    }

    /// `None`: no such line.
    pub fn said(&self) -> Option<bool> {
        verdict(&self.begun).or(self.said)
    }

    pub fn is_good(&self) -> bool {
        self.said().unwrap_or(false)
    }
}

fn verdict(line: &[u8]) -> Option<bool> {
    let mut says = line.windows(4).enumerate().filter(|(_, window)| *window == b"RES:").peekable();
    says.peek()?;
    // Any `RES:` of the line may say so.
    let failed = says.any(|(at, _)| {
        let word = line[at + 4..].trim_ascii_start();
        word.len() >= 6 && word[..6].eq_ignore_ascii_case(b"failed")
    });
    Some(!failed)
}

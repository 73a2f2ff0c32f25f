//! Where a delivery goes: a URL, a mail address or a command, all written as one word or line.

use hyper::Uri;
use std::fmt;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// Gets a POST.
    Url(Uri),
    Mail(String),
    /// A shell line of the machine where it is run.
    Command(String),
}

/// Before a target of a job that is to be told only if the job failed.
pub const IF_FAILED: &str = "if-failed:";

/// Whether this target of a job is told of this event, and what follows its condition.
pub fn target_for<'a>(text: &'a str, event: &str) -> Option<&'a str> {
    match text.strip_prefix(IF_FAILED) {
        Some(target) => (event == "job_failed").then_some(target),
        None => Some(text),
    }
}

/// Longer ones belong into a file.
const BYTES_MAX: usize = 8192;

impl Target {
    /// `https://…`, `http://…`, `mail:ADDRESS`, or else a shell line; each may have a condition before it.
    pub fn parse(text: &str) -> Result<Target, String> {
        let text = text.trim();
        let text = text.strip_prefix(IF_FAILED).unwrap_or(text);
        if text.is_empty() {
            return Err("there is nothing to call: give a URL, mail:ADDRESS or a command".into());
        }
        if text.len() > BYTES_MAX {
            return Err(format!("it has more than {BYTES_MAX} bytes: put it into a script"));
        }
        if let Some(address) = text.strip_prefix("mail:").or_else(|| text.strip_prefix("mailto:")) {
            return is_address(address)
                .then(|| Target::Mail(address.to_owned()))
                .ok_or_else(|| format!("{address:?} is not a mail address: write mail:NAME@HOST"));
        }
        let is_web = ["http://", "https://"].iter().any(|scheme| {
            text.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme))
        });
        if !is_web {
            return Ok(Target::Command(text.to_owned()));
        }
        let bad = |why: &str| format!("{text:?} is not a URL: {why}");
        if text.bytes().any(|byte| byte <= b' ' || byte == b'\\' || byte == 0x7f) {
            return Err(bad("it has blanks or a backslash in it"));
        }
        let uri: Uri = text.parse().map_err(|error| bad(&format!("{error}")))?;
        match uri.authority() {
            Some(place) if place.as_str().contains('@') => {
                Err(bad("a password does not belong there; receivers check the signature"))
            }
            Some(place) if !place.host().is_empty() => Ok(Target::Url(uri)),
            _ => Err(bad("it names no host")),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Url(uri) => write!(f, "{uri}"),
            Target::Mail(address) => write!(f, "mail:{address}"),
            Target::Command(line) => f.write_str(line),
        }
    }
}

/// It becomes an argument of a program and a line of a header.
fn is_address(text: &str) -> bool {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || ".-_+@=%".contains(letter);
    let parts = text.split_once('@');
    let has_parts = parts.is_some_and(|(name, host)| {
        !name.is_empty() && !host.is_empty() && !host.contains('@') && !host.starts_with('-')
    });
    has_parts && text.chars().all(is_plain) && !text.starts_with('-')
}

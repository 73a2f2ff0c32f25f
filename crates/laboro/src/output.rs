//! Small shared ways of showing things to people: durations, sizes, names that are safe on a terminal.

mod data;
pub(crate) mod table;

pub(crate) use data::{Data, data};

use std::io::Write;
use std::time::Duration;

/// Words for people. That nobody reads them any more is no reason to stop, as it would be with `eprintln`.
pub(crate) fn say(words: impl std::fmt::Display) {
    let _ = writeln!(std::io::stderr().lock(), "{words}");
}

/// Data. A reader that has seen enough is an error like any other; `main` knows what to make of it.
pub(crate) fn print(data: impl std::fmt::Display) -> std::io::Result<()> {
    let mut out = self::data();
    writeln!(out, "{data}")?;
    out.flush()
}

/// Data that may be no text, in a line.
pub(crate) fn print_bytes(bytes: &[u8]) -> std::io::Result<()> {
    let mut out = data();
    out.write_all(bytes)?;
    out.write_all(b"\n")?;
    out.flush()
}

pub(crate) fn duration(time: Duration) -> String {
    let seconds = time.as_secs();
    if seconds >= 3600 {
        format!("{}h{:02}m", seconds / 3600, seconds % 3600 / 60)
    } else if seconds >= 60 {
        format!("{}m{:02}s", seconds / 60, seconds % 60)
    } else if seconds >= 10 {
        format!("{:.1}s", time.as_secs_f64())
    } else {
        format!("{:.2}s", time.as_secs_f64())
    }
}

pub(crate) fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{bytes} B") } else { format!("{value:.1} {}", UNITS[unit]) }
}

pub(crate) use laboro_core::counted;

/// Text from a task or a file as it may go to a terminal: no control characters but tabs.
pub(crate) fn safe(text: &str) -> String {
    let shown = |c: char| -> String {
        if c.is_control() && c != '\t' { c.escape_default().to_string() } else { c.to_string() }
    };
    text.chars().map(shown).collect()
}

/// A word as it can be typed in a shell.
pub(crate) fn shell_word(word: &str) -> String {
    // Braces mean something to some shells around a list or a range only.
    let has_list = word.contains(',') || word.contains("..") || matches!(word, "{" | "}");
    let braces = if has_list { "" } else { "{}#" };
    let plain =
        |c: char| c.is_ascii_alphanumeric() || "_-./:,@%+=".contains(c) || braces.contains(c);
    match !word.is_empty() && !word.starts_with('#') && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests;

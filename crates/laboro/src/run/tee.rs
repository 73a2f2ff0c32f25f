//! Lines of many tasks, live, each with its task's name before it. Only whole lines are shown, so that
//! lines of two tasks never run into each other; a last line without an end is shown at the end.

use crate::output::{data, safe};
use std::collections::HashMap;
use std::io::Write;

#[derive(Default)]
pub(crate) struct Tee {
    /// What a task has begun and not ended, by launch and stream.
    begun: HashMap<(u64, bool), Vec<u8>>,
}

/// A line longer than this is shown in pieces.
const LINE_BYTES_MAX: usize = 64 * 1024;

impl Tee {
    /// Gives the lines that are complete now.
    pub(crate) fn take(&mut self, id: u64, is_stderr: bool, bytes: &[u8]) -> Vec<String> {
        let begun = self.begun.entry((id, is_stderr)).or_default();
        let mut lines = Vec::new();
        for piece in bytes.split_inclusive(|&byte| byte == b'\n') {
            begun.extend_from_slice(piece);
            if piece.ends_with(b"\n") || begun.len() > LINE_BYTES_MAX {
                lines.push(shown(begun));
                begun.clear();
            }
        }
        lines
    }

    /// The task has ended: what it left unfinished.
    pub(crate) fn end(&mut self, id: u64) -> Vec<(bool, String)> {
        let left = [false, true].into_iter().filter_map(|is_stderr| {
            let begun = self.begun.remove(&(id, is_stderr))?;
            (!begun.is_empty()).then(|| (is_stderr, shown(&begun)))
        });
        left.collect()
    }
}

/// A line as people see it, on the stream that it came from.
pub(crate) fn print_teed(label: &str, is_stderr: bool, line: &str) -> std::io::Result<()> {
    let text = format!("{}: {line}\n", safe(label));
    match is_stderr {
        true => std::io::stderr().lock().write_all(text.as_bytes()),
        false => data().write_all(text.as_bytes()),
    }
}

fn shown(line: &[u8]) -> String {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    safe(&String::from_utf8_lossy(line))
}

//! Reads the recorded conversations and what Laboro does otherwise.

use bytes::Bytes;
use std::collections::HashMap;

pub(super) const FILES: [&str; 10] = [
    "empty-jobs-2w",
    "fino-with-running-2w",
    "fino-with-running-4w",
    "group-mismatch",
    "hold-then-eject-4w",
    "outcomes-1w",
    "test2-2w",
    "test3-subdirs-2w",
    "test6-ban-2w",
    "two-runners-2w-each",
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum From {
    Runner,
    Manager,
}

/// One read of one side.
#[derive(Clone, Debug)]
pub(super) struct Line {
    /// In the file, from 1.
    pub(super) number: usize,
    pub(super) connection: u64,
    pub(super) ms: u64,
    pub(super) what: What,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum What {
    Connect,
    Close(From),
    Bytes(From, Bytes),
}

fn path(name: &str) -> String {
    format!("{}/../../spec/golden/{name}", env!("CARGO_MANIFEST_DIR"))
}

pub(super) fn read(file: &str) -> Vec<Line> {
    let text = std::fs::read_to_string(path(&format!("runexp/{file}.txt"))).unwrap();
    let lines = text.lines().enumerate().filter_map(|(at, line)| parse(at + 1, line));
    let mut lines: Vec<Line> = lines.collect();
    // Of a long run of the letter x the recording leaves out the rest; the job's script says how it ends.
    let is_long = |line: &Line| matches!(&line.what, What::Bytes(_, bytes) if bytes.len() > 10_000);
    if let Some(last) = lines.iter().rposition(is_long)
        && let What::Bytes(_, bytes) = &mut lines[last].what
    {
        let end = b"\nRES:done\n";
        *bytes = [&bytes[..bytes.len() - end.len()], end].concat().into();
    }
    lines
}

fn parse(number: usize, line: &str) -> Option<Line> {
    if line.starts_with('#') || line.is_empty() {
        return None;
    }
    let mut words = line.splitn(3, ' ');
    let connection = words.next().unwrap().parse().unwrap();
    let direction = words.next().unwrap();
    let rest = words.next().unwrap().trim_start();
    let (seconds, rest) = rest.split_once(' ').unwrap();
    let (size, rest) = rest.split_once(' ').unwrap();
    let from = if direction == ">" { From::Runner } else { From::Manager };
    let what = match rest {
        "<CONNECT>" => What::Connect,
        "<EOF>" => What::Close(from),
        quoted => {
            let size: usize = size.parse().unwrap();
            let whole = quoted.strip_suffix(" ...(truncated in this log)");
            let quoted = whole.unwrap_or(quoted);
            let text = quoted.strip_prefix('"').unwrap().strip_suffix('"').unwrap();
            let mut bytes = unescape(text);
            if whole.is_some() {
                bytes.resize(size, b'x');
            }
            assert_eq!(bytes.len(), size, "line {number}");
            What::Bytes(from, bytes.into())
        }
    };
    let ms = (seconds.parse::<f64>().unwrap() * 1000.0) as u64;
    Some(Line { number, connection, ms, what })
}

fn unescape(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        if *first != b'\\' {
            bytes.push(*first);
            continue;
        }
        let (&escape, after) = rest.split_first().unwrap();
        rest = after;
        match escape {
            b'n' => bytes.push(b'\n'),
            b'r' => bytes.push(b'\r'),
            b't' => bytes.push(b'\t'),
            b'x' => {
                let (hex, after) = rest.split_at(2);
                bytes.push(u8::from_str_radix(std::str::from_utf8(hex).unwrap(), 16).unwrap());
                rest = after;
            }
            other => bytes.push(other),
        }
    }
    bytes
}

/// What Laboro says instead, by file and line.
pub(super) fn differences() -> HashMap<(String, usize), String> {
    let text = std::fs::read_to_string(path("runexp.differences.txt")).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    let parse = |line: &str| {
        let (what, _why) = line.split_once(" -- ").unwrap();
        let (place, ours) = what.split_once(' ').unwrap();
        let (file, number) = place.split_once(':').unwrap();
        ((file.to_owned(), number.parse().unwrap()), ours.to_owned())
    };
    lines.map(parse).collect()
}

#[test]
fn every_recording_is_read_to_the_byte() {
    let total: usize = FILES.iter().map(|file| read(file).len()).sum();
    assert_eq!(total, 1308);
}

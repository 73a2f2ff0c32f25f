//! `tasks.jsonl`: one task a line with the keys of a flow's task, read as a stream. Blank lines are skipped.
//! What lines say of each other is checked once all are read.

use std::io::{BufRead, Read};
use std::path::Path;

use crate::decode::Decoder;
use crate::mistake::{MISTAKES_SHOWN_MAX, Mistake, Mistakes, Position};
use crate::node::Node;
use crate::plan::{Part, Plan, PlanError};
use crate::settings::Settings;

/// A line is one task; a line without end is a mistake or an attack.
pub const JSON_LINE_BYTES_MAX: usize = 4 << 20;

/// What some editors put before the first line.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The tasks of a stream, one at a time. After a line that cannot be read at all the stream ends.
#[derive(Debug)]
pub struct JsonTasks<'a, R> {
    name: &'a str,
    decoder: Decoder<'a>,
    reader: R,
    line: u32,
    buffer: Vec<u8>,
    ended: bool,
}

impl<'a, R: BufRead> JsonTasks<'a, R> {
    /// `name` is for messages, and list files are looked for below `base`.
    pub fn new(name: &'a str, base: &'a Path, reader: R) -> JsonTasks<'a, R> {
        JsonTasks {
            name,
            decoder: Decoder::new(base),
            reader,
            line: 0,
            buffer: Vec::new(),
            ended: false,
        }
    }

    fn fill(&mut self) -> Result<usize, PlanError> {
        self.buffer.clear();
        let limit = JSON_LINE_BYTES_MAX as u64 + 1;
        let read = self.reader.by_ref().take(limit).read_until(b'\n', &mut self.buffer);
        let read = read.map_err(|source| PlanError::Read { path: self.name.to_owned(), source })?;
        self.line += 1;
        if self.line == 1 && self.buffer.starts_with(BYTE_ORDER_MARK) {
            self.buffer.drain(..BYTE_ORDER_MARK.len());
        }
        if read > JSON_LINE_BYTES_MAX {
            let message = format!("the line is longer than {JSON_LINE_BYTES_MAX} bytes");
            let mistake = Mistake::new(Position::line(self.line), message);
            return Err(Mistakes::one(self.name, mistake).into());
        }
        Ok(read)
    }

    fn decode(&mut self) -> Result<Part, Vec<Mistake>> {
        let node = Node::from_json(self.line, &self.buffer).map_err(|error| {
            let at = Position { line: self.line, column: error.column() as u32, width: 0 };
            // The library counts lines within this one line; ours is the number that helps.
            let words = error.to_string();
            let words = words.split(" at line ").next().unwrap_or_default();
            vec![Mistake::new(at, format!("not a JSON task: {words}"))]
        })?;
        let part = self.decoder.task(&node, &Settings::default());
        let mistakes = std::mem::take(&mut self.decoder.mistakes);
        self.decoder.broken.clear();
        match part {
            Some(part) if mistakes.is_empty() => Ok(part),
            _ => Err(mistakes),
        }
    }
}

impl<R: BufRead> Iterator for JsonTasks<'_, R> {
    type Item = Result<Part, PlanError>;

    fn next(&mut self) -> Option<Result<Part, PlanError>> {
        loop {
            if self.ended {
                return None;
            }
            match self.fill() {
                Ok(0) => return None,
                Ok(_) if self.buffer.iter().all(u8::is_ascii_whitespace) => {}
                Ok(_) => {
                    let part = self.decode();
                    return Some(
                        part.map_err(|list| Mistakes::new(self.name, list, |_| None).into()),
                    );
                }
                Err(error) => {
                    self.ended = true;
                    return Some(Err(error));
                }
            }
        }
    }
}

/// Reads the whole stream into one plan.
pub fn parse_jsonl(name: &str, base: &Path, reader: impl BufRead) -> Result<Plan, PlanError> {
    let mut plan = Plan::new(name);
    let mut mistakes: Vec<Mistake> = Vec::new();
    for part in JsonTasks::new(name, base, reader) {
        match part {
            Ok(part) => plan.parts.push(part),
            Err(PlanError::Mistakes(found)) => mistakes.extend(found.iter().cloned()),
            Err(error) => return Err(error),
        }
        if mistakes.len() > MISTAKES_SHOWN_MAX {
            break;
        }
    }
    if mistakes.is_empty() {
        plan.resolve();
        if plan.parts.is_empty() {
            mistakes.push(Mistake::new(Position::default(), "there is no task in it"));
        } else {
            mistakes = plan.mistakes_beside(&[]);
        }
    }
    match mistakes.is_empty() {
        true => Ok(plan),
        false => Err(Mistakes::new(name, mistakes, |_| None).into()),
    }
}

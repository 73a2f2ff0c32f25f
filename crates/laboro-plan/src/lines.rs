//! Text files of one thing a line: `jobs.txt`, whose lines are shell commands, and lists of values.
//! A job file is one array without a name, so a hundred thousand lines are two allocations.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use crate::mistake::{Mistake, Mistakes, Position};
use crate::plan::{Array, Part, Plan, PlanError};
use crate::settings::Settings;
use crate::template::Template;
use crate::values::{List, Values, ValuesError};
use crate::work::Work;

/// Linux takes no argument longer than 128 KiB, and `sh -c` gets a line as one argument.
pub const COMMAND_BYTES_MAX: usize = (128 << 10) - 1;

/// Windows puts it before the first line of a text.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// A job file: one shell command a line. Skipped are blank lines and lines that begin with `#`; a line that
/// ends in `\` goes on in the next. The n-th command is task `n`.
pub fn parse_lines(name: &str, mut reader: impl BufRead) -> Result<Plan, PlanError> {
    let mut commands = List::default();
    let mut raw = Vec::new();
    let mut command: Vec<u8> = Vec::new();
    let (mut line, mut begun_at) = (0, None);
    let refuse = |line, message: String| -> PlanError {
        Mistakes::one(name, Mistake::new(Position::line(line), message)).into()
    };
    loop {
        if !read_line(name, &mut reader, COMMAND_BYTES_MAX, &mut raw, line)? {
            break;
        }
        line += 1;
        let text = if line == 1 { raw.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&raw) } else { &raw };
        let first = text.iter().find(|byte| !byte.is_ascii_whitespace());
        if begun_at.is_none() && matches!(first, None | Some(b'#')) {
            continue;
        }
        let backslashes = text.iter().rev().take_while(|byte| **byte == b'\\').count();
        let continued = backslashes % 2 == 1;
        command.extend_from_slice(&text[..text.len() - usize::from(continued)]);
        if command.len() > COMMAND_BYTES_MAX {
            let message = format!("the command is longer than {COMMAND_BYTES_MAX} bytes");
            return Err(refuse(begun_at.unwrap_or(line), message));
        }
        if continued {
            begun_at.get_or_insert(line);
            continue;
        }
        let at = begun_at.take().unwrap_or(line);
        commands.push(&command).map_err(|error| refuse(at, error.to_string()))?;
        command.clear();
    }
    if let Some(line) = begun_at {
        let message = "the file ends in the middle of this command, after a `\\`";
        return Err(refuse(line, message.to_owned()));
    }
    let values =
        Values::list(commands).map_err(|_| refuse(0, "there is no command in it".to_owned()))?;
    let mut plan = Plan::new(name);
    plan.parts.push(Part::Array(Box::new(Array {
        name: String::new(),
        values,
        template: Work::Shell { line: Template::value_itself() },
        after: Vec::new(),
        settings: Settings::default(),
        at: Position::default(),
    })));
    Ok(plan)
}

/// What ends a value in a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ending {
    /// A new line, with or without a carriage return; blank lines are no values.
    #[default]
    Line,
    /// A zero byte, as `find -print0` writes it; nothing else is special.
    Zero,
}

/// A list of values from a pipe or a file.
pub fn parse_list(name: &str, reader: impl BufRead, ending: Ending) -> Result<List, PlanError> {
    add_to_list(List::default(), name, reader, ending)
}

fn add_to_list(
    mut list: List,
    name: &str,
    mut reader: impl BufRead,
    ending: Ending,
) -> Result<List, PlanError> {
    let mut raw = Vec::new();
    let mut number = 0;
    loop {
        let more = match ending {
            Ending::Line => read_line(name, &mut reader, COMMAND_BYTES_MAX, &mut raw, number)?,
            Ending::Zero => read_until(name, &mut reader, 0, COMMAND_BYTES_MAX, &mut raw, number)?,
        };
        if !more {
            return Ok(list);
        }
        number += 1;
        if number == 1 && ending == Ending::Line && raw.starts_with(BYTE_ORDER_MARK) {
            raw.drain(..BYTE_ORDER_MARK.len());
        }
        if ending == Ending::Line && raw.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        list.push(&raw).map_err(|error| {
            let hint = (error == ValuesError::ZeroByte)
                .then(|| "values that end in zero bytes need -0".to_owned());
            let mistake = Mistake { at: Position::line(number), message: error.to_string(), hint };
            PlanError::from(Mistakes::one(name, mistake))
        })?;
    }
}

/// The values of a file, one per line.
pub fn read_list(path: &Path) -> Result<List, PlanError> {
    let name = path.display().to_string();
    let file = File::open(path).map_err(|source| PlanError::Read { path: name.clone(), source })?;
    // 0 of a pipe.
    let bytes = file.metadata().map_or(0, |about| about.len());
    let list = List::with_room(usize::try_from(bytes).unwrap_or(0));
    add_to_list(list, &name, BufReader::with_capacity(1 << 16, file), Ending::Line)
}

fn read_line(
    name: &str,
    reader: &mut impl BufRead,
    max: usize,
    raw: &mut Vec<u8>,
    before: u32,
) -> Result<bool, PlanError> {
    let more = read_until(name, reader, b'\n', max, raw, before)?;
    if raw.last() == Some(&b'\r') {
        raw.pop();
    }
    Ok(more)
}

/// False at the end of the input. What is read goes without its ending.
fn read_until(
    name: &str,
    reader: &mut impl BufRead,
    end: u8,
    max: usize,
    raw: &mut Vec<u8>,
    before: u32,
) -> Result<bool, PlanError> {
    raw.clear();
    let read = reader.by_ref().take(max as u64 + 2).read_until(end, raw);
    let read = read.map_err(|source| PlanError::Read { path: name.to_owned(), source })?;
    if raw.last() == Some(&end) {
        raw.pop();
    }
    if raw.len() > max {
        let message = format!("longer than the {max} bytes an argument may have");
        let mistake = Mistake::new(Position::line(before + 1), message);
        return Err(Mistakes::one(name, mistake).into());
    }
    Ok(read > 0)
}

//! A job file by its name: `.toml` is a flow, `.jsonl` is tasks, a directory is runs, all else lines of commands,
//! unless it is known to be something else.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use crate::flow::{FLOW_BYTES_MAX, parse_flow};
use crate::foreign::refuse_foreign;
use crate::jsonl::parse_jsonl;
use crate::lines::parse_lines;
use crate::mistake::{Mistake, Mistakes, Position};
use crate::plan::{Plan, PlanError};
use crate::runs::{read_bounded, read_runs};

impl Plan {
    /// Reads a job file in the form that its name says.
    pub fn open(path: &Path) -> Result<Plan, PlanError> {
        if path.is_dir() {
            return read_runs(path);
        }
        let name = path.display().to_string();
        let base = path.parent().unwrap_or(Path::new(""));
        let kind = path.extension().map(std::ffi::OsStr::to_ascii_lowercase);
        let kind = kind.as_deref().and_then(|extension| extension.to_str());
        if kind == Some("toml") {
            let text = String::from_utf8(read_bounded(path, FLOW_BYTES_MAX)?).map_err(|error| {
                let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
                let line = valid.iter().filter(|byte| **byte == b'\n').count() as u32 + 1;
                Mistakes::one(&*name, Mistake::new(Position::line(line), "the text is not UTF-8"))
            })?;
            return Ok(parse_flow(&name, &text, base)?);
        }
        let mut reader = reader(path)?;
        match kind {
            Some("jsonl" | "ndjson") => parse_jsonl(&name, base, reader),
            _ => {
                let unread = |source| PlanError::Read { path: name.clone(), source };
                refuse_foreign(path, reader.fill_buf().map_err(unread)?)?;
                parse_lines(&name, reader)
            }
        }
    }

    /// Every line is a command, whatever the file is called.
    pub fn open_lines(path: &Path) -> Result<Plan, PlanError> {
        parse_lines(&path.display().to_string(), reader(path)?)
    }
}

fn reader(path: &Path) -> Result<BufReader<File>, PlanError> {
    let unread = |source| PlanError::Read { path: path.display().to_string(), source };
    Ok(BufReader::with_capacity(1 << 16, File::open(path).map_err(unread)?))
}

//! A job file by its name: `.toml` is a flow, `.jsonl` is tasks, a directory is runs, all else lines of commands.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use crate::flow::{FLOW_BYTES_MAX, parse_flow};
use crate::jsonl::parse_jsonl;
use crate::lines::parse_lines;
use crate::mistake::{Mistake, Mistakes, Position};
use crate::plan::{Plan, PlanError};
use crate::runs::{read_bounded, read_runs};

impl Plan {
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
        let file =
            File::open(path).map_err(|source| PlanError::Read { path: name.clone(), source })?;
        let reader = BufReader::with_capacity(1 << 16, file);
        match kind {
            Some("jsonl" | "ndjson") => parse_jsonl(&name, base, reader),
            _ => parse_lines(&name, reader),
        }
    }
}

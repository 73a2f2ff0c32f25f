//! What happened, line by line, for whoever looks at one seed. Runs of many seeds keep nothing: a seed can
//! always be run again.

use std::fmt;

#[derive(Debug, Default)]
pub(crate) struct Timeline {
    lines: Option<Vec<String>>,
}

/// A run that says more than this is not read by anybody.
const LINES_MAX: usize = 200_000;

impl Timeline {
    pub fn kept() -> Timeline {
        Timeline { lines: Some(Vec::new()) }
    }

    pub fn say(&mut self, now: u64, words: fmt::Arguments<'_>) {
        if let Some(lines) = &mut self.lines
            && lines.len() < LINES_MAX
        {
            lines.push(format!("{:>9.3}  {words}", now as f64 / 1000.0));
        }
    }

    pub fn is_kept(&self) -> bool {
        self.lines.is_some()
    }

    pub fn into_lines(self) -> Vec<String> {
        self.lines.unwrap_or_default()
    }
}

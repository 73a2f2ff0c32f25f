//! What tasks of this job printed, wherever it is kept: by this run, or by an earlier one that did the task. Reads the
//! stores of both; an earlier one is opened when it is first asked for.

use super::JOB;
use super::earlier::{self, Carried};
use anyhow::Context;
use laboro_journal::outputs::{Key, Reader};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

pub(crate) struct Kept {
    reader: Reader,
    /// What earlier runs did of this job, and their outputs once they were asked for.
    carried: Vec<Carried>,
    root: PathBuf,
    earlier: HashMap<String, Option<Reader>>,
}

/// Where the output of a task is.
pub(crate) enum Place<'a> {
    /// The number it has there.
    Here(&'a Reader, u32),
    /// Somebody has removed that run.
    Gone(String),
}

impl Kept {
    /// `outputs` is the store of this run.
    pub(crate) fn open(outputs: &Path) -> anyhow::Result<Kept> {
        let reader = Reader::open(outputs).context("the outputs cannot be read")?;
        let dir = outputs.parent().unwrap_or(outputs);
        Ok(Kept {
            reader,
            carried: earlier::carried(dir),
            root: dir.parent().unwrap_or(dir).to_owned(),
            earlier: HashMap::new(),
        })
    }

    /// Sees what this run has kept meanwhile.
    pub(crate) fn refresh(&mut self) -> anyhow::Result<()> {
        Ok(self.reader.refresh()?)
    }

    pub(crate) fn place(&mut self, index: u32) -> Place<'_> {
        let (run, there) = earlier::origin(&self.carried, "", index);
        if run.is_empty() {
            return Place::Here(&self.reader, there);
        }
        let open = || Reader::open(self.root.join(run).join("outputs")).ok();
        match self.earlier.entry(run.to_owned()).or_insert_with(open) {
            Some(reader) => Place::Here(reader, there),
            None => Place::Gone(run.to_owned()),
        }
    }

    /// The last attempt at a task, if it is known.
    pub(crate) fn last_attempt(&mut self, index: u32) -> anyhow::Result<Option<u16>> {
        Ok(match self.place(index) {
            Place::Here(reader, there) => reader.attempts(JOB.0, there)?.last().copied(),
            Place::Gone(_) => None,
        })
    }
}

/// By its number in the store that has it.
pub(crate) fn key(index: u32, attempt: u16) -> Key {
    Key { job: JOB.0, index, attempt }
}

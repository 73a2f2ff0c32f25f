//! `--joblog`: a line for each attempt that has ended, in the columns of GNU parallel, so that what reads its logs reads
//! ours. Nothing is read back: what is done is known by the run's own state.

use super::show::EndView;
use anyhow::Context;
use laboro_core::Outcome;
use std::fs::File;
use std::io::Write;
use std::path::Path;

pub(crate) struct JobLog(File);

const COLUMNS: &str = "Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand\n";

impl JobLog {
    /// Written anew, or added to where the same command goes on.
    pub(crate) fn open(path: &Path, goes_on: bool) -> anyhow::Result<JobLog> {
        let mut options = File::options();
        let file = match goes_on {
            true => options.append(true).create(true).open(path),
            false => options.write(true).truncate(true).create(true).open(path),
        };
        let trouble = || format!("--joblog {} cannot be written", path.display());
        let mut file = file.with_context(trouble)?;
        if file.metadata().with_context(trouble)?.len() == 0 {
            file.write_all(COLUMNS.as_bytes()).with_context(trouble)?;
        }
        Ok(JobLog(file))
    }

    pub(crate) fn add(&mut self, end: &EndView) -> anyhow::Result<()> {
        self.0.write_all(line(end).as_bytes()).context("the file of --joblog cannot be written")
    }
}

fn line(end: &EndView) -> String {
    let (exit, signal) = match end.outcome {
        Outcome::Success => (0, 0),
        Outcome::Exit(code) => (code, 0),
        Outcome::Signal(signal) => (0, signal),
        // As parallel has it for what it ended itself.
        Outcome::TimedOut => (-1, 15),
        Outcome::Error | Outcome::Lost => (-1, 0),
    };
    let started = end.started_ms as f64 / 1000.0;
    let took = end.used.wall_us as f64 / 1e6;
    let command = end.command.replace(['\n', '\t'], " ");
    format!(
        "{}\t:\t{started:.3}\t{took:>10.3}\t0\t{}\t{exit}\t{signal}\t{command}\n",
        end.index, end.printed
    )
}

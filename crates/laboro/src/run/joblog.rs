//! `--joblog`: a line for each attempt that has ended, in the columns of GNU parallel, so that what reads its logs reads
//! ours. Nothing is read back: what is done is known by the run's own state.

use super::collected::Numbers;
use super::show::EndView;
use anyhow::Context;
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

    pub(crate) fn add(&mut self, end: &EndView, command: &str) -> anyhow::Result<()> {
        self.0
            .write_all(line(end, command).as_bytes())
            .context("the file of --joblog cannot be written")
    }
}

fn line(end: &EndView, command: &str) -> String {
    let numbers = Numbers::new(end.started_ms, end.used.wall_us, end.printed, end.outcome);
    let mut fields = numbers.fields(end.index);
    fields[3] = format!("{:>10}", fields[3]);
    format!("{}\t{}\n", fields.join("\t"), command.replace(['\n', '\t'], " "))
}

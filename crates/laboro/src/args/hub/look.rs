//! What can be typed to look at jobs, tasks and the hub itself, changing nothing.

use super::{AnswerArgs, HubArgs, ListArgs, RowArgs, SELECTOR_HELP, WhereArgs};
use clap::{Args as ClapArgs, ValueEnum};
use std::path::PathBuf;

#[derive(Debug, ClapArgs)]
pub(crate) struct Status {
    /// Only of this group.
    #[arg(long, value_name = "GROUP")]
    pub(crate) group: Option<String>,

    #[command(flatten)]
    pub(crate) answer: AnswerArgs,
}

const JOBS_HELP: &str = "\
`--state failed`, or several as in `--state failed,held`, lists only jobs in these states: waiting, running, held,
stopped, done, failed, cancelled.";

#[derive(Debug, ClapArgs)]
#[command(after_help = JOBS_HELP)]
pub(crate) struct Jobs {
    /// Only of this group.
    #[arg(long, value_name = "GROUP")]
    pub(crate) group: Option<String>,

    /// Only jobs that have not ended.
    #[arg(long)]
    pub(crate) active: bool,

    /// Only yours: those of the owner of your token.
    #[arg(long, conflicts_with_all = ["owner", "all"])]
    pub(crate) mine: bool,

    /// Only those of this owner.
    #[arg(long, value_name = "NAME", conflicts_with = "all")]
    pub(crate) owner: Option<String>,

    /// Those of all owners, which is the default.
    #[arg(long)]
    pub(crate) all: bool,

    #[command(flatten)]
    pub(crate) list: ListArgs,
}

const EXPORT_HELP: &str = "\
Examples:
  laboro export 12 -o attempts.csv
  laboro export last/failed --format jsonl | jq .label

A row per attempt: job, task, label, worker, outcome, times as the worker measured them, processor time, memory, and the
values of an array's element in columns of their own. In CSV, text that a spreadsheet would take for a formula begins with
an apostrophe.";

#[derive(Debug, ClapArgs)]
#[command(after_help = EXPORT_HELP)]
pub(crate) struct Export {
    /// A job, or tasks of it: 12, last, 12/failed, 12/1-100.
    #[arg(value_name = "JOB", default_value = "last")]
    pub(crate) job: String,

    /// Write to this file; its ending (.csv, .jsonl, .parquet, .sqlite, .joblog) chooses the format. Default: CSV on
    /// standard output.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    /// What to write. Default: by the ending of the file, else CSV.
    #[arg(long, value_enum)]
    pub(crate) format: Option<ExportFormat>,

    /// Names for the columns of values, such as model,seed. Default: those that the job was submitted with, else value_1,
    /// value_2 and so on.
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub(crate) columns: Vec<String>,

    #[command(flatten)]
    pub(crate) place: WhereArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    Csv,
    /// One JSON object per line.
    Jsonl,
    /// For pandas, Polars, DuckDB, Spark.
    Parquet,
    /// A database with the table `attempts`.
    Sqlite,
    /// The columns of GNU parallel's --joblog.
    Joblog,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Audit {
    /// Only what was done with this token, or by this owner.
    #[arg(long, value_name = "NAME")]
    pub(crate) by: Option<String>,

    /// Only what was done to this job.
    #[arg(long, value_name = "JOB")]
    pub(crate) job: Option<u32>,

    #[command(flatten)]
    pub(crate) rows: RowArgs,

    #[command(flatten)]
    pub(crate) hub: HubArgs,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = SELECTOR_HELP)]
pub(crate) struct Tasks {
    /// A job, or tasks of it: 12, last, 12/failed, 12/1-100.
    #[arg(default_value = "last")]
    pub(crate) tasks: String,

    #[command(flatten)]
    pub(crate) list: ListArgs,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = SELECTOR_HELP)]
pub(crate) struct Show {
    /// Jobs or tasks: 12, last, 12/5, 9,10.
    #[arg(value_name = "JOB|TASK", default_value = "last")]
    pub(crate) what: Vec<String>,

    /// The group of a task that is given by its name.
    #[arg(long, value_name = "GROUP")]
    pub(crate) group: Option<String>,

    #[command(flatten)]
    pub(crate) answer: AnswerArgs,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Wait {
    /// Jobs by number or name, or `last`.
    #[arg(value_name = "JOB", default_value = "last")]
    pub(crate) jobs: Vec<String>,

    /// Time limit: stop waiting after TIME, with exit status 1.
    #[arg(long, value_name = "TIME")]
    pub(crate) timeout: Option<String>,

    /// Print nothing; check the exit status.
    #[arg(short, long)]
    pub(crate) quiet: bool,

    #[command(flatten)]
    pub(crate) answer: AnswerArgs,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Events {
    /// Only of this job.
    #[arg(value_name = "JOB")]
    pub(crate) job: Option<String>,

    #[command(flatten)]
    pub(crate) answer: AnswerArgs,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Explain {
    /// A task: 12/5, or by its name.
    pub(crate) task: String,

    /// The group of a task that is given by its name.
    #[arg(long, value_name = "GROUP")]
    pub(crate) group: Option<String>,

    #[command(flatten)]
    pub(crate) answer: AnswerArgs,
}

const REPORT_HELP: &str = "\
One HTML page with everything in it: summary, throughput, durations, timeline, failures with their last words,
slowest tasks, workers. The hub remembers how the tasks of its last 500 jobs went, since it was started.";

#[derive(Debug, ClapArgs)]
#[command(after_help = REPORT_HELP)]
pub(crate) struct Report {
    /// A job: its number, its name, or `last`.
    #[arg(default_value = "last")]
    pub(crate) job: String,

    /// Write to this file; - is standard output, the default.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) place: WhereArgs,
}

const DASHBOARD_HELP: &str = "\
The link holds the token of the access file, in the part that a browser never sends. Anyone who has the link has the
token: `laboro access --role watch > viewer.toml` makes one that only looks, for --access viewer.toml.";

#[derive(Debug, ClapArgs)]
#[command(after_help = DASHBOARD_HELP)]
pub(crate) struct Dashboard {
    #[command(flatten)]
    pub(crate) place: WhereArgs,
}

const TOP_HELP: &str = "\
Keys: 1 overview, 2 jobs, 3 workers, arrows or j and k to move, Enter to open, Esc or Backspace to go back, h to
hold, r to release, t to retry, c to cancel (asks first), q to quit. Among workers: d to drain, s to stop, e to
eject, p to pardon, l to lift (each asks first).";

#[derive(Debug, ClapArgs)]
#[command(after_help = TOP_HELP)]
pub(crate) struct Top {
    /// Refresh interval, such as 500ms or 2s.
    #[arg(long, value_name = "TIME", default_value = "1s")]
    pub(crate) every: String,

    #[command(flatten)]
    pub(crate) place: WhereArgs,
}

const DOCTOR_HELP: &str = "\
Looks at limits, cgroups, disk, the access file, the hub's version, certificate, token and clock, and at NATS where
--config names it; where no hub is known, at the ports that one would take. Changes nothing.

Exit status: 0 nothing is bad, 3 something is.";

#[derive(Debug, ClapArgs)]
#[command(after_help = DOCTOR_HELP)]
pub(crate) struct Doctor {
    /// The hub's configuration file.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// One JSON object per check.
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) hub_args: HubArgs,
}

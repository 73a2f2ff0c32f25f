//! What can be typed to submit a job.

use super::HubArgs;
use crate::args::input::Input;
use crate::args::needs::NeedsArgs;
use crate::args::on_end;
use crate::args::task::TaskArgs;
use clap::Args as ClapArgs;
use std::path::PathBuf;

const SUBMIT_HELP: &str = "\
Examples:
  laboro submit jobs.txt                             one shell command per line
  laboro submit -- gzip -k {} ::: *.csv              a command for each value
  laboro submit --array 1-10000000 -- ./sim --seed {}
  laboro submit --wait flow.toml                     tasks with names, dependencies, sweeps
  laboro submit --key night-2026-11-16 jobs.txt      typed twice, submitted once

Takes all that `laboro run` takes. Tasks run in this directory, so workers elsewhere need to have it too.";

#[derive(Debug, ClapArgs)]
#[command(after_help = SUBMIT_HELP)]
pub(crate) struct Submit {
    #[command(flatten)]
    pub(crate) input: Input,

    /// Name of the job; need not be unique. Default: the flow's name, or the job file's.
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,

    /// Group whose workers run the job. Default: that of the flow, else `default`.
    #[arg(long, value_name = "GROUP")]
    pub(crate) group: Option<String>,

    /// Idempotency key: submitting again with the same key in the group returns the existing job.
    #[arg(long, value_name = "KEY", conflicts_with = "add")]
    pub(crate) key: Option<String>,

    /// Start nothing until `laboro release`.
    #[arg(long, conflicts_with = "add")]
    pub(crate) hold: bool,

    /// Start nothing before this time: +2h, 18:00, tomorrow, 2026-12-01T18:00.
    #[arg(long, value_name = "TIME", conflicts_with = "add")]
    pub(crate) begin: Option<String>,

    /// More tasks may be added with --add, until `laboro close`.
    #[arg(long, conflicts_with = "add")]
    pub(crate) open: bool,

    /// Add the tasks to this open job instead of making one.
    #[arg(long, value_name = "JOB", conflicts_with_all = ["name", "group", "max_running", "max_fails"])]
    pub(crate) add: Option<String>,

    /// Start only when this job, or these tasks of it, are done: 12, last, 12/5, 12/fit. May be given several times.
    #[arg(long, value_name = "JOB[/TASK]")]
    pub(crate) after: Vec<String>,

    /// When the job has ended, call this with JSON about it: a URL gets a POST, mail:ADDRESS a mail, anything else is a
    /// command for the hub's machine, which only the hub's own user may give. May be given several times.
    #[arg(long, value_name = "URL|CMD", value_parser = on_end, conflicts_with = "add")]
    pub(crate) on_end: Vec<String>,

    /// Put this before the name of every task.
    #[arg(long, value_name = "TEXT")]
    pub(crate) prefix: Option<String>,

    /// Maximum number of tasks of the job that run at once (default: no limit).
    #[arg(long, value_name = "N")]
    pub(crate) max_running: Option<u32>,

    /// Stop the job when more tasks than this have failed.
    #[arg(long, value_name = "N")]
    pub(crate) max_fails: Option<u32>,

    /// Higher runs first (default 0).
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub(crate) priority: Option<i32>,

    /// Run a failing task up to N times (default 1).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) attempts: Option<u16>,

    /// Time limit of an attempt, such as 90s or 2h (default: none).
    #[arg(long, value_name = "TIME")]
    pub(crate) timeout: Option<String>,

    #[command(flatten)]
    pub(crate) needs: NeedsArgs,

    #[command(flatten)]
    pub(crate) task: TaskArgs,

    /// Check the job for errors and submit nothing.
    #[arg(long)]
    pub(crate) check: bool,

    /// Print what would be submitted and submit nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Wait until all tasks have ended; the exit status is that of `laboro run`.
    #[arg(long, conflicts_with_all = ["hold", "open"])]
    pub(crate) wait: bool,

    /// With --wait: print what tasks print, in the order of their numbers.
    #[arg(short = 'k', long, requires = "wait", conflicts_with_all = ["json", "add"])]
    pub(crate) keep_order: bool,

    /// With --wait: write what each task prints to files in this directory, NAME.out and NAME.err.
    #[arg(long, value_name = "DIR", requires = "wait", conflicts_with_all = ["keep_order", "add"])]
    pub(crate) output_dir: Option<PathBuf>,

    /// With --wait: show what tasks print, line by line as it comes, with the task's label before each.
    #[arg(long, requires = "wait", conflicts_with_all = ["json", "add", "keep_order", "output_dir"])]
    pub(crate) tee: bool,

    /// Print only the number of the job.
    #[arg(short, long)]
    pub(crate) quiet: bool,

    /// Print the answer of the hub as JSON.
    #[arg(long, conflicts_with = "quiet")]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) hub: HubArgs,
}

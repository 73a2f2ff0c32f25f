//! What can be typed to a hub. Only shapes and help texts, as in `args`.

mod control;

pub(crate) use control::{
    Control, GroupArgs, Groups, GroupsCommand, LimitArgs, NewLimit, Priority, WorkerArgs, Workers,
    WorkersCommand,
};

use super::Input;
use super::needs::NeedsArgs;
use super::task::TaskArgs;
use crate::exit::usage;
use clap::{Args as ClapArgs, ValueEnum};
use std::path::PathBuf;

/// How the hub is found.
#[derive(Debug, Clone, Default, ClapArgs)]
#[command(next_help_heading = "Which hub")]
pub(crate) struct HubArgs {
    /// The hub's access file. Default: $LABORO_ACCESS, else that of --dir.
    #[arg(long, value_name = "FILE")]
    pub(crate) access: Option<PathBuf>,

    /// The hub's directory. Default: $LABORO_DIR, else ~/.local/state/laboro/hub.
    #[arg(long, value_name = "DIR", conflicts_with = "access")]
    pub(crate) dir: Option<PathBuf>,
}

impl HubArgs {
    /// What was said here, else what was said before a subcommand.
    pub(crate) fn or<'a>(&'a self, before: &'a HubArgs) -> &'a HubArgs {
        if self.access.is_some() || self.dir.is_some() { self } else { before }
    }
}

/// A run here, or a hub.
#[derive(Debug, Clone, Default, ClapArgs)]
#[command(next_help_heading = "Which run or hub")]
pub(crate) struct WhereArgs {
    /// A run in .laboro here: the latest, or the one whose id starts so. Default, if there is one and no hub is named.
    #[arg(long, value_name = "ID", num_args = 0..=1, conflicts_with_all = ["ask_hub", "access", "dir"])]
    pub(crate) run: Option<Option<String>>,

    /// Where runs keep their state, if not in .laboro here.
    #[arg(long, value_name = "DIR")]
    pub(crate) state: Option<PathBuf>,

    /// Use the hub even if there is a run here.
    #[arg(long = "hub")]
    pub(crate) ask_hub: bool,

    #[command(flatten)]
    pub(crate) hub: HubArgs,
}

impl WhereArgs {
    /// Whether the person said that a hub is meant, or that it is not.
    pub(crate) fn says_hub(&self) -> anyhow::Result<Option<bool>> {
        let says_hub = self.ask_hub || self.hub.access.is_some() || self.hub.dir.is_some();
        match (says_hub, self.state.is_some() || self.run.is_some()) {
            (true, true) => Err(usage(
                "--state says where runs keep their state: leave it out, or --hub, --access and --dir",
            )),
            (true, false) => Ok(Some(true)),
            (false, is_run) => Ok(is_run.then_some(false)),
        }
    }
}

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
    #[arg(long, value_name = "URL|CMD", value_parser = super::on_end, conflicts_with = "add")]
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

#[derive(Debug, ClapArgs)]
pub(crate) struct Hooks {
    #[command(subcommand)]
    pub(crate) command: Option<HooksCommand>,

    /// Only those that are in this state.
    #[arg(long, value_enum)]
    pub(crate) state: Option<HookState>,

    /// One JSON object per line.
    #[arg(long)]
    pub(crate) json: bool,

    /// Maximum number of rows; 0 for all. Default: 50 in a table, all with --json.
    #[arg(short = 'n', long, value_name = "N")]
    pub(crate) limit: Option<u64>,

    #[command(flatten)]
    pub(crate) hub: HubArgs,
}

#[derive(Debug, clap::Subcommand)]
pub(crate) enum HooksCommand {
    /// Try deliveries again that failed.
    Retry(HookRetry),
}

#[derive(Debug, ClapArgs)]
pub(crate) struct HookRetry {
    /// Numbers of deliveries.
    #[arg(value_name = "NUMBER", required = true)]
    pub(crate) numbers: Vec<u64>,

    #[command(flatten)]
    pub(crate) hub: HubArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum HookState {
    /// Due, or waiting for the next try.
    Pending,
    /// Taken by the receiver.
    Delivered,
    /// Tried as often as may be.
    Failed,
}

impl HookState {
    pub(crate) fn is(self, state: laboro_api::DeliveryState) -> bool {
        use laboro_api::DeliveryState as Is;
        matches!(
            (self, state),
            (HookState::Pending, Is::Pending)
                | (HookState::Delivered, Is::Delivered)
                | (HookState::Failed, Is::Failed)
        )
    }
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ScheduleArgs {
    #[command(subcommand)]
    pub(crate) command: Option<ScheduleCommand>,

    /// Print JSON, an object per schedule and line.
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) hub: HubArgs,
}

#[derive(Debug, clap::Subcommand)]
pub(crate) enum ScheduleCommand {
    /// List schedules, with their next and last times.
    List {
        /// Print JSON, an object per schedule and line.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        hub: HubArgs,
    },
    /// Show all about one schedule.
    Show(ScheduleName),
    /// Submit the job of a schedule now.
    RunNow(ScheduleName),
    /// Submit nothing until `resume`.
    Pause(ScheduleName),
    /// Undo `pause`; planned times that passed meanwhile are left out.
    Resume(ScheduleName),
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ScheduleName {
    /// The schedule's name in hub.toml.
    #[arg(value_name = "NAME")]
    pub(crate) name: String,

    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) hub: HubArgs,
}

/// What lists have in common.
#[derive(Debug, ClapArgs)]
pub(crate) struct ListArgs {
    /// One JSON object per line.
    #[arg(long)]
    pub(crate) json: bool,

    /// Maximum number of rows; 0 for all. Default: 50 in a table, all with --json.
    #[arg(short = 'n', long, value_name = "N")]
    pub(crate) limit: Option<u64>,

    #[command(flatten)]
    pub(crate) place: WhereArgs,
}

impl ListArgs {
    /// What is for lists is not said to `verb`, which prints none.
    pub(crate) fn refuse_with(&self, verb: &str) -> anyhow::Result<()> {
        let said = [("--json", self.json), ("--limit", self.limit.is_some())];
        match said.into_iter().find(|(_, is_said)| *is_said) {
            Some((option, _)) => {
                Err(usage(format!("{option} goes with a list, not with `{verb}`")))
            }
            None => Ok(()),
        }
    }
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Status {
    /// Only of this group.
    #[arg(long, value_name = "GROUP")]
    pub(crate) group: Option<String>,

    /// All of it as one JSON object.
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) place: WhereArgs,
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

    /// Names for the columns of values, such as model,seed. Default: value_1, value_2 and so on.
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

    /// One JSON object per line.
    #[arg(long)]
    pub(crate) json: bool,

    /// Maximum number of rows; 0 for all. Default: 50 in a table, all with --json.
    #[arg(short = 'n', long, value_name = "N")]
    pub(crate) limit: Option<u64>,

    #[command(flatten)]
    pub(crate) hub: HubArgs,
}

pub(crate) const SELECTOR_HELP: &str = "\
Which tasks: JOB is a number, a name or `last`.
  12                 the whole job
  12/5               its fifth task
  12/1-100,200       several
  12/failed          all in a state: waiting, blocked, ready, delayed, held, running, done, failed, cancelled
  fit.3, 12/fit.3    a task by its name
  12/fit*            tasks and arrays by a name with * or ?
Several jobs:
  9,10  4-8          by their numbers
  all, mine          all of yours that it can be done to
  failed, held …     yours in a state
  night*             yours by a name with * or ?";

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

    /// All of it as one JSON object.
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) place: WhereArgs,
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

    /// Print the jobs as they ended, one JSON object per line.
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) place: WhereArgs,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Events {
    /// Only of this job.
    #[arg(value_name = "JOB")]
    pub(crate) job: Option<String>,

    /// One JSON object per line.
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) place: WhereArgs,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Explain {
    /// A task: 12/5, or by its name.
    pub(crate) task: String,

    /// The group of a task that is given by its name.
    #[arg(long, value_name = "GROUP")]
    pub(crate) group: Option<String>,

    /// The reasons as one JSON object.
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) place: WhereArgs,
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

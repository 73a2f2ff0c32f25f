//! What can be typed. Only shapes and help texts; what it means is in `commands`.

pub(crate) mod advice;
pub(crate) mod graph;
pub(crate) mod halt;
mod headings;
pub(crate) mod help;
pub(crate) mod hub;
pub(crate) mod input;
pub(crate) mod journal;
pub(crate) mod meanings;
pub(crate) mod needs;
mod overview;
mod run;
pub(crate) mod task;

pub(crate) use run::{Durability, Run, Success};

use clap::{Args as ClapArgs, Parser, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;

/// Runs very many jobs, on one machine or on many.
#[derive(Debug, Parser)]
#[command(name = "laboro", version, max_term_width = 100)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Args {
    /// What was typed. To describe all commands to clap takes as long as to start this program, so those that are typed
    /// by the thousand are tried alone; where that fails, all of them are there to say why.
    pub(crate) fn read() -> Result<Args, clap::Error> {
        match Command::alone(std::env::args_os().skip(1)) {
            Some(command) => Ok(Args { command }),
            None => Args::try_parse(),
        }
    }
}

impl Command {
    fn alone(mut words: impl Iterator<Item = OsString>) -> Option<Command> {
        let name = words.next()?;
        Some(match name.to_str()? {
            "run" => Command::Run(only(words)?),
            "submit" => Command::Submit(only(words)?),
            "jobs" => Command::Jobs(only(words)?),
            "tasks" => Command::Tasks(only(words)?),
            "show" => Command::Show(only(words)?),
            "wait" => Command::Wait(only(words)?),
            "logs" => Command::Logs(only(words)?),
            "cancel" => Command::Cancel(only(words)?),
            _ => return None,
        })
    }
}

/// The words behind the name of a command, if they are right.
fn only<A: ClapArgs>(words: impl Iterator<Item = OsString>) -> Option<A> {
    let command = A::augment_args(clap::Command::new("laboro").no_binary_name(true));
    A::from_arg_matches(&command.try_get_matches_from(words).ok()?).ok()
}

/// In the help, commands stand in the order below but for these, which are grouped by what they are for.
const BESIDE_HUB: usize = 5;
const DIALECTS: usize = 100;
const LAST: usize = 101;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run tasks on this machine: a command with values, a file of commands, or a flow.
    Run(Box<Run>),
    /// Show what a task printed.
    Logs(Logs),
    /// Write a table with a row per attempt of a job: CSV, JSON lines, Parquet, SQLite, or the log of GNU parallel.
    Export(hub::Export),
    /// Draw the dependencies between the tasks of a job file or a job.
    Graph(graph::Graph),
    /// Check, copy, back up or repair the journal of a hub or a run.
    #[command(display_order = LAST)]
    Journal(journal::Journal),
    /// Start a hub: accept jobs and dispatch their tasks to workers.
    Hub(Box<crate::hub::HubCommand>),
    /// Create, list and revoke tokens for the hub of this machine.
    #[command(display_order = BESIDE_HUB)]
    Access(crate::access::AccessArgs),
    /// Use a dwork hub: create, steal and complete tasks by name.
    #[command(display_order = DIALECTS)]
    Dwork(crate::dwork::args::Dwork),
    /// Submit tasks to a hub: a command with values, a file of commands, or a flow.
    Submit(Box<hub::Submit>),
    /// Show groups, workers, active jobs and recent failures.
    Status(hub::Status),
    /// List jobs.
    Jobs(hub::Jobs),
    /// Show who changed what at a hub.
    #[command(display_order = BESIDE_HUB)]
    Audit(hub::Audit),
    /// List deliveries of hooks: who was told what, what waits, and what failed.
    #[command(display_order = BESIDE_HUB)]
    Hooks(hub::Hooks),
    /// List schedules, by which a hub submits jobs at planned times; run one now, pause or resume it.
    #[command(display_order = BESIDE_HUB)]
    Schedule(hub::ScheduleArgs),
    /// List tasks of a job.
    Tasks(hub::Tasks),
    /// Show everything about one job or one task.
    Show(hub::Show),
    /// Wait until jobs have ended.
    Wait(hub::Wait),
    /// Cancel tasks, including running ones.
    Cancel(hub::Control),
    /// Hold jobs or tasks: do not start them; running tasks continue.
    Hold(hub::Control),
    /// Release held jobs or tasks, and resume a job that stopped after too many failures.
    Release(hub::Control),
    /// Run failed and cancelled tasks again.
    Retry(hub::Control),
    /// Set the priority of jobs or tasks.
    Priority(hub::Priority),
    /// Change how many tasks of a job run at once, and how many may fail.
    Limit(hub::LimitArgs),
    /// Close an open job: no more tasks will be added.
    Close(hub::Control),
    /// Remove finished jobs, with the names and outputs of their tasks, from a hub.
    Forget(hub::Control),
    /// List workers; drain, stop, eject or pardon them.
    Workers(hub::Workers),
    /// List groups; pause or resume them.
    Groups(hub::Groups),
    /// Explain why a task is not running.
    Explain(hub::Explain),
    /// Print changes of jobs and tasks as they happen.
    Events(hub::Events),
    /// Show a hub or a run live in the terminal.
    Top(hub::Top),
    /// Write a self-contained HTML report about a job.
    Report(hub::Report),
    /// Print a link that opens the dashboard in a browser.
    Dashboard(hub::Dashboard),
    /// Check this machine and the hub, and print what is wrong.
    #[command(display_order = LAST)]
    Doctor(hub::Doctor),
    /// Print completions for a shell.
    #[command(display_order = LAST)]
    Completions(Completions),
    /// Print the manual page, or write all of them.
    #[command(display_order = LAST)]
    Man(Man),
    /// Run a directory of scripts with runexp runners.
    #[command(display_order = DIALECTS)]
    Runexp(Box<crate::runexp::args::Runexp>),
    /// Run tasks of a hub on this machine, or on others by ssh.
    #[command(display_order = BESIDE_HUB)]
    Worker(Box<crate::worker::args::Worker>),
    /// Let a hub start workers by a batch system when there is work for them.
    #[command(display_order = BESIDE_HUB)]
    Pool(Box<crate::pool::PoolArgs>),
    /// Use Slurm's commands with a hub: sbatch, squeue, sacct, scancel, srun, scontrol, sinfo.
    #[command(display_order = DIALECTS)]
    Slurm(crate::slurm::args::Slurm),
    /// Use HyperQueue's `hq` with a hub, for Nextflow and AiiDA.
    #[command(display_order = DIALECTS)]
    Hq(crate::hq::args::Hq),
    /// Forward a local port to a door of a hub, over TLS and with a token.
    #[command(display_order = DIALECTS)]
    Tunnel(crate::tunnel::Tunnel),
    /// Request broker (rrmq): server, worker and client.
    #[command(display_order = DIALECTS)]
    Mq(crate::mq::args::Mq),
    /// Moved to a program of its own.
    #[command(hide = true)]
    Bench {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    },
}

const LOGS_HELP: &str = "\
Shows a task of the latest run in .laboro here, or below --state, while it runs and after. Asks the hub if there is no run
here, and with --hub, --access or --dir; then TASK may also be JOB/N.";

#[derive(Debug, ClapArgs)]
#[command(after_help = LOGS_HELP)]
pub(crate) struct Logs {
    /// The task's name or number, or several: 1-100, failed. At a hub also 12/5 or last/5, or a job: 12, last,
    /// 12/1-100. Default: all tasks of the run or of the newest job.
    #[arg(value_name = "TASK|JOB", default_value = "last")]
    pub(crate) task: String,

    /// Of a run or a job: only tasks that failed, each with a heading.
    #[arg(long)]
    pub(crate) failed: bool,

    /// Of a run or a job: write what each task printed to files in this directory, NAME.out and NAME.err.
    #[arg(long, value_name = "DIR")]
    pub(crate) output_dir: Option<PathBuf>,

    /// At a hub: the group of a task that is given by its name.
    #[arg(long, value_name = "GROUP")]
    pub(crate) group: Option<String>,

    /// Print output as it comes, until the task ends.
    #[arg(short, long)]
    pub(crate) follow: bool,

    /// Only standard output.
    #[arg(long, conflicts_with = "stderr")]
    pub(crate) stdout: bool,

    /// Only standard error.
    #[arg(long)]
    pub(crate) stderr: bool,

    /// Attempt number, from 1. Default: the last.
    #[arg(long, value_name = "N")]
    pub(crate) attempt: Option<u16>,

    /// The task's record and output as JSON.
    #[arg(long, conflicts_with = "follow")]
    pub(crate) json: bool,

    // Last, since what follows would stand under its heading.
    #[command(flatten)]
    pub(crate) place: hub::WhereArgs,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Completions {
    /// Which shell.
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Man {
    /// Write a page for every command into this directory instead of one to standard output.
    pub(crate) dir: Option<PathBuf>,

    /// Print the help of all commands as one Markdown page: docs/commands.md is made so.
    #[arg(long, conflicts_with_all = ["dir", "html"])]
    pub(crate) markdown: bool,

    /// Write the whole manual as a website into this directory; index.html is its first page. A hub serves the same
    /// under /docs.
    #[arg(long, value_name = "DIR", conflicts_with = "dir")]
    pub(crate) html: Option<PathBuf>,
}

/// A target of `--on-end` that makes sense.
pub(crate) fn on_end(text: &str) -> Result<String, String> {
    laboro_hub::hooks::Target::parse(text).map(|_| text.trim().to_owned())
}

//! What can be typed. Only shapes and help texts; what it means is in `commands`.

pub(crate) mod advice;
pub(crate) mod graph;
pub(crate) mod halt;
mod headings;
pub(crate) mod help;
pub(crate) mod hub;
pub(crate) mod journal;
pub(crate) mod meanings;
pub(crate) mod needs;
mod overview;
pub(crate) mod task;

use crate::worker::args::{Limits, PinHow};
use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;

/// Runs very many jobs, on one machine or on many.
#[derive(Debug, Parser)]
#[command(name = "laboro", version, max_term_width = 100)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
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

const RUN_HELP: &str = "\
Examples:
  laboro run jobs.txt                          one shell command per line
  laboro run -- gzip -k {} ::: *.csv           a command for each value
  ls *.csv | laboro run -- gzip -k {}          values from a pipe
  laboro run --array 1-1000 -- ./sim --seed {} numbers
  laboro run -- ./fit {1} {2} ::: a b ::: 1 2  all combinations (--zip: side by side)
  laboro run flow.toml                         tasks with names, dependencies, sweeps
  laboro run tasks.jsonl                       one JSON task per line
  laboro run --runs DIR                        every script below DIR, results in outputs/

Typing the same command again resumes the run. Placeholders: {} value, {.} without
extension, {/} base name, {//} directory, {ext} extension, {#} index, {%} slot, {name} task
name, {1} {2} of several lists, {-1} the last; {..} {/..} {+..} take two extensions.

Exit status: 0 all done, 1 some failed, 2 wrong usage, 3 problem with state or disk, 130 interrupted.";

#[derive(Debug, ClapArgs)]
#[command(after_help = RUN_HELP)]
pub(crate) struct Run {
    #[command(flatten)]
    pub(crate) input: Input,

    /// How many tasks run at once: a number, 50% of the cores, or +2 or -1 relative to the cores. Default: the number
    /// of cores.
    #[arg(short = 'j', long = "jobs", value_name = "N", allow_hyphen_values = true,
        value_parser = crate::input::slots)]
    pub(crate) jobs: Option<u32>,

    /// Run the tasks on these hosts, by workers that ssh starts there: node1,8/node2 (8 slots), : is this machine.
    #[arg(short = 'S', long, value_name = "HOST,...", value_parser = crate::run::hosts::Host::parse_all,
        conflicts_with_all = ["runs", "with", "with_tags", "memory_free", "delay", "load", "pipe", "output_dir", "tee",
            "line_buffer", "joblog", "output_limit", "dashboard", "json", "on_end"])]
    pub(crate) sshlogin: Vec<Vec<crate::run::hosts::Host>>,

    /// With --sshlogin: what this program is called on the hosts.
    #[arg(long, value_name = "PROGRAM", default_value = "laboro", requires = "sshlogin")]
    pub(crate) remote_laboro: String,

    /// Something that this machine has and tasks may need: gpu=2, gpu=4,5, licences=200, or memory=64G for what tasks may
    /// take together (default: all of it).
    #[arg(long = "with", value_name = "NAME=VALUE")]
    pub(crate) with: Vec<String>,

    /// A tag of this machine that tasks may require.
    #[arg(long = "with-tag", value_name = "TAG")]
    pub(crate) with_tags: Vec<String>,

    /// Start nothing more while less memory than this is available, such as 2G.
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory_free: Option<String>,

    /// What keeps tasks within the memory they asked for.
    #[arg(long, value_enum, default_value_t = Limits::Watch)]
    pub(crate) limits: Limits,

    /// Give each task processors of its own, as many as it has slots: from one NUMA node where it can be (compact), or from all of them.
    #[arg(long, value_enum, value_name = "HOW", num_args = 0..=1, default_missing_value = "compact", require_equals = true)]
    pub(crate) pin_tasks: Option<PinHow>,

    /// Time limit of an attempt, such as 90s or 2h (default: none).
    #[arg(long, value_name = "TIME")]
    pub(crate) timeout: Option<String>,

    /// Time between SIGTERM and SIGKILL when a task is ended.
    #[arg(long, value_name = "TIME", default_value = "5s")]
    pub(crate) grace: String,

    /// Run a failing task up to N times (default 1).
    #[arg(long, value_name = "N")]
    pub(crate) attempts: Option<u32>,

    /// Stop when more tasks than this have failed.
    #[arg(long, value_name = "N")]
    pub(crate) max_fails: Option<u32>,

    /// When the run has ended, call this with JSON about it: a URL gets a POST, mail:ADDRESS a mail, anything else is a
    /// command. May be given several times.
    #[arg(long, value_name = "URL|CMD", value_parser = on_end)]
    pub(crate) on_end: Vec<String>,

    /// End the run early: now,fail=1 ends what runs at the first failure, soon,fail=10% waits for it; also success=N.
    #[arg(long, value_name = "WHEN", value_parser = halt::Halt::parse, conflicts_with = "max_fails")]
    pub(crate) halt: Option<halt::Halt>,

    /// Wait this long between two starts, such as 0.5 or 2s.
    #[arg(long, value_name = "TIME")]
    pub(crate) delay: Option<String>,

    /// Start nothing more while this many processes are running on the machine: 8, or 100% of the cores.
    #[arg(long, value_name = "N", value_parser = crate::input::slots)]
    pub(crate) load: Option<u32>,

    #[command(flatten)]
    pub(crate) pipe: PipeArgs,

    #[command(flatten)]
    pub(crate) task: task::TaskArgs,

    #[command(flatten)]
    pub(crate) needs: needs::NeedsArgs,

    /// With --runs: what decides whether a script succeeded.
    #[arg(long, value_enum, default_value_t = Success::ResLine, requires = "runs")]
    pub(crate) success: Success,

    /// Also write what each task prints to files in this directory: NAME.out and NAME.err.
    #[arg(long, value_name = "DIR")]
    pub(crate) output_dir: Option<PathBuf>,

    /// Also write what each task prints to DIR/1/VALUE/stdout and stderr; or FILE.csv, FILE.tsv: a row for each task.
    #[arg(long, value_name = "DIR|FILE.csv")]
    pub(crate) results: Option<PathBuf>,

    /// Show lines as they come, with the task's label before them.
    #[arg(long)]
    pub(crate) tee: bool,

    /// The same without the name: whole lines, as they come.
    #[arg(long, visible_aliases = ["linebuffer", "lb"], conflicts_with_all = ["tee", "keep_order", "json"])]
    pub(crate) line_buffer: bool,

    /// Write a line for each attempt that ends to this file, in the columns of GNU parallel.
    #[arg(long, value_name = "FILE")]
    pub(crate) joblog: Option<PathBuf>,

    /// Print what tasks print, in the order of the input.
    #[arg(short = 'k', long, conflicts_with = "tee")]
    pub(crate) keep_order: bool,

    /// How much of each stream of a task is kept. Default: 64M, with -k everything.
    #[arg(long, value_name = "SIZE")]
    pub(crate) output_limit: Option<String>,

    /// Check the job for errors and run nothing.
    #[arg(long)]
    pub(crate) check: bool,

    /// Print what would run and run nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Name of the run: it resumes earlier runs of this name. Default: earlier runs of the same job file, or of the
    /// same command in this directory.
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,

    /// Where the state is kept. Default: .laboro beside the job file, or here.
    #[arg(long, value_name = "DIR")]
    pub(crate) state: Option<PathBuf>,

    /// How durable a result must be before it counts.
    #[arg(long, value_enum, default_value_t = Durability::Sync)]
    pub(crate) durability: Durability,

    /// Run failed tasks again.
    #[arg(long, visible_alias = "resume-failed")]
    pub(crate) retry_failed: bool,

    /// Forget earlier runs and run everything again.
    #[arg(long)]
    pub(crate) fresh: bool,

    /// Print nothing about tasks, not even failures; check the exit status.
    #[arg(short, long)]
    pub(crate) quiet: bool,

    /// Open a dashboard for a browser on this machine while the run lasts, and print its link.
    #[arg(long)]
    pub(crate) dashboard: bool,

    /// One JSON event per line on standard output.
    #[arg(long, conflicts_with_all = ["tee", "keep_order"])]
    pub(crate) json: bool,
}

/// A target of `--on-end` that makes sense.
pub(crate) fn on_end(text: &str) -> Result<String, String> {
    laboro_hub::hooks::Target::parse(text).map(|_| text.trim().to_owned())
}

/// Standard input in pieces, one for each task.
#[derive(Debug, ClapArgs)]
pub(crate) struct PipeArgs {
    /// Cut standard input into blocks of whole lines and run the command once per block, with the block as its input.
    #[arg(long, visible_alias = "spreadstdin", requires = "words",
        conflicts_with_all = ["array", "arg_file", "colsep", "header", "spread", "shuf", "zip", "null", "stdin_values"])]
    pub(crate) pipe: bool,

    /// With --pipe: how large a block is at most. With -N it has so many records instead. Default: 1M.
    #[arg(long, visible_aliases = ["blocksize", "block-size"], value_name = "SIZE", requires = "pipe",
        conflicts_with = "max_args")]
    pub(crate) block: Option<String>,

    /// With --pipe: what a record ends with. Default: a new line, or nothing with --recstart.
    #[arg(long, value_name = "TEXT", requires = "pipe")]
    pub(crate) recend: Option<String>,

    /// With --pipe: what a record begins with, such as '>'.
    #[arg(long, value_name = "TEXT", requires = "pipe")]
    pub(crate) recstart: Option<String>,
}

/// What is to be run; the same for every command that takes tasks.
#[derive(Debug, ClapArgs)]
pub(crate) struct Input {
    /// A job file: .toml is a flow, .jsonl one JSON task per line, anything else one command per line.
    #[arg(conflicts_with_all = ["runs", "words"])]
    pub(crate) file: Option<PathBuf>,

    /// Run every line of this file as a task, also if it looks like a script or something else.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["file", "runs", "words"])]
    pub(crate) lines: Option<PathBuf>,

    /// Run every .sh and .m file below this directory. `laboro run` writes results to outputs/ beside it.
    #[arg(long, value_name = "DIR", conflicts_with = "words")]
    pub(crate) runs: Option<PathBuf>,

    /// Run the command once per number: 1-1000, 0-100:10 or 1,2,50-100. {} is the number; $LABORO_INDEX counts from 1.
    #[arg(long, value_name = "FIRST-LAST[:STEP]")]
    pub(crate) array: Option<String>,

    /// Read values from this file, one per line, as `:::: FILE` does. - is standard input.
    #[arg(short = 'a', long, value_name = "FILE", conflicts_with_all = ["file", "runs"])]
    pub(crate) arg_file: Vec<PathBuf>,

    /// Split each value into columns {1} {2} … at this text: , or \t, or \s+ for any blanks. A .csv or .tsv file
    /// is split by itself where --header is given.
    #[arg(short = 'C', long, value_name = "TEXT", conflicts_with_all = ["file", "runs"])]
    pub(crate) colsep: Option<String>,

    /// The first value or line has the names of the columns: `--header :` and then {sample}, {seed}.
    #[arg(long, value_name = ":", value_parser = [":"], conflicts_with_all = ["file", "runs"])]
    pub(crate) header: Option<String>,

    /// Values per command: {1} {2} … or all of them as {} (default 1).
    #[arg(short = 'n', long, value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..=10_000), conflicts_with_all = ["file", "runs", "colsep", "header"])]
    pub(crate) max_args: Option<u32>,

    /// The same as -n; refuses {} within a word, which GNU parallel would repeat for each value. With --pipe: records per
    /// block.
    #[arg(short = 'N', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000),
        conflicts_with_all = ["file", "runs", "colsep", "header", "max_args"])]
    pub(crate) max_replace_args: Option<u32>,

    /// Give each command as many values as it takes to keep all slots busy, and no more than a command line holds.
    #[arg(short = 'm', long = "spread",
        conflicts_with_all = ["file", "runs", "colsep", "header", "max_args", "max_replace_args", "array"])]
    pub(crate) spread: bool,

    /// The same as -m; refuses {} within a word, which GNU parallel would repeat for each value.
    #[arg(short = 'X',
        conflicts_with_all = ["file", "runs", "colsep", "header", "max_args", "max_replace_args", "array", "spread"])]
    pub(crate) spread_words: bool,

    /// Take the values in a shuffled order, the same each time.
    #[arg(long, conflicts_with_all = ["file", "runs", "header", "array"])]
    pub(crate) shuf: bool,

    /// Take the values of several lists side by side instead of all combinations.
    #[arg(long)]
    pub(crate) zip: bool,

    /// Read values from standard input, each ended by a NUL byte, as `find -print0` writes them.
    #[arg(short = '0', long)]
    pub(crate) null: bool,

    /// Read values from standard input, one per line. A command with {} and no other values does so by itself.
    #[arg(long)]
    pub(crate) stdin_values: bool,

    /// Pass braces that look like an unknown placeholder on to the command, instead of refusing them.
    #[arg(long)]
    pub(crate) literal_braces: bool,

    /// The command and its values.
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) words: Vec<OsString>,
}

impl Input {
    /// `-n` or `-N`.
    pub(crate) fn values_per_command(&self) -> Option<usize> {
        self.max_args.or(self.max_replace_args).map(|count| count as usize)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Success {
    /// The last line of output with `RES:` in it decides; none is failure.
    ResLine,
    /// The exit code decides.
    ExitCode,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Durability {
    /// Survives a power cut.
    Sync,
    /// Survives a crash of the program, not a power cut.
    Os,
    /// Survives only an orderly end.
    None,
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

//! What can be typed to run tasks on this machine.

use super::halt::Halt;
use super::input::{Input, PipeArgs};
use super::needs::NeedsArgs;
use super::on_end;
use super::task::TaskArgs;
use crate::run::hosts::Host;
use crate::worker::args::{Limits, PinHow};
use clap::{Args as ClapArgs, ValueEnum};
use std::path::PathBuf;

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
    #[arg(short = 'S', long, value_name = "HOST,...", value_parser = Host::parse_all,
        conflicts_with_all = ["runs", "with", "with_tags", "memory_free", "delay", "load", "pipe", "output_dir", "tee",
            "line_buffer", "joblog", "output_limit", "dashboard", "json", "on_end"])]
    pub(crate) sshlogin: Vec<Vec<Host>>,

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
    #[arg(long, value_name = "WHEN", value_parser = Halt::parse, conflicts_with = "max_fails")]
    pub(crate) halt: Option<Halt>,

    /// Wait this long between two starts, such as 0.5 or 2s.
    #[arg(long, value_name = "TIME")]
    pub(crate) delay: Option<String>,

    /// Start nothing more while this many processes are running on the machine: 8, or 100% of the cores.
    #[arg(long, value_name = "N", value_parser = crate::input::slots)]
    pub(crate) load: Option<u32>,

    #[command(flatten)]
    pub(crate) pipe: PipeArgs,

    #[command(flatten)]
    pub(crate) task: TaskArgs,

    #[command(flatten)]
    pub(crate) needs: NeedsArgs,

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

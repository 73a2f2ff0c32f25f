//! What can be typed after `laboro dwork`. The forms of the original query program are all among them.

use crate::curve::CurveArgs;
use clap::{Args as ClapArgs, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;

const HELP: &str = "\
Examples:
  laboro dwork status
  laboro dwork create b a                 b comes after a
  laboro dwork addfile tasks.txt          name,pred,pred,... one task per line
  laboro dwork -s tcp://hub:6125 steal -n 10 worker1
  laboro dwork steal -q --wait worker1    waits for a task; exit status 5 when all are done

A worker as a shell loop, which gives back what failed:
  laboro dwork exit \"$me\" 2>/dev/null     gives back what a killed worker of this name had
  while task=$(laboro dwork steal -q --wait \"$me\"); do
      if ./work \"$task\"; then laboro dwork complete \"$task\" --location \"$me\"
      else laboro dwork transfer \"$task\" --location \"$me\"; fi
  done

Exit status: 0 done, 1 refused (nothing ready to steal, not found, not allowed), 2 wrong usage, 3 the hub cannot be reached, does not answer in time or is stopping, 5 from steal: all tasks are done, or the hub is stopping.";

#[derive(Debug, ClapArgs)]
#[command(after_help = HELP)]
pub(crate) struct Dwork {
    /// Where the hub listens: host, host:port or tcp://host:port.
    #[arg(
        short = 's',
        long,
        value_name = "ADDRESS",
        default_value = "127.0.0.1:6125",
        global = true
    )]
    pub(crate) server: String,

    /// How long to wait for the hub and for each of its answers.
    #[arg(long, value_name = "TIME", default_value = "10s", global = true)]
    pub(crate) timeout: String,

    /// Print the answer as one JSON object.
    #[arg(long, global = true)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) curve: CurveArgs,

    #[command(subcommand)]
    pub(crate) what: DworkCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum DworkCommand {
    /// Print how many tasks are active and how many are ready.
    Status,
    /// Create a task that comes after others.
    Create {
        /// The name of the new task.
        #[arg(value_name = "TASK")]
        task: OsString,
        /// Tasks that it comes after.
        #[arg(value_name = "DEP")]
        deps: Vec<OsString>,
    },
    /// Create the tasks of a file: name,pred,pred,... one per line, in any order.
    Addfile {
        /// `-` reads standard input.
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Take tasks and print their names.
    Steal {
        /// At most this many.
        #[arg(short = 'n', value_name = "NUMBER", allow_hyphen_values = true)]
        number: Option<i32>,
        /// Print names and nothing else; `No task` when there is none.
        #[arg(short = 'q', long)]
        quiet: bool,
        /// Wait until a task is ready or all tasks are done.
        #[arg(long)]
        wait: bool,
        /// Who takes them. Default: the name of this machine.
        #[arg(value_name = "HOST")]
        host: Option<OsString>,
    },
    /// Mark tasks as done.
    Complete {
        /// The names of the tasks.
        #[arg(value_name = "TASK", required = true)]
        tasks: Vec<OsString>,
        /// Who took them. Default: the name of this machine.
        #[arg(long, value_name = "HOST")]
        location: Option<OsString>,
    },
    /// Give a task back, to come after others.
    Transfer {
        /// The name of the task.
        #[arg(value_name = "TASK")]
        task: OsString,
        /// Further tasks that it comes after now.
        #[arg(value_name = "DEP")]
        deps: Vec<OsString>,
        /// Who took it. Default: the name of this machine.
        #[arg(long, value_name = "HOST")]
        location: Option<OsString>,
    },
    /// Print which worker has a task.
    Lookup {
        /// The name of the task.
        #[arg(value_name = "TASK")]
        task: OsString,
    },
    /// Report that a worker has ended: its tasks go back.
    Exit {
        /// Default: the name of this machine.
        #[arg(value_name = "HOST")]
        host: Option<OsString>,
    },
}

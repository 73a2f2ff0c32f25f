//! What is asked of the runner: one process, its surroundings and its limits.
//! Plain data; checking and sending it is the runner's business.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// Set in every task's environment, to a value that no other attempt ever has. By it the guardian
/// knows whose a process is that left its process group. A value given by the caller is replaced.
pub const TASK_ID_VAR: &str = "LABORO_TASK_ID";

/// One process to run.
#[derive(Clone, Debug)]
pub struct Launch {
    /// The caller's name for it in every event. Free to be used again once it has ended.
    pub id: u64,
    /// The program and its arguments. A program without a slash is looked up in the `PATH` of
    /// `env`; a file that is no binary and has no `#!` line is given to `/bin/sh`, as shells do.
    pub argv: Vec<OsString>,
    /// The whole environment; nothing is inherited.
    pub env: Vec<(OsString, OsString)>,
    /// Where it runs; without one, where the program was when the runner started.
    pub dir: Option<PathBuf>,
    pub stdin: Stdin,
    /// The same file as for stderr is opened once, as by `> file 2>&1`.
    pub stdout: Capture,
    pub stderr: Capture,
    /// After this long the process group is told to end (SIGTERM).
    pub timeout: Option<Duration>,
    /// What the process group hears before that.
    pub warning: Option<Warning>,
    /// How long a group told to end by a timeout has before it is killed (SIGKILL).
    pub grace: Duration,
    /// Set for the process group right after the spawn.
    pub nice: Option<i32>,
    /// Also for files that are made for its output. `None`: that of the program.
    pub umask: Option<u32>,
    /// The only processors that it may use. Empty: those of the program.
    pub cpus: Vec<u32>,
    pub limits: Limits,
    pub until: Until,
}

impl Launch {
    /// A process with an empty environment, no input, captured output and no limits.
    pub fn new(id: u64, argv: impl IntoIterator<Item = impl Into<OsString>>) -> Launch {
        Launch {
            id,
            argv: argv.into_iter().map(Into::into).collect(),
            env: Vec::new(),
            dir: None,
            stdin: Stdin::Null,
            stdout: Capture::Pipe,
            stderr: Capture::Pipe,
            timeout: None,
            warning: None,
            grace: Duration::from_secs(5),
            nice: None,
            umask: None,
            cpus: Vec::new(),
            limits: Limits::default(),
            until: Until::default(),
        }
    }
}

/// A signal some time before the end of a task's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Warning {
    pub signal: i32,
    pub before: Duration,
}

/// When a task is over. What is left of its process group then goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Until {
    /// When its process ends.
    #[default]
    ProcessEnds,
    /// When besides no process of its group has its standard output any more, as a shell waits for `$(…)`. Only
    /// where that output is a pipe.
    OutputEnds,
}

/// What a task reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stdin {
    Null,
    /// Relative paths are relative to the task's directory.
    File(PathBuf),
    /// Given as an unnamed file in memory, so that a task that never reads it costs nothing more.
    Bytes(Vec<u8>),
}

/// Where a task's output goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Capture {
    /// To us, as `RunnerEvent::Output`.
    Pipe,
    /// Relative paths are relative to the task's directory.
    File(PathBuf, WriteMode),
    Null,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteMode {
    Append,
    Truncate,
}

/// Resource limits, each soft and hard at once; `None` leaves what the runner itself has.
///
/// The one of memory holds from the first instruction: a shell sets it and becomes the task. The
/// others are set right after the spawn (posix_spawn knows no limits), so a task that forks within
/// its first microseconds may have a child without them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    pub address_space_bytes: Option<u64>,
    pub cpu_seconds: Option<u64>,
    pub file_size_bytes: Option<u64>,
    pub open_files: Option<u64>,
    pub core_bytes: Option<u64>,
}

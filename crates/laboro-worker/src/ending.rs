//! How a process ended and what it used. Every way there is has its own variant.

use std::time::Duration;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// By itself, with this code.
    Exited(i32),
    /// By this signal, which was not ours.
    Signalled(i32),
    /// By its time limit; killed if it did not end within the grace.
    TimedOut { killed: bool },
    /// By request; killed if it did not end within the grace.
    Stopped { killed: bool },
    /// It never ran.
    NotStarted { reason: Reason, message: String },
    /// The guardian was killed; the task was killed with it.
    GuardianLost,
}

/// Why a process could not be started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// No such program, or a script's interpreter is missing.
    ProgramMissing,
    /// It is there and may not or cannot be executed.
    NotExecutable,
    /// The directory it shall run in is missing or closed to us.
    Directory,
    /// Arguments and environment exceed what the system takes.
    TooLarge,
    /// A file for its input or output cannot be opened.
    Redirect,
    /// The machine is short of processes, memory or file descriptors: it may work later.
    Resources,
    /// The request makes no sense: an empty command, a NUL byte, an id already running.
    Invalid,
}

impl Ending {
    pub fn is_success(&self) -> bool {
        *self == Ending::Exited(0)
    }

    /// The code a shell would show: 128 + the signal, 124 for a timeout as timeout(1) has it,
    /// 127 for a missing program, 126 for one that cannot be run, 125 for a failure of ours.
    pub fn exit_code(&self) -> i32 {
        match self {
            Ending::Exited(code) => *code,
            Ending::Signalled(signal) => 128 + signal,
            Ending::TimedOut { .. } => 124,
            Ending::Stopped { killed: false } => 128 + libc::SIGTERM,
            Ending::Stopped { killed: true } => 128 + libc::SIGKILL,
            Ending::NotStarted { reason, .. } => match reason {
                Reason::ProgramMissing => 127,
                Reason::NotExecutable | Reason::TooLarge => 126,
                Reason::Directory | Reason::Redirect | Reason::Resources | Reason::Invalid => 125,
            },
            Ending::GuardianLost => 125,
        }
    }
}

/// What a task used. CPU and memory are the kernel's count for the process and every descendant
/// that was waited for; strays are not in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    pub wall: Duration,
    pub user: Duration,
    pub system: Duration,
    /// Of the largest single process; 0 where that was less than the guardian needs itself, a few MiB: the kernel
    /// counts the memory of whoever starts a program as the program's, so nothing is known then.
    pub max_rss_kib: u64,
}

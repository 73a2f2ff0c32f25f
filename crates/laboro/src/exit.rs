//! Exit statuses, the same for every command. Documented in the manual; scripts rely on them.

use std::process::ExitCode;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// All is done.
    Done,
    /// Some task failed.
    SomeFailed,
    /// The command makes no sense.
    Usage,
    /// State or disk trouble.
    Trouble,
    /// A person or a signal ended it.
    Interrupted,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(match exit {
            Exit::Done => 0,
            Exit::SomeFailed => 1,
            Exit::Usage => 2,
            Exit::Trouble => 3,
            Exit::Interrupted => 130,
        })
    }
}

/// Lets an error carry the status that it ends the program with.
impl std::fmt::Display for Exit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Exit::Done => "done",
            Exit::SomeFailed => "some tasks failed",
            Exit::Usage => "nothing was run",
            Exit::Trouble => "the state is as it was",
            Exit::Interrupted => "interrupted",
        })
    }
}

impl std::error::Error for Exit {}

/// An error of the person who typed the command.
pub(crate) fn usage(message: impl std::fmt::Display) -> anyhow::Error {
    anyhow::Error::new(Exit::Usage).context(message.to_string())
}

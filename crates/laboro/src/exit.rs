//! Exit statuses, the same for every command. Documented in the manual; scripts rely on them.

use crate::output::say;
use std::process::ExitCode;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// All is done.
    Done,
    /// Some task failed.
    SomeFailed,
    /// The command makes no sense.
    Usage,
    /// State or disk trouble; a hub that cannot be reached or has such trouble.
    Trouble,
    /// The hub said no: there is no such thing, or it may not be done.
    Refused,
    /// Nothing is left to do: a worker may leave.
    AllDone,
    /// A person or a signal ended it.
    Interrupted,
}

impl Exit {
    pub(crate) fn status(self) -> u8 {
        match self {
            Exit::Done => 0,
            Exit::SomeFailed => 1,
            Exit::Usage => 2,
            Exit::Trouble => 3,
            Exit::Refused => 4,
            Exit::AllDone => 5,
            Exit::Interrupted => 130,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit.status())
    }
}

/// An error of the person who typed the command.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Usage(String);

pub(crate) fn usage(message: impl std::fmt::Display) -> anyhow::Error {
    Usage(message.to_string()).into()
}

/// The hub said no.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Refused(String);

pub(crate) fn refused(message: impl std::fmt::Display) -> anyhow::Error {
    Refused(message.to_string()).into()
}

/// Says what went wrong, and gives the status for it.
pub(crate) fn of_error(error: &anyhow::Error) -> Exit {
    let io = error.downcast_ref::<std::io::Error>();
    if io.is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe) {
        // Whoever read what we print has seen enough.
        return Exit::Done;
    }
    say(format_args!("laboro: {}", words(error)));
    match error {
        error if error.is::<Usage>() => Exit::Usage,
        error if error.is::<Refused>() => Exit::Refused,
        _ => Exit::Trouble,
    }
}

/// The whole chain of causes, without those that the one before has said already.
fn words(error: &anyhow::Error) -> String {
    let mut words = String::new();
    for cause in error.chain() {
        let cause = cause.to_string();
        if words.is_empty() {
            words = cause;
        } else if !words.ends_with(&cause) {
            words = format!("{words}: {cause}");
        }
    }
    words
}

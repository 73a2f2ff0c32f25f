//! How the program ends and what it prints, by the same rules and statuses as `laboro` itself.

use std::io::{ErrorKind, Write};
use std::process::ExitCode;

/// An error of the person who typed the command.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Usage(String);

pub(crate) fn usage(message: impl std::fmt::Display) -> anyhow::Error {
    Usage(message.to_string()).into()
}

pub(crate) fn of(result: anyhow::Result<()>) -> ExitCode {
    let Err(error) = result else { return ExitCode::SUCCESS };
    let io = error.downcast_ref::<std::io::Error>();
    if io.is_some_and(|error| error.kind() == ErrorKind::BrokenPipe) {
        // The reader of what we print has seen enough.
        return ExitCode::SUCCESS;
    }
    say(format_args!("laboro-bench: {error:#}"));
    ExitCode::from(if error.is::<Usage>() { 2 } else { 3 })
}

/// Prints a message for people. A closed standard error does not stop the program.
pub(crate) fn say(words: impl std::fmt::Display) {
    let _ = writeln!(std::io::stderr().lock(), "{words}");
}

/// Data.
pub(crate) fn print(data: impl std::fmt::Display) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{data}")?;
    out.flush()
}

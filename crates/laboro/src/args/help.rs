//! What is done with the help texts before somebody sees them, in a terminal or in the manual: options get their headings,
//! and paragraphs that are wrapped in the source are left to clap, which knows how wide the terminal is.

use super::{Args, headings, overview};
use crate::exit;
use crate::output::data;
use clap::error::ErrorKind;
use clap::{Command, CommandFactory};
use std::io::Write;

/// What can be typed, as help and manual show it.
pub(crate) fn documented() -> Command {
    reflowed(headings::apply(Args::command()))
}

/// Shows the help that was asked for, or the error, and ends the program. Help is made only here: nobody who runs a
/// task waits for it.
pub(crate) fn exit(error: &clap::Error, typed: &[String]) -> ! {
    let is_help = matches!(
        error.kind(),
        ErrorKind::DisplayHelp | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    );
    // What cannot be written nobody reads.
    match typed {
        [_] if is_help => {
            let _ = write!(std::io::stderr(), "{}", overview::overview(&Args::command()));
            std::process::exit(2)
        }
        [_, word] if is_help && ["help", "-h", "--help"].contains(&word.as_str()) => {
            printed(write!(data(), "{}", overview::overview(&Args::command())), 0)
        }
        _ => {
            let documented = is_help.then(|| documented().try_get_matches().err()).flatten();
            let shown = documented.as_ref().unwrap_or(error);
            printed(shown.print(), shown.exit_code())
        }
    }
}

fn printed(written: std::io::Result<()>, status: i32) -> ! {
    match written.and_then(|()| data().flush()) {
        Err(error) if status == 0 => {
            std::process::exit(exit::of_error(&error.into()).status().into())
        }
        _ => std::process::exit(status),
    }
}

fn reflowed(command: Command) -> Command {
    let command = command.mut_subcommands(reflowed);
    match command.get_after_help().map(|text| reflow(&text.to_string())) {
        Some(text) => command.after_help(text),
        None => command,
    }
}

/// Joins the lines of a paragraph. Lines that are indented, and what announces them, stay as they are.
fn reflow(text: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    for line in text.lines() {
        let goes_on = |last: &String| {
            !last.is_empty() && !last.starts_with(' ') && !line.is_empty() && !line.starts_with(' ')
        };
        match lines.last_mut().filter(|last| goes_on(last)) {
            Some(last) => {
                last.push(' ');
                last.push_str(line);
            }
            None => lines.push(line.to_owned()),
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_option_is_without_help() {
        fn look(command: &Command, path: &str, empty: &mut Vec<String>) {
            let path = format!("{path} {}", command.get_name());
            for argument in command.get_arguments().filter(|argument| !argument.is_hide_set()) {
                if argument.get_help().is_none_or(|help| help.to_string().is_empty()) {
                    empty.push(format!("{path}: {argument}"));
                }
            }
            let shown = |command: &&Command| !command.is_hide_set();
            for command in command.get_subcommands().filter(shown) {
                look(command, &path, empty);
            }
        }
        let mut empty = Vec::new();
        let mut program = documented();
        program.build();
        look(&program, "", &mut empty);
        assert!(empty.is_empty(), "without help:\n{}", empty.join("\n"));
    }

    #[test]
    fn paragraphs_are_left_to_the_terminal_and_examples_are_not() {
        let text = "Examples:\n  laboro run a\n  laboro run b\n\nOne sentence that\ncontinues. And\nagain.\n\nThe end.";
        let joined = "Examples:\n  laboro run a\n  laboro run b\n\nOne sentence that continues. And again.\n\nThe end.";
        assert_eq!(reflow(text), joined);
    }
}

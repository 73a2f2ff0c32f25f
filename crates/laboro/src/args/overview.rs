//! `laboro --help`: one screen, with what most people need first. Commands that are not named here are listed with the
//! others at its end.

use clap::Command;
use std::fmt::Write;

const HEAD: &str = "\
Runs very many jobs, on one machine or on many.

Usage: laboro COMMAND [OPTIONS]

Examples:
  laboro run -- gzip -k {} ::: *.csv              a command for each value
  laboro run jobs.txt                             one shell command per line
  laboro submit --array 1-1000 -- ./sim --seed {} the same at a hub

Commands:
";

const FIRST: [(&str, &str); 10] = [
    ("run", "Run tasks on this machine: a command with values, or a job file"),
    ("logs", "Show what a task printed"),
    ("hub", "Start a hub: accept jobs and dispatch their tasks to workers"),
    ("worker", "Run tasks of a hub on this machine, or on others by ssh"),
    ("submit", "Submit tasks to a hub: takes what `run` takes"),
    ("status", "Show active jobs and workers; `top`: live, `dashboard`: in a browser"),
    ("show", "Show all about a job or a task; `explain` says why it does not run"),
    ("wait", "Wait until jobs have ended"),
    ("cancel", "Cancel tasks, also running ones"),
    ("retry", "Run failed tasks again"),
];

const GROUPS: [(&str, &[&str]); 4] = [
    ("Look", &["jobs", "tasks", "events", "graph", "report", "explain", "top", "dashboard"]),
    ("Control", &["hold", "release", "priority", "close", "forget"]),
    ("Manage", &["access", "pool", "workers", "groups", "journal", "doctor", "tunnel"]),
    ("Other systems", &["slurm", "hq", "dwork", "mq", "runexp"]),
];

const TAIL: &str = "
`laboro help COMMAND` describes a command. Options: -h, --help; -V, --version.
";

pub(crate) fn overview(program: &Command) -> String {
    let mut text = String::from(HEAD);
    // Writing to a string does not fail.
    for (name, words) in FIRST {
        let _ = writeln!(text, "  {name:<8} {words}");
    }
    text.push('\n');
    let is_named = |name: &str| {
        FIRST.iter().any(|(first, _)| *first == name)
            || GROUPS.iter().any(|(_, names)| names.contains(&name))
    };
    let more: Vec<&str> = program
        .get_subcommands()
        .filter(|command| !command.is_hide_set())
        .map(Command::get_name)
        .filter(|name| *name != "help" && !is_named(name))
        .collect();
    let groups = GROUPS.iter().copied().chain([("More", more.as_slice())]);
    for (title, names) in groups {
        let title = format!("{title}:");
        let _ = writeln!(text, "  {title:<14} {}", names.join(", "));
    }
    text + TAIL
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn it_fits_on_a_screen_and_names_every_command() {
        let program = crate::args::Args::command();
        let text = overview(&program);
        assert!(text.lines().count() <= 32, "{text}");
        assert!(text.lines().all(|line| line.len() <= 80), "{text}");
        let words: Vec<&str> = text.split(|c: char| !c.is_ascii_alphanumeric()).collect();
        for command in program.get_subcommands().filter(|command| !command.is_hide_set()) {
            assert!(words.contains(&command.get_name()), "{}", command.get_name());
        }
        let known = |name: &&str| program.find_subcommand(name).is_some();
        assert!(FIRST.iter().all(|(name, _)| known(name)));
        assert!(GROUPS.iter().flat_map(|(_, names)| names.iter()).all(known));
    }
}

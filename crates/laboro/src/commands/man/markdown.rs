//! The same words as `--help` as one Markdown page, for the manual: a heading per command, a table per group of options.

use clap::{Arg, Command};
use std::fmt::Write;

pub(super) fn page(mut program: Command) -> String {
    program.build();
    let mut page = String::from(
        "# Commands\n\nMade by `laboro man --markdown` from what `--help` says. `laboro COMMAND --help` shows the same.\n",
    );
    let commands = visible(&program);
    page.push_str("\n| command | |\n|---|---|\n");
    for command in &commands {
        let name = command.get_name();
        row(&mut page, &format!("[`{name}`](#laboro-{name})"), &about(command));
    }
    for command in commands {
        section(&mut page, &format!("laboro {}", command.get_name()), command);
    }
    page
}

fn visible(command: &Command) -> Vec<&Command> {
    let shown = |command: &&Command| !command.is_hide_set() && command.get_name() != "help";
    let mut commands: Vec<&Command> = command.get_subcommands().filter(shown).collect();
    commands.sort_by_key(|command| command.get_name());
    commands
}

fn section(page: &mut String, title: &str, command: &Command) {
    let depth = title.matches(' ').count() + 1;
    let usage = command.clone().render_usage().to_string();
    let usage = usage.strip_prefix("Usage: ").unwrap_or(&usage);
    let usage: Vec<&str> = usage.lines().map(str::trim).collect();
    // Writing to a string does not fail.
    let _ = write!(
        page,
        "\n{} {title}\n\n{}.\n\n```text\n{}\n```\n",
        "#".repeat(depth),
        about(command),
        usage.join("\n")
    );
    for (heading, arguments) in groups(command) {
        let _ = write!(page, "\n| {heading} | |\n|---|---|\n");
        for argument in arguments {
            row(page, &format!("`{}`", spelling(argument)), &help(argument));
        }
    }
    if let Some(after) = command.get_after_help() {
        let _ = write!(page, "\n```text\n{after}\n```\n");
    }
    for command in visible(command) {
        section(page, &format!("{title} {}", command.get_name()), command);
    }
}

/// In the order of the help: arguments first, then options without a heading, then each heading as it comes.
fn groups(command: &Command) -> Vec<(String, Vec<&Arg>)> {
    let mut groups: Vec<(String, Vec<&Arg>)> = Vec::new();
    let shown = |argument: &&Arg| !argument.is_hide_set() && argument.get_id() != "help";
    let mut arguments: Vec<&Arg> = command.get_arguments().filter(shown).collect();
    arguments.sort_by_key(|argument| !argument.is_positional());
    for argument in arguments {
        let heading = match argument.get_help_heading() {
            Some(heading) => heading.to_owned(),
            None if argument.is_positional() => "argument".to_owned(),
            None => "option".to_owned(),
        };
        match groups.iter_mut().find(|(known, _)| *known == heading) {
            Some((_, members)) => members.push(argument),
            None => groups.push((heading, vec![argument])),
        }
    }
    groups
}

/// `-j, --jobs <N>`, with the other names it may be called by.
fn spelling(argument: &Arg) -> String {
    if argument.is_positional() {
        return argument.to_string();
    }
    let mut names: Vec<String> = Vec::new();
    let shorts = argument
        .get_short()
        .into_iter()
        .chain(argument.get_visible_short_aliases().into_iter().flatten());
    names.extend(shorts.map(|short| format!("-{short}")));
    let longs =
        argument.get_long().into_iter().chain(argument.get_visible_aliases().into_iter().flatten());
    names.extend(longs.map(|long| format!("--{long}")));
    let values: Vec<String> = match argument.get_action().takes_values() {
        true => argument
            .get_value_names()
            .unwrap_or_default()
            .iter()
            .map(|name| format!("<{name}>"))
            .collect(),
        false => Vec::new(),
    };
    [vec![names.join(", ")], values].concat().join(" ")
}

fn help(argument: &Arg) -> String {
    let text = argument.get_long_help().or_else(|| argument.get_help());
    let text = text.map(ToString::to_string).unwrap_or_default();
    let mut words = format!("{}.", text.trim_end_matches('.'));
    let values = argument.get_possible_values();
    if argument.get_action().takes_values()
        && !argument.is_hide_possible_values_set()
        && !values.is_empty()
    {
        let values: Vec<String> = values
            .iter()
            .filter(|value| !value.is_hide_set())
            .map(|value| match value.get_help() {
                Some(help) => format!("`{}` ({help})", value.get_name()),
                None => format!("`{}`", value.get_name()),
            })
            .collect();
        words = format!("{words} Values: {}.", values.join(", "));
    }
    let defaults: Vec<_> =
        argument.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
    if argument.get_action().takes_values()
        && !argument.is_hide_default_value_set()
        && !defaults.is_empty()
    {
        words = format!("{words} Default: `{}`.", defaults.join(" "));
    }
    words
}

fn about(command: &Command) -> String {
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    about.trim_end_matches('.').to_owned()
}

/// What is said in several lines becomes one, and a bar in it no column.
fn row(page: &mut String, left: &str, right: &str) {
    let cell =
        |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|");
    let _ = writeln!(page, "| {} | {} |", cell(left), cell(right));
}

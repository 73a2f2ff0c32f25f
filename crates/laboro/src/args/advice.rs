//! What people type who come from GNU parallel, xargs, HyperQueue or Slurm, and what to type here instead: a line for
//! each option, in place of a guess at its spelling. Also a command without `--` before it. Changes nothing about
//! what can be typed.

mod options;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use options::OPTIONS;

/// What to type instead, if that is known.
pub(crate) fn advice(error: &clap::Error, typed: &[String]) -> Option<String> {
    let command = typed.get(1).filter(|word| matches!(word.as_str(), "run" | "submit"))?;
    let Some(ContextValue::String(argument)) = error.get(ContextKind::InvalidArg) else {
        return None;
    };
    if error.kind() == ErrorKind::InvalidValue && argument.starts_with("--tag ") {
        return Some("--tag TAG says what a machine must have; to see a task's label before each line use --tee".into());
    }
    if error.kind() != ErrorKind::UnknownArgument {
        return None;
    }
    if !argument.starts_with('-') || argument == "-" {
        return forgotten_dashes(command, typed);
    }
    let option = argument.split('=').next().unwrap_or(argument);
    let known = OPTIONS.iter().find(|(names, _)| names.contains(&option));
    known.map(|(_, advice)| format!("laboro {command} has no {option}: {advice}"))
}

/// `laboro run gzip {} ::: a b`.
fn forgotten_dashes(command: &str, typed: &[String]) -> Option<String> {
    let words = typed.get(2..)?;
    let first = words.iter().position(|word| !word.starts_with('-'))?;
    if words.iter().any(|word| word == "--") {
        return None;
    }
    let (options, rest) = words.split_at(first);
    let shown: Vec<&str> = rest.iter().take(8).map(String::as_str).collect();
    let more = if rest.len() > shown.len() { " …" } else { "" };
    let options: String = options.iter().map(|option| format!("{option} ")).collect();
    Some(format!(
        "a command goes after `--`: laboro {command} {options}-- {}{more}",
        shown.join(" ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Args;
    use clap::Parser;

    /// Every option of GNU parallel 20221122, findutils' xargs 4.9 and `hq submit` 0.20.
    const FOREIGN: &str = include_str!("advice/foreign.txt");

    #[test]
    fn every_option_of_other_programs_is_known_or_answered() {
        let mut silent = Vec::new();
        let lines = FOREIGN.lines().filter(|line| !line.starts_with('#'));
        for option in lines.flat_map(str::split_whitespace) {
            for command in ["run", "submit"] {
                let typed = ["laboro", command, option, "--", "true"].map(str::to_owned);
                let Err(error) = Args::try_parse_from(&typed) else { continue };
                if error.kind() == ErrorKind::UnknownArgument && advice(&error, &typed).is_none() {
                    silent.push(format!("{command} {option}"));
                }
            }
        }
        assert!(silent.is_empty(), "no word about {}", silent.join(", "));
    }

    #[test]
    fn an_option_is_answered_once_and_in_one_line() {
        let mut seen = std::collections::HashSet::new();
        for (names, words) in OPTIONS {
            assert!(!words.contains('\n') && words.len() < 130, "{words}");
            names.iter().for_each(|name| assert!(seen.insert(*name), "{name} twice"));
        }
    }
}

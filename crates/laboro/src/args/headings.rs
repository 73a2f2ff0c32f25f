//! Under which headings the options of the large commands stand in help and manual. Beside the options and not at them,
//! so that the order of the groups is seen in one place; an option that is not named here is under "Options".

use clap::Command;

pub(super) fn apply(program: Command) -> Command {
    GROUPED.iter().fold(program, |program, (name, groups)| {
        program.mut_subcommand(name, |command| with_headings(command, groups))
    })
}

type OptionGroups = &'static [(&'static str, &'static [&'static str])];

fn with_headings(command: Command, groups: OptionGroups) -> Command {
    command.mut_args(|argument| {
        let id = argument.get_id().as_str();
        let group = groups.iter().find(|(_, members)| members.contains(&id));
        match group {
            Some((heading, _)) => argument.help_heading(*heading),
            None if argument.is_positional() => argument,
            None => argument.help_heading(None::<&str>),
        }
    })
}

const INPUT: (&str, &[&str]) = (
    "What to run",
    &[
        "lines",
        "runs",
        "success",
        "array",
        "arg_file",
        "colsep",
        "header",
        "max_args",
        "max_replace_args",
        "spread",
        "spread_words",
        "shuf",
        "zip",
        "null",
        "stdin_values",
        "pipe",
        "block",
        "recend",
        "recstart",
        "literal_braces",
    ],
);
const NEEDS: (&str, &[&str]) =
    ("What a task needs", &["slots", "memory", "resources", "tags", "nodes", "time_request"]);
const PROCESS: (&str, &[&str]) =
    ("How tasks run", &["workdir", "env", "nice", "umask", "shell", "scratch"]);
const LOOK: (&str, &[&str]) = ("Look first", &["check", "dry_run"]);
const WHICH_HUB: (&str, &[&str]) = ("Which hub", &["access", "dir"]);

const GROUPED: &[(&str, OptionGroups)] = &[
    (
        "run",
        &[
            INPUT,
            (
                "How many at once",
                &["jobs", "with", "with_tags", "memory_free", "pin_tasks", "delay", "load"],
            ),
            (
                "Time limits, retries, stopping early",
                &["timeout", "grace", "attempts", "max_fails", "halt", "on_end"],
            ),
            ("On other machines", &["sshlogin", "remote_laboro"]),
            PROCESS,
            NEEDS,
            (
                "Output",
                &[
                    "output_dir",
                    "results",
                    "tee",
                    "line_buffer",
                    "joblog",
                    "keep_order",
                    "output_limit",
                    "quiet",
                    "dashboard",
                    "json",
                ],
            ),
            LOOK,
            ("State of the run", &["name", "state", "durability", "retry_failed", "fresh"]),
        ],
    ),
    (
        "submit",
        &[
            INPUT,
            (
                "The job",
                &[
                    "name",
                    "group",
                    "key",
                    "hold",
                    "open",
                    "add",
                    "on_end",
                    "prefix",
                    "max_running",
                    "begin",
                    "max_fails",
                    "priority",
                ],
            ),
            ("Time limits and retries", &["attempts", "timeout"]),
            NEEDS,
            PROCESS,
            LOOK,
            ("Waiting and output", &["wait", "keep_order", "tee", "output_dir", "quiet", "json"]),
            WHICH_HUB,
        ],
    ),
    (
        "hub",
        &[
            ("Listeners", &["http", "native", "http_allow", "native_allow", "doors", "group"]),
            ("State", &["dir", "durability"]),
            (
                "Settings and log",
                &["config", "print_config", "log_level", "log_format", "log_file"],
            ),
            (
                "Several hubs: journal in NATS",
                &[
                    "journal",
                    "standby",
                    "advertise",
                    "outputs_in_nats",
                    "name",
                    "monitors",
                    "replicas",
                    "accept_unsynced",
                ],
            ),
        ],
    ),
    (
        "worker",
        &[
            ("Which hub", &["access", "group", "name", "lease"]),
            (
                "What this machine has",
                &["jobs", "with", "with_tags", "memory_free", "limits", "pin_tasks"],
            ),
            ("When it exits", &["idle_timeout", "time_limit", "drain", "grace"]),
            PROCESS,
            ("Output", &["output_limit", "tee", "quiet"]),
            ("On other machines", &["ssh", "remote_laboro"]),
            (
                "For another system",
                &[
                    "from",
                    "curve_server_key",
                    "curve_key_file",
                    "on_failure",
                    "stay",
                    "auth_file",
                    "ca",
                    "pin",
                    "insecure",
                    "cert_name",
                    "numbering",
                    "success",
                    "versions",
                ],
            ),
        ],
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Args;
    use clap::CommandFactory;

    #[test]
    fn every_option_in_a_group_is_there() {
        let program = Args::command();
        for (name, groups) in GROUPED {
            let command = program.find_subcommand(name).expect("a command that is there");
            for id in groups.iter().flat_map(|(_, members)| members.iter()) {
                let is_there = command.get_arguments().any(|argument| argument.get_id() == *id);
                // The groups that commands share have more than each of them takes.
                let is_shared = [INPUT, PROCESS].iter().any(|(_, members)| members.contains(id));
                assert!(is_there || is_shared, "{name}: {id}");
            }
        }
    }
}

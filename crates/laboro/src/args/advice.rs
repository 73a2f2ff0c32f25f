//! What people type who come from GNU parallel, xargs, HyperQueue or Slurm, and what to type here instead: a line for
//! each option, in place of a guess at its spelling. Also a command without `--` before it. Changes nothing about
//! what can be typed.

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Options that `laboro run` and `laboro submit` do not have.
const OPTIONS: [(&[&str], &str); 46] = [
    (
        &["--link", "--xapply"],
        "use --zip, or `:::+` before the list that goes with the one before it",
    ),
    (
        &["--resume", "--resume-failed"],
        "typing the same command again goes on where it was; --retry-failed runs failed tasks again",
    ),
    (
        &["--bar", "--progress", "--eta", "-p"],
        "progress is shown on a terminal by itself; --quiet leaves it out",
    ),
    (
        &["--line-buffer", "--linebuffer", "--lb"],
        "use --tee: lines as they come, with the task's name before them",
    ),
    (&["--ungroup", "-u"], "use --tee: lines as they come, with the task's name before them"),
    (&["--group"], "output is never mixed: -k prints it in the order of the input"),
    (
        &["--joblog"],
        "laboro run has it; of a hub, `laboro report` and `laboro events` tell the same",
    ),
    (&["--results", "--res"], "use --output-dir DIR: NAME.out and NAME.err for each task"),
    (
        &["--halt", "--halt-on-error"],
        "use --max-fails N: stop when more than N tasks have failed (0: at the first)",
    ),
    (&["--retries"], "use --attempts N: how often a task may be tried in all"),
    (&["--delay"], "laboro run has it; a hub starts what fits its workers"),
    (
        &["--load", "--noswap"],
        "laboro run has --load N, and --memory-free SIZE for what must be free",
    ),
    (
        &["--memfree", "--memsuspend"],
        "use --memory-free SIZE: start nothing more while less than this is available",
    ),
    (&["--shuf-seed"], "--shuf has the same order each time"),
    (
        &["--pipe", "--block", "--pipepart", "--cat", "--fifo", "--recstart", "--recend"],
        "split the input first (split -l N FILE part.), then: laboro run -- COMMAND {} ::: part.*",
    ),
    (&["--xargs", "--context-replace"], "use -m: as many values for each command as fit, or -n N"),
    (&["-I", "-i", "--replace"], "the placeholder is always {}; {{}} is the text {}"),
    (&["-L", "--max-lines", "-l"], "use -n N: N values for each command"),
    (
        &["-d", "--delimiter"],
        "values end with a new line, or with -0 by a NUL byte: tr , '\\n' < FILE | laboro run -- COMMAND {}",
    ),
    (
        &["-E", "--eof"],
        "all of the input is read; cut it first: sed '/END/,$d' FILE | laboro run -- COMMAND {}",
    ),
    (
        &["-r", "--no-run-if-empty"],
        "nothing runs without values; that is an error with exit status 2",
    ),
    (&["-t", "--verbose"], "use --dry-run to see the commands, --json for events as they run"),
    (&["-P", "--max-procs"], "use -j N: how many run at once"),
    (&["--will-cite", "--citation", "--bibtex"], "nothing of the kind is asked for here"),
    (
        &["-S", "--sshlogin", "--slf", "--sshloginfile"],
        "start a hub (laboro hub) and workers on the hosts (laboro worker --ssh HOST), then use laboro submit --wait",
    ),
    (
        &["--transferfile", "--tf", "--return", "--cleanup", "--trc", "--basefile", "--bf"],
        "files are not copied between hosts: use a shared directory, or copy them in the task",
    ),
    (&["--tempdir", "--tmpdir"], "use --workdir DIR for where tasks run"),
    (&["--tmux", "--tmuxpane"], "use laboro logs --follow TASK in another terminal"),
    (
        &["--semaphore", "--sem", "--id", "--fg"],
        "there is no semaphore: give all tasks to one laboro run, or to a hub",
    ),
    (
        &["--plus", "--rpl", "--extensionreplace", "--er"],
        "see the placeholders at the end of laboro run --help",
    ),
    (&["--tagstring", "--tagstr"], "--tee puts the task's name before each line"),
    (&["--tollef", "--gnu", "--fast", "--profile", "-J"], "leave it out: there are no modes"),
    (&["--env"], "tasks of laboro run inherit all variables; in a flow `env` sets more"),
    (&["--cpus"], "use --slots N, or `slots` in a flow; -j is what this machine offers"),
    (&["--pin"], "tasks are not pinned to cores: put `taskset` or `numactl` before the command"),
    (&["--stdout", "--stderr"], "use --output-dir DIR, or `output` in a flow"),
    (
        &["--each-line", "--from-json"],
        "use `:::: FILE` for one value per line, or a .jsonl file of tasks",
    ),
    (&["--time-limit", "--time-request"], "use --timeout TIME"),
    (&["--crash-limit"], "use --attempts N"),
    (&["--directives"], "write a flow (.toml): options in the script are not read"),
    (&["--stream"], "output is always kept in a few large files: laboro logs shows it"),
    (&["--progress-bar"], "use --wait: it shows progress"),
    (&["--nodes"], "a task runs on one machine"),
    (
        &["--partition", "--qos", "--account", "--nodelist"],
        "use --group GROUP and --tag TAG for where it runs",
    ),
    (&["--dependency"], "use `after` in a flow"),
    (&["--ntasks", "--cpus-per-task"], "use --slots N, or `slots` in a flow"),
];

/// What to type instead, if that is known.
pub(crate) fn advice(error: &clap::Error, typed: &[String]) -> Option<String> {
    let command = typed.get(1).filter(|word| matches!(word.as_str(), "run" | "submit"))?;
    let Some(ContextValue::String(argument)) = error.get(ContextKind::InvalidArg) else {
        return None;
    };
    if error.kind() == ErrorKind::InvalidValue && argument.starts_with("--tag ") {
        return Some("--tag TAG says what a machine must have; to see a task's name before each line use --tee".into());
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

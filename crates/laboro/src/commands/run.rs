//! `laboro run`: an embedded hub and a worker in one process, on this machine. Here the command line is
//! turned into a plan and options; `crate::run` does the rest.

use crate::args::{Durability, Run};
use crate::exit::{Exit, usage};
use crate::output::say;
use crate::run::{Options, Show, execute};
use anyhow::Context;
use laboro_journal::log;
use laboro_plan::{
    ArgumentForm, ArgumentOptions, Ending, Numbers, Pairing, Plan, QuantityError, parse_duration,
    parse_lines, parse_size, read_runs,
};
use std::io::{BufReader, Write};
use std::os::unix::fs::FileTypeExt;
use std::path::PathBuf;

pub(crate) fn run(args: Box<Run>) -> anyhow::Result<Exit> {
    let plan = plan(&args)?;
    plan.validate().map_err(usage)?;
    if args.check {
        let tasks = plan.task_count();
        say(format_args!("{}: {tasks} tasks, nothing wrong", plan.source));
        return Ok(Exit::Done);
    }
    if args.dry_run {
        let mut out = std::io::BufWriter::new(std::io::stdout().lock());
        plan.dry_run(&mut out)?;
        out.flush()?;
        return Ok(Exit::Done);
    }
    let options = options(&args)?;
    execute(plan, options)
}

/// Everything a person may give, as one plan.
fn plan(args: &Run) -> anyhow::Result<Plan> {
    let array = args.array.as_deref().map(Numbers::parse).transpose().map_err(usage)?;
    if let Some(dir) = &args.runs {
        return read_runs(dir).map_err(usage);
    }
    if let Some(file) = &args.file {
        if array.is_some() {
            return Err(usage("--array goes with a command after `--`, not with a job file"));
        }
        if file.as_os_str() == "-" {
            return parse_lines("-", BufReader::new(std::io::stdin())).map_err(usage);
        }
        return Plan::open(file).map_err(usage);
    }
    if args.words.is_empty() {
        return Err(usage(
            "nothing to run: give a job file, or a command after `--`\nTry: laboro run -- echo {} ::: a b c",
        ));
    }
    let form = ArgumentForm::parse(&args.words).map_err(usage)?;
    let options = ArgumentOptions {
        name: String::new(),
        array,
        pairing: if args.zip { Pairing::Zip } else { Pairing::Product },
        ending: if args.null { Ending::Zero } else { Ending::Line },
        settings: Default::default(),
    };
    let mut pipe = stdin_has_values().then(|| BufReader::new(std::io::stdin().lock()));
    let pipe = pipe.as_mut().map(|pipe| pipe as &mut dyn std::io::BufRead);
    form.plan(&options, pipe).map_err(usage)
}

/// A pipe, a file or a socket may hold values; a terminal and /dev/null do not.
fn stdin_has_values() -> bool {
    std::fs::metadata("/dev/stdin").is_ok_and(|stdin| {
        let kind = stdin.file_type();
        kind.is_fifo() || kind.is_file() || kind.is_socket()
    })
}

fn options(args: &Run) -> anyhow::Result<Options> {
    let cores = || std::thread::available_parallelism().map_or(1, |cores| cores.get() as u32);
    let slots = args.slots.unwrap_or_else(cores);
    if slots == 0 {
        return Err(usage("-j 0: at least one slot is needed"));
    }
    if args.attempts == Some(0) {
        return Err(usage("--attempts 0: a task is tried at least once"));
    }
    let mut resources = Vec::new();
    for resource in &args.resources {
        let parsed = resource.split_once('=').and_then(|(name, count)| {
            let count: u32 = count.parse().ok().filter(|count| (1..=128).contains(count))?;
            Some((name.to_owned(), count))
        });
        let wrong = || usage(format!("--resource {resource}: write NAME=N with N from 1 to 128"));
        resources.push(parsed.ok_or_else(wrong)?);
    }
    Ok(Options {
        slots,
        resources,
        tags: args.tags.clone(),
        memory_free: quantity("--memory", args.memory.as_deref(), parse_size)?,
        timeout: quantity("--timeout", args.timeout.as_deref(), parse_duration)?,
        grace: quantity("--grace", Some(&args.grace), parse_duration)?.unwrap_or_default(),
        attempts: args.attempts,
        max_fails: args.max_fails,
        nice: args.nice,
        shell: args.shell.clone(),
        res_line: args.runs.is_some() && args.success == crate::args::Success::ResLine,
        results_dir: args.runs.as_deref().map(beside).transpose()?,
        output_dir: args.output_dir.clone(),
        output_limit: quantity("--output-limit", Some(&args.output_limit), parse_size)?
            .unwrap_or_default(),
        state: state_root(args)?,
        durability: match args.durability {
            Durability::Sync => log::Durability::Sync,
            Durability::Os => log::Durability::Os,
            Durability::None => log::Durability::None,
        },
        retry_failed: args.retry_failed,
        fresh: args.fresh,
        show: Show {
            quiet: args.quiet,
            json: args.json,
            tee: args.tee,
            keep_order: args.keep_order,
        },
    })
}

/// The value of an option, or words that name the option.
fn quantity<T>(
    option: &str,
    text: Option<&str>,
    parse: impl Fn(&str) -> Result<T, QuantityError>,
) -> anyhow::Result<Option<T>> {
    let parsed = text.map(parse).transpose();
    parsed.map_err(|error| usage(format!("{option}: {error}")))
}

/// `outputs/` beside the directory of scripts.
fn beside(runs: &std::path::Path) -> anyhow::Result<PathBuf> {
    let runs = runs.canonicalize().with_context(|| format!("{}", runs.display()))?;
    Ok(runs.parent().unwrap_or(&runs).join("outputs"))
}

fn state_root(args: &Run) -> anyhow::Result<PathBuf> {
    if let Some(state) = &args.state {
        return Ok(state.clone());
    }
    let job = args.file.as_deref().or(args.runs.as_deref()).and_then(|path| path.parent());
    let here = match job {
        Some(dir) if !dir.as_os_str().is_empty() => dir.to_owned(),
        _ => std::env::current_dir().context("the current directory is gone")?,
    };
    Ok(here.join(".laboro"))
}

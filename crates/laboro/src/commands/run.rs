//! `laboro run`: an embedded hub and a worker in one process, on this machine. Here the command line is
//! turned into a plan and options; `crate::run` does the rest.

use crate::args::{Durability, Run, meanings};
use crate::exit::{Exit, usage};
use crate::input::{self, quantity};
use crate::machine::Machine;
use crate::output::{data, say};
use crate::run::collected::ResultsPlace;
use crate::run::results::check_names;
use crate::run::{Options, ShowOptions, StoreOf, execute, foresee, hosts};
use anyhow::Context;
use laboro_journal::log;
use laboro_plan::{parse_duration, parse_size};
use std::path::{Path, PathBuf};

pub(crate) fn run(args: Box<Run>) -> anyhow::Result<Exit> {
    let settings = args.task.settings()?.or(&args.needs.settings()?);
    let blocks = args.pipe.pipe.then(|| blocks_dir(&args)).transpose()?;
    let plan = match &blocks {
        Some(dir) => {
            let writes = !args.check && !args.dry_run;
            input::plan_of_blocks(&args.input, &args.pipe, &settings, dir, writes)?
        }
        None => input::plan(&args.input, &settings, "run", slots(&args))?,
    };
    if let Some(words) = meanings::check(&args, &plan, slots(&args))?.filter(|_| !args.quiet) {
        say(words);
    }
    if args.input.runs.is_some() {
        check_names(plan.parts.iter().map(|part| part.name().as_ref()))?;
    }
    if args.check {
        return Ok(input::say_checked(&plan));
    }
    if !args.dry_run && (args.keep_order || args.json || args.tee || args.line_buffer) {
        data().check()?;
    }
    let hosts = args.sshlogin.concat();
    let options = Options { blocks, ..options(&args)? };
    if !hosts.is_empty() && !args.dry_run {
        return hosts::run(*args, plan, &hosts, options);
    }
    if args.dry_run {
        input::preview(&plan)?;
        // What was done on other hosts is known to the hub of such a run.
        if hosts.is_empty() {
            foresee(plan, &options)?;
        }
        return Ok(Exit::Done);
    }
    execute(plan, options)
}

fn slots(args: &Run) -> u32 {
    let cores = || std::thread::available_parallelism().map_or(1, |cores| cores.get() as u32);
    args.jobs.unwrap_or_else(cores)
}

fn options(args: &Run) -> anyhow::Result<Options> {
    let slots = slots(args);
    if slots == 0 {
        return Err(usage("-j 0: at least one slot is needed"));
    }
    if args.attempts == Some(0) {
        return Err(usage("--attempts 0: a task is tried at least once"));
    }
    let results = args.results.as_deref().map(ResultsPlace::parse).transpose();
    let results = results.map_err(|why| usage(format!("--results: {why}")))?;
    let is_table = results.as_ref().is_some_and(|place| place.dir().is_none());
    Ok(Options {
        slots,
        machine: Machine::new(&args.with)?,
        tags: args.with_tags.clone(),
        limit_by: args.limits.into(),
        pin: args.pin_tasks.map(Into::into),
        memory_free: quantity("--memory-free", args.memory_free.as_deref(), parse_size)?,
        timeout: quantity("--timeout", args.timeout.as_deref(), parse_duration)?,
        grace: quantity("--grace", Some(&args.grace), parse_duration)?.unwrap_or_default(),
        attempts: args.attempts,
        max_fails: args.max_fails,
        on_end: args.on_end.clone(),
        halt: args.halt,
        delay: quantity("--delay", args.delay.as_deref(), parse_duration)?,
        load_max: args.load,
        joblog: args.joblog.clone(),
        blocks: None,
        res_line: args.input.runs.is_some() && args.success == crate::args::Success::ResLine,
        results_dir: args.input.runs.as_deref().map(beside).transpose()?,
        output_dir: args.output_dir.clone(),
        results,
        output_limit: quantity("--output-limit", args.output_limit.as_deref(), parse_size)?
            .unwrap_or(if args.keep_order || is_table { u64::MAX } else { OUTPUT_LIMIT }),
        state: state_root(args)?,
        store: store_of(args),
        durability: match args.durability {
            Durability::Sync => log::Durability::Sync,
            Durability::Os => log::Durability::Os,
            Durability::None => log::Durability::None,
        },
        retry_failed: args.retry_failed,
        fresh: args.fresh,
        elsewhere: None,
        dashboard: args.dashboard,
        show: ShowOptions {
            quiet: args.quiet,
            json: args.json,
            tee: args.tee || args.line_buffer,
            has_labels: !args.line_buffer,
            keep_order: args.keep_order,
        },
    })
}

/// What is kept is for reading later; what `-k` prints, or a table has, is a result and has to be whole.
const OUTPUT_LIMIT: u64 = 64 << 20;

/// Where the blocks of `--pipe` are: tasks may run elsewhere, so it is the whole path.
fn blocks_dir(args: &Run) -> anyhow::Result<PathBuf> {
    let state = std::path::absolute(state_root(args)?)?;
    if state.to_string_lossy().contains('{') {
        return Err(usage(
            "--pipe: the path of the state has a brace in it; --state DIR puts it elsewhere",
        ));
    }
    Ok(state.join("blocks"))
}

/// `outputs/` beside the directory of scripts.
fn beside(runs: &Path) -> anyhow::Result<PathBuf> {
    let runs = runs.canonicalize().with_context(|| format!("{}", runs.display()))?;
    Ok(runs.parent().unwrap_or(&runs).join("outputs"))
}

fn store_of(args: &Run) -> StoreOf {
    let input = &args.input;
    let file = input.file.as_ref().or(input.lines.as_ref()).or(input.runs.as_ref());
    match (&args.name, file) {
        (Some(name), _) => StoreOf::Name(name.clone()),
        (None, Some(path)) if is_lasting(path) => StoreOf::File(path.clone()),
        (None, Some(_)) => StoreOf::Nothing,
        (None, None) if input.words.is_empty() => StoreOf::Nothing,
        (None, None) => StoreOf::Template,
    }
}

/// What is read once, such as /dev/stdin, has no place of its own.
fn is_lasting(path: &Path) -> bool {
    !path.starts_with("/dev") && !path.starts_with("/proc")
}

fn state_root(args: &Run) -> anyhow::Result<PathBuf> {
    if let Some(state) = &args.state {
        return Ok(state.clone());
    }
    let input = &args.input;
    let file = input.file.as_deref().filter(|path| is_lasting(path));
    let job = file.or(input.runs.as_deref()).and_then(|path| path.parent());
    let here = match job {
        Some(dir) if !dir.as_os_str().is_empty() => dir.to_owned(),
        _ => std::env::current_dir().context("the current directory no longer exists")?,
    };
    Ok(here.join(".laboro"))
}

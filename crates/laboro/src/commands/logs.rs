//! `laboro logs`: what a task of a run printed, from the store, also while it runs. Not by the API, as that of a hub:
//! what a resumed run did not run again was printed by earlier runs, whose stores the run does not serve. Whether a run
//! here or a hub is meant is decided here too.

mod hub;
mod job;

pub(crate) use hub::tail;
pub(crate) use job::{Wanted, print_job};

use crate::args::Logs;
use crate::exit::{Exit, usage};
use crate::hub_client::{RunPlace, is_known, look};
use crate::output::{print, say};
use crate::run::{GROUP, JOB, RunDir, earlier};
use anyhow::Context;
use laboro_api as api;
use laboro_core::{Ledger, Name, State, TaskId};
use laboro_journal::outputs::{End, Ending, Key, Reader, Stream, Streams};
use laboro_journal::read_ledger;
use serde_json::{Value, json};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How often a follower looks for more.
const LOOK_EVERY: Duration = Duration::from_millis(100);

pub(crate) fn run(args: &Logs) -> anyhow::Result<Exit> {
    let place = &args.place;
    let root = place.state.clone().unwrap_or_else(|| PathBuf::from(".laboro"));
    if place.says_hub()?.unwrap_or_else(|| !root.exists() && is_known(&place.hub)) {
        return hub::run(args);
    }
    if args.failed || args.output_dir.is_some() {
        return Err(usage(
            "--failed and --output-dir are for a job at a hub; `laboro run --output-dir` writes the files of a run",
        ));
    }
    let dir = RunDir::find(&root, place.run.as_ref().and_then(Option::as_deref))?;
    let task = find(&dir, &args.task, is_known(&place.hub))?;
    let own_index = task.index;
    // It may have been done by an earlier run of the job.
    let own = dir.file_name().unwrap_or_default().to_string_lossy();
    let carried = earlier::carried(&dir);
    let (run, index) = earlier::origin(&carried, &own, task.index);
    let (dir, task) = (root.join(run), TaskId::new(JOB, index));
    let reader = Reader::open(dir.join("outputs")).context("the outputs cannot be read")?;
    match args.json {
        true => as_json(&reader, &dir, args, task, called(args, own_index)),
        false => show(reader, &dir, args, task),
    }
}

/// By name, else by number.
fn find(dir: &Path, task: &str, is_hub_known: bool) -> anyhow::Result<TaskId> {
    let ledger = ledger(dir)?;
    if let Some(found) = ledger.find_task(&GROUP.into(), &Name::from(task)) {
        if found.is_whole() {
            return Err(usage(format!("{task} is an array: say which element, such as {task}.1")));
        }
        return Ok(found);
    }
    let number = task.parse().ok().map(|number| TaskId::new(JOB, number));
    let found = number.filter(|&task| ledger.state_of(task).is_some());
    found.ok_or_else(|| {
        let hint = if is_hub_known { "; --hub asks the hub" } else { "" };
        usage(format!("there is no task {task} in {}{hint}", dir.display()))
    })
}

fn ledger(dir: &Path) -> anyhow::Result<Ledger> {
    let journal = dir.join("journal");
    read_ledger(&journal).with_context(|| format!("{} cannot be read", journal.display()))
}

/// The attempt that is asked for; none if the task has not been started.
fn key(reader: &Reader, args: &Logs, task: TaskId) -> anyhow::Result<Option<Key>> {
    let attempts = reader.attempts(task.job.0, task.index)?;
    let attempt = match (args.attempt, attempts.last()) {
        (None, last) => last.copied(),
        (Some(attempt), _) if attempts.contains(&attempt) => Some(attempt),
        (Some(attempt), last) if args.follow && last.is_none_or(|&last| attempt > last) => None,
        (Some(attempt), _) => {
            let known: Vec<String> = attempts.iter().map(u16::to_string).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            let task = &args.task;
            return Err(usage(format!("task {task} has no attempt {attempt}; it has {known}")));
        }
    };
    Ok(attempt.map(|attempt| Key { job: task.job.0, index: task.index, attempt }))
}

fn streams(args: &Logs) -> Streams {
    match (args.stdout, args.stderr) {
        (true, _) => Streams::Stdout,
        (_, true) => Streams::Stderr,
        _ => Streams::Both,
    }
}

/// Both streams go each to where it belongs. One alone is what was asked for, so it goes to standard output.
fn write(wanted: Streams, stream: Stream, bytes: &[u8]) -> std::io::Result<()> {
    match (wanted, stream) {
        (Streams::Both, Stream::Stderr) => std::io::stderr().lock().write_all(bytes),
        _ => {
            let mut out = std::io::stdout().lock();
            out.write_all(bytes)?;
            out.flush()
        }
    }
}

fn show(mut reader: Reader, dir: &Path, args: &Logs, task: TaskId) -> anyhow::Result<Exit> {
    // A task that has not started yet is waited for, if there is a run that may start it.
    let mut key_found = key(&reader, args, task)?;
    while key_found.is_none() && args.follow && may_still_run(dir, task)? {
        std::thread::sleep(LOOK_EVERY);
        reader.refresh()?;
        key_found = key(&reader, args, task)?;
    }
    let Some(key) = key_found else {
        say(format_args!("laboro: task {} has printed nothing: it has not run", args.task));
        return Ok(Exit::Done);
    };
    if args.follow {
        return follow(reader, dir, key, streams(args));
    }
    for chunk in reader.read(key, streams(args)) {
        let (stream, bytes) = chunk?;
        write(streams(args), stream, &bytes)?;
    }
    say_truncated(reader.end(key)?.as_ref());
    Ok(Exit::Done)
}

fn follow(mut reader: Reader, dir: &Path, key: Key, streams: Streams) -> anyhow::Result<Exit> {
    let mut follow = reader.follow(key, streams);
    loop {
        // Asked before the last look, so that nothing is written between the two.
        let run_is_over = !is_running(dir);
        while let Some(chunk) = follow.poll(&mut reader) {
            let (stream, bytes) = chunk?;
            write(streams, stream, &bytes)?;
        }
        if let Some(end) = follow.end() {
            say_truncated(Some(end));
            return Ok(Exit::Done);
        }
        if run_is_over {
            say("laboro: the run was cut short; the same command of `laboro run` goes on");
            return Ok(Exit::Done);
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

fn may_still_run(dir: &Path, task: TaskId) -> anyhow::Result<bool> {
    let is_running = is_running(dir);
    let unfinished = ledger(dir)?.state_of(task).is_some_and(|state| !state.is_finished());
    Ok(is_running && unfinished)
}

fn is_running(dir: &Path) -> bool {
    RunPlace { dir: dir.to_owned(), socket: None }.is_alive()
}

fn say_truncated(end: Option<&End>) {
    if let Some(end) = end.filter(|end| end.truncated()) {
        let dropped = end.stdout.dropped + end.stderr.dropped;
        say(format_args!(
            "laboro: {dropped} more bytes were not kept; --output-limit of `laboro run` keeps more"
        ));
    }
}

/// Its name and its label, in the words of the API.
fn called(args: &Logs, index: u32) -> Option<(String, String)> {
    let mut place = args.place.clone();
    place.run.get_or_insert(None);
    let mut found = None;
    let looked = look(&place, async |run| {
        let task = run.task(JOB.0, index).await?;
        // One without a name is called by its number here.
        let name = task.name.to_string();
        let is_numbered = name == format!("{}/{index}", JOB.0);
        found = Some((if is_numbered { index.to_string() } else { name }, task.label));
        Ok(Exit::Done)
    });
    looked.ok().and(found)
}

fn as_json(
    reader: &Reader,
    dir: &Path,
    args: &Logs,
    task: TaskId,
    called: Option<(String, String)>,
) -> anyhow::Result<Exit> {
    let state = ledger(dir)?.state_of(task).map(State::word);
    let (name, label) = called.unwrap_or_else(|| (args.task.clone(), args.task.clone()));
    let mut record = json!({
        "job": task.job.0, "task": task.index, "name": name, "label": label, "state": state,
    });
    let Some(key) = key(reader, args, task)? else {
        record["attempt"] = Value::Null;
        print(record)?;
        return Ok(Exit::Done);
    };
    let text = |streams| -> anyhow::Result<String> {
        let mut all = Vec::new();
        for chunk in reader.read(key, streams) {
            all.extend(chunk?.1);
        }
        Ok(String::from_utf8_lossy(&all).into_owned())
    };
    let ending = reader.end(key)?.map(|end| ended(&end));
    record["attempt"] = key.attempt.into();
    record["ended"] = ending.into();
    record["stdout"] = text(Streams::Stdout)?.into();
    record["stderr"] = text(Streams::Stderr)?.into();
    print(record)?;
    Ok(Exit::Done)
}

/// How an attempt ended, in the words of the API.
fn ended(end: &End) -> Value {
    let Ending { started_ms, wall_us, user_us, sys_us, max_rss_kib, .. } = end.ending;
    let peak_memory_bytes = max_rss_kib.saturating_mul(1024);
    json!({
        "outcome": api::Outcome::from(end.ending.outcome()),
        "started_ms": started_ms,
        "ended_ms": started_ms.saturating_add(wall_us / 1000),
        "used": api::Used { wall_us, user_us, system_us: sys_us, peak_memory_bytes },
        "truncated": end.truncated(),
    })
}

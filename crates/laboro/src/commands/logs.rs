//! `laboro logs`: what a task of a run printed, from the store, also while it runs.

use crate::args::Logs;
use crate::exit::{Exit, usage};
use crate::run::{GROUP, JOB, RunDir};
use anyhow::Context;
use laboro_core::{Ledger, Name, State, TaskId};
use laboro_journal::outputs::{End, Key, Reader, Stream, Streams};
use laboro_journal::read_ledger;
use serde_json::json;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How often a follower looks for more.
const LOOK_EVERY: Duration = Duration::from_millis(100);

pub(crate) fn run(args: &Logs) -> anyhow::Result<Exit> {
    let root = args.state.clone().unwrap_or_else(|| PathBuf::from(".laboro"));
    let dir = RunDir::find(&root, args.run.as_deref())?;
    let task = find(&dir, &args.task)?;
    let reader = Reader::open(dir.join("outputs")).context("the outputs cannot be read")?;
    let result = match args.json {
        true => as_json(&reader, args, task),
        false => print(reader, &dir, args, task),
    };
    match result {
        // Whoever read it has seen enough.
        Err(error) if is_broken_pipe(&error) => Ok(Exit::Done),
        other => other,
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let io = error.downcast_ref::<std::io::Error>();
    io.is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}

/// By name, else by number.
fn find(dir: &Path, task: &str) -> anyhow::Result<TaskId> {
    let ledger = ledger(dir)?;
    if let Some(found) = ledger.find_task(&GROUP.into(), &Name::from(task)) {
        if found.is_whole() {
            return Err(usage(format!("{task} is an array: say which element, such as {task}.1")));
        }
        return Ok(found);
    }
    let number = task.parse().ok().map(|number| TaskId::new(JOB, number));
    let found = number.filter(|&task| ledger.state_of(task).is_some());
    found.ok_or_else(|| usage(format!("there is no task {task} in {}", dir.display())))
}

fn ledger(dir: &Path) -> anyhow::Result<Ledger> {
    let journal = dir.join("journal");
    read_ledger(&journal).with_context(|| format!("{} cannot be read", journal.display()))
}

fn key(reader: &Reader, args: &Logs, task: TaskId) -> anyhow::Result<Option<Key>> {
    let attempt = match args.attempt {
        Some(attempt) => Some(attempt),
        None => reader.attempts(task.job.0, task.index)?.last().copied(),
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

fn write(stream: Stream, bytes: &[u8]) -> std::io::Result<()> {
    match stream {
        Stream::Stdout => {
            let mut out = std::io::stdout().lock();
            out.write_all(bytes)?;
            out.flush()
        }
        Stream::Stderr => std::io::stderr().lock().write_all(bytes),
    }
}

fn print(mut reader: Reader, dir: &Path, args: &Logs, task: TaskId) -> anyhow::Result<Exit> {
    // A task that has not started yet is waited for, if there is a run that may start it.
    let mut key_found = key(&reader, args, task)?;
    while key_found.is_none() && args.follow && may_still_run(dir, task)? {
        std::thread::sleep(LOOK_EVERY);
        reader.refresh()?;
        key_found = key(&reader, args, task)?;
    }
    let Some(key) = key_found else {
        eprintln!("laboro: task {} has printed nothing: it has not run", args.task);
        return Ok(Exit::Done);
    };
    if !args.follow {
        for chunk in reader.read(key, streams(args)) {
            let (stream, bytes) = chunk?;
            write(stream, &bytes)?;
        }
        say_truncated(reader.end(key)?.as_ref());
        return Ok(Exit::Done);
    }
    let mut follow = reader.follow(key, streams(args));
    loop {
        while let Some(chunk) = follow.poll(&mut reader) {
            let (stream, bytes) = chunk?;
            write(stream, &bytes)?;
        }
        if let Some(end) = follow.end() {
            say_truncated(Some(end));
            return Ok(Exit::Done);
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

fn may_still_run(dir: &Path, task: TaskId) -> anyhow::Result<bool> {
    Ok(ledger(dir)?.state_of(task).is_some_and(|state| !state.is_finished()))
}

fn say_truncated(end: Option<&End>) {
    if let Some(end) = end.filter(|end| end.truncated()) {
        let dropped = end.stdout.dropped + end.stderr.dropped;
        eprintln!(
            "laboro: {dropped} more bytes were not kept; --output-limit of `laboro run` keeps more"
        );
    }
}

fn as_json(reader: &Reader, args: &Logs, task: TaskId) -> anyhow::Result<Exit> {
    let Some(key) = key(reader, args, task)? else {
        let state = State::Waiting.word();
        println!(
            "{}",
            json!({ "task": args.task, "index": task.index, "attempt": null, "state": state })
        );
        return Ok(Exit::Done);
    };
    let text = |streams| -> anyhow::Result<String> {
        let mut all = Vec::new();
        for chunk in reader.read(key, streams) {
            all.extend(chunk?.1);
        }
        Ok(String::from_utf8_lossy(&all).into_owned())
    };
    let end = reader.end(key)?;
    let ending = end.as_ref().map(|end| {
        json!({
            "exit_code": (end.ending.kind == 0).then_some(end.ending.code),
            "signal": (end.ending.kind == 1).then_some(end.ending.code),
            "timed_out": end.ending.kind == 2,
            "started_ms": end.ending.started_ms,
            "wall_s": end.ending.wall_us as f64 / 1e6,
            "cpu_s": (end.ending.user_us + end.ending.sys_us) as f64 / 1e6,
            "max_rss_kib": end.ending.max_rss_kib,
            "truncated": end.truncated(),
        })
    });
    println!(
        "{}",
        json!({
            "task": args.task,
            "index": task.index,
            "attempt": key.attempt,
            "ended": ending,
            "stdout": text(Streams::Stdout)?,
            "stderr": text(Streams::Stderr)?,
        })
    );
    Ok(Exit::Done)
}

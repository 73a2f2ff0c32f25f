//! `laboro logs`: what tasks printed, of a run here or at a hub, asked over the same API. A run that resumed leads to what
//! earlier runs kept of its tasks.

mod follow;
mod job;
mod tee;

pub(crate) use job::{WantedLogs, print_job};
pub(crate) use tee::tee_job;

use crate::args::Logs;
use crate::exit::{Exit, usage};
use crate::hub_client::{Hub, Printed, look};
use crate::output::{counted, data, print, safe, say};
use crate::resolve::{self, Chosen};
use follow::follow;
use laboro_api::client::Download;
use laboro_api::{Attempt, Task};
use serde_json::json;
use std::io::Write;

pub(crate) fn run(args: &Logs) -> anyhow::Result<Exit> {
    look(&args.place, async |hub| {
        let chosen = resolve::task_or_job(hub, &args.task, args.group.as_deref()).await?;
        match chosen.one_task().filter(|_| args.output_dir.is_none()) {
            Some(number) => print_one(hub, args, (chosen.job, number)).await,
            None => print_all(hub, args, &chosen).await,
        }
    })
}

async fn print_one(hub: &Hub, args: &Logs, (job, number): (u32, u32)) -> anyhow::Result<Exit> {
    if args.failed {
        return Err(usage("--failed goes with a job, not with one task"));
    }
    let task = hub.task(job, number).await?;
    if args.json {
        return as_json(hub, &task, args.attempt).await;
    }
    let streams: &[Printed] = match (args.stdout, args.stderr) {
        (true, _) => &[Printed::Stdout],
        (_, true) => &[Printed::Stderr],
        _ => &[Printed::Stdout, Printed::Stderr],
    };
    let mut printed = 0;
    if args.follow {
        printed = follow(hub, (job, number), args.attempt, streams).await?;
    } else {
        for &stream in streams {
            let output = hub.output(job, number, args.attempt, stream, None).await?;
            let to = if streams.len() == 1 { Printed::Stdout } else { stream };
            printed += copy(output, to).await?;
        }
    }
    // Who follows has seen the attempt end meanwhile.
    let later = if args.follow { hub.after_run_if_over().await? } else { None };
    let task = match &later {
        Some(past) => past.task(job, number).await?,
        None if args.follow => hub.task(job, number).await?,
        None => task,
    };
    if printed == 0 {
        say_why_nothing(&task, &args.task);
    }
    Ok(say_missing(hub, &task, args.attempt))
}

/// A task that ended and printed nothing needs no word, unless it could not be started.
fn say_why_nothing(task: &Task, called: &str) {
    let called = safe(called);
    match &task.message {
        Some(why) => say(format_args!("laboro: task {called} has printed nothing: {}", safe(why))),
        None if task.attempts.is_empty() => {
            say(format_args!("laboro: task {called} has printed nothing: it has not run"));
        }
        None => {}
    }
}

async fn print_all(hub: &Hub, args: &Logs, chosen: &Chosen) -> anyhow::Result<Exit> {
    if args.json || args.attempt.is_some() {
        return Err(usage(format!(
            "--json and --attempt go with one task, such as {}/1; `laboro export` has all of a job",
            chosen.job
        )));
    }
    let stream = match (args.stdout, args.stderr) {
        (true, _) => Some(Printed::Stdout),
        (_, true) => Some(Printed::Stderr),
        _ => None,
    };
    let dir = args.output_dir.as_deref();
    let wanted = WantedLogs { failed: args.failed, follow: args.follow, dir, stream };
    print_job(hub, chosen, wanted).await
}

/// What is not there is no output of the task, and nobody should take it for that.
fn say_missing(hub: &Hub, task: &Task, attempt: Option<u16>) -> Exit {
    let shown = shown(task, attempt);
    if let Some(more) = shown.map(|shown| shown.output_truncated_bytes).filter(|&more| more > 0) {
        let more_next_time = match hub.run() {
            Some(_) => "--output-limit of `laboro run` keeps more",
            None => "`stream_bytes` under [outputs] in hub.toml keeps more",
        };
        say(format_args!("laboro: {more} more bytes were not kept; {more_next_time}"));
    }
    let lost = match shown.map_or(0, |shown| shown.output_lost_bytes) {
        0 if attempt.is_none() && task.output_lost => "some".to_owned(),
        0 => return Exit::Done,
        lost => counted(lost, "byte"),
    };
    say(format_args!(
        "laboro: {lost} of the output of task {}/{} could not be written by the hub and are missing here; \
         submit it again if they are needed",
        task.job, task.task
    ));
    Exit::Trouble
}

/// The attempt that is asked for, or the last.
fn shown(task: &Task, attempt: Option<u16>) -> Option<&Attempt> {
    match attempt {
        Some(attempt) => task.attempts.iter().find(|one| one.attempt == attempt),
        None => task.attempts.last(),
    }
}

/// How many bytes there were.
async fn copy(mut output: Download, to: Printed) -> anyhow::Result<u64> {
    let mut copied = 0;
    while let Some(bytes) = output.next().await? {
        copied += bytes.len() as u64;
        write(to, &bytes)?;
    }
    Ok(copied)
}

fn write(stream: Printed, bytes: &[u8]) -> std::io::Result<()> {
    match stream {
        Printed::Stdout => {
            let mut out = data();
            out.write_all(bytes)?;
            out.flush()
        }
        Printed::Stderr => std::io::stderr().lock().write_all(bytes),
    }
}

async fn as_json(hub: &Hub, task: &Task, attempt: Option<u16>) -> anyhow::Result<Exit> {
    let shown = shown(task, attempt);
    let mut texts = Vec::new();
    for stream in [Printed::Stdout, Printed::Stderr] {
        let mut output = hub.output(task.job, task.task, attempt, stream, None).await?;
        let mut all = Vec::new();
        while let Some(bytes) = output.next().await? {
            all.extend_from_slice(&bytes);
        }
        texts.push(String::from_utf8_lossy(&all).into_owned());
    }
    // The events of a run call one without a name by its number.
    let name = match task.name.to_string() {
        name if hub.run().is_some() && name == format!("{}/{}", task.job, task.task) => {
            task.task.to_string()
        }
        name => name,
    };
    print(json!({
        "job": task.job,
        "task": task.task,
        "name": name,
        "label": task.label,
        "state": task.state.word(),
        "attempt": attempt.or(shown.map(|shown| shown.attempt)),
        "ended": shown.and_then(ended),
        "message": task.message,
        "attempts": task.attempts,
        "output_lost": task.output_lost,
        "stdout": texts[0],
        "stderr": texts[1],
    }))?;
    Ok(say_missing(hub, task, attempt))
}

/// How an attempt ended.
fn ended(attempt: &Attempt) -> Option<serde_json::Value> {
    Some(json!({
        "outcome": attempt.outcome?,
        "started_ms": attempt.started_ms,
        "ended_ms": attempt.ended_ms,
        "used": attempt.used,
        "truncated": attempt.output_truncated_bytes > 0,
    }))
}

/// How much is asked for to find the last lines in.
const TAIL_BYTES: i64 = 8 << 10;

/// The last lines a task wrote to standard error, or to standard output if there are none. A tail that cannot
/// be had is no reason not to show the rest.
pub(crate) async fn tail(hub: &Hub, task: &Task, lines: usize) -> String {
    for stream in [Printed::Stderr, Printed::Stdout] {
        let text = last_bytes(hub, task, stream).await.unwrap_or_default();
        let all: Vec<&str> = text.lines().collect();
        if !all.is_empty() {
            let last = all.iter().skip(all.len().saturating_sub(lines));
            return last.map(|line| safe(line)).collect::<Vec<_>>().join("\n");
        }
    }
    String::new()
}

async fn last_bytes(hub: &Hub, task: &Task, stream: Printed) -> anyhow::Result<String> {
    let mut output = hub.output(task.job, task.task, None, stream, Some(-TAIL_BYTES)).await?;
    let mut all = Vec::new();
    while let Some(bytes) = output.next().await? {
        all.extend_from_slice(&bytes);
        // A hub that gives more than was asked for is not waited for.
        if all.len() > 16 * TAIL_BYTES as usize {
            break;
        }
    }
    Ok(String::from_utf8_lossy(&all).into_owned())
}

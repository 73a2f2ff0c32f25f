//! `laboro logs` of a task at a hub: the same options, asked over the API.

use super::job::{Wanted, print_job};
use crate::args::Logs;
use crate::exit::{Exit, usage};
use crate::hub_client::{Away, Hub, Printed, talk};
use crate::output::{counted, print, safe, say};
use crate::resolve::{self, Chosen};
use laboro_api::client::Download;
use laboro_api::{Attempt, Task, TaskState};
use serde_json::json;
use std::io::Write;
use std::time::Duration;

pub(super) fn run(args: &Logs) -> anyhow::Result<Exit> {
    talk(&args.place.hub, async |hub| {
        let chosen = resolve::task_or_job(hub, &args.task, args.group.as_deref()).await?;
        let Some(number) = chosen.one_task().filter(|_| args.output_dir.is_none()) else {
            return print_all(hub, args, &chosen).await;
        };
        let job = chosen.job;
        if args.failed {
            return Err(usage("--failed goes with a job, not with one task"));
        }
        if args.json {
            return as_json(hub, &hub.task(job, number).await?, args.attempt).await;
        }
        let streams: &[Printed] = match (args.stdout, args.stderr) {
            (true, _) => &[Printed::Stdout],
            (_, true) => &[Printed::Stderr],
            _ => &[Printed::Stdout, Printed::Stderr],
        };
        let task = hub.task(job, number).await?;
        let is_new = task.attempts.is_empty();
        let printed = if args.follow {
            follow(hub, (job, number), args.attempt, streams).await?
        } else {
            let mut printed = 0;
            for &stream in streams {
                let output = hub.output(job, number, args.attempt, stream, None).await?;
                printed +=
                    copy(output, if streams.len() == 1 { Printed::Stdout } else { stream }).await?;
            }
            printed
        };
        if printed == 0 && is_new && !args.follow {
            say(format_args!("laboro: task {} has printed nothing", safe(&args.task)));
        }
        // Who follows has seen the attempt end meanwhile.
        let task = if args.follow { hub.task(job, number).await? } else { task };
        Ok(say_lost(&task, args.attempt))
    })
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
    let wanted = Wanted { failed: args.failed, follow: args.follow, dir, stream };
    print_job(hub, chosen, wanted).await
}

/// What is not there is no output of the task, and nobody should take it for that.
pub(super) fn say_lost(task: &Task, attempt: Option<u16>) -> Exit {
    let shown = match attempt {
        Some(attempt) => task.attempts.iter().find(|one| one.attempt == attempt),
        None => task.attempts.last(),
    };
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

/// Both streams at once, each to where it belongs. One alone goes to standard output.
pub(super) async fn follow(
    hub: &Hub,
    task: (u32, u32),
    attempt: Option<u16>,
    streams: &[Printed],
) -> anyhow::Result<u64> {
    match streams {
        &[stream] => follow_one(hub, task, attempt, stream, Printed::Stdout).await,
        _ => {
            let out = follow_one(hub, task, attempt, Printed::Stdout, Printed::Stdout);
            let err = follow_one(hub, task, attempt, Printed::Stderr, Printed::Stderr);
            let (out, err) = tokio::try_join!(out, err)?;
            Ok(out + err)
        }
    }
}

/// One stream until its attempt is over, also over a hub that goes away and comes back.
async fn follow_one(
    hub: &Hub,
    (job, task): (u32, u32),
    mut attempt: Option<u16>,
    stream: Printed,
    to: Printed,
) -> anyhow::Result<u64> {
    let (mut copied, mut away) = (0, Away::default());
    loop {
        let lost = match hub.output_from(job, task, attempt, stream, copied).await {
            Err(error) => error,
            Ok(mut output) => {
                away.is_back();
                attempt = attempt.or(output.attempt());
                let ended = loop {
                    match output.next().await {
                        Ok(Some(bytes)) => {
                            copied += bytes.len() as u64;
                            write(to, &bytes)?;
                        }
                        Ok(None) => break hub.task_now(job, task).await,
                        Err(error) => break Err(error),
                    }
                };
                match ended {
                    // A hub that stops ends what it sends, and the attempt goes on.
                    Ok(now) if is_past(&now, attempt) => return Ok(copied),
                    Ok(_) => {
                        tokio::time::sleep(LOOK_EVERY).await;
                        continue;
                    }
                    Err(error) => error,
                }
            }
        };
        away.pause(lost).await?;
    }
}

pub(super) const LOOK_EVERY: Duration = Duration::from_millis(300);

fn is_past(task: &Task, attempt: Option<u16>) -> bool {
    let tried = task.failed_attempts.saturating_add(task.lost_attempts);
    // When a person has it tried again its failures are counted anew, its attempts are not.
    let ended = task.attempts.iter().rev().find(|attempt| attempt.ended_ms.is_some());
    let now = tried.max(ended.map_or(0, |attempt| attempt.attempt)).saturating_add(1);
    matches!(
        task.state,
        TaskState::Done | TaskState::Failed | TaskState::Cancelled | TaskState::Blocked
    ) || attempt.is_none_or(|attempt| now > attempt)
}

/// How many bytes there were.
pub(super) async fn copy(mut output: Download, to: Printed) -> anyhow::Result<u64> {
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
            let mut out = std::io::stdout().lock();
            out.write_all(bytes)?;
            out.flush()
        }
        Printed::Stderr => std::io::stderr().lock().write_all(bytes),
    }
}

async fn as_json(hub: &Hub, task: &Task, attempt: Option<u16>) -> anyhow::Result<Exit> {
    let shown = match attempt {
        Some(attempt) => task.attempts.iter().find(|one| one.attempt == attempt),
        None => task.attempts.last(),
    };
    let mut texts = Vec::new();
    for stream in [Printed::Stdout, Printed::Stderr] {
        let mut output = hub.output(task.job, task.task, attempt, stream, None).await?;
        let mut all = Vec::new();
        while let Some(bytes) = output.next().await? {
            all.extend_from_slice(&bytes);
        }
        texts.push(String::from_utf8_lossy(&all).into_owned());
    }
    print(json!({
        "job": task.job,
        "task": task.task,
        "name": task.name.to_string(),
        "label": task.label,
        "state": task.state.word(),
        "attempt": attempt.or(shown.map(|shown| shown.attempt)),
        "ended": shown.and_then(ended),
        "attempts": task.attempts,
        "output_lost": task.output_lost,
        "stdout": texts[0],
        "stderr": texts[1],
    }))?;
    Ok(say_lost(task, attempt))
}

/// How an attempt ended, as `laboro logs` of a run has it.
fn ended(attempt: &Attempt) -> Option<serde_json::Value> {
    Some(json!({
        "outcome": attempt.outcome?,
        "started_ms": attempt.started_ms,
        "ended_ms": attempt.ended_ms,
        "used": attempt.used,
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

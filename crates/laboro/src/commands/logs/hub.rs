//! `laboro logs` of a task at a hub: the same options, asked over the API.

use crate::args::Logs;
use crate::exit::Exit;
use crate::hub_client::{Hub, Printed, talk};
use crate::output::{print, safe, say};
use crate::resolve;
use laboro_hub::api::Task;
use serde_json::json;
use std::io::Write;

pub(super) fn run(args: &Logs) -> anyhow::Result<Exit> {
    talk(&args.hub_args, async |hub| {
        let (job, number) = resolve::task(hub, &args.task, args.group.as_deref()).await?;
        if args.json {
            return as_json(hub, &hub.task(job, number).await?, args.attempt).await;
        }
        let streams: &[Printed] = match (args.stdout, args.stderr) {
            (true, _) => &[Printed::Stdout],
            (_, true) => &[Printed::Stderr],
            _ => &[Printed::Stdout, Printed::Stderr],
        };
        let is_new = hub.task(job, number).await?.attempts.is_empty();
        let printed = if args.follow {
            follow(hub, (job, number), args.attempt, streams).await?
        } else {
            let mut printed = 0;
            for &stream in streams {
                printed += copy(hub, (job, number), args.attempt, stream, false).await?;
            }
            printed
        };
        if printed == 0 && is_new && !args.follow {
            say(format_args!("laboro: task {} has printed nothing", safe(&args.task)));
        }
        Ok(Exit::Done)
    })
}

/// Both streams at once, each to where it belongs.
async fn follow(
    hub: &Hub,
    task: (u32, u32),
    attempt: Option<u16>,
    streams: &[Printed],
) -> anyhow::Result<u64> {
    match streams {
        &[stream] => copy(hub, task, attempt, stream, true).await,
        _ => {
            let out = copy(hub, task, attempt, Printed::Stdout, true);
            let err = copy(hub, task, attempt, Printed::Stderr, true);
            let (out, err) = tokio::try_join!(out, err)?;
            Ok(out + err)
        }
    }
}

/// How many bytes there were.
async fn copy(
    hub: &Hub,
    (job, task): (u32, u32),
    attempt: Option<u16>,
    stream: Printed,
    is_followed: bool,
) -> anyhow::Result<u64> {
    let mut output = hub.output(job, task, attempt, stream, is_followed, None).await?;
    let mut copied = 0;
    while let Some(bytes) = output.next().await? {
        copied += bytes.len() as u64;
        match stream {
            Printed::Stdout => {
                let mut out = std::io::stdout().lock();
                out.write_all(&bytes)?;
                out.flush()?;
            }
            Printed::Stderr => std::io::stderr().lock().write_all(&bytes)?,
        }
    }
    Ok(copied)
}

async fn as_json(hub: &Hub, task: &Task, attempt: Option<u16>) -> anyhow::Result<Exit> {
    let mut texts = Vec::new();
    for stream in [Printed::Stdout, Printed::Stderr] {
        let mut output = hub.output(task.job, task.task, attempt, stream, false, None).await?;
        let mut all = Vec::new();
        while let Some(bytes) = output.next().await? {
            all.extend_from_slice(&bytes);
        }
        texts.push(String::from_utf8_lossy(&all).into_owned());
    }
    print(json!({
        "job": task.job,
        "task": task.name.to_string(),
        "index": task.task,
        "state": task.state.word(),
        "attempt": attempt,
        "attempts": task.attempts,
        "stdout": texts[0],
        "stderr": texts[1],
    }))?;
    Ok(Exit::Done)
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
    let mut output =
        hub.output(task.job, task.task, None, stream, false, Some(-TAIL_BYTES)).await?;
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

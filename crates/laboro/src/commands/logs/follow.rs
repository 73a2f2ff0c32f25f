//! `laboro logs --follow`: what an attempt prints, as it comes, until it is over. A hub may go away and come back meanwhile;
//! of a run that ends, or is killed, the rest is read from what it has kept.

use super::write;
use crate::hub_client::{Away, Hub, Printed};
use crate::output::say;
use laboro_api::{Task, TaskState};
use std::io::Result;
use std::time::Duration;

/// Both streams at once, each to where it belongs. One alone goes to standard output.
pub(super) async fn follow(
    hub: &Hub,
    task: (u32, u32),
    attempt: Option<u16>,
    streams: &[Printed],
) -> anyhow::Result<u64> {
    match streams {
        &[stream] => {
            follow_one(hub, task, attempt, stream, |bytes| write(Printed::Stdout, bytes)).await
        }
        _ => follow_both(hub, task, attempt, write).await,
    }
}

/// Both streams at once, for the caller to print.
pub(super) async fn follow_both(
    hub: &Hub,
    task: (u32, u32),
    attempt: Option<u16>,
    write: impl Fn(Printed, &[u8]) -> Result<()>,
) -> anyhow::Result<u64> {
    let write = &write;
    let one = |stream| follow_one(hub, task, attempt, stream, move |bytes| write(stream, bytes));
    let (out, err) = tokio::try_join!(one(Printed::Stdout), one(Printed::Stderr))?;
    Ok(out + err)
}

/// One stream until its attempt is over, also over a hub that goes away and comes back.
async fn follow_one(
    hub: &Hub,
    (job, task): (u32, u32),
    mut attempt: Option<u16>,
    stream: Printed,
    write: impl Fn(&[u8]) -> Result<()>,
) -> anyhow::Result<u64> {
    let (mut copied, mut away) = (0, Away::default());
    if hub.is_over() {
        return rest(hub, (job, task), attempt, stream, write, 0).await;
    }
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
                            write(&bytes)?;
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
        if let Some(past) = hub.after_run().await? {
            return rest(&past, (job, task), attempt, stream, write, copied).await;
        }
        away.pause(lost).await?;
    }
}

/// Of a run that is over: what has not been seen of it.
async fn rest(
    run: &Hub,
    (job, task): (u32, u32),
    attempt: Option<u16>,
    stream: Printed,
    write: impl Fn(&[u8]) -> Result<()>,
    seen: u64,
) -> anyhow::Result<u64> {
    let now = run.task(job, task).await?;
    let is_over = super::job::is_over(now.state);
    let from = i64::try_from(seen).unwrap_or(i64::MAX);
    let mut copied = seen;
    // There may be nothing behind what was seen.
    if let Ok(mut output) = run.output(job, task, attempt, stream, Some(from)).await {
        while let Some(bytes) = output.next().await? {
            copied += bytes.len() as u64;
            write(&bytes)?;
        }
    }
    // Once, not for each stream.
    if !is_over && stream == Printed::Stdout && copied > 0 {
        say("laboro: the run was cut short; the same `laboro run` command resumes it");
    }
    Ok(copied)
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

//! `laboro logs JOB`, and `laboro submit --wait -k`: what the tasks of a job printed, one after the other in the order of their
//! numbers. One task at a time is in memory, and of that one piece.

use super::follow::{LOOK_EVERY, follow};
use super::{copy, say_missing};
use crate::exit::Exit;
use crate::hub_client::{Away, Hub, Printed, TaskPages};
use crate::output::{safe, say};
use crate::resolve::{Chosen, Which};
use crate::run::file_name;
use anyhow::Context;
use laboro_api::{Task, TaskState};
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

/// What is wanted of a job.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct WantedLogs<'a> {
    /// Only tasks that failed, each with a heading.
    pub(crate) failed: bool,
    /// Wait for each task to end.
    pub(crate) follow: bool,
    /// Into `NAME.out` and `NAME.err` of this directory.
    pub(crate) dir: Option<&'a Path>,
    /// `None`: both streams.
    pub(crate) stream: Option<Printed>,
}

pub(crate) async fn print_job(
    hub: &Hub,
    chosen: &Chosen,
    wanted: WantedLogs<'_>,
) -> anyhow::Result<Exit> {
    if let Some(dir) = wanted.dir {
        std::fs::create_dir_all(dir)
            .with_context(|| format!("{} cannot be made", dir.display()))?;
    }
    let state = match (&chosen.which, wanted.failed) {
        (Which::InState(state), _) => Some(TaskState::from(*state)),
        (_, true) => Some(TaskState::Failed),
        (_, false) => None,
    };
    let ranges = match &chosen.which {
        Which::Ranges(ranges) => ranges.clone(),
        Which::Job | Which::InState(_) => vec![(1, u32::MAX)],
    };
    let (mut exit, mut shown) = (Exit::Done, 0u64);
    for (first, last) in ranges {
        let mut tasks = TaskPages::new(hub, chosen.job, state, first, None);
        while let Some(task) = tasks.next().await? {
            if task.task > last {
                break;
            }
            shown += 1;
            if let trouble @ Exit::Trouble = print_task(hub, task, wanted).await? {
                exit = trouble;
            }
        }
    }
    if shown == 0 {
        say("laboro: no such tasks");
    }
    Ok(exit)
}

async fn print_task(hub: &Hub, task: Task, wanted: WantedLogs<'_>) -> anyhow::Result<Exit> {
    let (job, number) = (task.job, task.task);
    if wanted.failed && wanted.dir.is_none() {
        let outcome = task.attempts.last().and_then(|last| last.outcome);
        let outcome = outcome.map(|outcome| format!(" ({outcome})")).unwrap_or_default();
        say(format_args!("==> {job}/{number} {}{outcome} <==", safe(&task.label)));
    }
    let streams: &[Printed] = match wanted.stream {
        Some(Printed::Stdout) => &[Printed::Stdout],
        Some(Printed::Stderr) => &[Printed::Stderr],
        None => &[Printed::Stdout, Printed::Stderr],
    };
    let follows = wanted.follow && !is_over(task.state);
    match wanted.dir {
        Some(dir) => {
            if follows {
                wait_for(hub, &task).await?;
            }
            save(hub, &task, dir, streams).await?;
        }
        None if follows => tokio::select! {
            biased;
            followed = follow(hub, (job, number), None, streams) => {
                followed?;
            }
            never = never_begins(hub, &task) => never?,
        },
        None => {
            for &stream in streams {
                let output = hub.output(job, number, None, stream, None).await?;
                copy(output, if streams.len() == 1 { Printed::Stdout } else { stream }).await?;
            }
        }
    }
    let task = if follows { hub.task(job, number).await? } else { task };
    Ok(say_missing(hub, &task, None))
}

/// Nothing more comes of it without a person.
pub(super) fn is_over(state: TaskState) -> bool {
    matches!(
        state,
        TaskState::Done
            | TaskState::Failed
            | TaskState::Cancelled
            | TaskState::Blocked
            | TaskState::Held
    )
}

async fn wait_for(hub: &Hub, task: &Task) -> anyhow::Result<()> {
    tokio::select! {
        never = never_begins(hub, task) => never,
        over = async {
            while !is_over(hub.task(task.job, task.task).await?.state) {
                tokio::time::sleep(LOOK_EVERY).await;
            }
            anyhow::Ok(())
        } => over,
    }
}

/// Until nothing of the job goes on unless a person does something. Says nothing of a task that has ended.
async fn never_begins(hub: &Hub, task: &Task) -> anyhow::Result<()> {
    idle(hub, task.job).await?;
    match hub.task(task.job, task.task).await?.state {
        TaskState::Done | TaskState::Failed | TaskState::Cancelled => std::future::pending().await,
        _ => Ok(()),
    }
}

pub(super) async fn idle(hub: &Hub, job: u32) -> anyhow::Result<()> {
    // A run that is over asks nobody.
    if hub.is_over() {
        return std::future::pending().await;
    }
    let mut away = Away::default();
    loop {
        match hub.wait(&[job], PATIENCE).await {
            Ok(waited) if waited.finished => return Ok(()),
            Ok(_) => away.is_back(),
            Err(error) if error.is_away() && hub.run().is_some() => {
                return std::future::pending().await;
            }
            Err(error) => away.pause(error).await?,
        }
    }
}

/// How long the hub keeps us waiting for one answer.
const PATIENCE: Duration = Duration::from_secs(10);

async fn save(hub: &Hub, task: &Task, dir: &Path, streams: &[Printed]) -> anyhow::Result<()> {
    let id = format!("{}/{}", task.job, task.task);
    // One without a name is known by its number and the words of its values.
    let name = match task.name.to_string() {
        name if name != id => name,
        _ if task.label == id || task.label == task.task.to_string() => task.task.to_string(),
        _ => format!("{}-{}", task.task, task.label),
    };
    let name = file_name(&name, task.task);
    for &stream in streams {
        let ending = if stream == Printed::Stdout { "out" } else { "err" };
        let path = dir.join(format!("{name}.{ending}"));
        let trouble = || format!("{} cannot be written", path.display());
        let mut file = File::create(&path).with_context(trouble)?;
        let mut output = hub.output(task.job, task.task, None, stream, None).await?;
        while let Some(bytes) = output.next().await? {
            file.write_all(&bytes).with_context(trouble)?;
        }
    }
    Ok(())
}

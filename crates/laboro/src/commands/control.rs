//! `laboro cancel`, `hold`, `release`, `retry`, `priority`, `close` and `forget`: what people do to jobs and tasks.

use crate::args::hub::{Control, Priority};
use crate::exit::{Exit, usage};
use crate::hub_client::{self, Hub, Verb};
use crate::output::{counted, print, safe};
use crate::resolve::{self, Chosen, Which};
use serde_json::json;

pub(crate) fn cancel(args: &Control) -> anyhow::Result<Exit> {
    change(args, Verb::Cancel)
}

pub(crate) fn hold(args: &Control) -> anyhow::Result<Exit> {
    change(args, Verb::Hold)
}

pub(crate) fn release(args: &Control) -> anyhow::Result<Exit> {
    change(args, Verb::Release)
}

pub(crate) fn retry(args: &Control) -> anyhow::Result<Exit> {
    change(args, Verb::Retry)
}

pub(crate) fn priority(args: &Priority) -> anyhow::Result<Exit> {
    change(&args.control, Verb::Priority(args.priority))
}

pub(crate) fn close(args: &Control) -> anyhow::Result<Exit> {
    each_job(args, "closed", async |hub, job| hub.close(job).await)
}

pub(crate) fn forget(args: &Control) -> anyhow::Result<Exit> {
    each_job(args, "forgotten", async |hub, job| hub.forget(job).await)
}

/// All names are looked up first, so that a slip in the last changes nothing.
async fn choose(hub: &Hub, args: &Control) -> anyhow::Result<Vec<(String, Chosen)>> {
    let mut chosen = Vec::with_capacity(args.what.len());
    for text in &args.what {
        chosen.push((safe(text), resolve::any(hub, text, args.group.as_deref()).await?));
    }
    Ok(chosen)
}

fn change(args: &Control, verb: Verb) -> anyhow::Result<Exit> {
    hub_client::change(&args.place, async |hub| {
        for (text, chosen) in choose(hub, args).await? {
            let changed = hub.change(&chosen, verb).await?;
            if args.json {
                let words = verb.word();
                print(
                    json!({ "what": text, "job": chosen.job, "did": words, "tasks": changed.tasks }),
                )?;
            } else {
                print(said(&chosen, verb, changed.tasks))?;
            }
        }
        Ok(Exit::Done)
    })
}

/// What became of it, in the words of the verb.
fn said(chosen: &Chosen, verb: Verb, tasks: u64) -> String {
    let tasks = counted(tasks, "task");
    let job = chosen.job;
    match (verb, &chosen.which) {
        (Verb::Hold, Which::Job) => format!("job {job} is held, {tasks} not finished"),
        (Verb::Release, Which::Job) => format!("job {job} resumed, {tasks} released"),
        (Verb::Cancel, _) => format!("job {job}: {tasks} cancelled"),
        (Verb::Hold, _) => format!("job {job}: {tasks} held"),
        (Verb::Release, _) => format!("job {job}: {tasks} released"),
        (Verb::Retry, _) => format!("job {job}: {tasks} will run again"),
        (Verb::Priority(priority), _) => {
            format!("job {job}: {tasks} now have priority {priority}")
        }
    }
}

fn each_job(
    args: &Control,
    done: &str,
    act: impl AsyncFn(&Hub, u32) -> anyhow::Result<()>,
) -> anyhow::Result<Exit> {
    hub_client::change(&args.place, async |hub| {
        let chosen = choose(hub, args).await?;
        if let Some((text, _)) = chosen.iter().find(|(_, chosen)| chosen.which != Which::Job) {
            return Err(usage(format!("{text}: this goes with whole jobs only")));
        }
        for (text, Chosen { job, .. }) in chosen {
            act(hub, job).await?;
            match args.json {
                true => print(json!({ "what": text, "job": job, "did": done }))?,
                false => print(format_args!("job {job} is {done}"))?,
            }
        }
        Ok(Exit::Done)
    })
}

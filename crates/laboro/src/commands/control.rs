//! `laboro cancel`, `hold`, `release`, `retry`, `priority`, `close` and `forget`: what people do to jobs and tasks.

use crate::args::hub::{Control, LimitArgs, NewLimit, Priority};
use crate::exit::{Exit, usage};
use crate::hub_client::{self, Hub, Verb};
use crate::output::{counted, print, safe};
use crate::resolve::{Chosen, Purpose, Reading, Which, several};
use laboro_api::Limit;
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

pub(crate) fn limit(args: &LimitArgs) -> anyhow::Result<Exit> {
    let LimitArgs { max_running, max_fails, control } = args;
    if *max_running == Some(NewLimit(Some(0))) {
        return Err(usage(
            "--max-running 0: nothing would ever run; `laboro hold` starts nothing more",
        ));
    }
    let limit = Limit {
        max_running: max_running.map(|most| most.0),
        max_fails: max_fails.map(|most| most.0),
    };
    each_job(control, Purpose::Change, "limited", async |hub, job| {
        hub.limit(job, &limit).await.map(drop)
    })
}

pub(crate) fn close(args: &Control) -> anyhow::Result<Exit> {
    each_job(args, Purpose::Close, "closed", async |hub, job| hub.close(job).await)
}

pub(crate) fn forget(args: &Control) -> anyhow::Result<Exit> {
    each_job(args, Purpose::Forget, "forgotten", async |hub, job| hub.forget(job).await)
}

/// All names are looked up first, so that a slip in the last changes nothing.
async fn choose(
    hub: &Hub,
    args: &Control,
    purpose: Purpose,
) -> anyhow::Result<Vec<(String, Chosen)>> {
    let how = Reading { purpose, group: args.group.as_deref(), everybody: args.all_owners };
    let mut chosen = Vec::with_capacity(args.what.len());
    for text in &args.what {
        let found = several(hub, text, how).await?;
        chosen.extend(found.into_iter().map(|one| (safe(text), one)));
    }
    Ok(chosen)
}

fn change(args: &Control, verb: Verb) -> anyhow::Result<Exit> {
    hub_client::change(&args.answer.place, async |hub| {
        let purpose = if verb == Verb::Retry { Purpose::Retry } else { Purpose::Change };
        for (text, chosen) in choose(hub, args, purpose).await? {
            let changed = hub.change(&chosen, verb).await?;
            if args.answer.json {
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
            format!("job {job}: priority {priority} for {tasks}")
        }
    }
}

fn each_job(
    args: &Control,
    purpose: Purpose,
    done: &str,
    act: impl AsyncFn(&Hub, u32) -> anyhow::Result<()>,
) -> anyhow::Result<Exit> {
    hub_client::change(&args.answer.place, async |hub| {
        let chosen = choose(hub, args, purpose).await?;
        if let Some((text, _)) = chosen.iter().find(|(_, chosen)| chosen.which != Which::Job) {
            return Err(usage(format!("{text}: this works on whole jobs only")));
        }
        for (text, Chosen { job, .. }) in chosen {
            act(hub, job).await?;
            match args.answer.json {
                true => print(json!({ "what": text, "job": job, "did": done }))?,
                false => print(format_args!("job {job} is {done}"))?,
            }
        }
        Ok(Exit::Done)
    })
}

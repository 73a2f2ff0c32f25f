//! `laboro workers`: who runs tasks, and sending them away.

use crate::args::hub::{ListArgs, WorkerArgs, Workers, WorkersCommand};
use crate::exit::{Exit, refused, usage};
use crate::hub_client::{Hub, WorkerPages, WorkerVerb, look, talk};
use crate::listing::Listing;
use crate::output::{print, safe};
use crate::view::{WORKER_COLUMNS, now_ms, worker_row, worker_text};
use laboro_api::Worker;

pub(crate) fn run(args: &Workers) -> anyhow::Result<Exit> {
    let Some(command) = &args.command else {
        return match &args.name {
            Some(name) => show(&args.list, name, args.group.as_deref()),
            None => list(&args.list, args.group.as_deref()),
        };
    };
    if let Some(name) = &args.name {
        return Err(usage(format!("laboro workers {}: say the worker after the word", safe(name))));
    }
    let (worker, verb) = match command {
        WorkersCommand::Drain(worker) => (worker, WorkerVerb::Drain),
        WorkersCommand::Stop { worker, slots } => (worker, WorkerVerb::Stop(*slots)),
        WorkersCommand::Eject { worker, reason } => (worker, WorkerVerb::Eject(reason.clone())),
        WorkersCommand::Pardon(worker) => (worker, WorkerVerb::Pardon),
        WorkersCommand::Lift(worker) => (worker, WorkerVerb::Lift),
    };
    args.list.refuse_with(verb.word())?;
    act(args, worker, &verb)
}

fn list(args: &ListArgs, group: Option<&str>) -> anyhow::Result<Exit> {
    look(&args.place, async |hub| {
        let mut listing = Listing::new(&args.rows, WORKER_COLUMNS);
        let mut workers = WorkerPages::new(hub, group, listing.page());
        let now = now_ms();
        while let Some(worker) = workers.next().await? {
            if !listing.add(&worker, || worker_row(&worker, now))? {
                break;
            }
        }
        listing.finish("no workers: start one with `laboro worker`")
    })
}

fn show(args: &ListArgs, name: &str, group: Option<&str>) -> anyhow::Result<Exit> {
    look(&args.place, async |hub| {
        let worker = find(hub, name, group).await?;
        let worker = hub.worker(worker.worker).await?;
        match args.rows.json {
            true => print(serde_json::to_string(&worker)?)?,
            false => print(worker_text(&worker, now_ms()))?,
        }
        Ok(Exit::Done)
    })
}

fn act(said_before: &Workers, args: &WorkerArgs, verb: &WorkerVerb) -> anyhow::Result<Exit> {
    let group = args.group.as_deref().or(said_before.group.as_deref());
    talk(args.hub.or(&said_before.list.place.hub), async |hub| {
        let worker = find(hub, &args.name, group).await?;
        hub.tell_worker(worker.worker, verb).await?;
        let (name, number) = (&worker.name, worker.worker);
        print(format_args!("worker {name} ({number}) {}", verb.told()))?;
        Ok(Exit::Done)
    })
}

/// By its name, which must be one worker's, or by its number.
async fn find(hub: &Hub, name: &str, group: Option<&str>) -> anyhow::Result<Worker> {
    let mut workers = WorkerPages::new(hub, group, None);
    let number: Option<u32> = name.parse().ok();
    let mut named: Option<Worker> = None;
    let mut numbered = None;
    while let Some(worker) = workers.next().await? {
        if Some(worker.worker) == number {
            numbered = Some(worker.clone());
        }
        if worker.name.bytes() != name.as_bytes() {
            continue;
        }
        if let Some(other) = named {
            return Err(usage(format!(
                "{}: there is one in group {} and one in group {}: say --group or the number, {} or {}",
                safe(name),
                other.group,
                worker.group,
                other.worker,
                worker.worker
            )));
        }
        named = Some(worker);
    }
    named.or(numbered).ok_or_else(|| {
        refused(format!("there is no worker {}: `laboro workers` lists them", safe(name)))
    })
}

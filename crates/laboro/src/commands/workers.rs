//! `laboro workers`: who runs tasks, and sending them away.

use crate::args::hub::{ListArgs, WorkerArgs, Workers, WorkersCommand};
use crate::exit::{Exit, refused, usage};
use crate::hub_client::{Hub, WorkerPages, WorkerVerb, talk};
use crate::listing::Listing;
use crate::output::{print, safe};
use crate::view::{WORKER_COLUMNS, now_ms, worker_row};
use laboro_hub::api::Worker;

pub(crate) fn run(args: &Workers) -> anyhow::Result<Exit> {
    match &args.command {
        None => list(&args.list, args.group.as_deref()),
        Some(WorkersCommand::Drain(worker)) => act(worker, WorkerVerb::Drain),
        Some(WorkersCommand::Stop { worker, slots }) => act(worker, WorkerVerb::Stop(*slots)),
        Some(WorkersCommand::Eject { worker, reason }) => {
            act(worker, WorkerVerb::Eject(reason.clone()))
        }
        Some(WorkersCommand::Pardon(worker)) => act(worker, WorkerVerb::Pardon),
        Some(WorkersCommand::Lift(worker)) => act(worker, WorkerVerb::Lift),
    }
}

fn list(args: &ListArgs, group: Option<&str>) -> anyhow::Result<Exit> {
    talk(&args.hub, async |hub| {
        let mut listing = Listing::new(args, WORKER_COLUMNS);
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

fn act(args: &WorkerArgs, verb: WorkerVerb) -> anyhow::Result<Exit> {
    talk(&args.hub, async |hub| {
        let worker = find(hub, args).await?;
        hub.tell_worker(worker.worker, &verb).await?;
        let (name, number) = (&worker.name, worker.worker);
        let now = match &verb {
            WorkerVerb::Drain => "gets nothing more".to_owned(),
            WorkerVerb::Stop(None) => "is stopped, what it ran goes back".to_owned(),
            WorkerVerb::Stop(Some(slots)) => format!("has {slots} slots less"),
            WorkerVerb::Eject(_) => "is ejected".to_owned(),
            WorkerVerb::Pardon => "is pardoned".to_owned(),
            WorkerVerb::Lift => "is back to work".to_owned(),
        };
        print(format_args!("worker {name} ({number}) {now}"))?;
        Ok(Exit::Done)
    })
}

/// By its name, which must be one worker's, or by its number.
async fn find(hub: &Hub, args: &WorkerArgs) -> anyhow::Result<Worker> {
    let mut workers = WorkerPages::new(hub, args.group.as_deref(), None);
    let number: Option<u32> = args.name.parse().ok();
    let mut named: Option<Worker> = None;
    let mut numbered = None;
    while let Some(worker) = workers.next().await? {
        if Some(worker.worker) == number {
            numbered = Some(worker.clone());
        }
        if worker.name.bytes() != args.name.as_bytes() {
            continue;
        }
        if let Some(other) = named {
            return Err(usage(format!(
                "{}: there is one in group {} and one in group {}: say --group or the number, {} or {}",
                safe(&args.name),
                other.group,
                worker.group,
                other.worker,
                worker.worker
            )));
        }
        named = Some(worker);
    }
    named.or(numbered).ok_or_else(|| {
        refused(format!("there is no worker {}: `laboro workers` lists them", safe(&args.name)))
    })
}

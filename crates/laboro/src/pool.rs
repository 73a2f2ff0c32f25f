//! `laboro pool`: workers that the hub starts by a batch system when there is work for them. Here is what is typed and
//! shown; the hub does the rest.

use crate::args::hub::HubArgs;
use crate::exit::{Exit, refused, usage};
use crate::hub_client::{Hub, talk};
use crate::output::table::{Column, Mood, Table};
use crate::output::{counted, duration, print, safe, say};
use crate::view::now_ms;
use clap::{Args, Subcommand, ValueEnum};
use laboro_api::{Pool, PoolKind, PoolSpec};
use laboro_plan::{parse_duration, parse_size};
use std::collections::BTreeMap;
use std::time::Duration;

const HELP: &str = "\
Examples:
  laboro pool add long -j 64 --with memory=256G --time-limit 4h --max 20 -- sbatch -p long
  laboro pool add gpu -j 8 --with gpu=2 --time-limit 1h -- sbatch -p gpu --gres=gpu:2
  laboro pool add night --kind pbs -j 16 --time-limit 12h -- qsub -q night
  laboro pool add lab -j 8 -- ssh node1 node2 node3
  laboro pool                                     what there is, and why it starts nothing more
  laboro pool show long

An allocation is one job of the batch system, with one worker. One is submitted when tasks are ready that have no
worker and would fit it, at most --backlog at a time in the queue and --max in all. Workers without work leave.";

#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct PoolArgs {
    #[command(subcommand)]
    command: Option<PoolCommand>,

    /// Print JSON, an object per pool and line.
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    hub: HubArgs,
}

#[derive(Debug, Subcommand)]
enum PoolCommand {
    /// Make a pool.
    Add(Box<Add>),
    /// List pools, and why they start nothing more.
    List(One0),
    /// All about one pool: its allocations, and what happened lately.
    Show(One),
    /// Start no more allocations; queued and running ones stay.
    Pause(One),
    /// Undo `pause`, or end the wait after a failure.
    Resume(One),
    /// Cancel all allocations of a pool, and remove it.
    Remove(One),
    /// Try the pool's commands without submitting anything.
    Test(One),
}

#[derive(Debug, Args)]
struct One0 {
    /// Print JSON, an object per pool and line.
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    hub: HubArgs,
}

#[derive(Debug, Args)]
struct One {
    /// The pool.
    #[arg(value_name = "NAME")]
    name: String,

    /// Print JSON.
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    hub: HubArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Scheduler {
    /// sbatch, squeue, scancel.
    Slurm,
    /// qsub of PBS Pro, OpenPBS or Torque.
    Pbs,
    /// qsub of Grid Engine.
    Sge,
    /// Machines that are reached by ssh.
    Ssh,
    /// Commands of your own.
    Command,
}

impl From<Scheduler> for PoolKind {
    fn from(kind: Scheduler) -> PoolKind {
        match kind {
            Scheduler::Slurm => PoolKind::Slurm,
            Scheduler::Pbs => PoolKind::Pbs,
            Scheduler::Sge => PoolKind::Sge,
            Scheduler::Ssh => PoolKind::Ssh,
            Scheduler::Command => PoolKind::Command,
        }
    }
}

#[derive(Debug, Args)]
struct Add {
    /// What to call it.
    #[arg(value_name = "NAME")]
    name: String,

    /// Which batch system. Default: what the first word after `--` says.
    #[arg(long, value_enum)]
    kind: Option<Scheduler>,

    /// Slots of each worker: tasks that run at once.
    #[arg(short = 'j', long = "jobs", value_name = "N")]
    slots: u32,

    /// Something that each worker has: gpu=2, licences=10, or memory=64G.
    #[arg(long = "with", value_name = "NAME=VALUE")]
    with: Vec<String>,

    /// A tag of each worker.
    #[arg(long = "with-tag", value_name = "TAG")]
    with_tags: Vec<String>,

    /// The group whose tasks the workers run. Default: `default`.
    #[arg(long, value_name = "GROUP")]
    group: Option<String>,

    /// How long an allocation lasts, such as 4h. Tasks that may take longer do not start one.
    #[arg(long, value_name = "TIME")]
    time_limit: Option<String>,

    /// How many allocations may wait in the queue of the batch system.
    #[arg(long, value_name = "N", default_value_t = 1)]
    backlog: u32,

    /// How many allocations there may be in all.
    #[arg(long, value_name = "N", default_value_t = 20)]
    max: u32,

    /// A worker without work leaves after TIME.
    #[arg(long, value_name = "TIME", default_value = "5m")]
    idle_timeout: String,

    /// A worker stops TIME before the end of its allocation, and gives its tasks back.
    #[arg(long, value_name = "TIME", default_value = "1m")]
    grace: String,

    /// Run the batch system's commands elsewhere: ssh:LOGIN.
    #[arg(long, value_name = "ssh:HOST")]
    via: Option<String>,

    /// With --kind command: a shell line that prints a line for each allocation: `ID STATE [NAME]`.
    #[arg(long, value_name = "LINE")]
    list: Option<String>,

    /// With --kind command: a shell line that cancels the allocations whose ids are its arguments.
    #[arg(long, value_name = "LINE")]
    cancel: Option<String>,

    /// Where laboro is on the machines of the workers. Default: where the hub's own program is.
    #[arg(long, value_name = "PATH")]
    laboro: Option<String>,

    /// Print JSON.
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    hub: HubArgs,

    /// The command that submits, with options of your own: sbatch -p long; qsub -q night; ssh HOST...
    #[arg(last = true, value_name = "COMMAND")]
    words: Vec<String>,
}

pub(crate) fn run(args: &PoolArgs) -> anyhow::Result<Exit> {
    let hub = |own: &HubArgs| own.or(&args.hub).clone();
    match &args.command {
        None => list(&args.hub, args.json),
        Some(PoolCommand::List(of)) => list(&hub(&of.hub), of.json || args.json),
        Some(PoolCommand::Add(add)) => make(add, &hub(&add.hub)),
        Some(PoolCommand::Show(one)) => talk(&hub(&one.hub), async |hub| {
            let pool = hub.get::<Pool>(&path(&one.name, "")).await?;
            if one.json {
                print(serde_json::to_string(&pool)?)?;
            } else {
                show(&pool)?;
            }
            Ok(Exit::Done)
        }),
        Some(PoolCommand::Pause(one)) => change(one, &hub(&one.hub), "pause"),
        Some(PoolCommand::Resume(one)) => change(one, &hub(&one.hub), "resume"),
        Some(PoolCommand::Remove(one)) => talk(&hub(&one.hub), async |hub| {
            let pool: Pool = hub.delete(&path(&one.name, "")).await?;
            told(&pool, one.json)
        }),
        Some(PoolCommand::Test(one)) => {
            talk(&hub(&one.hub), async |hub| match test(hub, &one.name, one.json).await? {
                true => Ok(Exit::Done),
                false => {
                    Err(refused(format!("pool {}: its commands do not work", safe(&one.name))))
                }
            })
        }
    }
}

fn path(name: &str, verb: &str) -> String {
    let name = laboro_api::client::segment(name);
    if verb.is_empty() { format!("pools/{name}") } else { format!("pools/{name}/{verb}") }
}

fn change(one: &One, hub: &HubArgs, verb: &str) -> anyhow::Result<Exit> {
    talk(hub, async |hub| {
        let pool: Pool = hub.post(&path(&one.name, verb), &serde_json::json!({})).await?;
        told(&pool, one.json)
    })
}

fn told(pool: &Pool, is_json: bool) -> anyhow::Result<Exit> {
    match is_json {
        true => print(serde_json::to_string(pool)?)?,
        false => print(format_args!("pool {}: {}", safe(&pool.spec.name), safe(&pool.reason)))?,
    }
    Ok(Exit::Done)
}

fn make(add: &Add, hub: &HubArgs) -> anyhow::Result<Exit> {
    let spec = spec(add)?;
    talk(hub, async |hub| {
        let pool: Pool = hub.post("pools", &spec).await?;
        if add.json {
            return told(&pool, true);
        }
        print(format_args!("pool {} was made", safe(&pool.spec.name)))?;
        // It is there in any case: a batch system may be down for a while.
        if !test(hub, &pool.spec.name, false).await? {
            say("the pool stays and tries again; `laboro pool remove` removes it");
        }
        Ok(Exit::Done)
    })
}

async fn test(hub: &Hub, name: &str, is_json: bool) -> anyhow::Result<bool> {
    let tested: laboro_api::PoolTest =
        hub.post(&path(name, "test"), &serde_json::json!({})).await?;
    if is_json {
        print(serde_json::to_string(&tested)?)?;
        return Ok(tested.ok);
    }
    for step in &tested.steps {
        let how = if step.ok { "works" } else { "FAILS" };
        let text = step.text.lines().map(safe).collect::<Vec<_>>().join("\n    ");
        let text = if text.is_empty() { String::new() } else { format!("\n    {text}") };
        print(format_args!("{how}: {}{text}", safe(&step.command.replace('\n', " "))))?;
    }
    Ok(tested.ok)
}

fn spec(add: &Add) -> anyhow::Result<PoolSpec> {
    let (kind, arguments) = kind(add)?;
    let time = |option: &str, text: &str| -> anyhow::Result<u64> {
        let time = parse_duration(text).map_err(|error| usage(format!("{option}: {error}")))?;
        Ok(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
    };
    let (mut memory_bytes, mut resources) = (None, BTreeMap::new());
    for text in &add.with {
        let wrong = |why: &str| usage(format!("--with {text}: {why}"));
        let (name, value) =
            text.split_once('=').ok_or_else(|| wrong("write gpu=2 or memory=64G"))?;
        if name == "memory" {
            memory_bytes = Some(parse_size(value).map_err(|error| wrong(&error.to_string()))?);
            continue;
        }
        let count = value
            .parse::<u64>()
            .map_err(|_| wrong("a pool needs only the number, such as gpu=2"))?;
        resources.insert(name.to_owned(), count);
    }
    let spec = PoolSpec {
        name: add.name.clone(),
        group: add.group.clone().unwrap_or_else(|| laboro_api::DEFAULT_GROUP.to_owned()),
        kind,
        slots: add.slots,
        memory_bytes,
        resources,
        tags: add.with_tags.clone(),
        time_limit_ms: add
            .time_limit
            .as_deref()
            .map(|text| time("--time-limit", text))
            .transpose()?,
        backlog: add.backlog,
        max_allocations: add.max,
        idle_ms: time("--idle-timeout", &add.idle_timeout)?,
        grace_ms: time("--grace", &add.grace)?,
        via: add.via.clone(),
        arguments,
        list_command: add.list.clone(),
        cancel_command: add.cancel.clone(),
        laboro: add.laboro.clone(),
    };
    laboro_pool::check(&spec).map_err(usage)?;
    Ok(spec)
}

/// Which batch system is meant, and what is added to its command.
fn kind(add: &Add) -> anyhow::Result<(PoolKind, Vec<String>)> {
    let first = add.words.first().map(String::as_str);
    let known = match first {
        Some("sbatch") => Some(PoolKind::Slurm),
        Some("ssh") => Some(PoolKind::Ssh),
        _ => None,
    };
    match (add.kind.map(PoolKind::from), known) {
        (Some(PoolKind::Command), _) => Ok((PoolKind::Command, add.words.clone())),
        (Some(kind), Some(other)) if kind != other => Err(usage(format!(
            "--kind {}: `{}` is of another kind; leave one of them out",
            kind.word(),
            first.unwrap_or_default()
        ))),
        // `qsub` is the name of several.
        (Some(kind @ (PoolKind::Pbs | PoolKind::Sge)), _) if first == Some("qsub") => {
            Ok((kind, add.words[1..].to_vec()))
        }
        (Some(kind), None) => Ok((kind, add.words.clone())),
        (_, Some(kind)) => Ok((kind, add.words[1..].to_vec())),
        (None, None) if first == Some("qsub") => {
            Err(usage("qsub: say --kind pbs or --kind sge; both have a command of this name"))
        }
        (None, None) => Err(usage(
            "say how workers are started: -- sbatch OPTIONS, --kind pbs -- qsub OPTIONS, -- ssh HOST..., or \
             --kind command with --list and --cancel",
        )),
    }
}

const COLUMNS: &[Column] = &[
    Column::Left("pool"),
    Column::Left("kind"),
    Column::Left("group"),
    Column::Left("state"),
    Column::Right("queued"),
    Column::Right("running"),
    Column::Right("max"),
    Column::Left("why it starts nothing more"),
];

fn list(hub: &HubArgs, is_json: bool) -> anyhow::Result<Exit> {
    talk(hub, async |hub| {
        let pools: laboro_api::Pools = hub.get("pools").await?;
        if is_json {
            for pool in &pools.pools {
                print(serde_json::to_string(pool)?)?;
            }
            return Ok(Exit::Done);
        }
        if pools.pools.is_empty() {
            say("no pools: `laboro pool add` makes one");
            return Ok(Exit::Done);
        }
        let mut table = Table::new(COLUMNS);
        for pool in &pools.pools {
            let mood = match pool.state.as_str() {
                "active" if pool.failures > 0 => Mood::Bad,
                "active" if pool.running > 0 => Mood::Busy,
                "active" => Mood::Plain,
                _ => Mood::Stuck,
            };
            let plain = |text: String| (text, Mood::Plain);
            table.row([
                plain(pool.spec.name.clone()),
                plain(pool.spec.kind.word().to_owned()),
                plain(pool.spec.group.clone()),
                (pool.state.clone(), mood),
                plain(pool.queued.to_string()),
                plain(pool.running.to_string()),
                plain(pool.spec.max_allocations.to_string()),
                plain(pool.reason.clone()),
            ]);
        }
        print(table.text())?;
        Ok(Exit::Done)
    })
}

fn show(pool: &Pool) -> anyhow::Result<()> {
    let spec = &pool.spec;
    let ago = |at_ms: u64| duration(Duration::from_millis(now_ms().saturating_sub(at_ms)));
    print(format_args!("pool       {} ({}, {})", safe(&spec.name), spec.kind.word(), pool.state))?;
    print(format_args!("now        {}", safe(&pool.reason)))?;
    let mut worker = counted(spec.slots, "slot");
    if let Some(bytes) = spec.memory_bytes {
        worker.push_str(&format!(", {}", crate::output::bytes(bytes)));
    }
    for (name, count) in &spec.resources {
        worker.push_str(&format!(", {count} {}", safe(name)));
    }
    print(format_args!("worker     {worker}, group {}", safe(&spec.group)))?;
    if !spec.arguments.is_empty() {
        print(format_args!("arguments  {}", safe(&spec.arguments.join(" "))))?;
    }
    if let Some(via) = &spec.via {
        print(format_args!("via        {}", safe(via)))?;
    }
    print(format_args!(
        "counts     {} queued, {} running, at most {}; {} submitted, {} failed",
        pool.queued, pool.running, spec.max_allocations, pool.submitted_total, pool.failures_total
    ))?;
    for one in &pool.allocations {
        let id = one.id.as_deref().unwrap_or("?");
        let note = one.note.as_ref().map_or(String::new(), |note| format!(" ({})", safe(note)));
        print(format_args!(
            "  {:<12} {:<10} for {}, worker {}{note}",
            safe(id),
            one.state,
            ago(one.since_ms),
            safe(&one.worker)
        ))?;
    }
    for event in &pool.events {
        print(format_args!("  {} ago: {}", ago(event.at_ms), safe(&event.text)))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Typed {
        #[command(flatten)]
        pool: PoolArgs,
    }

    fn typed(line: &str) -> Result<PoolSpec, String> {
        let words = std::iter::once("pool").chain(line.split_whitespace());
        let typed = Typed::try_parse_from(words).map_err(|error| error.to_string())?;
        match typed.pool.command {
            Some(PoolCommand::Add(add)) => spec(&add).map_err(|error| format!("{error:#}")),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_first_word_says_which_batch_system_is_meant() {
        let long = typed(
            "add long -j 64 --with memory=256G --with gpu=2 --time-limit 4h -- sbatch -p long",
        )
        .unwrap();
        assert_eq!(
            (long.kind, long.slots, long.time_limit_ms),
            (PoolKind::Slurm, 64, Some(14_400_000))
        );
        assert_eq!(
            (long.memory_bytes, long.arguments.join(" ")),
            (Some(256 << 30), "-p long".into())
        );
        assert_eq!(long.resources["gpu"], 2);
        let night = typed("add night --kind pbs -j 16 -- qsub -q night").unwrap();
        assert_eq!((night.kind, night.arguments.join(" ")), (PoolKind::Pbs, "-q night".into()));
        assert_eq!(typed("add lab -j 8 -- ssh n1 n2").unwrap().arguments, ["n1", "n2"]);
        assert_eq!(typed("add s -j 8 --kind slurm").unwrap().kind, PoolKind::Slurm);
        let own = typed("add x -j 1 --kind command --list l --cancel c -- start it").unwrap();
        assert_eq!(own.arguments, ["start", "it"]);
    }

    #[test]
    fn what_could_mean_two_things_is_refused() {
        for (line, words) in [
            ("add x -j 1 -- qsub -q a", "--kind pbs or --kind sge"),
            ("add x -j 1", "say how workers are started"),
            ("add x -j 1 --kind pbs -- sbatch", "of another kind"),
            ("add x -j 1 --kind command -- start", "list and cancel"),
            ("add x -j 0 -- sbatch", "at least one slot"),
            ("add x -j 1 --with gpu=4,5 -- sbatch", "only the number"),
            ("add x -j 1 --via login1 -- sbatch", "ssh:HOST"),
            ("add x -- sbatch", "--jobs"),
        ] {
            let told = typed(line).unwrap_err();
            assert!(told.contains(words), "{line}: {told}");
        }
    }
}

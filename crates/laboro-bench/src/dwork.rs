//! The load of a dwork hub: producers that create, workers that steal and complete, each on a connection of
//! its own and in lock step, as the original's clients are. What a task does takes no time.

mod client;
mod graph;

use super::figures::{self, Figures, heading};
use super::hub::Hub;
use crate::exit::usage;
use crate::program::Program;
use anyhow::bail;
use clap::Args;
use client::{Act, Work, Worker};
use laboro_clients::dwork::{Address, DworkLink};
use laboro_dialects::zmtp::Mechanism;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

#[derive(Debug, Args)]
pub(crate) struct DworkBench {
    /// Where a hub listens that has nothing else to do. Without it one is started.
    #[arg(short = 's', long, value_name = "ADDRESS")]
    server: Option<String>,

    /// With -s: the process of the hub, to count its processor time.
    #[arg(long, value_name = "PID", requires = "server")]
    hub_pid: Option<u32>,

    /// With -s: what the hub promises, as it is to be printed.
    #[arg(long, value_name = "WORD", default_value = "sync")]
    durability: String,

    /// Tasks of a case that sends them one by one; five times as many where they go in hundreds.
    #[arg(long, value_name = "N", default_value_t = 20_000)]
    tasks: usize,

    /// Tasks of the case that counts their memory. 0 leaves it out.
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    memory_tasks: usize,

    /// Only graphs that grow edge by edge; latencies are those of another connection that asks for the status.
    #[arg(long)]
    graphs: bool,

    /// One JSON object a case.
    #[arg(long)]
    json: bool,
}

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// How many tasks stand side by side in the layered graph; each comes after one of the layer before.
const LAYER: usize = 1000;

pub(super) fn run(args: &DworkBench, program: &Program) -> anyhow::Result<()> {
    if args.tasks == 0 {
        return Err(usage("--tasks 0: there is nothing to measure"));
    }
    let hub = match &args.server {
        Some(address) => Hub::at(address.clone(), args.hub_pid),
        None => Hub::start(&program.path()?, "dwork", &args.durability)?,
    };
    let address: Address = hub.address.parse().map_err(usage)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let bench = DworkRun { args, hub, address };
        bench.check_idle().await?;
        if !args.json {
            heading()?;
        }
        match args.graphs {
            true => graph::all(&bench, args.tasks).await,
            false => bench.all().await,
        }
    })?;
    Ok(())
}

struct DworkRun<'a> {
    args: &'a DworkBench,
    hub: Hub,
    address: Address,
}

impl DworkRun<'_> {
    /// Others' tasks would be stolen and never done.
    async fn check_idle(&self) -> anyhow::Result<()> {
        let mut link = self.connect().await?;
        let active = client::active(&mut link).await?;
        if active > 0 {
            bail!(
                "the hub at {} has {active} tasks of its own: measure one that is idle",
                self.address
            );
        }
        Ok(())
    }

    async fn connect(&self) -> anyhow::Result<DworkLink> {
        Ok(DworkLink::connect(&self.address, Mechanism::Null, PATIENCE).await?)
    }

    async fn all(&self) -> anyhow::Result<()> {
        self.floor()?;
        let (few, many) = (self.args.tasks, self.args.tasks * 5);
        for connections in [1, 2, 4, 8] {
            for (tasks, batch) in [(few, 1), (many, 100)] {
                let name = format!("{batch} a request, {connections} connections");
                let work =
                    Work::new(format!("b{}-{batch}-{connections}-", std::process::id()), tasks);
                let create = Act::Create { batch, layer: None };
                self.measure(&format!("create {name}"), &work, create, connections).await?;
                let steal = Act::Steal { batch };
                self.measure(&format!("steal+complete {name}"), &work, steal, connections).await?;
            }
        }
        let work = Work::new(format!("b{}-layers-", std::process::id()), many);
        // One connection: a task must be known before another comes after it.
        let create = Act::Create { batch: 100, layer: Some(LAYER) };
        self.measure("create layers, 100 a request", &work, create, 1).await?;
        let steal = Act::Steal { batch: 100 };
        self.measure("steal+complete layers, 100 a request", &work, steal, 4).await?;
        self.memory().await
    }

    /// What a synced answer costs at least where the hub keeps its journal: a small record, written and synced.
    fn floor(&self) -> anyhow::Result<()> {
        const WRITES: usize = 500;
        let Some(dir) = self.hub.dir().filter(|_| self.args.durability == "sync") else {
            return Ok(());
        };
        let file = std::fs::File::create(dir.join("floor"))?;
        // The journal writes into segments that have their size already.
        file.set_len((WRITES * 128) as u64)?;
        file.sync_all()?;
        let began = Instant::now();
        let mut latencies = Vec::with_capacity(WRITES);
        for at in 0..WRITES {
            let write = Instant::now();
            file.write_all_at(&[at as u8; 128], (at * 128) as u64)?;
            file.sync_data()?;
            latencies.push(write.elapsed());
        }
        let case = "floor: 128 bytes written and synced".to_owned();
        let mut figures =
            Figures { case, tasks: WRITES, took: began.elapsed(), latencies, hub_cpu: None };
        Ok(figures.show(&self.args.durability, self.args.json)?)
    }

    /// What a task takes that is ready, with a name of 16 bytes; where the hub's process is known.
    async fn memory(&self) -> anyhow::Result<()> {
        let tasks = self.args.memory_tasks;
        let Some(before) = self.hub.memory().filter(|_| tasks > 0) else { return Ok(()) };
        let work = Work::of_sixteen(tasks);
        let act = Act::Create { batch: 1000, layer: None };
        Worker::new(self.connect().await?, 0, 1, work.clone()).act(act).await?;
        let after = self.hub.memory().unwrap_or(before);
        let bytes = after.saturating_sub(before) as f64 / tasks as f64;
        // Whoever measures next wants an idle hub.
        let act = Act::Steal { batch: 10_000 };
        Worker::new(self.connect().await?, 0, 1, work).act(act).await?;
        Ok(figures::show_memory("memory of a ready task", tasks, bytes, self.args.json)?)
    }

    /// All workers at once; the case ends with the last task, not with those who wait for more.
    async fn measure(
        &self,
        case: &str,
        work: &Arc<Work>,
        act: Act,
        connections: usize,
    ) -> anyhow::Result<()> {
        let mut workers = Vec::new();
        for number in 0..connections {
            workers.push(Worker::new(self.connect().await?, number, connections, work.clone()));
        }
        let cpu = self.hub.cpu();
        let began = Instant::now();
        let mut acting = JoinSet::new();
        for worker in workers {
            acting.spawn(worker.act(act));
        }
        let (mut latencies, mut ended) = (Vec::new(), began);
        while let Some(worker) = acting.join_next().await {
            let worker = worker??;
            ended = ended.max(worker.last_at);
            latencies.extend(worker.latencies);
        }
        let hub_cpu = self.hub.cpu().zip(cpu).map(|(after, before)| after.saturating_sub(before));
        let (case, tasks, took) = (case.to_owned(), work.tasks, ended - began);
        let mut figures = Figures { case, tasks, took, latencies, hub_cpu };
        Ok(figures.show(&self.args.durability, self.args.json)?)
    }
}

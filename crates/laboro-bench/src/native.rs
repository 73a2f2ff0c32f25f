//! A whole hub and one worker process over TLS, with tasks that the worker answers without a process: what is
//! measured is everything but the work. Each task has its own lease, events in the journal and exit code.

mod memory;

use super::figures::{Figures, heading};
use super::hub::Hub;
use crate::program::Program;
use anyhow::{Context, ensure};
use clap::Args;
use laboro_api::access::Access;
use laboro_api::client::{Client, Target};
use laboro_api::{Doors, SubmitJob, Submitted, Waited};
use serde_json::{Value, json};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

#[derive(Debug, Args)]
pub(crate) struct NativeBench {
    /// Tasks of the array.
    #[arg(short = 'n', long, default_value_t = 1_000_000)]
    tasks: u32,

    /// Slots of the worker.
    #[arg(short = 'j', long, default_value_t = 8)]
    slots: u32,

    /// When something counts as done: sync or os.
    #[arg(long, default_value = "os")]
    durability: String,

    /// Only how many tasks a second, not what waiting ones weigh.
    #[arg(long)]
    rates: bool,

    /// One JSON object a case.
    #[arg(long)]
    json: bool,
}

/// Single tasks, and links of the chain.
const SINGLES: usize = 500;
const LINKS: usize = 1000;
/// Longer than any case takes on a machine that is worth measuring.
const PATIENCE: Duration = Duration::from_secs(50);

pub(super) fn run(args: &NativeBench, program: &Program) -> anyhow::Result<()> {
    let program = program.path()?;
    if !args.json {
        heading()?;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        rates(&program, args).await?;
        if !args.rates {
            memory::run(&program, args).await?;
        }
        Ok(())
    })
}

async fn rates(program: &Path, args: &NativeBench) -> anyhow::Result<()> {
    let hub = Hub::start_native(program, &args.durability)?;
    let there = client(&hub)?;
    let _worker = WorkerProcess::start(program, &hub, args.slots)?;
    let bench = NativeRun { hub: &hub, there: &there, args };
    bench.warm_up().await?;
    bench.array().await?;
    bench.named().await?;
    bench.singles().await?;
    bench.chain().await
}

/// As commands on the hub's machine speak to it.
fn client(hub: &Hub) -> anyhow::Result<Client> {
    let dir = hub.dir().context("the hub is our own")?;
    let access = Access::read(&Access::path_in(dir))?;
    Ok(Client::new(Target::of_access(&access)?))
}

struct NativeRun<'a> {
    hub: &'a Hub,
    there: &'a Client,
    args: &'a NativeBench,
}

impl NativeRun<'_> {
    /// The worker is there and has said hello.
    async fn warm_up(&self) -> anyhow::Result<()> {
        self.finish(array("warm", 1000)).await
    }

    async fn array(&self) -> anyhow::Result<()> {
        let n = self.args.tasks as usize;
        self.measure("array, one job", n, async || {
            self.finish(array("array", n)).await?;
            Ok(Vec::new())
        })
        .await
    }

    async fn named(&self) -> anyhow::Result<()> {
        let n = (self.args.tasks as usize / 10).clamp(1, 50_000);
        let tasks = (0..n).map(|i| json!({"name": format!("named-{i}"), "command": ["true"]}));
        let job = json!({"name": "named", "tasks": tasks.collect::<Vec<_>>()});
        self.measure("tasks with names of their own", n, async || {
            self.finish(job).await?;
            Ok(Vec::new())
        })
        .await
    }

    /// From before the submit to after the answer that it is done.
    async fn singles(&self) -> anyhow::Result<()> {
        self.measure("one task at a time", SINGLES, async || {
            let mut latencies = Vec::with_capacity(SINGLES);
            for _ in 0..SINGLES {
                let began = Instant::now();
                self.finish(json!({"tasks": [{"command": ["true"]}]})).await?;
                latencies.push(began.elapsed());
            }
            Ok(latencies)
        })
        .await
    }

    async fn chain(&self) -> anyhow::Result<()> {
        let link = |i: usize| match i {
            0 => json!({"name": "link-0", "command": ["true"]}),
            i => {
                json!({"name": format!("link-{i}"), "command": ["true"], "after": [format!("link-{}", i - 1)]})
            }
        };
        let job = json!({"name": "chain", "tasks": (0..LINKS).map(link).collect::<Vec<_>>()});
        self.measure("a chain, each after the last", LINKS, async || {
            self.finish(job).await?;
            Ok(Vec::new())
        })
        .await
    }

    async fn measure(
        &self,
        case: &str,
        tasks: usize,
        work: impl AsyncFnOnce() -> anyhow::Result<Vec<Duration>>,
    ) -> anyhow::Result<()> {
        let said = self.said().await?;
        let (cpu, began) = (self.hub.cpu(), Instant::now());
        let latencies = work().await?;
        let took = began.elapsed();
        let messages = self.said().await? - said;
        let used = cpu.zip(self.hub.cpu()).map(|(before, after)| after.saturating_sub(before));
        let batch = tasks as f64 / messages.max(1) as f64;
        let case = format!("{case}, {} slots, {batch:.1} a message", self.args.slots);
        let mut figures = Figures { case, tasks, took, latencies, hub_cpu: used };
        Ok(figures.show(&self.args.durability, self.args.json)?)
    }

    /// Messages of the worker so far. Nearly all of them say what has ended, so that they tell how many
    /// tasks travel together.
    async fn said(&self) -> anyhow::Result<u64> {
        let Doors { doors, .. } = self.there.get("doors").await?;
        Ok(doors.iter().find(|door| door.dialect == "native").map_or(0, |door| door.messages_in))
    }

    /// Submits and waits until all of it is done.
    async fn finish(&self, job: Value) -> anyhow::Result<()> {
        let job = submit(self.there, job).await?;
        let path = format!("wait?until=idle&jobs={job}&timeout_ms={}", PATIENCE.as_millis());
        let waited: Waited = self.there.get_within(&path, PATIENCE).await?;
        ensure!(waited.finished, "the tasks are not done after {PATIENCE:?}");
        Ok(())
    }
}

async fn submit(there: &Client, job: Value) -> anyhow::Result<u32> {
    let job: SubmitJob = serde_json::from_value(job).context("a job of this program")?;
    Ok(there.post::<_, Submitted>("jobs", &job).await?.job)
}

fn array(name: &str, count: usize) -> Value {
    json!({"name": name, "tasks": [{"name": name, "command": ["true"], "count": count}]})
}

/// Dropped, it is ended.
struct WorkerProcess(Child);

impl WorkerProcess {
    fn start(program: &Path, hub: &Hub, slots: u32) -> anyhow::Result<WorkerProcess> {
        let child = Command::new(program)
            .args(["worker", "--no-op", "-j", &slots.to_string()])
            .arg(hub.dir().context("the hub is our own")?)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("the worker cannot be started")?;
        Ok(WorkerProcess(child))
    }
}

impl Drop for WorkerProcess {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

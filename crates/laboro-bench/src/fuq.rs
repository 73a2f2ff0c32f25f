//! The load of a fuq foreman: one node on a websocket over TLS, in lock step as the original's is: one task a JOB,
//! one UPDATE without an answer at a time. What a task does takes no time.

mod node;

use super::figures::{Figures, heading};
use super::hub::Hub;
use crate::exit::usage;
use crate::program::Program;
use anyhow::{Context, bail};
use clap::Args;
use hyper::StatusCode;
use laboro_clients::fuq::{Foreman, NodeInfo, Wire};
use laboro_net::Trust;
use laboro_net::secret_file::read_password;
use node::Node;
use serde_json::{Value, json};
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct FuqBench {
    /// Where a foreman listens that has nothing else to do. Without it a hub is started.
    #[arg(short = 's', long, value_name = "ADDRESS", requires = "auth_file")]
    server: Option<String>,

    /// With -s: the file with its password.
    #[arg(long, value_name = "FILE", requires = "server")]
    auth_file: Option<PathBuf>,

    /// With -s: trust the certificates in this file. Without it whoever answers is trusted.
    #[arg(long, value_name = "FILE", requires = "server")]
    ca: Option<PathBuf>,

    /// With -s: the process of the foreman, to count its processor time.
    #[arg(long, value_name = "PID", requires = "server")]
    hub_pid: Option<u32>,

    /// What the foreman promises: of one that is started sync or os, else as it is to be printed.
    #[arg(long, value_name = "WORD", default_value = "os")]
    durability: String,

    /// How many tasks a job has. May be given more than once: a case each.
    #[arg(long = "tasks", value_name = "N", default_values_t = [1000, 100_000, 1_000_000])]
    tasks: Vec<u32>,

    /// How many tasks a case has at least; small jobs are repeated.
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    at_least: u32,

    /// How many slots the node has.
    #[arg(long, value_name = "N", default_value_t = 8)]
    slots: u32,

    /// One JSON object a case.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &FuqBench, program: &Program) -> anyhow::Result<()> {
    if args.tasks.contains(&0) || args.slots == 0 {
        return Err(usage("--tasks 0 or --slots 0: there is nothing to measure"));
    }
    let (hub, password, trusted) = match (&args.server, &args.auth_file) {
        (Some(address), Some(auth_file)) => {
            let trusted = args.ca.clone().map_or(Trust::Anyone, Trust::File);
            (Hub::at(address.clone(), args.hub_pid), read_password(auth_file)?, trusted)
        }
        _ => {
            let hub = Hub::start(&program.path()?, "fuq", &args.durability)?;
            let dir = hub.dir().context("it was started here")?;
            let password = read_password(&dir.join("fuq.auth"))?;
            let trusted = Trust::File(dir.join("tls.pem"));
            (hub, password, trusted)
        }
    };
    let node = NodeInfo {
        host: "bench".into(),
        pid: std::process::id(),
        slots: args.slots,
        tags: Vec::new(),
    };
    let foreman = Foreman::new(hub.address.clone(), &trusted, None, password.clone(), node)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let client = foreman.dial().await?;
        let mut bench = FuqRun { args, hub, foreman, password, client };
        if !args.json {
            heading()?;
        }
        bench.all().await
    })?;
    Ok(())
}

struct FuqRun<'a> {
    args: &'a FuqBench,
    hub: Hub,
    foreman: Foreman,
    password: String,
    client: Wire,
}

impl FuqRun<'_> {
    async fn all(&mut self) -> anyhow::Result<()> {
        let unfinished = self.ask("client/job/list", json!({ "name": "", "status": "" })).await?;
        if unfinished.as_array().is_some_and(|jobs| !jobs.is_empty()) {
            bail!("the foreman at {} has jobs of its own: measure an idle one", self.hub.address);
        }
        let mut node = Node::connect(&self.foreman, self.args.slots).await?;
        for &tasks in &self.args.tasks {
            let jobs = self.args.at_least.div_ceil(tasks).max(1);
            let cpu = self.hub.cpu();
            let mut figures = Figures {
                case: format!("websocket, jobs of {tasks}"),
                tasks: (tasks * jobs) as usize,
                took: Default::default(),
                latencies: Vec::new(),
                hub_cpu: None,
            };
            for _ in 0..jobs {
                self.queue(tasks).await?;
                figures.took += node.work(tasks, &mut figures.latencies).await?;
            }
            let used = self.hub.cpu().zip(cpu);
            figures.hub_cpu = used.map(|(after, before)| after.saturating_sub(before));
            figures.show(&self.args.durability, self.args.json)?;
        }
        Ok(())
    }

    async fn queue(&mut self, tasks: u32) -> anyhow::Result<()> {
        let job = json!({
            "name": "bench", "num_tasks": tasks, "working_dir": "/", "logging_dir": "/",
            "command": "/bin/true", "status": "waiting",
        });
        self.ask("client/job/new", job).await.map(drop)
    }

    async fn ask(&mut self, path: &str, msg: Value) -> anyhow::Result<Value> {
        let auth = json!({ "password": self.password, "client": "laboro-bench" });
        let said = json!({ "auth": auth, "msg": msg });
        match self.foreman.post(&mut self.client, path, &said, None).await? {
            (StatusCode::OK, answer) => Ok(answer),
            (status, _) => bail!("the foreman answers {path} with {status}"),
        }
    }
}

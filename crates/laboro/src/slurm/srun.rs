//! `srun`: inside a job, runs a command as a step of it, here; outside of one, as a job whose output is shown.

use super::options::{TypedOptions, WordsBegin, parse};
use super::pattern::PatternFacts;
use super::sbatch::{Batch, OPTIONS};
use super::step::{open, variable};
use super::{Fault, host};
use crate::hub_client::{Hub, Printed};
use crate::output::{data, say};
use anyhow::Context;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};

pub(super) fn run(hub: &crate::args::hub::HubArgs, args: Vec<String>) -> Result<u8, Fault> {
    let typed = parse(&OPTIONS, WordsBegin::First, args)?;
    if typed.words.is_empty() {
        return Err(Fault::from("No command given to execute."));
    }
    if !matches!(typed.value("nodes"), None | Some("1" | "1-1")) {
        return Err(Fault::from(
            "--nodes cannot be honoured: srun starts its tasks on one worker; sbatch --nodes takes several",
        ));
    }
    match variable("SLURM_JOB_ID") {
        Some(job) => step(&typed, &job),
        None => alone(hub, typed),
    }
}

/// A step of the job that this runs in.
fn step(typed: &TypedOptions, job: &str) -> Result<u8, Fault> {
    for option in ["array", "dependency", "wrap", "hold"] {
        if typed.has(option) {
            return Err(Fault::from(format!("--{option} is an option of sbatch")));
        }
    }
    let number = |option: &str, name: &str| -> Result<u32, Fault> {
        let text = typed.value(option).map(str::to_owned).or_else(|| variable(name));
        let Some(text) = text else { return Ok(1) };
        text.parse().map_err(|_| Fault::from(format!("invalid number for --{option}: {text}")))
    };
    let tasks = match typed.value("ntasks-per-node") {
        Some(_) if !typed.has("ntasks") => number("ntasks-per-node", "SLURM_NTASKS")?,
        _ => number("ntasks", "SLURM_NTASKS")?,
    };
    let nodes = variable("SLURM_JOB_NUM_NODES").filter(|nodes| nodes != "1");
    if let Some(nodes) = nodes.filter(|_| !typed.has("nodes")) {
        return Err(Fault::Words(format!(
            "this job has {nodes} nodes, and a step runs on the first of them only: say srun -N 1 for that, and start \
             the others by ssh or mpirun (their hosts are in $LABORO_NODE_FILE)"
        )));
    }
    let dir = typed.value("chdir").map(str::to_owned);
    let appends = matches!(typed.value("open-mode"), Some("a" | "append"));
    let mut children: Vec<Child> = Vec::new();
    let mut shared = StreamFiles::default();
    for task in 0..tasks {
        let facts = PatternFacts {
            job: job.to_owned(),
            array_job: variable("SLURM_ARRAY_JOB_ID").unwrap_or_else(|| job.to_owned()),
            index: variable("SLURM_ARRAY_TASK_ID").and_then(|index| index.parse().ok()),
            name: variable("SLURM_JOB_NAME").unwrap_or_default(),
            user: variable("SLURM_JOB_USER").unwrap_or_default(),
            host: host(),
            step: "0".into(),
            task,
        };
        let mut command = Command::new(&typed.words[0]);
        command.args(&typed.words[1..]);
        command.env("SLURM_PROCID", task.to_string()).env("SLURM_LOCALID", task.to_string());
        command.env("SLURM_NTASKS", tasks.to_string()).env("SLURM_NPROCS", tasks.to_string());
        command
            .env("SLURM_STEP_ID", "0")
            .env("SLURM_STEPID", "0")
            .env("SLURM_STEP_NUM_TASKS", tasks.to_string());
        command.env("SLURM_STEP_NODELIST", host()).env("SLURM_STEP_NUM_NODES", "1");
        if let Some(cpus) = typed.value("cpus-per-task") {
            command.env("SLURM_CPUS_PER_TASK", cpus);
        }
        if let Some(dir) = &dir {
            command.current_dir(dir);
        }
        let output =
            typed.value("output").filter(|path| *path != "none").map(|path| facts.fill(path));
        let error =
            typed.value("error").filter(|path| *path != "none").map(|path| facts.fill(path));
        if let Some(output) = &output {
            command.stdout(shared.open(output, appends)?);
        }
        match (&error, &output) {
            (Some(error), _) => {
                command.stderr(shared.open(error, appends)?);
            }
            // Without a file of its own it goes where the output goes.
            (None, Some(output)) => {
                command.stderr(shared.open(output, appends)?);
            }
            (None, None) => {}
        }
        if task > 0 {
            command.stdin(Stdio::null());
        }
        let child = command.spawn();
        children.push(child.map_err(|error| Fault::from(format!("{}: {error}", typed.words[0])))?);
    }
    let mut worst = 0;
    for (task, mut child) in children.into_iter().enumerate() {
        let status = child.wait()?;
        let code = status.code().or(status.signal().map(|signal| 128 + signal)).unwrap_or(1);
        let code = u8::try_from(code).unwrap_or(1);
        if code > 0 {
            say(format_args!("srun: error: {}: task {task}: Exited with exit code {code}", host()));
        }
        worst = worst.max(code);
    }
    Ok(worst)
}

/// Tasks that write to one file share it.
#[derive(Default)]
struct StreamFiles(Vec<(String, std::fs::File)>);

impl StreamFiles {
    fn open(&mut self, path: &str, appends: bool) -> anyhow::Result<std::fs::File> {
        if let Some((_, file)) = self.0.iter().find(|(known, _)| known == path) {
            return Ok(file.try_clone()?);
        }
        let file = open(path, appends)?;
        let clone = file.try_clone()?;
        self.0.push((path.to_owned(), file));
        Ok(clone)
    }
}

/// A job of its own, waited for.
fn alone(hub: &crate::args::hub::HubArgs, typed: TypedOptions) -> Result<u8, Fault> {
    let has_files = typed.has("output");
    let batch = Batch::of_command(typed);
    super::ask(hub, async |hub| {
        let (mut submit, mut slip) = batch.submit(hub).await?;
        if !has_files {
            // What it prints is kept by the hub, and shown.
            slip.output = Some("/dev/stdout".to_owned());
            slip.error = slip.error.or_else(|| Some("/dev/stderr".to_owned()));
            submit.tasks[0].env = slip.variables()?;
        }
        let job = hub.submit(&submit).await?.job;
        let status = super::wait_for(hub, job).await?;
        if !has_files {
            show(hub, job).await?;
        }
        Ok(status)
    })
}

async fn show(hub: &Hub, job: u32) -> Result<(), Fault> {
    for stream in [Printed::Stdout, Printed::Stderr] {
        let mut output = hub.output(job, 1, None, stream, None).await?;
        while let Some(piece) = output.next().await.context("the output cannot be read")? {
            match stream {
                Printed::Stdout => data().write_all(&piece)?,
                Printed::Stderr => {
                    std::io::stderr().write_all(&piece)?;
                }
            }
        }
    }
    Ok(data().flush()?)
}

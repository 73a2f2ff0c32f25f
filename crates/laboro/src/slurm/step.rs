//! What a worker runs for a job that came by `sbatch`: the script, with the directory, the files and the variables that
//! Slurm would give it. Becomes the script where it can, so that nothing stands between the worker and the job.

use super::pattern::PatternFacts;
use super::sbatch::OWN_ACCESS;
use super::slip::{Must, Signal, Slip, VARIABLE, raw};
use super::units::Indices;
use super::{Fault, ask, host, known};
use crate::args::hub::HubArgs;
use crate::exit::Exit;
use crate::hub_client::Verb;
use crate::resolve::{Chosen, Which};
use anyhow::{Context, bail};
use laboro_worker::GPU_VARIABLES;
use rustix::process::{Pid, kill_process};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

pub(super) fn run(script: &Path, index: Option<&str>) -> anyhow::Result<Exit> {
    let slip = Slip::of_process()?;
    let job: u32 = std::env::var("LABORO_JOB").ok().and_then(|job| job.parse().ok()).unwrap_or(0);
    let place: Option<u32> =
        std::env::var("LABORO_INDEX").ok().and_then(|place| place.parse().ok());
    let index = index.map(str::parse::<u32>).transpose().context("the index of the element")?;
    let place = index.and(place);
    if !slip.conditions.is_empty() && !conditions_hold(&slip, job, place)? {
        // It is cancelled; the hub ends this process.
        std::thread::sleep(Duration::from_secs(60));
        bail!("a dependency of this job was not met");
    }
    let facts = PatternFacts {
        job: raw(job, place).to_string(),
        array_job: job.to_string(),
        index,
        name: slip.name.clone(),
        user: slip.user.clone(),
        host: host(),
        step: "batch".into(),
        task: 0,
    };
    let mut command = if slip.is_step { as_step(&slip) } else { interpreter(script)? };
    command.args(&slip.arguments);
    command.env_clear().envs(environment(&slip, job, place, index)?);
    std::env::set_current_dir(&slip.work_dir)
        .with_context(|| format!("{}: cannot be entered", slip.work_dir))?;
    attach(&mut command, &slip, &facts)?;
    match &slip.signal {
        None => Err(command.exec())
            .with_context(|| format!("{:?} cannot be run", command.get_program())),
        Some(signal) => warn_in_time(command, signal, slip.limit_ms),
    }
}

/// The interpreter that the first line names; the file itself need not be executable.
fn interpreter(script: &Path) -> anyhow::Result<Command> {
    let mut head = Vec::new();
    let file =
        File::open(script).with_context(|| format!("{} cannot be read", script.display()))?;
    file.take(4096).read_to_end(&mut head)?;
    let line = head.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line.strip_prefix(b"#!").unwrap_or(b"/bin/sh")).into_owned();
    let line = line.trim();
    let (program, argument) = match line.split_once(char::is_whitespace) {
        Some((program, argument)) => (program, Some(argument.trim())),
        None => (line, None),
    };
    let mut command = Command::new(program);
    command.args(argument).arg(script);
    Ok(command)
}

/// This program, called as `srun`.
fn as_step(slip: &Slip) -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.arg0("srun").args(["-n", &slip.ntasks.to_string(), "--"]);
    command
}

/// `None`, or a file for each stream.
fn attach(command: &mut Command, slip: &Slip, facts: &PatternFacts) -> anyhow::Result<()> {
    let usual = if facts.index.is_some() { "slurm-%A_%a.out" } else { "slurm-%j.out" };
    let output = facts.fill(slip.output.as_deref().unwrap_or(usual));
    let stdout = open(&output, slip.appends)?;
    let stderr = match slip.error.as_deref().map(|error| facts.fill(error)) {
        Some(error) if error != output => open(&error, slip.appends)?,
        _ => stdout.try_clone()?,
    };
    let stdin = match slip.input.as_deref().map(|input| facts.fill(input)) {
        None => Stdio::null(),
        Some(input) => {
            File::open(&input).with_context(|| format!("{input} cannot be read"))?.into()
        }
    };
    command.stdin(stdin).stdout(stdout).stderr(stderr);
    Ok(())
}

pub(super) fn open(path: &str, appends: bool) -> anyhow::Result<File> {
    let mut options = File::options();
    options.create(true).append(appends).write(true).truncate(!appends);
    options.open(path).with_context(|| format!("{path} cannot be written"))
}

fn environment(
    slip: &Slip,
    job: u32,
    place: Option<u32>,
    index: Option<u32>,
) -> anyhow::Result<BTreeMap<OsString, OsString>> {
    let mut env: BTreeMap<OsString, OsString> = BTreeMap::new();
    for (name, value) in &slip.env {
        env.insert(name.into(), OsString::from_vec(value.bytes().to_vec()));
    }
    // What the worker tells of the task, and of what it was given.
    for (name, value) in std::env::vars_os() {
        let bytes = name.as_bytes();
        // A worker from before it could has made no file.
        let has_no_access = name == "LABORO_ACCESS" && value == OWN_ACCESS;
        let is_told = bytes.starts_with(b"LABORO_")
            && !bytes.starts_with(VARIABLE.as_bytes())
            && !has_no_access;
        if is_told || GPU_VARIABLES.iter().any(|gpus| name == *gpus) || bytes == b"TMPDIR" {
            env.insert(name, value);
        }
    }
    let mut set = |name: &str, value: String| {
        env.insert(name.into(), value.into());
    };
    let host = host();
    let id = raw(job, place).to_string();
    // The worker tells of others that are kept for the job.
    let hosts = std::env::var("LABORO_NODELIST").unwrap_or_else(|_| host.clone());
    let nodes: u32 = std::env::var("LABORO_NODES").ok().and_then(|n| n.parse().ok()).unwrap_or(1);
    let times = if nodes > 1 { format!("(x{nodes})") } else { String::new() };
    let tasks_a_node = slip.ntasks.div_ceil(nodes.max(1));
    let cpus = tasks_a_node * slip.cpus_per_task;
    for name in ["SLURM_JOB_ID", "SLURM_JOBID"] {
        set(name, id.clone());
    }
    for name in ["SLURM_JOB_NODELIST", "SLURM_NODELIST"] {
        set(name, hosts.clone());
    }
    for name in ["SLURMD_NODENAME", "SLURM_TOPOLOGY_ADDR"] {
        set(name, host.clone());
    }
    for name in ["SLURM_JOB_NUM_NODES", "SLURM_NNODES"] {
        set(name, nodes.to_string());
    }
    for name in ["SLURM_NODEID", "SLURM_PROCID", "SLURM_LOCALID"] {
        set(name, "0".into());
    }
    for name in ["SLURM_NTASKS", "SLURM_NPROCS"] {
        set(name, slip.ntasks.to_string());
    }
    set("SLURM_CPUS_ON_NODE", cpus.to_string());
    set("SLURM_JOB_CPUS_PER_NODE", format!("{cpus}{times}"));
    set("SLURM_TASKS_PER_NODE", format!("{tasks_a_node}{times}"));
    set("SLURM_CPUS_PER_TASK", slip.cpus_per_task.to_string());
    set("SLURM_JOB_NAME", slip.name.clone());
    set("SLURM_JOB_USER", slip.user.clone());
    set("SLURM_JOB_UID", rustix::process::getuid().as_raw().to_string());
    set("SLURM_JOB_PARTITION", slip.partition.clone());
    set("SLURM_JOB_ACCOUNT", slip.account.clone());
    set("SLURM_CLUSTER_NAME", "laboro".into());
    set("SLURM_SUBMIT_DIR", slip.submit_dir.clone());
    set("SLURM_SUBMIT_HOST", slip.submit_host.clone());
    set("SLURM_TASK_PID", std::process::id().to_string());
    set("ENVIRONMENT", "BATCH".into());
    if slip.memory_bytes > 0 {
        set("SLURM_MEM_PER_NODE", (slip.memory_bytes >> 20).to_string());
    }
    let restarts = std::env::var("LABORO_ATTEMPT").ok().and_then(|text| text.parse::<u32>().ok());
    if let Some(restarts) = restarts.and_then(|attempt| attempt.checked_sub(1)).filter(|&n| n > 0) {
        set("SLURM_RESTART_COUNT", restarts.to_string());
    }
    if let (Some(index), Some(array)) = (index, &slip.array) {
        let array = Indices::parse(array).map_err(anyhow::Error::msg)?;
        set("SLURM_ARRAY_JOB_ID", job.to_string());
        set("SLURM_ARRAY_TASK_ID", index.to_string());
        set("SLURM_ARRAY_TASK_COUNT", array.count().to_string());
        set("SLURM_ARRAY_TASK_MIN", array.min().to_string());
        set("SLURM_ARRAY_TASK_MAX", array.max().to_string());
        set("SLURM_ARRAY_TASK_STEP", array.range().map_or(1, |range| range.2).to_string());
    }
    Ok(env)
}

/// Whether all came to what was asked; if not, this job is cancelled as the hub would never run it.
fn conditions_hold(slip: &Slip, job: u32, place: Option<u32>) -> anyhow::Result<bool> {
    let mut hold = true;
    let asked = ask(&HubArgs::default(), async |hub| {
        for condition in &slip.conditions {
            let before = known(hub, condition.job).await?;
            let rows = before.rows(hub, true).await?;
            let of = |row: &&super::jobs::JobRow| {
                condition.task.is_none_or(|task| row.place == Some(task))
            };
            let is_good = rows.iter().filter(of).all(|row| row.status() == 0);
            hold &= is_good == (condition.must == Must::Succeed);
        }
        if !hold {
            let task = place.unwrap_or(1);
            let chosen = Chosen { job, which: Which::Ranges(vec![(task, task)]) };
            hub.change(&chosen, Verb::Cancel).await?;
        }
        Ok(0)
    });
    match asked {
        Ok(_) => Ok(hold),
        Err(Fault::Words(words)) => bail!(words),
        Err(Fault::Error(error)) => Err(error),
    }
}

/// Stays as the script's parent, to send it a signal before its time is over.
fn warn_in_time(
    mut command: Command,
    signal: &Signal,
    limit_ms: Option<u64>,
) -> anyhow::Result<Exit> {
    let mut child =
        command.spawn().with_context(|| format!("{:?} cannot be run", command.get_program()))?;
    if let Some(limit_ms) = limit_ms {
        let wait = Duration::from_millis(limit_ms.saturating_sub(signal.before_ms));
        let (pid, signal) = (child.id(), signal.clone());
        std::thread::spawn(move || {
            std::thread::sleep(wait);
            warn(pid, &signal);
        });
    }
    let status = child.wait()?;
    // As a shell would say it, where it was a signal.
    let code = status.code().or(status.signal().map(|signal| 128 + signal)).unwrap_or(1);
    std::process::exit(code);
}

fn warn(script: u32, signal: &Signal) {
    let Some(number) = rustix::process::Signal::from_named_raw(signal.number) else { return };
    let targets = if signal.to_script { vec![script] } else { below(script) };
    for pid in targets {
        if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
            // It may be gone already.
            let _ = kill_process(pid, number);
        }
    }
}

/// All that a process has started.
fn below(root: u32) -> Vec<u32> {
    let mut parents: Vec<(u32, u32)> = Vec::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let after = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
        if let Some(parent) = after.split_whitespace().nth(1).and_then(|text| text.parse().ok()) {
            parents.push((pid, parent));
        }
    }
    let mut found = vec![root];
    let mut at = 0;
    while at < found.len() {
        let of = found[at];
        found.extend(parents.iter().filter(|(_, parent)| *parent == of).map(|(pid, _)| *pid));
        at += 1;
    }
    found.split_off(1)
}

/// For `srun` inside a job.
pub(super) fn variable(name: &str) -> Option<String> {
    std::env::var_os(OsStr::new(name)).and_then(|value| value.into_string().ok())
}

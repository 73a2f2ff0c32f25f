//! `hq submit`: a command, or a script with `#HQ` lines, becomes a job of one task.

use super::{COMMON, Mode, memory, mode, time};
use crate::args::hub::HubArgs;
use crate::slurm::options::{Opt, Takes, TypedOptions, WordsBegin, ignored, means, parse, refused};
use crate::slurm::sbatch::script::directives;
use crate::slurm::{Fault, ask, put, wait_for};
use anyhow::Context;
use laboro_api::{Line, Output, ResourceRequest, SubmitJob, TaskSpec, Text};
use laboro_core::Request;
use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use Takes::{Nothing, Value};

const ONE_TASK: &str = "a job has one task here; `laboro submit` has arrays";

const OPTIONS: [Opt; 31] = [
    COMMON[0],
    COMMON[1],
    COMMON[2],
    COMMON[3],
    means("cpus", None, Value),
    means("resource", None, Value),
    means("time-limit", None, Value),
    means("time-request", None, Value),
    means("name", None, Value),
    means("cwd", None, Value),
    means("env", None, Value),
    means("stdout", None, Value),
    means("stderr", None, Value),
    means("log", None, Value),
    means("priority", Some('p'), Value),
    means("crash-limit", None, Value),
    means("directives", None, Value),
    means("wait", None, Nothing),
    // One that fails has failed all of its job.
    ignored("max-fails", None, Value),
    ignored("progress", None, Nothing),
    refused("array", None, Value, ONE_TASK),
    refused("each-line", None, Value, ONE_TASK),
    refused("from-json", None, Value, ONE_TASK),
    refused("nodes", None, Value, "a task runs on one worker"),
    refused("pin", None, Value, "leave it out"),
    refused("stdin", None, Nothing, "name a file in the script"),
    refused("stream", None, Value, "use --stdout and --stderr"),
    refused("task-dir", None, Nothing, "a task has LABORO_SCRATCH"),
    refused("job", None, Value, "each submit is a job of its own"),
    refused("on-notify", None, Value, "`laboro events` prints what happens"),
    refused("group", None, Value, "groups of workers are those of the hub"),
];

pub(super) fn run(outer: &TypedOptions, args: Vec<String>) -> Result<u8, Fault> {
    let typed = parse(&OPTIONS, WordsBegin::First, args)?;
    let mode = mode(outer, &typed)?;
    let (submit, typed) = job(typed)?;
    ask(&HubArgs::default(), async |hub| {
        let job = hub.submit(&submit).await?.job;
        match mode {
            Mode::Cli => put(&format!("Job submitted successfully, job ID: {job}\n"))?,
            Mode::Quiet => put(&format!("{job}\n"))?,
            Mode::Json => put(&format!("{{\n  \"id\": {job}\n}}\n"))?,
        }
        if typed.has("wait") { wait_for(hub, job).await } else { Ok(0) }
    })
}

fn job(typed: TypedOptions) -> Result<(SubmitJob, TypedOptions), Fault> {
    let here = std::env::current_dir().context("the working directory is not known")?;
    let mut command = typed.words.clone();
    let first = command.first().cloned();
    let Some(first) = first else { return Err(Fault::from("which command is to be run?")) };
    let script = script(&typed, &here, &first)?;
    let mut typed = typed;
    if let Some((path, body)) = script {
        let said = parse(&OPTIONS, WordsBegin::Anywhere, directives(&body, "#HQ")?)?;
        if let Some(word) = said.words.first() {
            return Err(Fault::from(format!("`{word}` in a #HQ line is not an option")));
        }
        typed = typed.over(said);
        path.to_str().ok_or("the path of the script is not text")?.clone_into(&mut command[0]);
        command.splice(0..0, interpreter(&body));
    }
    let dir = typed.value("cwd").map_or_else(|| here.clone(), |dir| here.join(dir));
    let name = typed.value("name").map(str::to_owned);
    let name = name.or_else(|| Path::new(&first).file_name()?.to_str().map(str::to_owned));
    let time = |option: &str| typed.value(option).map(time::parse).transpose();
    let mut task = TaskSpec {
        command: Some(Line::Argv(command.into_iter().map(Text::from).collect())),
        slots: typed.value("cpus").map(cpus).transpose()?,
        timeout_ms: time("time-limit")?,
        time_request_ms: time("time-request")?,
        priority: typed.value("priority").map(|text| number("priority", text)).transpose()?,
        max_lost: typed.value("crash-limit").map(crash_limit).transpose()?,
        dir: Some(Text::new(dir.as_os_str().as_bytes().to_vec())),
        env: env(&typed, &here)?,
        output: output(&typed, &here, &dir)?,
        ..TaskSpec::default()
    };
    for wanted in typed.all("resource") {
        let wrong = || format!("--resource {wanted}: write NAME=AMOUNT");
        let (name, amount) = wanted.split_once('=').ok_or_else(wrong)?;
        let amount = amount.split_whitespace().next().ok_or_else(wrong)?;
        match name {
            "cpus" => task.slots = Some(cpus(amount)?),
            "mem" => task.memory_bytes = Some(memory::bytes(amount)?),
            name => {
                task.resources.insert(resource(name).to_owned(), request(wanted, amount)?);
            }
        }
    }
    let job = SubmitJob { name: name.map(Text::from), tasks: vec![task], ..SubmitJob::default() };
    Ok((job, typed))
}

/// The file whose `#HQ` lines count, and what is in it.
fn script(
    typed: &TypedOptions,
    here: &Path,
    first: &str,
) -> Result<Option<(PathBuf, Vec<u8>)>, Fault> {
    let path = here.join(first);
    match typed.value("directives").unwrap_or("auto") {
        "off" => Ok(None),
        "auto" if !first.ends_with(".sh") || !path.is_file() => Ok(None),
        "auto" | "file" => {
            let body = std::fs::read(&path).with_context(|| format!("{first} cannot be read"))?;
            Ok(Some((path, body)))
        }
        other => Err(Fault::from(format!("--directives={other}: auto, file or off"))),
    }
}

/// The words behind `#!`.
fn interpreter(body: &[u8]) -> Vec<String> {
    let line = body.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line);
    let words = line.strip_prefix("#!").map(str::split_whitespace);
    words.into_iter().flatten().map(str::to_owned).collect()
}

/// `4`, `4 compact`: where the cpus lie is left to the worker.
fn cpus(text: &str) -> Result<u32, Fault> {
    let count = text.split_whitespace().next().unwrap_or_default();
    match count.parse() {
        Ok(0) | Err(_) => Err(Fault::from(format!("--cpus={text}: a whole number of at least 1"))),
        Ok(count) => Ok(count),
    }
}

fn number<T: std::str::FromStr>(option: &str, text: &str) -> Result<T, Fault> {
    text.parse().map_err(|_| Fault::from(format!("--{option}={text}: a whole number")))
}

fn crash_limit(text: &str) -> Result<u16, Fault> {
    match text {
        "unlimited" | "0" => Ok(u16::MAX),
        "never-restart" => Ok(1),
        text => number("crash-limit", text),
    }
}

/// `gpus`, `gpus/nvidia` and `gpus/amd` are what workers here call `gpu`.
fn resource(name: &str) -> &str {
    if name == "gpus" || name.starts_with("gpus/") { "gpu" } else { name }
}

fn request(wanted: &str, amount: &str) -> Result<ResourceRequest, Fault> {
    let value = match amount.parse::<u64>() {
        Ok(count) => return Ok(ResourceRequest(Request::whole(count))),
        Err(_) => amount.parse::<f64>().map_or_else(|_| amount.into(), serde_json::Value::from),
    };
    serde_json::from_value(value)
        .map_err(|error| Fault::from(format!("--resource {wanted}: {error}")))
}

fn env(typed: &TypedOptions, here: &Path) -> Result<BTreeMap<String, Text>, Fault> {
    let mut env = BTreeMap::new();
    env.insert("HQ_SUBMIT_DIR".to_owned(), Text::new(here.as_os_str().as_bytes().to_vec()));
    for pair in typed.all("env") {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        env.insert(name.to_owned(), value.into());
    }
    Ok(env)
}

/// Both streams of a task with `--log` go to that file, as they come.
fn output(typed: &TypedOptions, here: &Path, dir: &Path) -> Result<Option<Output>, Fault> {
    let file = |option: &str| -> Result<Option<Text>, Fault> {
        let Some(path) = typed.value(option) else { return Ok(None) };
        if path == "none" {
            return Ok(Some("/dev/null".into()));
        }
        if path.ends_with(":rm-if-finished") || path.ends_with(":append") {
            return Err(Fault::from(format!(
                "--{option}={path}: leave out what is behind the colon"
            )));
        }
        let path = path
            .replace("%{SUBMIT_DIR}", &here.to_string_lossy())
            .replace("%{CWD}", &dir.to_string_lossy())
            .replace("%{TASK_ID}", "0");
        if path.contains("%{") {
            return Err(Fault::from(format!(
                "--{option}={path}: only %{{SUBMIT_DIR}}, %{{CWD}} and %{{TASK_ID}} are known before the job is"
            )));
        }
        Ok(Some(path.into()))
    };
    match file("log")? {
        Some(log) => Ok(Some(Output::Both(log))),
        None => Ok(Output::new(file("stdout")?, file("stderr")?)),
    }
}

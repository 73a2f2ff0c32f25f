//! `sbatch`: a script with its options, typed or in `#SBATCH` lines, becomes a job of the hub. What is only known where
//! it runs is left to `step`.

mod flags;
mod mail;
pub(crate) mod script;
mod size;

pub(super) use flags::OPTIONS;

use super::depend::{Dependencies, DependencyKind};
use super::options::{TypedOptions, WordsBegin, parse};
use super::put;
use super::slip::{Signal, Slip};
use super::units::{Indices, time_limit};
use super::{Fault, host, user};
use crate::hub_client::{Hub, JobFilter, Newest, WorkerPages};
use anyhow::Context;
use laboro_api::{After, ResourceRequest, Script, Span, SubmitJob, TaskSpec, Text};
use laboro_core::Request;
use script::directives;
use size::Size;
use std::collections::BTreeMap;
use std::io::Read;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

/// Who reads the script: this program, which knows the rest.
pub(super) const STEP: &str = "laboro slurm step";

/// A task with this value in `LABORO_ACCESS` gets an access file of its job.
pub(super) const OWN_ACCESS: &str = "@job";

/// Typed after the program's name, with what the script says in `#SBATCH` lines below it.
pub(super) struct Batch {
    typed: TypedOptions,
    body: Vec<u8>,
    arguments: Vec<String>,
    /// Of the script, for its name.
    file: Option<String>,
    is_step: bool,
}

pub(super) fn run(hub: &crate::args::hub::HubArgs, args: Vec<String>) -> Result<u8, Fault> {
    let batch = Batch::read(args)?;
    super::ask(hub, async |hub| {
        let (mut submit, _) = batch.submit(hub).await?;
        if batch.typed.has("test-only") {
            let cpus = submit.tasks[0].slots.unwrap_or(1);
            crate::output::say(format_args!(
                "sbatch: job would be accepted, using {cpus} processors"
            ));
            return Ok(0);
        }
        submit.on_end = mail::targets(&batch.typed);
        let job = mail::submit(hub, submit).await?.job;
        match (batch.typed.has("parsable"), batch.typed.has("quiet")) {
            (true, _) => put(&format!("{job}\n"))?,
            (false, true) => {}
            (false, false) => put(&format!("Submitted batch job {job}\n"))?,
        }
        if batch.typed.has("wait") {
            return super::wait_for(hub, job).await;
        }
        Ok(0)
    })
}

impl Batch {
    pub(super) fn read(args: Vec<String>) -> Result<Batch, Fault> {
        let typed = parse(&OPTIONS, WordsBegin::First, args)?;
        let mut words = typed.words.iter().cloned();
        let (body, file) = match typed.value("wrap") {
            Some(line) => {
                if let Some(word) = words.next() {
                    return Err(Fault::from(format!(
                        "script arguments not permitted with --wrap: {word}"
                    )));
                }
                let body =
                    format!("#!/bin/sh\n# This script was created by sbatch --wrap.\n\n{line}\n");
                (body.into_bytes(), Some("wrap".to_owned()))
            }
            None => match words.next() {
                Some(path) => {
                    let body = std::fs::read(&path).map_err(|error| {
                        Fault::from(format!("Unable to open file {path}: {error}"))
                    })?;
                    let name =
                        Path::new(&path).file_name().map(|n| n.to_string_lossy().into_owned());
                    (body, name)
                }
                None => {
                    let mut body = Vec::new();
                    std::io::stdin().read_to_end(&mut body).context("the script cannot be read")?;
                    (body, Some("sbatch".to_owned()))
                }
            },
        };
        if !body.starts_with(b"#!") {
            return Err(Fault::from(
                "This does not look like a batch script. The first line must start with #! followed by the path to an \
                 interpreter. For instance: #!/bin/sh",
            ));
        }
        let said = parse(&OPTIONS, WordsBegin::Anywhere, directives(&body, "#SBATCH")?)?;
        let arguments = words.collect();
        let typed = typed.over(from_environment()?).over(said);
        Ok(Batch { typed, body, arguments, file, is_step: false })
    }

    /// A command in place of a script, as for `srun`.
    pub(super) fn of_command(typed: TypedOptions) -> Batch {
        let body = b"#!/bin/sh\nexec \"$@\"\n".to_vec();
        let (arguments, file) = (typed.words.clone(), typed.words.first().cloned());
        Batch { typed, body, arguments, file, is_step: true }
    }

    pub(super) async fn submit(&self, hub: &Hub) -> Result<(SubmitJob, Slip), Fault> {
        let typed = &self.typed;
        let size = Size::read(typed)?;
        let array = typed.value("array").map(Indices::parse).transpose()?;
        let name = typed.value("job-name").map(str::to_owned).or_else(|| self.file.clone());
        let name = name.unwrap_or_else(|| "sbatch".to_owned());
        let dir = std::env::current_dir().context("the working directory is not known")?;
        let work_dir = match typed.value("chdir") {
            Some(other) => dir.join(other),
            None => dir.clone(),
        };
        let partition = partition(hub, typed.value("partition")).await?;
        let mut slip = Slip {
            name: name.clone(),
            user: user(),
            account: typed.value("account").unwrap_or_default().to_owned(),
            partition: partition.clone(),
            submit_dir: dir.to_string_lossy().into_owned(),
            submit_host: host(),
            work_dir: work_dir.to_string_lossy().into_owned(),
            output: typed.value("output").map(str::to_owned),
            error: typed.value("error").map(str::to_owned),
            input: typed.value("input").map(str::to_owned),
            appends: appends(typed.value("open-mode"))?,
            array: typed.value("array").map(str::to_owned),
            ntasks: size.tasks,
            cpus_per_task: size.cpus_per_task,
            memory_bytes: size.memory_bytes,
            limit_ms: typed.value("time").map(time_limit).transpose()?.flatten(),
            signal: typed.value("signal").map(signal).transpose()?,
            comment: typed.value("comment").unwrap_or_default().to_owned(),
            env: environment(typed.value("export").unwrap_or("ALL")),
            arguments: self.arguments.clone(),
            is_step: self.is_step,
            ..Slip::default()
        };
        let mut slots = size.slots.max(size.cpus_min);
        if typed.has("exclusive") && size.nodes.is_none() {
            slots = slots.max(whole_worker(hub, &partition).await?);
        }
        let mut task = TaskSpec {
            script: Some(Script { kind: STEP.to_owned(), body: self.body.as_slice().into() }),
            slots: Some(slots),
            nodes: size.nodes,
            memory_bytes: (size.memory_bytes > 0).then_some(size.memory_bytes),
            resources: (size.resources.into_iter())
                .map(|(name, count)| (name, ResourceRequest(Request::whole(count.into()))))
                .collect(),
            tags: constraint(typed.value("constraint"))?,
            priority: priority(typed)?,
            timeout_ms: slip.limit_ms,
            max_lost: typed.has("no-requeue").then_some(1),
            ..TaskSpec::default()
        };
        let depends = typed.value("dependency").map(Dependencies::parse).transpose()?;
        add_dependencies(hub, &depends.unwrap_or_default(), &mut slip, &mut task).await?;
        match array.as_ref().map(|array| (array, array.range())) {
            None => {}
            Some((_, Some((first, last, step)))) => {
                let (first, last, step) = (first.into(), last.into(), step.into());
                task.range = Some(Span { first, last, step });
            }
            Some((array, None)) => {
                let values: Vec<Text> = array.all().map(|index| index.to_string().into()).collect();
                task.values = Some(values.into());
            }
        }
        task.env = slip.variables()?;
        // So that these commands work inside the job too, with a token of the job's own.
        task.env.insert("LABORO_ACCESS".to_owned(), OWN_ACCESS.into());
        let begin =
            typed.value("begin").map(|text| crate::begin::parse_slurm(text, &crate::begin::now()));
        let begin_ms = begin.transpose()?.map(|at| u64::try_from(at.as_millisecond()).unwrap_or(0));
        let job = SubmitJob {
            begin_ms,
            group: Some(partition.into()),
            name: Some(name.into()),
            held: typed.has("hold"),
            max_running: array.and_then(|array| array.running_max),
            tasks: vec![task],
            ..SubmitJob::default()
        };
        Ok((job, slip))
    }
}

/// `SBATCH_PARTITION` and the like count less than what is typed, and more than what the script says.
fn from_environment() -> Result<TypedOptions, String> {
    let mut args = Vec::new();
    for option in ["account", "partition", "time", "export", "job-name", "open-mode", "constraint"]
    {
        let name = match option {
            "time" => "SBATCH_TIMELIMIT".to_owned(),
            option => format!("SBATCH_{}", option.replace('-', "_").to_uppercase()),
        };
        if let Ok(value) = std::env::var(&name) {
            args.push(format!("--{option}={value}"));
        }
    }
    parse(&OPTIONS, WordsBegin::Anywhere, args)
}

/// A group of the hub.
async fn partition(hub: &Hub, wanted: Option<&str>) -> Result<String, Fault> {
    let Some(wanted) = wanted else { return Ok(hub.group().to_owned()) };
    // Of several, any would do.
    let names: Vec<&str> = wanted.split(',').collect();
    let groups = hub.groups().await?.groups;
    let is_known =
        |name: &&&str| **name == hub.group() || groups.iter().any(|group| group.name == **name);
    match names.iter().find(is_known) {
        Some(name) => Ok((*name).to_owned()),
        None => Err(Fault::from(format!("invalid partition specified: {wanted}"))),
    }
}

/// The slots of the largest worker that is there.
async fn whole_worker(hub: &Hub, group: &str) -> Result<u32, Fault> {
    let mut workers = WorkerPages::new(hub, Some(group), None);
    let mut most = 1;
    while let Some(worker) = workers.next().await? {
        if worker.connected {
            most = most.max(worker.slots);
        }
    }
    Ok(most)
}

fn constraint(wanted: Option<&str>) -> Result<Vec<Text>, Fault> {
    let Some(wanted) = wanted else { return Ok(Vec::new()) };
    if wanted.contains(['|', '[', '(', '*']) {
        return Err(Fault::from(format!(
            "--constraint={wanted} cannot be honoured: tags of a worker are joined by & only"
        )));
    }
    Ok(wanted.split(['&', ',']).map(Text::from).collect())
}

fn priority(typed: &TypedOptions) -> Result<Option<i32>, Fault> {
    let number = |text: &str| {
        text.parse::<i32>().map_err(|_| Fault::from(format!("invalid number: {text}")))
    };
    match (typed.value("priority"), typed.value("nice")) {
        (Some("TOP"), _) => Ok(Some(i32::MAX)),
        (Some(priority), _) => number(priority).map(Some),
        (None, Some("")) => Ok(Some(-100)),
        (None, Some(nice)) => Ok(Some(number(nice)?.saturating_neg())),
        (None, None) => Ok(None),
    }
}

fn appends(mode: Option<&str>) -> Result<bool, Fault> {
    match mode {
        None | Some("t" | "truncate") => Ok(false),
        Some("a" | "append") => Ok(true),
        Some(other) => Err(Fault::from(format!("invalid --open-mode: {other}"))),
    }
}

/// `[B:]SIGNAL[@SECONDS]`
fn signal(text: &str) -> Result<Signal, Fault> {
    let (to_script, rest) = match text.split_once(':') {
        Some((flags, rest)) => (flags.contains(['B', 'b']), rest),
        None => (false, text),
    };
    let (name, seconds) = match rest.split_once('@') {
        Some((name, seconds)) => (name, seconds.parse().ok()),
        None => (rest, Some(60)),
    };
    let wrong = || Fault::from(format!("invalid --signal: {text}"));
    let number = super::signal_number(name).ok_or_else(wrong)?;
    let seconds: u64 = seconds.ok_or_else(wrong)?;
    Ok(Signal { number, before_ms: seconds * 1000, to_script })
}

/// The environment that goes with the job. What tells of the job that this was typed in does not.
fn environment(export: &str) -> BTreeMap<String, Text> {
    let own = |name: &str| {
        ["SLURM_", "SLURMD_", "SBATCH_", "LABORO_"].iter().any(|prefix| name.starts_with(prefix))
    };
    let all = || {
        std::env::vars_os().filter_map(|(name, value)| {
            let name = name.into_string().ok().filter(|name| !own(name))?;
            Some((name, Text::new(value.into_vec())))
        })
    };
    let mut env = BTreeMap::new();
    for item in export.split(',') {
        match item.split_once('=') {
            Some((name, value)) => {
                env.insert(name.to_owned(), value.into());
            }
            None if item.eq_ignore_ascii_case("all") => env.extend(all()),
            None if item.eq_ignore_ascii_case("none") || item.eq_ignore_ascii_case("nil") => {
                env.extend(
                    all().filter(|(name, _)| ["HOME", "USER", "SHELL", "PATH"].contains(&&**name)),
                );
            }
            None => env.extend(all().filter(|(name, _)| name == item)),
        }
    }
    env
}

async fn add_dependencies(
    hub: &Hub,
    depends: &Dependencies,
    slip: &mut Slip,
    task: &mut TaskSpec,
) -> Result<(), Fault> {
    let is_plain = depends.is_plain();
    let (mut after, mut each) = (Vec::new(), Vec::new());
    for before in &depends.before {
        let known = super::known(hub, before.job).await?;
        let place = before.index.map(|index| known.place(index)).transpose()?;
        let whole = known.whole();
        match before.kind {
            DependencyKind::Corr => each.push(whole),
            DependencyKind::After if known.has_begun() => continue,
            DependencyKind::After => {
                return Err(Fault::from(format!(
                    "--dependency=after:{} cannot be honoured: the job has not begun; use afterany or afterok",
                    before.job
                )));
            }
            DependencyKind::Any | DependencyKind::Ok | DependencyKind::NotOk => {
                after.push(match place {
                    Some(task) => After::Task { job: before.job, task },
                    None => whole,
                });
            }
        }
        if !is_plain {
            slip.conditions.extend(before.condition(place));
        }
    }
    if depends.singleton {
        let mut jobs = Newest::new(hub, &JobFilter::default(), None);
        while let Some(job) = jobs.next().await? {
            if job.name == *slip.name.as_str() && job.ended_ms.is_none() {
                after.push(super::known(hub, job.job).await?.whole());
            }
        }
    }
    let waits = !after.is_empty() || !each.is_empty();
    if waits && !is_plain {
        task.runs_anyway = Some(true);
    }
    (task.after, task.each) = (after.into_iter().collect(), each.into_iter().collect());
    Ok(())
}

//! The load of a runexp manager: trivial scripts, one runner, both ours and each a process; beside it the same
//! scripts run by xargs, in turns. A latency is the time from the hand-out of a job to its result, so it holds the
//! start of a shell; the manager's promise is that of its result files, which are not synced.

use super::figures::{Figures, heading};
use crate::exit::usage;
use crate::exit::{print, say};
use crate::program::Program;
use crate::timings::Timings;
use anyhow::{Context, bail};
use clap::Args;
use serde_json::json;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

#[derive(Debug, Args)]
pub(crate) struct RunexpBench {
    /// How many scripts; may be given more than once.
    #[arg(long = "jobs", value_name = "N", default_values_t = [1000, 10_000])]
    jobs: Vec<usize>,

    /// How many of them run at once; may be given more than once.
    #[arg(long = "slots", value_name = "N", default_values_t = [2, 8])]
    slots: Vec<u32>,

    /// How often each case is measured, in turns with xargs; the one in the middle is shown.
    #[arg(long, value_name = "N", default_value_t = 1)]
    repeat: usize,

    /// Where scripts and results are put; in memory by default, where there is a place for that: a disk that has just
    /// removed many files can take ten times as long over a new one.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,

    /// One JSON object a case.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &RunexpBench, program: &Program) -> anyhow::Result<()> {
    if args.jobs.contains(&0) || args.slots.contains(&0) || args.repeat == 0 {
        return Err(usage("--jobs, --slots or --repeat 0: there is nothing to measure"));
    }
    if !args.json {
        heading()?;
    }
    let program = program.path()?;
    let dir = Scratch::new(args.dir.as_deref())?;
    say(format_args!("scripts and results are in {}", dir.0.display()));
    for &jobs in &args.jobs {
        // Nothing is removed before the end: a file system may be slow to give new files right after that.
        let base = dir.0.join(jobs.to_string());
        let runs = base.join("runs");
        std::fs::create_dir_all(&runs)?;
        for number in 0..jobs {
            std::fs::write(runs.join(format!("{number:06}.sh")), "echo RES:ok\n")?;
        }
        for &slots in &args.slots {
            compare(args, &program, &base, jobs, slots)?;
        }
    }
    Ok(())
}

/// One case: ours and xargs in turns.
fn compare(
    args: &RunexpBench,
    program: &Path,
    dir: &Path,
    jobs: usize,
    slots: u32,
) -> anyhow::Result<()> {
    let mut ours = Vec::new();
    let mut others = Vec::new();
    for round in 0..args.repeat {
        let outputs = dir.join(format!("outputs-{slots}-{round}"));
        ours.push(manage(program, dir, &outputs, jobs, slots)?);
        others.push(xargs(dir, slots)?);
    }
    ours.sort_by_key(|figures| figures.took);
    others.sort_unstable();
    let mut ours = ours.swap_remove(args.repeat / 2);
    let other = others[args.repeat / 2];
    ours.show("os", args.json)?;
    let per_s = jobs as f64 / other.as_secs_f64().max(1e-9);
    let ratio = other.as_secs_f64() / ours.took.as_secs_f64().max(1e-9);
    let case = format!("xargs -P{slots} -n1 bash");
    match args.json {
        true => print(json!({
            "case": case,
            "n": jobs,
            "tasks_per_s": per_s.round(),
            "beside": ours.case,
            "ratio": (ratio * 1000.0).round() / 1000.0,
        }))?,
        false => print(format_args!("{case:<34} {jobs:>9} {per_s:>11.0}   ratio {ratio:.3}"))?,
    }
    Ok(())
}

/// A file system in memory, on most systems.
const MEMORY: &str = "/dev/shm";

/// Goes when the measurement is over, however it ends.
struct Scratch(PathBuf);

impl Scratch {
    fn new(place: Option<&Path>) -> anyhow::Result<Scratch> {
        let name = format!("laboro-bench-{}", std::process::id());
        let make = |place: &Path| {
            let dir = std::path::absolute(place)?.join(&name);
            std::fs::create_dir_all(&dir)?;
            Ok::<_, std::io::Error>(Scratch(dir))
        };
        match place {
            Some(place) => make(place).with_context(|| format!("--dir {}", place.display())),
            None if std::env::var_os("TMPDIR").is_none() && Path::new(MEMORY).is_dir() => {
                make(Path::new(MEMORY)).or_else(|_| Ok(make(&std::env::temp_dir())?))
            }
            None => Ok(make(&std::env::temp_dir())?),
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A process that does not outlive the measurement.
struct ChildProcess(Child);

impl Drop for ChildProcess {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// From the start of the runner to the last result.
fn manage(
    program: &Path,
    dir: &Path,
    outputs: &Path,
    jobs: usize,
    slots: u32,
) -> anyhow::Result<Figures> {
    let timings = dir.join("timings");
    let mut manager = ChildProcess(
        Command::new(program)
            .args(["runexp", "manage", "--port", "0", "--timings"])
            .arg(&timings)
            .arg("--outputs")
            .args([outputs, dir])
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .context("no manager could be started")?,
    );
    let mut lines = manager.0.stderr.take().map(BufReader::new).context("a pipe")?;
    let mut line = String::new();
    lines.read_line(&mut line)?;
    let address = line.strip_prefix("runexp on ").and_then(|rest| rest.split(',').next());
    let Some(address) = address else { bail!("the manager did not start: {}", line.trim()) };
    let began = SystemTime::now();
    let mut runner = ChildProcess(
        Command::new(program)
            .args(["worker", "--quiet", "--from", &format!("runexp://{address}")])
            .args(["-j", &slots.to_string()])
            .stdin(Stdio::null())
            .spawn()
            .context("no runner could be started")?,
    );
    if !runner.0.wait()?.success() {
        bail!("the runner failed");
    }
    if !manager.0.wait()?.success() {
        bail!("the manager failed");
    }
    let timings = Timings::read(&timings)?;
    if timings.latencies.len() != jobs {
        bail!("{} of {jobs} jobs were done", timings.latencies.len());
    }
    Ok(Figures {
        case: format!("manager and runner, {slots} at once"),
        tasks: jobs,
        took: timings.last.duration_since(began).unwrap_or_default(),
        latencies: timings.latencies,
        hub_cpu: Some(timings.cpu),
    })
}

/// The same scripts, in the same order, with as many at once.
fn xargs(dir: &Path, slots: u32) -> anyhow::Result<Duration> {
    let list = format!("printf '%s\\0' runs/*.sh | xargs -0 -P{slots} -n1 bash > /dev/null");
    let began = Instant::now();
    let status = Command::new("bash")
        .args(["-c", &list])
        .current_dir(dir)
        .stdin(Stdio::null())
        .status()
        .context("xargs could not be started")?;
    if !status.success() {
        bail!("xargs failed: {status}");
    }
    Ok(began.elapsed())
}

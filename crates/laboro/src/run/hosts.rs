//! `--sshlogin`: the same run over other machines. A hub of its own lives in the state directory as long as the run does;
//! `ssh` starts a worker on each host, which reaches the hub through that same connection. The same command typed again goes
//! on from the hub's journal, and a changed one from those of earlier runs over hosts.

use super::collected::{ResultsPlace, ValueTable, write_dir};
use super::earlier::Store;
use super::kept::Kept;
use super::layout::Layout;
use super::resume::Resume;
use super::serve::look_elsewhere;
use super::state::{has_names, id, move_aside, store_id};
use super::worker::each_ended;
use super::{JOB, Options, submit};
use crate::args::halt::{Halt, HaltHow, HaltWhat};
use crate::args::hub::{HubArgs, Submit};
use crate::args::{Args, Command, Run};
use crate::exit::{Exit, usage};
use crate::files::make_dir;
use crate::hub_client::{Hub, Printed, RunPlace, TaskPages, talk};
use crate::output::{data, safe, say};
use crate::progress::Progress;
use crate::submit::Terms;
use crate::view::called;
use crate::worker::ssh::{SshWorkers, remote_words};
use anyhow::{Context, bail};
use clap::{Parser, ValueEnum};
use laboro_api::access::{Access, Role};
use laboro_api::{Job, TaskState};
use laboro_core::{JobView, State, TaskId};
use laboro_hub::config::{Durability, KeepSettings, Listen, Settings, TaskSettings};
use laboro_hub::process::RunningHub;
use laboro_hub::security::{NewToken, TokenBook};
use laboro_journal::log;
use laboro_net::Clock;
use laboro_plan::Plan;
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};

/// A machine, and how many tasks run there at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Host {
    /// As many as it has cores.
    pub(crate) slots: Option<u32>,
    /// As `ssh` knows it. `:` is this machine.
    pub(crate) name: String,
}

impl Host {
    /// `node1`, `8/node1`, `user@node1`, or `:` for this machine; several with commas.
    pub(crate) fn parse_all(text: &str) -> Result<Vec<Host>, String> {
        text.split(',').map(Host::parse).collect()
    }

    fn parse(text: &str) -> Result<Host, String> {
        let (slots, name) = match text.split_once('/') {
            None => (None, text),
            Some((slots, name)) => {
                let slots = slots.parse().ok().filter(|&slots| slots > 0);
                (Some(slots.ok_or_else(|| format!("{text:?}: write 8/HOST for 8 slots"))?), name)
            }
        };
        let is_name = |c: char| !c.is_whitespace() && !c.is_control();
        if name.is_empty() || name.starts_with('-') || !name.chars().all(is_name) {
            let advice = "options for ssh belong in ~/.ssh/config";
            return Err(format!("{name:?} is not the name of a machine: {advice}"));
        }
        Ok(Host { slots, name: name.to_owned() })
    }
}

/// The same for all runs over hosts.
const HOSTS: &str = "hosts";

pub(crate) fn run(
    args: Run,
    plan: Plan,
    hosts: &[Host],
    mut options: Options,
) -> anyhow::Result<Exit> {
    let plan = Arc::new(plan);
    let fails_max = plan.job.fails_max.map(|most| u32::try_from(most).unwrap_or(u32::MAX));
    options.max_fails = options.max_fails.or(fails_max);
    let id = id(&options.state, &plan)?;
    let root = options.state.join(HOSTS);
    let mut store = Store::open(&root, &store_id(&options.state, &plan, &options)?);
    let start = Start {
        hosts,
        jobs: args.jobs,
        laboro: args.remote_laboro.clone(),
        options: worker_options(&args),
        dir: make_place(&root, &id, &mut store, &plan, &options)?,
    };
    options.elsewhere = Some(Terms::new(&submit_args(args)?)?);
    let layout = Layout::new(&plan, &options).map_err(usage)?;
    let nowhere_else = Listen::At(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
    let settings = Settings {
        dir: start.dir.clone(),
        http: nowhere_else,
        native: nowhere_else,
        // As the hub of a run on one machine: it takes whatever the plan has, and forgets nothing.
        keep: KeepSettings { age_ms: u64::MAX, ..KeepSettings::default() },
        tasks: TaskSettings { tasks_a_submit: usize::MAX, ..TaskSettings::default() },
        durability: match options.durability {
            log::Durability::Sync => Durability::Sync,
            log::Durability::Os | log::Durability::None => Durability::Os,
        },
        ..Settings::default()
    };
    let hub = laboro_hub::process::start(&settings).with_context(|| {
        format!(
            "the hub of this run cannot start in {}: is the run active elsewhere?",
            start.dir.display()
        )
    })?;
    let resume = Resume { path: &start.dir, store: &mut store, plan: &plan, new: None };
    let worked = work(&start, &options, layout, resume, &hub);
    hub.stop();
    let stopped = hub.wait();
    let exit = worked?;
    stopped.context("the state cannot be written")?;
    Ok(exit)
}

/// What is said of tasks here and done by the workers.
fn worker_options(args: &Run) -> Vec<String> {
    let named = |option: &str, value: Option<clap::builder::PossibleValue>| {
        value.map(|value| format!("--{option}={}", value.get_name()))
    };
    let pin = args.pin_tasks.and_then(|how| named("pin-tasks", how.to_possible_value()));
    let limits = named("limits", args.limits.to_possible_value());
    [format!("--grace={}", args.grace)].into_iter().chain(limits).chain(pin).collect()
}

/// What workers are started with.
struct Start<'a> {
    hosts: &'a [Host],
    jobs: Option<u32>,
    /// What this program is called there.
    laboro: String,
    options: Vec<String>,
    /// Of the hub.
    dir: PathBuf,
}

/// The directory of the hub. What was run under the same names since counts, as on this machine.
fn make_place(
    root: &Path,
    id: &str,
    store: &mut Store,
    plan: &Plan,
    options: &Options,
) -> anyhow::Result<PathBuf> {
    let dir = root.join(id);
    let is_alive = RunPlace { dir: dir.clone(), socket: None }.is_alive();
    make_dir(root)?;
    if options.fresh && !is_alive {
        if dir.exists() {
            std::fs::remove_dir_all(&dir).with_context(|| format!("{}", dir.display()))?;
        }
        store.begin(id, true).with_context(|| format!("{}", root.display()))?;
    } else if dir.exists() && !is_alive && !store.is_newest(id) && has_names(plan) {
        let aside = move_aside(root, id).with_context(|| format!("{}", dir.display()))?;
        store.rename(id, &aside).with_context(|| format!("{}", root.display()))?;
    }
    make_dir(&dir)?;
    Ok(dir)
}

fn work(
    start: &Start<'_>,
    options: &Options,
    mut layout: Layout,
    mut resume: Resume<'_>,
    running: &RunningHub,
) -> anyhow::Result<Exit> {
    let Some(address) = running.native else { bail!("the hub of this run does not listen") };
    let (dir, is_quiet) = (start.dir.as_path(), options.show.quiet);
    let access = access_for_workers(dir, &running.access, address)?;
    let asked = HubArgs { access: None, dir: Some(dir.to_owned()) };
    talk(&asked, async |hub| {
        let mut interrupts = signal(SignalKind::interrupt()).context("signals cannot be caught")?;
        // Before there are workers, so that nothing runs that was done.
        let before = submit(&running.handle, &mut layout, options, &mut resume).await?;
        look_elsewhere(&running.outputs, dir);
        if !is_quiet {
            say_resuming(&before, resume.new);
        }
        let mut workers = SshWorkers::new(access.text(), is_quiet);
        for host in start.hosts {
            let slots = host.slots.or(start.jobs).map(|slots| slots.to_string());
            let slots = slots.iter().flat_map(|slots| ["-j", slots]);
            let options = slots.chain(start.options.iter().map(String::as_str));
            let words = remote_words(&start.laboro, options);
            workers.start(&host.name, address.port(), &words).await?;
        }
        let total = before.counts.total();
        let mut progress = Progress::new(total, is_quiet);
        let mut halted = None;
        let ended = loop {
            tokio::select! {
                biased;
                _ = interrupts.recv() => {
                    if workers.interrupt().await > 1 {
                        say("interrupted; type the same command again to resume");
                        return Ok(Exit::Interrupted);
                    }
                }
                is_left = workers.next_end() => if !is_left {
                    let waited = hub.wait(&[JOB.0], Duration::ZERO).await?;
                    if waited.finished || halted.is_some() {
                        break waited.jobs;
                    }
                    bail!("no worker is left; type the same command again to resume");
                },
                waited = hub.wait(&[JOB.0], LOOK_EVERY) => {
                    let waited = waited?;
                    if waited.finished {
                        break waited.jobs;
                    }
                    show(&mut progress, &waited.jobs);
                    let halt = options.halt.filter(|_| halted.is_none());
                    if let Some(halt) = halt.filter(|halt| is_reached(*halt, &before, &waited.jobs)) {
                        halted = Some(halt.what);
                        workers.leave(halt.how == HaltHow::Now).await;
                    }
                }
            }
        };
        drop(progress);
        workers.stop().await;
        // All that came is in its file afterwards.
        running.outputs.attempts(TaskId::new(JOB, 1)).await?;
        write_results(running, options, &layout, dir).await?;
        if options.show.keep_order {
            print_in_order(hub, &layout).await?;
        }
        for job in ended.iter().filter(|_| !is_quiet) {
            say_end(hub, job, dir).await?;
        }
        let is_done = ended.iter().all(|job| job.counts.done == job.tasks);
        Ok(if is_done || halted == Some(HaltWhat::Done) { Exit::Done } else { Exit::SomeFailed })
    })
}

/// Only what this run has done counts.
fn is_reached(halt: Halt, before: &JobView, jobs: &[Job]) -> bool {
    let before = |state| u64::from(before.counts.of(state));
    jobs.iter().any(|job| {
        let done = job.counts.done.saturating_sub(before(State::Done));
        let failed = job.counts.failed.saturating_sub(before(State::Failed));
        halt.is_reached(done, failed, job.tasks)
    })
}

/// `--results`, of all that has ended, in this run or an earlier one.
async fn write_results(
    running: &RunningHub,
    options: &Options,
    layout: &Layout,
    dir: &Path,
) -> anyhow::Result<()> {
    let outputs = dir.join("outputs");
    match &options.results {
        None => Ok(()),
        Some(ResultsPlace::Dir(to)) => {
            let mut kept = Kept::open(&outputs)?;
            each_ended(&running.handle, |index| write_dir(to, layout, &mut kept, index)).await
        }
        Some(ResultsPlace::Table(file, separator)) => {
            let mut table = ValueTable::open(file, *separator, layout, &outputs)?;
            each_ended(&running.handle, |index| table.add(layout, index)).await?;
            table.flush()
        }
    }
}

/// How long the hub keeps us waiting for one answer; progress moves as often.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// What workers need and no more: a token that may only run tasks.
fn access_for_workers(dir: &Path, own: &Access, address: SocketAddr) -> anyhow::Result<Access> {
    let new = NewToken { name: None, role: Role::Work, group: None, owner: None, expires_ms: None };
    let (token, _) = TokenBook::of(dir).add(new, Clock::start().now())?;
    let native = Some(address.to_string());
    Ok(Access { role: Role::Work, token, native, socket: None, http: None, ..own.clone() })
}

/// What `laboro submit` would be given.
fn submit_args(args: Run) -> anyhow::Result<Submit> {
    let words = ["laboro", "submit", "--", "true"];
    let Command::Submit(usual) = Args::try_parse_from(words)?.command else {
        unreachable!("that is what was typed")
    };
    let attempts = args.attempts.map(|most| u16::try_from(most).unwrap_or(u16::MAX));
    Ok(Submit {
        input: args.input,
        task: args.task,
        needs: args.needs,
        attempts,
        timeout: args.timeout,
        max_fails: args.max_fails,
        name: args.name,
        ..*usual
    })
}

fn say_resuming(before: &JobView, new: Option<(u64, u64)>) {
    let (done, total) = (before.counts.of(State::Done), before.counts.total());
    if done == 0 && new.is_none() && before.counts.unfinished() == total {
        return;
    }
    let new = new.map_or(String::new(), |(new, again)| match again {
        0 => format!(", {new} new"),
        _ => format!(", {new} new, {again} failed before and run again"),
    });
    say(format_args!("resuming: {done} of {total} tasks already done{new}"));
}

fn show(progress: &mut Progress, jobs: &[Job]) {
    for job in jobs {
        let failed = match job.counts.failed {
            0 => String::new(),
            failed => format!(", {failed} failed"),
        };
        let words = format!("{} at workers{failed}", job.counts.running);
        progress.set(job.counts.finished(), job.tasks, &words);
    }
}

async fn print_in_order(hub: &Hub, layout: &Layout) -> anyhow::Result<()> {
    for task in layout.input_order().into_iter().flat_map(|(first, last)| first..=last) {
        for stream in [Printed::Stdout, Printed::Stderr] {
            // A task that never ran has none.
            let Ok(mut output) = hub.output(JOB.0, task, None, stream, None).await else {
                continue;
            };
            while let Some(bytes) = output.next().await? {
                match stream {
                    Printed::Stdout => data().write_all(&bytes)?,
                    _ => std::io::stderr().lock().write_all(&bytes)?,
                }
            }
        }
    }
    Ok(data().flush()?)
}

/// How many failed tasks are named.
const FAILED_MAX: usize = 10;

async fn say_end(hub: &Hub, job: &Job, dir: &Path) -> anyhow::Result<()> {
    let mut words = format!("{} of {} tasks done", job.counts.done, job.tasks);
    for (count, state) in [(job.counts.failed, "failed"), (job.counts.blocked, "blocked")] {
        if count > 0 {
            words.push_str(&format!(", {count} {state}"));
        }
    }
    if job.counts.failed > 0 {
        words.push_str("\nfailed:");
        let mut pages = TaskPages::new(hub, job.job, Some(TaskState::Failed), 1, None);
        for _ in 0..FAILED_MAX {
            let Some(task) = pages.next().await? else { break };
            let how = task.attempts.last().and_then(|attempt| attempt.outcome);
            let how = how.map_or(String::new(), |how| how.to_string());
            let why = task.message.as_ref();
            let why = why.map_or(String::new(), |why| format!(": {}", safe(why)));
            words.push_str(&format!("\n  {}  {how}{why}", safe(&called(&task))));
        }
        words.push_str("\nrun them again: the same command with --retry-failed");
    }
    words.push_str(&format!("\nkept in {}", dir.display()));
    say(words);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_written_as_for_parallel() {
        let host = |slots, name: &str| Host { slots, name: name.to_owned() };
        let found = Host::parse_all("node1,8/me@node2,:").unwrap();
        assert_eq!(found, [host(None, "node1"), host(Some(8), "me@node2"), host(None, ":")]);
        for wrong in ["", "a,,b", "0/a", "x/a", "-oProxyCommand=x", "ssh -p 1 a"] {
            assert!(Host::parse_all(wrong).is_err(), "{wrong}");
        }
    }
}

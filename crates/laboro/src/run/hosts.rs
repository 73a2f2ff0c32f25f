//! `--sshlogin`: the same run over other machines. A hub of its own lives in the state directory as long as the run does;
//! `ssh` starts a worker on each host, which reaches the hub through that same connection. The hub's journal is what the
//! same command typed again goes on from.

use crate::args::hub::{HubArgs, Submit};
use crate::args::{Args, Command, Run};
use crate::commands::submit::job_of;
use crate::exit::Exit;
use crate::files::make_dir;
use crate::hub_client::{Hub, Printed, TaskPages, Verb, talk};
use crate::output::{safe, say};
use crate::progress::Progress;
use crate::resolve::{Chosen, Which};
use crate::submit::{Terms, submit};
use crate::view::called;
use crate::worker::ssh::{SshWorkers, remote_words};
use anyhow::{Context, bail};
use clap::Parser;
use laboro_api::access::{Access, Role};
use laboro_api::{Job, TaskState};
use laboro_hub::config::{Listen, Settings};
use laboro_hub::process::{RunningHub, start};
use laboro_hub::security::{NewToken, TokenBook};
use laboro_net::Clock;
use laboro_plan::Plan;
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
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
            let advice = "options for ssh belong into ~/.ssh/config";
            return Err(format!("{name:?} is not the name of a machine: {advice}"));
        }
        Ok(Host { slots, name: name.to_owned() })
    }
}

/// Where the hub of the run is.
pub(crate) struct Place {
    /// Of all runs.
    pub(crate) root: PathBuf,
    /// By what is run.
    pub(crate) id: String,
}

pub(crate) fn run(args: Run, plan: &Plan, hosts: &[Host], place: &Place) -> anyhow::Result<Exit> {
    let dir = place.root.join("hosts").join(&place.id);
    if args.fresh && dir.exists() {
        std::fs::remove_dir_all(&dir).with_context(|| format!("{}", dir.display()))?;
    }
    make_dir(&dir)?;
    let nowhere_else = Listen::At(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
    let settings = Settings {
        dir: dir.clone(),
        http: nowhere_else,
        native: nowhere_else,
        ..Settings::default()
    };
    let hub = start(&settings).with_context(|| {
        format!(
            "the hub of this run cannot start in {}: does the run go on elsewhere?",
            dir.display()
        )
    })?;
    let worked = work(args, plan, hosts, place, &dir, &hub);
    hub.stop();
    let stopped = hub.wait();
    let exit = worked?;
    stopped.context("the state cannot be written")?;
    Ok(exit)
}

fn work(
    args: Run,
    plan: &Plan,
    hosts: &[Host],
    place: &Place,
    dir: &Path,
    running: &RunningHub,
) -> anyhow::Result<Exit> {
    let Some(address) = running.native else { bail!("the hub of this run does not listen") };
    let access = access_for_workers(dir, &running.access, address)?;
    let (is_quiet, keeps_order, retries) = (args.quiet, args.keep_order, args.retry_failed);
    let (jobs, laboro) = (args.jobs, args.remote_laboro.clone());
    let submitting = submit_args(args, &place.id)?;
    let terms = Terms::new(&submitting)?;
    let job = job_of(&submitting, plan)?;
    let asked = HubArgs { access: None, dir: Some(dir.to_owned()) };
    talk(&asked, async |hub| {
        let mut interrupts = signal(SignalKind::interrupt()).context("signals cannot be caught")?;
        let mut workers = SshWorkers::new(access.text(), is_quiet);
        for host in hosts {
            let slots = host.slots.or(jobs).map(|slots| slots.to_string());
            let options = slots.iter().flat_map(|slots| ["-j", slots]);
            workers.start(&host.name, address.port(), &remote_words(&laboro, options)).await?;
        }
        let submitted = submit(hub, job, plan, &terms, true).await?;
        if submitted.again {
            say_resuming(hub, submitted.job, retries, is_quiet).await?;
        }
        let waited_for = [submitted.job];
        let mut progress = Progress::new(submitted.count.into(), is_quiet);
        let ended = loop {
            tokio::select! {
                biased;
                _ = interrupts.recv() => {
                    if workers.interrupt().await > 1 {
                        say("interrupted; the same command goes on where it was");
                        return Ok(Exit::Interrupted);
                    }
                }
                is_left = workers.next_end() => if !is_left {
                    let waited = hub.wait(&waited_for, Duration::ZERO).await?;
                    if waited.finished {
                        break waited.jobs;
                    }
                    bail!("no worker is left; the same command goes on where it was");
                },
                waited = hub.wait(&waited_for, LOOK_EVERY) => {
                    let waited = waited?;
                    if waited.finished {
                        break waited.jobs;
                    }
                    show(&mut progress, &waited.jobs);
                }
            }
        };
        drop(progress);
        workers.stop().await;
        if keeps_order {
            print_in_order(hub, submitted.job, submitted.count).await?;
        }
        for job in ended.iter().filter(|_| !is_quiet) {
            say_end(hub, job, dir).await?;
        }
        let is_done = ended.iter().all(|job| job.counts.done == job.tasks);
        Ok(if is_done { Exit::Done } else { Exit::SomeFailed })
    })
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
fn submit_args(args: Run, key: &str) -> anyhow::Result<Submit> {
    let words = ["laboro", "submit", "--key", key, "--", "true"];
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

async fn say_resuming(hub: &Hub, job: u32, retries: bool, is_quiet: bool) -> anyhow::Result<()> {
    let known = hub.job(job).await?;
    if retries && known.counts.failed > 0 {
        hub.change(&Chosen { job, which: Which::Job }, Verb::Retry).await?;
    }
    if !is_quiet {
        say(format_args!("resuming: {} of {} tasks already done", known.counts.done, known.tasks));
    }
    Ok(())
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

async fn print_in_order(hub: &Hub, job: u32, count: u32) -> anyhow::Result<()> {
    for task in 1..=count {
        for stream in [Printed::Stdout, Printed::Stderr] {
            // A task that never ran has none.
            let Ok(mut output) = hub.output(job, task, None, stream, None).await else { continue };
            while let Some(bytes) = output.next().await? {
                match stream {
                    Printed::Stdout => std::io::stdout().lock().write_all(&bytes)?,
                    _ => std::io::stderr().lock().write_all(&bytes)?,
                }
            }
        }
    }
    Ok(std::io::stdout().lock().flush()?)
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

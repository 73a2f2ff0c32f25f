//! `laboro wait`: until jobs of a hub or a run here are over, with a bar. The exit status is that of `laboro run`.

use crate::args::hub::Wait;
use crate::exit::{Exit, usage};
use crate::hub_client::{Away, Hub, attend};
use crate::input::quantity;
use crate::output::{counted, duration, print, say};
use crate::progress::Progress;
use crate::resolve::{self, Purpose, Reading, Which, several};
use crate::run::JOB;
use crate::view::{bar_of, state_of_job};
use anyhow::Context;
use laboro_api::{Counts, Fleet, Job, JobState, Overview};
use laboro_plan::parse_duration;
use std::time::{Duration, Instant};
use tokio::signal::unix::{SignalKind, signal};

pub(crate) fn run(args: &Wait) -> anyhow::Result<Exit> {
    let timeout = quantity("--timeout", args.timeout.as_deref(), parse_duration)?;
    let until = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    attend(&args.answer.place, async |hub| {
        let mut jobs = Vec::with_capacity(args.jobs.len());
        for job in &args.jobs {
            // A run has one job, and may end before it could be asked for it.
            if hub.run().is_some() && job == "last" {
                jobs.push(JOB.0);
                continue;
            }
            // A job is wanted, so its name comes before that of a task.
            if let Ok(job) = resolve::job(hub, job).await {
                jobs.push(job);
                continue;
            }
            let how = Reading { purpose: Purpose::Look, group: None, everybody: false };
            for chosen in several(hub, job, how).await? {
                if chosen.which != Which::Job {
                    return Err(usage(format!("{job}: this works on whole jobs only")));
                }
                jobs.push(chosen.job);
            }
        }
        let shown = if args.answer.json {
            WaitOutput::Json
        } else {
            WaitOutput::Words { quiet: args.quiet }
        };
        until_over(hub, jobs, until, shown).await
    })
}

/// How the end is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WaitOutput {
    Json,
    Words { quiet: bool },
}

/// How long the hub keeps us waiting for one answer; the bar moves as often.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Until a run that has just begun is asked again.
const START: Duration = Duration::from_millis(20);

/// What a hub waits for in one request.
const JOBS_MAX: usize = 100;

/// Waits until nothing of the jobs goes on unless a person does something.
pub(crate) async fn until_over(
    hub: &Hub,
    mut jobs: Vec<u32>,
    until: Option<Instant>,
    shown: WaitOutput,
) -> anyhow::Result<Exit> {
    jobs.sort_unstable();
    jobs.dedup();
    if jobs.len() > JOBS_MAX {
        return Err(usage(format!("more than {JOBS_MAX} jobs cannot be waited for at once")));
    }
    if hub.is_over() {
        return after_its_process(hub, &jobs, until, shown).await;
    }
    let mut progress = Progress::new(0, shown != WaitOutput::Words { quiet: false });
    let mut interrupt = signal(SignalKind::interrupt()).context("signals cannot be caught")?;
    let mut away = Away::default();
    let ended = loop {
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        let patience = left.map_or(LOOK_EVERY, |left| left.min(LOOK_EVERY));
        let waited = tokio::select! {
            biased;
            _ = interrupt.recv() => {
                drop(progress);
                return Ok(left_alone(&jobs));
            }
            waited = hub.wait(&jobs, patience) => waited,
        };
        let waited = match waited {
            Ok(waited) => waited,
            Err(error) if left.is_some_and(|left| left.is_zero()) => return Err(error.into()),
            // A run that is over takes its socket with it.
            Err(error) if error.is_away() && hub.run().is_some() => {
                drop(progress);
                return after_its_process(hub, &jobs, until, shown).await;
            }
            // Its first moments: the job is on its way.
            Err(error) if error.reason() == Some("no_such_job") && hub.run().is_some() => {
                tokio::time::sleep(START).await;
                continue;
            }
            Err(error) => {
                away.pause(error).await?;
                continue;
            }
        };
        away.is_back();
        if waited.finished {
            break waited.jobs;
        }
        if left.is_some_and(|left| left.is_zero()) {
            drop(progress);
            say(format_args!("laboro: timed out; still unfinished: {}", unfinished(&waited.jobs)));
            return tell(hub, &waited.jobs, shown).map(|_| Exit::SomeFailed);
        }
        if progress.is_seen() {
            let seen = hub.get::<Overview>("overview").await.ok();
            show(&mut progress, &waited.jobs, seen.map(|seen| seen.workers));
        }
    };
    drop(progress);
    tell(hub, &ended, shown)
}

/// A run that cannot be asked has ended, is ending, has only begun, or has no socket. Its process tells.
async fn after_its_process(
    hub: &Hub,
    jobs: &[u32],
    until: Option<Instant>,
    shown: WaitOutput,
) -> anyhow::Result<Exit> {
    let past = match until {
        None => hub.after_run().await?,
        Some(until) => match tokio::time::timeout_at(until.into(), hub.after_run()).await {
            Ok(past) => past?,
            Err(_) => {
                say(format_args!("laboro: timed out; still running: {}", hub.address()));
                return Ok(Exit::SomeFailed);
            }
        },
    };
    let hub = past.as_ref().unwrap_or(hub);
    let mut ended = Vec::with_capacity(jobs.len());
    for &job in jobs {
        ended.push(hub.job(job).await?);
    }
    if ended.iter().any(|job| job.ended_ms.is_none()) {
        let run = hub.address();
        say(format_args!(
            "laboro: {run} was interrupted; the same `laboro run` command resumes it"
        ));
    }
    tell(hub, &ended, shown)
}

/// `job 2 (3 ready, 1 running)`: what is left of each.
fn unfinished(jobs: &[Job]) -> String {
    let left = jobs.iter().filter(|job| job.ended_ms.is_none());
    let left = left.map(|job| {
        let counts = Counts { done: 0, failed: 0, cancelled: 0, ..job.counts };
        format!("job {} ({})", job.job, bar_of(&counts))
    });
    left.collect::<Vec<_>>().join(", ")
}

/// Who stops waiting may think that the jobs stop too.
fn left_alone(jobs: &[u32]) -> Exit {
    for job in jobs {
        say(format_args!(
            "laboro: job {job} continues: `laboro wait {job}` waits for it, `laboro cancel {job}` cancels it"
        ));
    }
    Exit::Interrupted
}

fn show(progress: &mut Progress, jobs: &[Job], workers: Option<Fleet>) {
    let sum = |count: fn(&Job) -> u64| jobs.iter().map(count).sum::<u64>();
    let failed = match sum(|job| job.counts.failed) {
        0 => String::new(),
        failed => format!(", {failed} failed"),
    };
    let words = format!("{}{failed}", at_workers(sum(|job| job.counts.running), workers));
    progress.set(sum(|job| job.counts.finished()), sum(|job| job.tasks), &words);
}

/// A hub knows what it gave to its workers, and not which of it has begun. That follows where nothing was given ahead,
/// or where all that was given is of these jobs and each task takes a slot; otherwise it is not guessed.
fn at_workers(given: u64, workers: Option<Fleet>) -> String {
    match workers {
        Some(Fleet { slots_ahead: 0, .. }) => format!("{given} running"),
        Some(Fleet { slots_used, slots_ahead, .. }) if slots_used + slots_ahead == given => {
            format!("{slots_used} running, {slots_ahead} dispatched ahead")
        }
        _ => format!("{given} at workers"),
    }
}

fn tell(hub: &Hub, jobs: &[Job], shown: WaitOutput) -> anyhow::Result<Exit> {
    for job in jobs {
        match shown {
            WaitOutput::Json => print(serde_json::to_string(job)?)?,
            WaitOutput::Words { quiet: false } => match hub.run() {
                Some(_) => say(summary_of_run(&hub.address(), job)),
                None => say(summary(job)),
            },
            WaitOutput::Words { quiet: true } => {}
        }
    }
    let all_done = jobs.iter().all(|job| job.counts.done == job.tasks);
    Ok(if all_done { Exit::Done } else { Exit::SomeFailed })
}

/// The time is the job's own, from its submit to its end, whenever the wait began.
fn summary(job: &Job) -> String {
    let number = job.job;
    let mut words = outcome(&format!("job {number}"), job);
    if job.counts.failed > 0 {
        words.push_str(&format!(
            "\nsee them: laboro tasks {number}/failed   run them again: laboro retry {number}"
        ));
    } else if job.held || job.stopped {
        words.push_str(&format!("\nresume it: laboro release {number}"));
    }
    words
}

fn summary_of_run(run: &str, job: &Job) -> String {
    let mut words = outcome(run, job);
    if job.counts.failed > 0 {
        words.push_str(
            "\nsee them: laboro tasks failed   run them again: laboro run --retry-failed ...",
        );
    }
    words
}

/// `job 3: 10 tasks done in 16.0 s`
fn outcome(what: &str, job: &Job) -> String {
    let took = job.ended_ms.map_or_else(String::new, |ended| {
        let took = Duration::from_millis(ended.saturating_sub(job.submitted_ms));
        format!(" in {}", duration(took))
    });
    match job.state {
        JobState::Done => format!("{what}: {} done{took}", counted(job.tasks, "task")),
        _ => format!("{what} {}{took}: {}", state_of_job(job).0, bar_of(&job.counts)),
    }
}

#[cfg(test)]
mod tests;

//! What happened, in the words of deliveries: who is told, and what the body says.

use super::send::Envelope;
use super::store::Delivery;
use super::target::target_for;
use crate::config::{HookEvent, HookRule};
use laboro_api::{self as api, JobState};
use laboro_core::{JobView, Time, counted};
use serde::Serialize;
use std::path::PathBuf;

/// The body of a delivery: JSON, with one of the last fields.
#[derive(Debug, Serialize)]
struct HookBody<'a> {
    event: &'a str,
    at_ms: u64,
    /// One line for people.
    text: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    job: Option<&'a api::Job>,
    #[serde(skip_serializing_if = "Option::is_none")]
    worker: Option<Worker<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    disk: Option<api::Disk>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pool: Option<Pool<'a>>,
}

#[derive(Debug, Serialize)]
struct Worker<'a> {
    worker: u32,
    name: &'a str,
    group: &'a str,
}

#[derive(Debug, Serialize)]
struct Pool<'a> {
    name: &'a str,
    group: &'a str,
    reason: &'a str,
}

/// Something that hooks may be about.
#[derive(Debug)]
pub(super) enum Happening {
    JobEnded {
        job: Box<api::Job>,
        /// The hooks of its own; the job shows less of them.
        targets: Vec<String>,
    },
    JobStopped(Box<api::Job>),
    WorkerLost {
        worker: u32,
        name: String,
        group: String,
    },
    WorkerEjected {
        worker: u32,
        name: String,
        group: String,
        reason: String,
    },
    DiskLow(api::Disk),
    PoolTrouble {
        name: String,
        group: String,
        reason: String,
    },
}

impl Happening {
    pub(super) fn job_ended(view: JobView) -> Happening {
        let targets = view.on_end.iter().map(ToString::to_string).collect();
        Happening::JobEnded { job: Box::new(view.into()), targets }
    }

    fn job(&self) -> Option<&api::Job> {
        match self {
            Happening::JobEnded { job, .. } | Happening::JobStopped(job) => Some(job),
            _ => None,
        }
    }

    fn event(&self) -> HookEvent {
        match self {
            Happening::JobEnded { job, .. } => match job.state {
                JobState::Done => HookEvent::JobDone,
                JobState::Cancelled => HookEvent::JobCancelled,
                _ => HookEvent::JobFailed,
            },
            Happening::JobStopped(_) => HookEvent::JobStopped,
            Happening::WorkerLost { .. } => HookEvent::WorkerLost,
            Happening::WorkerEjected { .. } => HookEvent::WorkerEjected,
            Happening::DiskLow(_) => HookEvent::DiskLow,
            Happening::PoolTrouble { .. } => HookEvent::PoolTrouble,
        }
    }

    fn group(&self) -> Option<String> {
        match self {
            Happening::JobEnded { job, .. } | Happening::JobStopped(job) => {
                Some(job.group.to_string())
            }
            Happening::WorkerLost { group, .. }
            | Happening::WorkerEjected { group, .. }
            | Happening::PoolTrouble { group, .. } => Some(group.clone()),
            Happening::DiskLow(_) => None,
        }
    }

    fn text(&self, event: HookEvent) -> String {
        match self {
            Happening::JobEnded { job, .. } | Happening::JobStopped(job) => job_text(job, event),
            Happening::WorkerLost { name, group, .. } => {
                format!("worker {name} of group {group} is lost; its tasks are given to others")
            }
            Happening::WorkerEjected { name, group, reason, .. } => {
                format!("worker {name} of group {group} was ejected: {reason}")
            }
            Happening::DiskLow(disk) => {
                format!("only {} MiB are free where the hub writes", disk.free_bytes >> 20)
            }
            Happening::PoolTrouble { name, reason, .. } => format!("pool {name}: {reason}"),
        }
    }

    /// What is due for it: of the hub's own hooks, and of the job that ended.
    pub(super) fn deliveries(&self, rules: &[HookRule], now: Time) -> Vec<Delivery> {
        let (event, group) = (self.event(), self.group());
        let wants = |rule: &&HookRule| {
            rule.on.contains(&event)
                && rule.group.as_ref().is_none_or(|wanted| Some(wanted) == group.as_ref())
        };
        let mut targets: Vec<(String, Option<PathBuf>)> = (rules.iter().filter(wants))
            .map(|rule| (rule.to.clone(), rule.secret_file.clone()))
            .collect();
        if let Happening::JobEnded { targets: own, .. } = self {
            let own = own.iter().filter_map(|to| target_for(to, event.word()));
            targets.extend(own.map(|to| (to.to_owned(), None)));
        }
        if targets.is_empty() {
            return Vec::new();
        }
        let job = self.job();
        let at_ms = job.and_then(|job| job.ended_ms).unwrap_or(now.0);
        let text = self.text(event);
        let body = self.body(event, at_ms, &text);
        let delivery = |(to, secret_file)| Delivery {
            number: 0,
            event: event.word().to_owned(),
            at_ms,
            to,
            text: text.clone(),
            body: body.clone(),
            job: job.map(|job| job.job),
            owner: job.and_then(|job| job.owner.as_ref()).map(ToString::to_string),
            group: group.clone(),
            secret_file,
            state: api::DeliveryState::Pending,
            tries: 0,
            next_ms: now.0,
            ended_ms: None,
            error: None,
        };
        targets.into_iter().map(delivery).collect()
    }

    fn body(&self, event: HookEvent, at_ms: u64, text: &str) -> String {
        let (mut worker, mut disk, mut pool) = (None, None, None);
        match self {
            Happening::JobEnded { .. } | Happening::JobStopped(_) => {}
            Happening::WorkerLost { worker: number, name, group }
            | Happening::WorkerEjected { worker: number, name, group, .. } => {
                worker = Some(Worker { worker: *number, name, group });
            }
            Happening::DiskLow(low) => disk = Some(*low),
            Happening::PoolTrouble { name, group, reason } => {
                pool = Some(Pool { name, group, reason });
            }
        }
        let job = self.job();
        let body = HookBody { event: event.word(), at_ms, text, job, worker, disk, pool };
        serde_json::to_string(&body).expect("strings and numbers have a JSON form")
    }
}

/// The job of a run that has ended, for whom `--on-end` names.
pub fn job_envelope(view: &JobView) -> Envelope {
    let happening = Happening::job_ended(view.clone());
    let event = happening.event();
    let at_ms = view.ended.unwrap_or(view.submitted).0;
    let text = happening.text(event);
    let body = happening.body(event, at_ms, &text);
    Envelope { id: format!("{at_ms}-run"), event: event.word().to_owned(), text, body, key: None }
}

fn job_text(job: &api::Job, event: HookEvent) -> String {
    let name = job.name.to_string();
    let name = if name.is_empty() { String::new() } else { format!(" ({name})") };
    let (number, counts) = (job.job, &job.counts);
    let tasks = counted(job.tasks, "task");
    match event {
        HookEvent::JobDone => format!("job {number}{name} is done: {tasks}"),
        HookEvent::JobCancelled => {
            format!("job {number}{name} was cancelled: {} of {tasks} done", counts.done)
        }
        HookEvent::JobStopped => {
            format!("job {number}{name} stopped: {} of {tasks} failed", counts.failed)
        }
        _ => format!("job {number}{name} failed: {} of {tasks} failed", counts.failed),
    }
}

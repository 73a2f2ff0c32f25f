//! `GET overview` and `GET me`: the hub at a glance. Made at most once a second for each group, however many
//! look, and from pages, so that a crowd of workers costs a bounded amount.

use super::answer::{Answer, Refused};
use super::entry::{Visitor, word};
use super::{Api, Shared};
use crate::keep::Outputs;
use axum::Json;
use axum::extract::State;
use laboro_api::{Disk, Fleet, Me, Overview, Standing, Warning, Worker};
use laboro_core::{
    Command, GroupView, JobId, Name, Query, Reply, State as TaskState, WorkerId, counted,
};
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The last overview of each group that somebody looked at, and of all.
pub(super) type Made = Mutex<HashMap<Option<Name>, (Instant, Overview)>>;

const FRESH: Duration = Duration::from_secs(1);
const MADE_MAX: usize = 64;

/// Who the token says you are.
#[utoipa::path(get, path = "/me", tag = "hub", responses((status = 200, body = Me)))]
pub(super) async fn me(visitor: Visitor) -> Json<Me> {
    Json(Me {
        token: visitor.who.token.clone(),
        owner: visitor.who.owner.clone(),
        role: word(visitor.who.role).to_owned(),
        group: visitor.bound_to().map(ToString::to_string),
    })
}

/// Workers by state, the newest failures, and what a person should look at. At most a second old.
#[utoipa::path(get, path = "/overview", tag = "hub", responses((status = 200, body = Overview)))]
pub(super) async fn overview(State(api): Shared, visitor: Visitor) -> Answer<Overview> {
    let group = visitor.bound_to().cloned();
    let known = {
        let made = api.made.lock().unwrap_or_else(PoisonError::into_inner);
        made.get(&group).filter(|(when, _)| when.elapsed() < FRESH).map(|(_, made)| made.clone())
    };
    if let Some(known) = known {
        return Ok(Json(known));
    }
    let fresh = api.look_over(&visitor).await?;
    let mut made = api.made.lock().unwrap_or_else(PoisonError::into_inner);
    if made.len() >= MADE_MAX {
        made.clear();
    }
    made.insert(group, (Instant::now(), fresh.clone()));
    Ok(Json(fresh))
}

/// Looks at so many pages of a thousand workers at most.
const WORKER_PAGES_MAX: usize = 20;
/// Told one by one; beyond these only a number.
const WARNINGS_A_KIND: usize = 10;
/// Of the newest jobs.
const JOBS_LOOKED_AT: u32 = 100;

impl Api {
    async fn look_over(&self, visitor: &Visitor) -> Result<Overview, Refused> {
        let groups = match self.ask(Command::Query(Query::Groups)).await? {
            Reply::Groups(groups) => groups,
            reply => return Err(Refused::unexpected(&reply)),
        };
        let groups: Vec<GroupView> =
            groups.into_iter().filter(|group| visitor.sees(&group.name)).collect();
        let mut list = Warnings::default();
        let mut staffed = HashSet::new();
        let workers = self.count_workers(visitor, &mut list, &mut staffed).await?;
        warn_of_groups(&groups, &staffed, &mut list);
        self.warn_of_jobs(visitor, &mut list).await?;
        let own = visitor.bound_to().is_some().then(|| groups.first().map(|group| group.group));
        let failures = match (&self.services.history, own) {
            (None, _) | (_, Some(None)) => Vec::new(),
            (Some(history), own) => history.failures(own.flatten()),
        };
        let mut disk = None;
        if visitor.bound_to().is_none() {
            disk = self.disk();
            self.warn_of_the_hub(&groups, disk, &mut list);
        }
        let at_ms = self.services.clock.now().0;
        Ok(Overview { at_ms, workers, failures, warnings: list.finish(), disk })
    }

    async fn count_workers(
        &self,
        visitor: &Visitor,
        warnings: &mut Warnings,
        staffed: &mut HashSet<String>,
    ) -> Result<Fleet, Refused> {
        let mut fleet = Fleet::default();
        let mut from = WorkerId(0);
        for _ in 0..WORKER_PAGES_MAX {
            let query = Query::Workers { group: visitor.bound_to().cloned(), from, most: 1000 };
            let views = match self.services.handle.ask(Command::Query(query)).await? {
                Reply::Workers(views) => views,
                // The token's group is not there yet.
                Reply::Refused(_) => break,
                reply => return Err(Refused::unexpected(&reply)),
            };
            let is_last = views.len() < 1000;
            for view in views {
                from = WorkerId(view.worker.0.saturating_add(1));
                count(&Worker::from(view), &mut fleet, warnings, staffed);
            }
            if is_last {
                break;
            }
        }
        Ok(fleet)
    }

    async fn warn_of_jobs(&self, visitor: &Visitor, list: &mut Warnings) -> Result<(), Refused> {
        let group = visitor.bound_to().cloned();
        let query =
            Query::JobsBefore { group, owner: None, before: JobId(u32::MAX), most: JOBS_LOOKED_AT };
        let Reply::Jobs(jobs) = self.services.handle.ask(Command::Query(query)).await? else {
            return Ok(());
        };
        for job in jobs.iter().filter(|job| job.stopped && job.ended.is_none()) {
            let failed = job.counts.of(TaskState::Failed);
            let failures = counted(failed, "failure");
            let words = format!("job {} {} stopped after {failures}", job.job.0, job.name);
            list.add("job_stopped", words, |warning| warning.job = Some(job.job.0));
        }
        Ok(())
    }

    fn warn_of_the_hub(&self, groups: &[GroupView], disk: Option<Disk>, list: &mut Warnings) {
        let busy: HashSet<String> = (groups.iter())
            .filter(|group| group.counts.of(TaskState::Ready) > 0)
            .map(|group| group.name.to_string())
            .collect();
        for door in (self.services.doors)() {
            let group = door.group.as_ref().map(ToString::to_string).unwrap_or_default();
            if door.connections == 0 && door.dialect != "native" && busy.contains(&group) {
                let words =
                    format!("no peer is connected to the {} door {}", door.dialect, door.address);
                list.add("door_without_workers", words, |warning| warning.group = Some(group));
            }
        }
        let (waiting, most) = self.services.handle.inbox();
        if waiting * 2 > most {
            let words = format!(
                "{} for the engine, of {most} that may wait",
                counted(waiting, "waiting request")
            );
            list.add("inbox_full", words, |_| {});
        }
        let missed = self.services.history.as_ref().map_or(0, crate::history::History::missed);
        if missed > 0 {
            let words = format!(
                "the history lacks {}: too much happened at once",
                counted(missed, "event")
            );
            list.add("history_missed", words, |_| {});
        }
        if let Some(outputs) = &self.services.outputs {
            warn_of_outputs(outputs, list);
        }
        if let Some(disk) = disk
            && is_disk_low(disk)
        {
            let words = format!("only {} MiB are free on the hub's disk", disk.free_bytes >> 20);
            list.add("disk_low", words, |_| {});
        }
    }

    pub(super) fn disk(&self) -> Option<Disk> {
        disk_of(self.services.dir.as_ref()?)
    }
}

/// How much room there is where this directory is.
pub(crate) fn disk_of(dir: &Path) -> Option<Disk> {
    let stat = rustix::fs::statvfs(dir).ok()?;
    Some(Disk {
        free_bytes: stat.f_bavail.saturating_mul(stat.f_frsize),
        total_bytes: stat.f_blocks.saturating_mul(stat.f_frsize),
    })
}

/// Is it time to tell somebody?
pub(crate) fn is_disk_low(disk: Disk) -> bool {
    disk.free_bytes < DISK_FREE_MIN || disk.free_bytes < disk.total_bytes / 20
}

fn warn_of_outputs(outputs: &Outputs, list: &mut Warnings) {
    if let Some(why) = outputs.trouble() {
        let words =
            format!("output of tasks cannot be written: {why}; {}", outputs.on_error().words());
        list.add("outputs_failing", words, |_| {});
    }
    let attempts = outputs.attempts_with_loss();
    if attempts > 0 {
        let attempts = counted(attempts, "attempt");
        let words =
            format!("{attempts} lost output since the hub started; see output_lost of tasks");
        list.add("output_lost", words, |_| {});
    }
}

/// A journal needs room to condense.
const DISK_FREE_MIN: u64 = 1 << 30;

fn count(
    worker: &Worker,
    fleet: &mut Fleet,
    warnings: &mut Warnings,
    staffed: &mut HashSet<String>,
) {
    if !worker.connected {
        fleet.away += 1;
        return;
    }
    fleet.connected += 1;
    fleet.draining += u64::from(worker.draining);
    fleet.has(worker);
    fleet.stands(worker.conduct.standing);
    let kind = match worker.conduct.standing {
        Standing::Good | Standing::OnProbation | Standing::Unknown => {
            staffed.insert(worker.group.to_string());
            return;
        }
        Standing::OnHold => "worker_on_hold",
        Standing::Ejected => "worker_ejected",
    };
    let is = if kind == "worker_on_hold" { "on hold" } else { "ejected" };
    let reason = worker.conduct.reason.as_deref().unwrap_or("no reason given");
    let words = format!("worker {} is {is}: {reason}", worker.name);
    warnings.add(kind, words, |warning| warning.worker = Some(worker.worker));
}

fn warn_of_groups(groups: &[GroupView], staffed: &HashSet<String>, warnings: &mut Warnings) {
    for group in groups {
        let ready = group.counts.of(TaskState::Ready);
        if ready == 0 {
            continue;
        }
        let name = group.name.to_string();
        if group.paused {
            let words = format!("group {name} is paused with {} ready", counted(ready, "task"));
            warnings.add("group_paused", words, |warning| warning.group = Some(name));
        } else if !staffed.contains(&name) {
            let words = format!("group {name} has {} ready and no worker", counted(ready, "task"));
            warnings.add("no_workers", words, |warning| warning.group = Some(name));
        }
    }
}

/// Gathers a few of each kind and counts the rest.
#[derive(Default)]
struct Warnings {
    list: Vec<Warning>,
    counts: HashMap<&'static str, usize>,
}

impl Warnings {
    fn add(&mut self, kind: &'static str, words: String, about: impl FnOnce(&mut Warning)) {
        let count = self.counts.entry(kind).or_default();
        *count += 1;
        if *count <= WARNINGS_A_KIND {
            let kind = kind.to_owned();
            let mut warning = Warning { kind, words, worker: None, job: None, group: None };
            about(&mut warning);
            self.list.push(warning);
        }
    }

    fn finish(mut self) -> Vec<Warning> {
        for (kind, count) in self.counts {
            if count > WARNINGS_A_KIND {
                let words = format!("and {} more of these", count - WARNINGS_A_KIND);
                let kind = kind.to_owned();
                self.list.push(Warning { kind, words, worker: None, job: None, group: None });
            }
        }
        self.list
    }
}

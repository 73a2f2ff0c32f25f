//! `laboro status`: what goes on at a hub, on one screen: groups, workers, jobs that run, what failed lately.

use super::groups::{GROUP_COLUMNS, group_row};
use crate::args::hub::Status;
use crate::exit::Exit;
use crate::hub_client::{Hub, JobFilter, Newest, WorkerPages, look};
use crate::output::table::{Mood, Table};
use crate::output::{counted, print, safe};
use crate::view::{JOB_COLUMNS, job_row, now_ms};
use laboro_api::{self as api, Group, Job, JobState, Standing, Warning};
use serde_json::json;

pub(crate) fn run(args: &Status) -> anyhow::Result<Exit> {
    look(&args.answer.place, async |hub| {
        let overview = Overview::look(hub, args.group.as_deref()).await?;
        match args.answer.json {
            true => print(overview.json())?,
            false => print(overview.text(hub))?,
        }
        Ok(Exit::Done)
    })
}

struct Overview {
    groups: Vec<Group>,
    workers: WorkerCounts,
    going_on: Vec<Job>,
    /// Over, with failures, newest first.
    failed: Vec<Job>,
    /// There were more jobs than were looked at.
    is_cut: bool,
    warnings: Vec<Warning>,
}

#[derive(Default)]
struct WorkerCounts {
    connected: u64,
    away: u64,
    draining: u64,
    /// On hold or ejected.
    barred: u64,
    /// What they have, and what of it is in use.
    fleet: api::Fleet,
}

/// What fits on a screen.
const GOING_ON_MAX: usize = 15;
const FAILED_MAX: usize = 5;

/// What is looked at for it; older jobs are not news.
const JOBS_LOOKED_AT: usize = 1000;
const WORKERS_LOOKED_AT: usize = 10_000;

impl Overview {
    async fn look(hub: &Hub, group: Option<&str>) -> anyhow::Result<Overview> {
        let mut groups = hub.groups().await?.groups;
        groups.retain(|known| group.is_none_or(|group| known.name.bytes() == group.as_bytes()));
        let mut overview = Overview {
            groups,
            workers: WorkerCounts::default(),
            going_on: Vec::new(),
            failed: Vec::new(),
            is_cut: false,
            warnings: hub.get::<api::Overview>("overview").await?.warnings,
        };
        let mut workers = WorkerPages::new(hub, group, None);
        for _ in 0..WORKERS_LOOKED_AT {
            let Some(worker) = workers.next().await? else { break };
            let count = &mut overview.workers;
            if !worker.connected {
                count.away += 1;
                continue;
            }
            count.connected += 1;
            count.draining += u64::from(worker.draining);
            let barred = matches!(worker.conduct.standing, Standing::OnHold | Standing::Ejected);
            count.barred += u64::from(barred);
            count.fleet.has(&worker);
        }
        let mut jobs = Newest::new(hub, &JobFilter { group, ..JobFilter::default() }, None);
        for looked_at in 0..=JOBS_LOOKED_AT {
            let Some(job) = jobs.next().await? else { break };
            overview.is_cut = looked_at == JOBS_LOOKED_AT;
            if job.ended_ms.is_none() {
                overview.going_on.push(job);
            } else if job.state == JobState::Failed && overview.failed.len() < FAILED_MAX {
                overview.failed.push(job);
            }
        }
        Ok(overview)
    }

    fn json(&self) -> serde_json::Value {
        json!({
            "groups": self.groups,
            "workers": {
                "connected": self.workers.connected,
                "away": self.workers.away,
                "draining": self.workers.draining,
                "barred": self.workers.barred,
                "slots": self.workers.fleet.slots,
                "slots_used": self.workers.fleet.slots_used,
                "slots_ahead": self.workers.fleet.slots_ahead,
                "reserved": self.workers.fleet.reserved,
                "memory_bytes": self.workers.fleet.memory_bytes,
                "memory_used_bytes": self.workers.fleet.memory_used_bytes,
                "resources": self.workers.fleet.resources,
            },
            "jobs": self.going_on,
            "failed_lately": self.failed,
            "warnings": self.warnings,
        })
    }

    fn text(&self, hub: &Hub) -> String {
        let mut text = match hub.run() {
            Some(run) if hub.is_over() => format!("{}, not running\n", run.name()),
            Some(run) => format!("{}\n{}\n", run.name(), self.workers.text()),
            None => format!("hub at {}\n{}\n", hub.address(), self.workers.text()),
        };
        // Those about workers, groups and jobs are seen below.
        let is_of_hub = |warning: &&Warning| {
            warning.worker.is_none() && warning.job.is_none() && warning.group.is_none()
        };
        for warning in self.warnings.iter().filter(is_of_hub) {
            text.push_str(&format!("{}\n", Mood::Bad.paint(&safe(&warning.words))));
        }
        if self.groups.is_empty() {
            text.push_str("nothing was submitted yet: laboro submit -- echo {} ::: a b c");
            return text;
        }
        let mut groups = Table::new(GROUP_COLUMNS);
        self.groups.iter().for_each(|group| groups.row(group_row(group)));
        text.push_str(&format!("\n{}\n", groups.text()));
        text.push_str(&jobs("active", &self.going_on, GOING_ON_MAX));
        text.push_str(&jobs("failed lately", &self.failed, FAILED_MAX));
        if self.going_on.is_empty() {
            text.push_str("\nno active jobs\n");
        }
        if self.is_cut {
            text.push_str(&format!("\nonly the newest {JOBS_LOOKED_AT} jobs were searched\n"));
        }
        text.truncate(text.trim_end().len());
        text
    }
}

impl WorkerCounts {
    fn text(&self) -> String {
        if self.connected == 0 {
            return Mood::Stuck.paint("no worker is connected: start one with `laboro worker`");
        }
        let mut words = vec![format!("{} connected", counted(self.connected, "worker"))];
        let others =
            [(self.away, "away"), (self.draining, "draining"), (self.barred, "on hold or ejected")];
        words.extend(others.iter().filter(|(n, _)| *n > 0).map(|(n, word)| format!("{n} {word}")));
        words.push(format!("{} of {} slots in use", self.fleet.slots_used, self.fleet.slots));
        if self.fleet.slots_ahead > 0 {
            words.push(format!("{} more dispatched ahead", self.fleet.slots_ahead));
        }
        words.extend(self.fleet.resources_in_use().iter().map(|shown| safe(shown)));
        if self.fleet.reserved > 0 {
            words.push(format!("{} reserved", self.fleet.reserved));
        }
        words.join(", ")
    }
}

fn jobs(title: &str, jobs: &[Job], most: usize) -> String {
    if jobs.is_empty() {
        return String::new();
    }
    let mut table = Table::new(JOB_COLUMNS);
    let now = now_ms();
    jobs.iter().take(most).for_each(|job| table.row(job_row(job, now)));
    let more = match jobs.len().saturating_sub(most) {
        0 => String::new(),
        more => format!("… and {more} more: laboro jobs\n"),
    };
    format!("\n{title}\n{}\n{more}", table.text())
}

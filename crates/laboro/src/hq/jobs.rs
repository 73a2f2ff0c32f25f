//! `hq job list`, `hq job info` and `hq job cancel`.

use super::{COMMON, Mode, mode};
use crate::args::hub::HubArgs;
use crate::hub_client::{Hub, JobFilter, Newest, Verb};
use crate::resolve::{Chosen, Which};
use crate::slurm::options::{Opt, Takes, TypedOptions, WordsBegin, ignored, means, parse};
use crate::slurm::{Fault, ask, put};
use laboro_api::{Job, JobState};
use serde_json::{Value, json};

const LIST: [Opt; 7] = [
    COMMON[0],
    COMMON[1],
    COMMON[2],
    COMMON[3],
    means("all", None, Takes::Nothing),
    means("filter", None, Takes::Value),
    ignored("verbose", Some('v'), Takes::Nothing),
];

const STATES: [&str; 5] = ["waiting", "running", "finished", "failed", "canceled"];

pub(super) fn list(outer: &TypedOptions, args: Vec<String>) -> Result<u8, Fault> {
    let typed = parse(&LIST, WordsBegin::Anywhere, args)?;
    let mode = mode(outer, &typed)?;
    if let Some(word) = typed.words.first() {
        return Err(Fault::from(format!("`{word}` is not an option of `hq job list`")));
    }
    let filter = typed.list("filter");
    if let Some(wrong) = filter.iter().find(|word| !STATES.contains(word) && **word != "opened") {
        return Err(Fault::from(format!("--filter {wrong}: {}", STATES.join(", "))));
    }
    let is_wanted = |job: &Job| {
        let state = state(job).to_ascii_lowercase();
        match (typed.has("all"), &filter[..]) {
            (_, words @ [_, ..]) => {
                words.contains(&&*state) || (job.open && words.contains(&"opened"))
            }
            (true, []) => true,
            (false, []) => job.open || ["waiting", "running"].contains(&&*state),
        }
    };
    ask(&HubArgs::default(), async |hub| {
        let mut found = Vec::new();
        let mut jobs = Newest::new(hub, &JobFilter::default(), None);
        while let Some(job) = jobs.next().await? {
            if is_wanted(&job) {
                found.push(job);
            }
        }
        found.reverse();
        put(&shown(mode, &found)?)?;
        Ok(0)
    })
}

pub(super) fn info(outer: &TypedOptions, args: Vec<String>) -> Result<u8, Fault> {
    let typed = parse(&COMMON, WordsBegin::Anywhere, args)?;
    let mode = mode(outer, &typed)?;
    ask(&HubArgs::default(), async |hub| {
        let mut found = Vec::new();
        for job in selected(hub, &typed.words).await? {
            found.push(hub.job(job).await?);
        }
        put(&shown(mode, &found)?)?;
        Ok(0)
    })
}

pub(super) fn cancel(outer: &TypedOptions, args: Vec<String>) -> Result<u8, Fault> {
    let typed = parse(&COMMON, WordsBegin::Anywhere, args)?;
    let mode = mode(outer, &typed)?;
    ask(&HubArgs::default(), async |hub| {
        let (mut told, mut status) = (Vec::new(), 0);
        for job in selected(hub, &typed.words).await? {
            let before = match hub.job(job).await {
                Ok(job) => job,
                Err(error) => {
                    crate::output::say(format_args!("hq: error: job {job}: {error:#}"));
                    status = 1;
                    continue;
                }
            };
            let open = before.counts.unfinished();
            if open > 0 {
                // It may have ended in this moment: then there is nothing to cancel.
                let cancelled = hub.change(&Chosen { job, which: Which::Job }, Verb::Cancel).await;
                if let Err(error) = cancelled
                    && hub.job(job).await?.counts.unfinished() > 0
                {
                    return Err(error.into());
                }
            }
            if mode == Mode::Cli {
                let over = before.counts.finished();
                put(&format!("Job {job} canceled ({open} canceled, {over} already finished)\n"))?;
            }
            told.push(json!({ "id": job, "canceled": open }));
        }
        if mode == Mode::Json {
            put(&pretty(&Value::Array(told))?)?;
        }
        Ok(status)
    })
}

/// `3`, `1-4`, `1,2,7-9`, `last`, `all`.
async fn selected(hub: &Hub, words: &[String]) -> Result<Vec<u32>, Fault> {
    let [word] = words else {
        return Err(Fault::from("which jobs? write 3, 1,2, 1-4, last or all"));
    };
    let mut found = Vec::new();
    if word == "last" || word == "all" {
        let mut jobs = Newest::new(hub, &JobFilter::default(), None);
        while let Some(job) = jobs.next().await? {
            found.push(job.job);
            if word == "last" {
                break;
            }
        }
        return Ok(found);
    }
    for part in word.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let wrong = |_| Fault::from(format!("`{part}` is not the number of a job"));
        let (first, last): (u32, u32) =
            (first.parse().map_err(wrong)?, last.parse().map_err(wrong)?);
        if last < first || last - first > 100_000 {
            return Err(Fault::from(format!("`{part}` is not a range of jobs")));
        }
        found.extend(first..=last);
    }
    Ok(found)
}

fn state(job: &Job) -> &'static str {
    match job.state {
        JobState::Done => "FINISHED",
        JobState::Failed => "FAILED",
        JobState::Cancelled => "CANCELED",
        _ if job.counts.running > 0 => "RUNNING",
        JobState::Waiting
        | JobState::Running
        | JobState::Held
        | JobState::Stopped
        | JobState::Unknown => "WAITING",
    }
}

fn shown(mode: Mode, jobs: &[Job]) -> Result<String, Fault> {
    match mode {
        Mode::Quiet => Ok(jobs.iter().map(|job| format!("{} {}\n", job.job, state(job))).collect()),
        Mode::Json => pretty(&Value::Array(jobs.iter().map(as_json).collect())),
        Mode::Cli => Ok(table(jobs)),
    }
}

fn as_json(job: &Job) -> Value {
    let counts = &job.counts;
    json!({
        "id": job.job,
        "name": job.name.to_string(),
        "task_count": job.tasks,
        "task_stats": {
            "running": counts.running,
            "finished": counts.done,
            "failed": counts.failed,
            "canceled": counts.cancelled,
            "waiting": counts.unfinished() - counts.running,
        },
        "is_open": job.open,
    })
}

fn pretty(value: &Value) -> Result<String, Fault> {
    serde_json::to_string_pretty(value)
        .map(|text| text + "\n")
        .map_err(|error| Fault::Error(error.into()))
}

fn table(jobs: &[Job]) -> String {
    let heads = ["ID", "Name", "State", "Tasks"].map(str::to_owned);
    let mut rows = vec![heads];
    let cells = |job: &Job| {
        let name = crate::output::safe(&job.name.to_string()).to_string();
        [job.job.to_string(), name, state(job).to_owned(), job.tasks.to_string()]
    };
    rows.extend(jobs.iter().map(cells));
    let width = |column: usize| {
        rows.iter().map(|row: &[String; 4]| row[column].chars().count()).max().unwrap_or(0)
    };
    let widths = [width(0), width(1), width(2), width(3)];
    let rule: String = widths.iter().map(|width| format!("+{}", "-".repeat(width + 2))).collect();
    let mut text = format!("{rule}+\n");
    for (at, row) in rows.iter().enumerate() {
        for (cell, width) in row.iter().zip(widths) {
            text += &format!("| {cell:<width$} ");
        }
        text += "|\n";
        if at == 0 {
            text += &format!("{rule}+\n");
        }
    }
    text + &rule + "+\n"
}

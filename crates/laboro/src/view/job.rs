//! Jobs: a row of a list, a bar of what became of the tasks.

use super::{ago, between, short_clock};
use crate::output::table::{Column, Mood};
use laboro_api::{Counts, Job, JobState};

pub(crate) const JOB_COLUMNS: &[Column] = &[
    Column::Right("job"),
    Column::Left("name"),
    Column::Left("owner"),
    Column::Left("group"),
    Column::Left("state"),
    Column::Right("tasks"),
    Column::Right("done"),
    Column::Right("failed"),
    Column::Right("running"),
    Column::Right("age"),
    Column::Right("took"),
];

pub(crate) fn job_row(job: &Job, now_ms: u64) -> [(String, Mood); 11] {
    let plain = |text: String| (text, Mood::Plain);
    let count = |count: u64, mood| match count {
        0 => ("0".to_owned(), Mood::Faint),
        count => (count.to_string(), mood),
    };
    let (word, mood) = state_of_job(job);
    let state = match job.begin_ms.filter(|_| job.state == JobState::Waiting) {
        Some(begin) => format!("begins {}", short_clock(begin, now_ms)),
        None => word.to_owned(),
    };
    [
        plain(job.job.to_string()),
        plain(job.name.to_string()),
        plain(job.owner.as_ref().map(ToString::to_string).unwrap_or_default()),
        plain(job.group.to_string()),
        (state, mood),
        plain(job.tasks.to_string()),
        count(job.counts.done, Mood::Good),
        count(job.counts.failed, Mood::Bad),
        count(job.counts.running, Mood::Busy),
        plain(ago(job.submitted_ms, now_ms)),
        plain(time_of_job(job, now_ms)),
    ]
}

/// How long it took, or takes by now. Nothing of it takes time before it begins.
pub(crate) fn time_of_job(job: &Job, now_ms: u64) -> String {
    match (job.ended_ms, job.begin_ms) {
        (None, Some(_)) => String::new(),
        (ended, _) => between(job.submitted_ms, ended.unwrap_or(now_ms)),
    }
}

/// One word for where it is. What is over but for tasks that wait for a person is said so.
pub(crate) fn state_of_job(job: &Job) -> (&'static str, Mood) {
    match job.state {
        JobState::Waiting if job.open && job.counts.unfinished() == 0 => ("open", Mood::Stuck),
        JobState::Waiting if job.is_idle() => ("blocked", Mood::Bad),
        JobState::Waiting => ("waiting", Mood::Plain),
        JobState::Running => ("running", Mood::Busy),
        JobState::Held => ("held", Mood::Stuck),
        JobState::Stopped => ("stopped", Mood::Bad),
        JobState::Done => ("done", Mood::Good),
        JobState::Failed => ("failed", Mood::Bad),
        JobState::Cancelled => ("cancelled", Mood::Faint),
        JobState::Unknown => ("?", Mood::Plain),
    }
}

/// `98 done, 1 failed, 1 running`: every state that has tasks in it, what is over first.
pub(crate) fn bar_of(counts: &Counts) -> String {
    let all = [
        (counts.done, "done", Mood::Good),
        (counts.failed, "failed", Mood::Bad),
        (counts.cancelled, "cancelled", Mood::Faint),
        (counts.running, "running", Mood::Busy),
        (counts.ready, "ready", Mood::Plain),
        (counts.delayed, "delayed", Mood::Stuck),
        (counts.waiting, "waiting", Mood::Plain),
        (counts.blocked, "blocked", Mood::Bad),
        (counts.held, "held", Mood::Stuck),
    ];
    let said = all.iter().filter(|(count, ..)| *count > 0);
    let said: Vec<String> =
        said.map(|(count, word, mood)| mood.paint(&format!("{count} {word}"))).collect();
    if said.is_empty() { "no tasks".to_owned() } else { said.join(", ") }
}

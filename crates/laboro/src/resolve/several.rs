//! One word that means several jobs: `all`, `mine`, `4-8,12`, a state such as `failed`, a name with `*`; and tasks of a job
//! by a name with `*`. What means one job or task is looked up as ever.

use super::{Chosen, Which, any, find_job};
use crate::exit::{refused, usage};
use crate::hub_client::{Hub, JobFilter, Newest, Owner};
use crate::output::{safe, say};
use crate::selector::{JobRef, is_ranges};
use laboro_api::{Job, JobState, Parts, fits};

/// What is to be done, and so which jobs are meant by a word for many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Whatever they are.
    Look,
    /// Those that are not over.
    Change,
    /// Those with failed tasks.
    Retry,
    /// Those that take more tasks.
    Close,
    /// Those that are over.
    Forget,
}

impl Purpose {
    fn suits(self, job: &Job) -> bool {
        match self {
            Purpose::Look => true,
            Purpose::Change => job.ended_ms.is_none(),
            Purpose::Retry => job.counts.failed > 0,
            Purpose::Close => job.open,
            Purpose::Forget => job.ended_ms.is_some(),
        }
    }

    fn lack(self) -> &'static str {
        match self {
            Purpose::Look => "there is none",
            Purpose::Change => "all are over",
            Purpose::Retry => "none has failed tasks",
            Purpose::Close => "none is open",
            Purpose::Forget => "none is over",
        }
    }
}

/// How words are understood.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reading<'a> {
    pub(crate) purpose: Purpose,
    /// Where the name of a task is looked for.
    pub(crate) group: Option<&'a str>,
    /// Words for many mean jobs of everybody.
    pub(crate) everybody: bool,
}

/// More are not typed by mistake only.
const RANGE_MAX: u64 = 10_000;

/// Everything that a word means, in the order of jobs; at least one thing.
pub(crate) async fn several(
    hub: &Hub,
    text: &str,
    how: Reading<'_>,
) -> anyhow::Result<Vec<Chosen>> {
    if hub.run().is_some() {
        return Ok(vec![any(hub, text, how.group).await?]);
    }
    let whose = if how.everybody { Owner::Anyone } else { Owner::Me };
    if text == "all" || text == "mine" {
        let whose = if text == "mine" { Owner::Me } else { whose };
        return jobs(hub, text, JobFilter { owner: whose, ..JobFilter::default() }, how, |_| true)
            .await;
    }
    if is_ranges(text) && text.contains([',', '-']) {
        return numbered(hub, text, how).await;
    }
    if let Some((job, pattern)) = text.split_once('/')
        && is_pattern(pattern)
        && !is_pattern(job)
    {
        return Ok(vec![tasks_like(hub, job, pattern).await?]);
    }
    if is_pattern(text) {
        let filter = JobFilter { owner: whose, group: how.group, ..JobFilter::default() };
        return jobs(hub, text, filter, how, |job| fits(text, &job.name.to_string())).await;
    }
    if let Some(state) = JobState::from_word(text) {
        if let Some(named) = find_job(hub, &JobRef::Name(text.to_owned())).await? {
            return Err(usage(format!(
                "{text}: a job has this name: say {named}, or `laboro jobs --state {text}` for the numbers of jobs in this state"
            )));
        }
        let state = Some(state);
        let filter = JobFilter { owner: whose, group: how.group, state, ..JobFilter::default() };
        return jobs(hub, text, filter, how, |_| true).await;
    }
    Ok(vec![any(hub, text, how.group).await?])
}

async fn jobs(
    hub: &Hub,
    text: &str,
    filter: JobFilter<'_>,
    how: Reading<'_>,
    is_meant: impl Fn(&Job) -> bool,
) -> anyhow::Result<Vec<Chosen>> {
    let mut all = Newest::new(hub, &filter, None);
    let mut found = Vec::new();
    while let Some(job) = all.next().await? {
        if is_meant(&job) && how.purpose.suits(&job) {
            found.push(Chosen { job: job.job, which: Which::Job });
        }
    }
    found.reverse();
    if found.is_empty() {
        let whose = if filter.owner == Owner::Me { " of your jobs" } else { "" };
        return Err(refused(format!(
            "{}: nothing to do{whose}: {}",
            safe(text),
            how.purpose.lack()
        )));
    }
    Ok(found)
}

/// `4-8,12`. One that is named by itself must be there; in a range those are meant that are.
async fn numbered(hub: &Hub, text: &str, how: Reading<'_>) -> anyhow::Result<Vec<Chosen>> {
    let mut found: Vec<Chosen> = Vec::new();
    for part in text.split(',') {
        let number = |text: &str| match JobRef::parse(text).map_err(usage)? {
            JobRef::Number(number) => Ok(number),
            JobRef::Last | JobRef::Name(_) => {
                Err(usage(format!("{text} is not the number of a job")))
            }
        };
        let Some((first, last)) = part.split_once('-') else {
            found.push(Chosen { job: number(part)?, which: Which::Job });
            continue;
        };
        let (first, last) = (number(first)?, number(last)?);
        if last < first {
            return Err(usage(format!("{part}: the last number is below the first")));
        }
        if u64::from(last - first) >= RANGE_MAX {
            return Err(usage(format!("{part}: more than {RANGE_MAX} jobs")));
        }
        for number in first..=last {
            match hub.job_if_there(number).await? {
                Some(job) if how.purpose.suits(&job) => {
                    found.push(Chosen { job: number, which: Which::Job });
                }
                Some(_) => say(format_args!("job {number}: nothing to do")),
                None => {}
            }
        }
    }
    let mut seen = std::collections::BTreeSet::new();
    found.retain(|chosen| seen.insert(chosen.job));
    match found.is_empty() {
        true => Err(refused(format!("{}: nothing to do: {}", safe(text), how.purpose.lack()))),
        false => Ok(found),
    }
}

/// Tasks and whole arrays of a job whose names fit.
async fn tasks_like(hub: &Hub, job: &str, pattern: &str) -> anyhow::Result<Chosen> {
    let number = super::job(hub, job).await?;
    let (mut ranges, mut from) = (Vec::new(), Some(1));
    while let Some(first) = from {
        let page: Parts = hub.get(&format!("jobs/{number}/parts?from={first}&limit=1000")).await?;
        for part in page.parts.iter().filter(|part| fits(pattern, &part.name.to_string())) {
            ranges.push((part.first, part.first + (part.count.max(1) - 1)));
        }
        from = page.next;
    }
    match ranges.is_empty() {
        true => Err(refused(format!("there is no task {} in job {number}", safe(pattern)))),
        false => Ok(Chosen { job: number, which: Which::Ranges(ranges) }),
    }
}

fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?'])
}

//! From what a person wrote to the numbers a hub knows: the newest job of a name, the task of a name. Asks the
//! hub, changes nothing.

mod several;

pub(crate) use several::{Purpose, Reading, several};

use crate::exit::{refused, usage};
use crate::hub_client::{Hub, JobFilter, Newest, Owner};
use crate::output::safe;
use crate::selector::{self, JobRef, Selector};
use laboro_api::{Parts, Selection, Task, TaskState};
use laboro_core::State;
use std::borrow::Cow;

/// Tasks of one job, or the job itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Chosen {
    pub(crate) job: u32,
    pub(crate) which: Which,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Which {
    Job,
    Ranges(Vec<(u32, u32)>),
    InState(State),
}

impl Chosen {
    pub(crate) fn selection(&self) -> Selection {
        match &self.which {
            Which::Job => Selection::default(),
            Which::Ranges(ranges) => {
                let ranges: Vec<String> = ranges.iter().map(range).collect();
                Selection { tasks: Some(ranges.join(",")), state: None }
            }
            Which::InState(state) => {
                Selection { tasks: None, state: Some(TaskState::from(*state)) }
            }
        }
    }

    /// The one task, if it is one by its number.
    pub(crate) fn one_task(&self) -> Option<u32> {
        match &self.which {
            Which::Ranges(ranges) => match ranges.as_slice() {
                &[(first, last)] if first == last => Some(first),
                _ => None,
            },
            Which::Job | Which::InState(_) => None,
        }
    }

    fn task(task: &Task) -> Chosen {
        Chosen { job: task.job, which: Which::Ranges(vec![(task.task, task.task)]) }
    }
}

fn range(&(first, last): &(u32, u32)) -> String {
    if first == last { first.to_string() } else { format!("{first}-{last}") }
}

/// The number of a job.
pub(crate) async fn job(hub: &Hub, text: &str) -> anyhow::Result<u32> {
    let job = JobRef::parse(text).map_err(usage)?;
    find_job(hub, &job).await?.ok_or_else(|| no_job(&job))
}

/// Jobs and tasks alike. `group` is where a name is looked for.
pub(crate) async fn any(hub: &Hub, text: &str, group: Option<&str>) -> anyhow::Result<Chosen> {
    let text = &*in_run(hub, text);
    let (found, job) = match Selector::parse(text).map_err(usage)? {
        Selector::Job(job) => (Which::Job, job),
        Selector::Ranges(job, ranges) => (Which::Ranges(ranges), job),
        Selector::InState(job, state) => (Which::InState(state), job),
        Selector::NamedIn(job, name) => return named_in(hub, &job, &name, group).await,
        Selector::Name(name) => return named(hub, &name, group).await,
    };
    if let Some(number) = find_job(hub, &job).await? {
        return Ok(Chosen { job: number, which: found });
    }
    // `deep/5` may be the name of a task after all.
    if let JobRef::Name(_) = job
        && let Some(task) = hub.task_named(group, text).await?
    {
        return Ok(Chosen::task(&task));
    }
    Err(no_job(&job))
}

/// A run has one job, so a number, several, or a state mean tasks of it.
fn in_run<'a>(hub: &Hub, text: &'a str) -> Cow<'a, str> {
    match hub.run() {
        Some(_) if selector::is_tasks(text) => Cow::Owned(format!("last/{text}")),
        _ => Cow::Borrowed(text),
    }
}

/// One task, or what else the words mean: a job, or several tasks of it.
pub(crate) async fn task_or_job(
    hub: &Hub,
    text: &str,
    group: Option<&str>,
) -> anyhow::Result<Chosen> {
    let text = &*in_run(hub, text);
    // A task comes before a job of the same name.
    if let Selector::Name(name) = Selector::parse(text).map_err(usage)?
        && let Some(task) = hub.task_named(group, &name).await?
    {
        return Ok(Chosen::task(&task));
    }
    any(hub, text, group).await
}

/// One task.
pub(crate) async fn task(hub: &Hub, text: &str, group: Option<&str>) -> anyhow::Result<(u32, u32)> {
    let text = &*in_run(hub, text);
    // A task is wanted, so its name comes before that of a job.
    if let Selector::Name(name) = Selector::parse(text).map_err(usage)? {
        if let Some(task) = hub.task_named(group, &name).await? {
            return Ok((task.job, task.task));
        }
        if !name.contains('/') {
            return Err(no_task(hub, &name, group));
        }
    }
    let chosen = any(hub, text, group).await?;
    let task = chosen.one_task().ok_or_else(|| {
        usage(format!("{}: say which task, such as {}/1", safe(text), chosen.job))
    })?;
    Ok((chosen.job, task))
}

async fn named(hub: &Hub, name: &str, group: Option<&str>) -> anyhow::Result<Chosen> {
    let job = find_job(hub, &JobRef::Name(name.to_owned())).await?;
    let task = hub.task_named(group, name).await?;
    match (job, task) {
        (Some(job), None) => Ok(Chosen { job, which: Which::Job }),
        (None, Some(task)) => Ok(Chosen::task(&task)),
        (Some(job), Some(task)) => Err(usage(format!(
            "{}: a job and a task have this name: say {job} or {}/{}",
            safe(name),
            task.job,
            task.task
        ))),
        (None, None) => below(hub, name, group).await?.ok_or_else(|| {
            let place = in_group(hub, group);
            refused(format!("there is no job and no task {}{place}", safe(name)))
        }),
    }
}

/// `night/fit`: the task or array `fit` of the newest job `night`.
async fn below(hub: &Hub, text: &str, group: Option<&str>) -> anyhow::Result<Option<Chosen>> {
    let Some((job, name)) = text.split_once('/') else { return Ok(None) };
    let job = JobRef::Name(job.to_owned());
    match find_job(hub, &job).await? {
        None => Ok(None),
        Some(number) => named_in(hub, &JobRef::Number(number), name, group).await.map(Some),
    }
}

/// All elements of an array of this name. Its first element has a name too, which leads to it.
async fn array(
    hub: &Hub,
    job: u32,
    group: Option<&str>,
    name: &str,
) -> anyhow::Result<Option<Chosen>> {
    let first = hub.task_named(group, &format!("{job}/{name}.1")).await?;
    let Some(first) = first.filter(|task| task.job == job) else { return Ok(None) };
    let path = format!("jobs/{job}/parts?from={}&limit=1", first.task);
    let page: Parts = hub.get(&path).await?;
    let whole = page.parts.into_iter().find(|part| part.first == first.task && part.name == name);
    Ok(whole.map(|part| {
        let last = part.first + (part.count.max(1) - 1);
        Chosen { job, which: Which::Ranges(vec![(part.first, last)]) }
    }))
}

/// A task of this job, by its name there.
async fn named_in(
    hub: &Hub,
    job: &JobRef,
    name: &str,
    group: Option<&str>,
) -> anyhow::Result<Chosen> {
    let number = find_job(hub, job).await?.ok_or_else(|| no_job(job))?;
    let group = match group {
        Some(group) => group.to_owned(),
        None => hub.job(number).await?.group.to_string(),
    };
    let task = hub.task_named(Some(&group), &format!("{number}/{name}")).await?;
    if let Some(task) = task.filter(|task| task.job == number) {
        return Ok(Chosen::task(&task));
    }
    let whole = array(hub, number, Some(&group), name).await?;
    whole.ok_or_else(|| refused(format!("there is no task {} in job {number}", safe(name))))
}

/// Where a word could mean the job of several people it means one's own.
async fn find_job(hub: &Hub, job: &JobRef) -> anyhow::Result<Option<u32>> {
    // A run has one job, and one user.
    let mine = if hub.run().is_some() { Owner::Anyone } else { Owner::Me };
    let newest = async |owner, name| -> anyhow::Result<Option<u32>> {
        let wanted = JobFilter { owner, name, ..JobFilter::default() };
        let job = Newest::new(hub, &wanted, Some(1)).next().await?;
        Ok(job.map(|job| job.job))
    };
    match job {
        JobRef::Number(number) => Ok(Some(*number)),
        JobRef::Last => newest(mine, None).await,
        JobRef::Name(name) => match newest(mine, Some(name)).await? {
            None if mine != Owner::Anyone => newest(Owner::Anyone, Some(name)).await,
            found => Ok(found),
        },
    }
}

fn no_job(job: &JobRef) -> anyhow::Error {
    match job {
        JobRef::Last => refused(
            "you have no jobs at the hub: submit one with `laboro submit`, or list all with `laboro jobs`",
        ),
        job => refused(format!("there is no job {job}: `laboro jobs` lists them")),
    }
}

fn no_task(hub: &Hub, name: &str, group: Option<&str>) -> anyhow::Error {
    let (name, place) = (safe(name), in_group(hub, group));
    refused(format!("there is no task {name}{place}: `laboro tasks JOB` lists those of a job"))
}

fn in_group(hub: &Hub, group: Option<&str>) -> String {
    match group {
        Some(group) => format!(" in group {}", safe(group)),
        None => format!(" in group {} (--group names another)", safe(hub.group())),
    }
}

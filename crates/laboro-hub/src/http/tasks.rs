//! Tasks of a job: a page of them, one of them, and why it does not run.

use super::Shared;
use super::answer::{Answer, Refused};
use super::entry::Visitor;
use super::extract::{Asked, At};
use super::jobs::{PAGE, PAGE_USUAL};
use axum::Json;
use axum::extract::State;
use laboro_api::{
    Explained, Missing, Part, Parts, Problem, Range, Ranges, Task, TaskState, Tasks, advice,
};
use laboro_core::{
    Command, Explanation, JobId, Name, Query, Refusal, Reply, TaskId, TaskRef, TaskView, Ties,
};
use serde::Deserialize;
use utoipa::IntoParams;

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct TasksQuery {
    /// Only tasks in this state.
    state: Option<TaskState>,
    /// The `next` of the page before.
    from: Option<u32>,
    /// At most this many, 1000 at most; 100 if not given.
    limit: Option<u32>,
}

/// Tasks of a job by number, a page at a time.
#[utoipa::path(get, path = "/jobs/{job}/tasks", tag = "tasks",
    params(("job" = u32, Path), TasksQuery),
    responses((status = 200, body = Tasks), (status = 404, body = Problem)))]
pub(super) async fn tasks(
    State(api): Shared,
    visitor: Visitor,
    At(job): At<u32>,
    Asked(asked): Asked<TasksQuery>,
) -> Answer<Tasks> {
    let state = match asked.state {
        None => None,
        Some(word) => {
            let state = word.to_core();
            Some(state.ok_or_else(|| {
                Refused::bad_request("bad_query", "`state` is not the state of a task")
            })?)
        }
    };
    let job = api.job(&visitor, job).await?.job;
    let from = asked.from.unwrap_or(1);
    let most = asked.limit.unwrap_or(PAGE_USUAL).clamp(1, PAGE);
    match api.ask(Command::Query(Query::Tasks { job, state, from, most })).await? {
        Reply::Tasks { tasks, next } => {
            let seen = tasks.into_iter().map(|task| Task::from(visitor.seen(task)));
            let mut tasks: Vec<Task> = seen.collect();
            api.add_ends(&mut tasks).await;
            Ok(Json(Tasks { tasks, next }))
        }
        reply => Err(Refused::unexpected(&reply)),
    }
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct PartsQuery {
    /// The `next` of the page before.
    from: Option<u32>,
    /// At most this many, 1000 at most; 100 if not given.
    limit: Option<u32>,
}

/// Arrays and single tasks of a job by number, with what they come after: the graph of a job. An array is one
/// part, however many elements it has.
#[utoipa::path(get, path = "/jobs/{job}/parts", tag = "tasks",
    params(("job" = u32, Path), PartsQuery),
    responses((status = 200, body = Parts), (status = 404, body = Problem)))]
pub(super) async fn parts(
    State(api): Shared,
    visitor: Visitor,
    At(job): At<u32>,
    Asked(asked): Asked<PartsQuery>,
) -> Answer<Parts> {
    let job = api.job(&visitor, job).await?.job;
    let from = asked.from.unwrap_or(1);
    let most = asked.limit.unwrap_or(PAGE_USUAL).clamp(1, PAGE);
    match api.ask(Command::Query(Query::Parts { job, from, most })).await? {
        Reply::Parts { parts, next } => {
            let seen = parts.into_iter().map(|mut part| {
                visitor.hide(&mut part.preds);
                visitor.hide(&mut part.each);
                Part::from(part)
            });
            Ok(Json(Parts { parts: seen.collect(), next }))
        }
        reply => Err(Refused::unexpected(&reply)),
    }
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct RangesQuery {
    /// Tasks in this state.
    state: TaskState,
    /// The `next` of the page before.
    from: Option<u32>,
    /// At most this many ranges, 1000 at most; 100 if not given.
    limit: Option<u32>,
}

/// The numbers of a job's tasks in one state, as ranges: cheap, however many tasks there are.
#[utoipa::path(get, path = "/jobs/{job}/ranges", tag = "tasks",
    params(("job" = u32, Path), RangesQuery),
    responses((status = 200, body = Ranges), (status = 404, body = Problem)))]
pub(super) async fn ranges(
    State(api): Shared,
    visitor: Visitor,
    At(job): At<u32>,
    Asked(asked): Asked<RangesQuery>,
) -> Answer<Ranges> {
    let job = api.job(&visitor, job).await?.job;
    let from = asked.from.unwrap_or(1);
    let most = asked.limit.unwrap_or(PAGE_USUAL).clamp(1, PAGE);
    let state = asked
        .state
        .to_core()
        .ok_or_else(|| Refused::bad_request("bad_query", "there is no such state"))?;
    match api.ask(Command::Query(Query::Ranges { job, state, from, most })).await? {
        Reply::Ranges { ranges, next } => {
            let ranges = ranges.into_iter().map(|(first, last)| Range { first, last }).collect();
            Ok(Json(Ranges { ranges, next }))
        }
        reply => Err(Refused::unexpected(&reply)),
    }
}

/// One task with what it runs and its attempts.
#[utoipa::path(get, path = "/jobs/{job}/tasks/{task}", tag = "tasks",
    params(("job" = u32, Path), ("task" = u32, Path)),
    responses((status = 200, body = Task), (status = 404, body = Problem)))]
pub(super) async fn task(
    State(api): Shared,
    visitor: Visitor,
    At((job, task)): At<(u32, u32)>,
) -> Answer<Task> {
    let group = api.job(&visitor, job).await?.group;
    let mut task = api.show_task(&visitor, group, by_number(job, task)?).await?;
    api.add_ends(std::slice::from_mut(&mut task)).await;
    Ok(Json(task))
}

/// Why a task is not running, in plain words.
#[utoipa::path(get, path = "/jobs/{job}/tasks/{task}/explain", tag = "tasks",
    params(("job" = u32, Path), ("task" = u32, Path)),
    responses((status = 200, body = Explained), (status = 404, body = Problem)))]
pub(super) async fn explain(
    State(api): Shared,
    visitor: Visitor,
    At((job, task)): At<(u32, u32)>,
) -> Answer<Explained> {
    let group = api.job(&visitor, job).await?.group;
    by_number(job, task)?;
    api.explain_task(&visitor, group, TaskId::new(JobId(job), task)).await.map(Json)
}

/// The upper bit of a number is the core's mark of a whole array.
pub(super) fn by_number(job: u32, task: u32) -> Result<TaskRef, Refused> {
    if (1..=TaskId::INDEX_MAX).contains(&task) {
        Ok(TaskRef::Id(TaskId::new(JobId(job), task)))
    } else {
        Err(Refusal::NoSuchTask(Name::from(format!("{job}/{task}"))).into())
    }
}

impl Visitor {
    fn seen(&self, mut task: TaskView) -> TaskView {
        self.hide(&mut task.preds);
        self.hide(&mut task.succs);
        task
    }

    /// What others have tied to tasks of its group is not for a token that is bound to it.
    fn hide(&self, ties: &mut Ties) {
        if self.bound_to().is_some() {
            ties.elsewhere.clear();
        }
    }
}

impl super::Api {
    pub(super) async fn show_task(
        &self,
        visitor: &Visitor,
        group: Name,
        task: TaskRef,
    ) -> Result<Task, Refused> {
        let view = self.view_task(group, task).await?;
        Ok(Task::in_full(visitor.seen(view)))
    }

    /// As the hub sees it.
    pub(super) async fn view_task(&self, group: Name, task: TaskRef) -> Result<TaskView, Refused> {
        match self.ask(Command::Query(Query::Task { group, task })).await? {
            Reply::Task(view) => Ok(*view),
            reply => Err(Refused::unexpected(&reply)),
        }
    }

    pub(super) async fn explain_task(
        &self,
        visitor: &Visitor,
        group: Name,
        id: TaskId,
    ) -> Result<Explained, Refused> {
        let task = match visitor.bound_to() {
            Some(_) => TaskRef::Own(id),
            None => TaskRef::Id(id),
        };
        match self.ask(Command::Query(Query::Explain { group, task })).await? {
            Reply::Explained(why) => {
                let explanation = match advice(&why) {
                    Some(advice) => format!("{why}; {advice}"),
                    None => why.to_string(),
                };
                let missing = Missing::of(&why);
                let pools = match (&*why, &self.services.pools) {
                    (Explanation::Ready { group, .. }, Some(pools)) => {
                        let view = self.view_task(group.clone(), TaskRef::Id(id)).await?;
                        pools.explain(group, &view)
                    }
                    _ => Vec::new(),
                };
                Ok(Explained { job: id.job.0, task: id.index, explanation, missing, pools })
            }
            reply => Err(Refused::unexpected(&reply)),
        }
    }
}

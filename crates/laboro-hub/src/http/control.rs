//! What people do to jobs and their tasks: hold, release, cancel, retry, priority, limits.

use super::Shared;
use super::answer::{Answer, Refused};
use super::entry::Visitor;
use super::extract::{At, JsonBody};
use super::submit::nothing_would_run;
use axum::Json;
use axum::extract::State;
use laboro_api::{Changed, Job, Limit, Prioritise, Problem, Selection};
use laboro_core::{Command, JobId, Reply};

/// Nothing of the selection starts until it is released; running tasks continue.
#[utoipa::path(post, path = "/jobs/{job}/hold", tag = "control", params(("job" = u32, Path)),
    request_body = Selection,
    responses((status = 200, body = Changed), (status = 404, body = Problem)))]
pub(super) async fn hold(
    State(api): Shared,
    visitor: Visitor,
    At(job): At<u32>,
    JsonBody(selection): JsonBody<Selection>,
) -> Answer<Changed> {
    api.change(&visitor, job, &selection, Command::Hold).await.map(Json)
}

/// Lifts a hold, and resumes a job that stopped after too many failures.
#[utoipa::path(post, path = "/jobs/{job}/release", tag = "control", params(("job" = u32, Path)),
    request_body = Selection,
    responses((status = 200, body = Changed), (status = 404, body = Problem)))]
pub(super) async fn release(
    State(api): Shared,
    visitor: Visitor,
    At(job): At<u32>,
    JsonBody(selection): JsonBody<Selection>,
) -> Answer<Changed> {
    api.change(&visitor, job, &selection, Command::Release).await.map(Json)
}

/// Ends what runs and what has not started.
#[utoipa::path(post, path = "/jobs/{job}/cancel", tag = "control", params(("job" = u32, Path)),
    request_body = Selection,
    responses((status = 200, body = Changed), (status = 409, body = Problem)))]
pub(super) async fn cancel(
    State(api): Shared,
    visitor: Visitor,
    At(job): At<u32>,
    JsonBody(selection): JsonBody<Selection>,
) -> Answer<Changed> {
    api.change(&visitor, job, &selection, Command::Cancel).await.map(Json)
}

/// Failed tasks run again in place; cancelled ones too where a selection names them.
#[utoipa::path(post, path = "/jobs/{job}/retry", tag = "control", params(("job" = u32, Path)),
    request_body = Selection,
    responses((status = 200, body = Changed), (status = 409, body = Problem)))]
pub(super) async fn retry(
    State(api): Shared,
    visitor: Visitor,
    At(job): At<u32>,
    JsonBody(selection): JsonBody<Selection>,
) -> Answer<Changed> {
    api.change(&visitor, job, &selection, Command::Retry).await.map(Json)
}

/// Higher runs first.
#[utoipa::path(post, path = "/jobs/{job}/priority", tag = "control", params(("job" = u32, Path)),
    request_body = Prioritise,
    responses((status = 200, body = Changed), (status = 404, body = Problem)))]
pub(super) async fn priority(
    State(api): Shared,
    visitor: Visitor,
    At(job): At<u32>,
    JsonBody(asked): JsonBody<Prioritise>,
) -> Answer<Changed> {
    let selection = Selection { tasks: asked.tasks, state: asked.state };
    let prioritise = |selection| Command::Prioritise(selection, asked.priority);
    api.change(&visitor, job, &selection, prioritise).await.map(Json)
}

/// How many tasks of the job may run at once, and how many may fail before it stops.
#[utoipa::path(post, path = "/jobs/{job}/limit", tag = "control", params(("job" = u32, Path)),
    request_body = Limit,
    responses((status = 200, body = Job), (status = 404, body = Problem)))]
pub(super) async fn limit(
    State(api): Shared,
    visitor: Visitor,
    At(job): At<u32>,
    JsonBody(asked): JsonBody<Limit>,
) -> Answer<Job> {
    api.job_to_change(&visitor, job).await?;
    visitor.note(serde_json::to_string(&asked).unwrap_or_default());
    let Limit { max_running, max_fails } = asked;
    if max_running == Some(Some(0)) {
        return Err(nothing_would_run());
    }
    api.ask(Command::Limit { job: JobId(job), max_running, max_fails }).await?;
    Ok(Json(api.job(&visitor, job).await?.into()))
}

impl super::Api {
    /// Does something to a selection of a job that the visitor may control.
    pub(super) async fn change(
        &self,
        visitor: &Visitor,
        job: u32,
        selection: &Selection,
        what: impl FnOnce(laboro_core::Selection) -> Command,
    ) -> Result<Changed, Refused> {
        self.job_to_change(visitor, job).await?;
        let selected = selection.to_core(JobId(job))?;
        let command = what(selected);
        visitor.note(noted(&command, selection));
        match self.ask(command).await? {
            Reply::Changed { tasks } => Ok(Changed { tasks }),
            reply => Err(Refused::unexpected(&reply)),
        }
    }
}

fn noted(command: &Command, selection: &Selection) -> String {
    let which = match (&selection.tasks, selection.state) {
        (Some(tasks), _) => format!("tasks {tasks}"),
        (None, Some(state)) => format!("tasks that are {}", state.word()),
        (None, None) => "the job".to_owned(),
    };
    match command {
        Command::Prioritise(_, priority) => format!("{which}, priority {priority}"),
        _ => which,
    }
}

//! Jobs: looking at them, closing them, forgetting them.

use super::Shared;
use super::answer::{Answer, Refused};
use super::entry::Visitor;
use super::extract::{Asked, At};
use axum::Json;
use axum::extract::State;
use laboro_api::{Changed, Job, JobState, Jobs, Problem};
use laboro_core::{Command, JobId, JobView, Name, Query, Reply};
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct JobsQuery {
    group: Option<String>,
    /// Only jobs of this owner.
    owner: Option<String>,
    /// Only jobs of the owner of the token.
    #[serde(default)]
    mine: bool,
    /// Only jobs in this state.
    state: Option<JobState>,
    /// Only jobs of exactly this name.
    name: Option<String>,
    /// The `next` of the page before.
    from: Option<u32>,
    /// At most this many, 1000 at most; 100 if not given.
    limit: Option<u32>,
    #[serde(default)]
    #[param(inline)]
    order: JobOrder,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum JobOrder {
    #[default]
    Oldest,
    Newest,
}

/// What one request looks through at most, when it filters: more is for the next page.
const PAGES_LOOKED_THROUGH_MAX: usize = 16;

pub(super) const PAGE: u32 = 1000;
pub(super) const PAGE_USUAL: u32 = 100;

/// Jobs by number, a page at a time.
#[utoipa::path(get, path = "/jobs", tag = "jobs", params(JobsQuery),
    responses((status = 200, body = Jobs), (status = 404, body = Problem)))]
pub(super) async fn jobs(
    State(api): Shared,
    visitor: Visitor,
    Asked(asked): Asked<JobsQuery>,
) -> Answer<Jobs> {
    let group = match asked.group.as_deref() {
        None => visitor.bound_to().cloned(),
        Some(named) => Some(visitor.group(Some(named.into()))?),
    };
    if asked.state == Some(JobState::Unknown) {
        return Err(Refused::bad_request("bad_query", "`state` is not the state of a job"));
    }
    let owner = match (&asked.owner, asked.mine) {
        (Some(_), true) => {
            return Err(Refused::bad_request("bad_query", "give `owner` or `mine`, not both"));
        }
        (Some(owner), false) => Some(Name::from(owner.as_str())),
        (None, true) => Some(visitor.owner()),
        (None, false) => None,
    };
    let limit = asked.limit.unwrap_or(PAGE_USUAL).clamp(1, PAGE);
    let filters = asked.state.is_some() || asked.name.is_some();
    let mut found = Jobs::default();
    let mut at = asked.from.unwrap_or(match asked.order {
        JobOrder::Oldest => 0,
        JobOrder::Newest => u32::MAX - 1,
    });
    for _ in 0..PAGES_LOOKED_THROUGH_MAX {
        let wanted = limit - u32::try_from(found.jobs.len()).unwrap_or(limit);
        // One more than wanted tells whether there is a next page.
        let most = if filters { PAGE } else { (wanted + 1).min(PAGE) };
        let views =
            match api.ask(page((group.clone(), owner.clone()), asked.order, at, most)).await? {
                Reply::Jobs(views) => views,
                reply => return Err(Refused::unexpected(&reply)),
            };
        let is_last = views.len() < most as usize;
        for view in views {
            at = view.job.0;
            if found.jobs.len() == limit as usize {
                found.next = Some(at);
                return Ok(Json(found));
            }
            if let Some(job) = fitting(view, &asked) {
                found.jobs.push(job);
            }
        }
        let beyond = match asked.order {
            JobOrder::Oldest => at.checked_add(1),
            JobOrder::Newest => at.checked_sub(1),
        };
        match beyond {
            Some(next) if !is_last => at = next,
            _ => return Ok(Json(found)),
        }
    }
    found.next = Some(at);
    Ok(Json(found))
}

fn page(
    (group, owner): (Option<Name>, Option<Name>),
    order: JobOrder,
    at: u32,
    most: u32,
) -> Command {
    Command::Query(match order {
        JobOrder::Oldest => Query::Jobs { group, owner, from: JobId(at), most },
        JobOrder::Newest => {
            Query::JobsBefore { group, owner, before: JobId(at.saturating_add(1)), most }
        }
    })
}

fn fitting(view: JobView, asked: &JobsQuery) -> Option<Job> {
    let named = asked.name.as_ref().is_none_or(|name| view.name.bytes() == name.as_bytes());
    let job = named.then(|| Job::from(view))?;
    asked.state.is_none_or(|state| state == job.state).then_some(job)
}

/// One job with its counts.
#[utoipa::path(get, path = "/jobs/{job}", tag = "jobs", params(("job" = u32, Path)),
    responses((status = 200, body = Job), (status = 404, body = Problem)))]
pub(super) async fn job(State(api): Shared, visitor: Visitor, At(job): At<u32>) -> Answer<Job> {
    Ok(Json(api.job(&visitor, job).await?.into()))
}

/// No more tasks will be added.
#[utoipa::path(post, path = "/jobs/{job}/close", tag = "jobs", params(("job" = u32, Path)),
    responses((status = 200, body = Job), (status = 404, body = Problem)))]
pub(super) async fn close(State(api): Shared, visitor: Visitor, At(job): At<u32>) -> Answer<Job> {
    api.job_to_change(&visitor, job).await?;
    api.ask(Command::Close(JobId(job))).await?;
    Ok(Json(api.job(&visitor, job).await?.into()))
}

/// A finished job is forgotten now, with its tasks.
#[utoipa::path(delete, path = "/jobs/{job}", tag = "jobs", params(("job" = u32, Path)),
    responses((status = 200, body = Changed), (status = 404, body = Problem),
        (status = 409, body = Problem)))]
pub(super) async fn forget(
    State(api): Shared,
    visitor: Visitor,
    At(job): At<u32>,
) -> Answer<Changed> {
    let view = api.job_to_change(&visitor, job).await?;
    api.ask(Command::Forget(JobId(job))).await?;
    Ok(Json(Changed { tasks: view.counts.total() }))
}

//! `GET history` and `GET jobs/{job}/history`: what the hub remembers of the last while, in bounded room.

use super::answer::{Answer, Refused};
use super::entry::Visitor;
use super::extract::{Asked, At};
use super::{Api, Shared};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use laboro_api::{History, JobHistory, Problem};
use laboro_core::{Command, GroupId, JobId, Name, Query, Reply};
use serde::Deserialize;
use utoipa::IntoParams;

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct HistoryQuery {
    /// Only this group; all that the token sees if not given.
    group: Option<String>,
    /// Only samples after this moment: whoever looks again and again has the others already.
    #[serde(default)]
    after_ms: u64,
}

/// Throughput and queues over time, since the hub started.
#[utoipa::path(get, path = "/history", tag = "history", params(HistoryQuery),
    responses((status = 200, body = History), (status = 404, body = Problem)))]
pub(super) async fn history(
    State(api): Shared,
    visitor: Visitor,
    Asked(asked): Asked<HistoryQuery>,
) -> Answer<History> {
    let group = match asked.group {
        None => visitor.bound_to().cloned(),
        Some(named) => Some(visitor.group(Some(named.into()))?),
    };
    let group = api.group_id(group).await?;
    let mut past = api.past()?.series(group);
    past.seconds.retain(|sample| sample.at_ms > asked.after_ms);
    past.minutes.retain(|sample| sample.at_ms > asked.after_ms);
    Ok(Json(past))
}

/// Statistics of the tasks of a job: durations, workers, throughput. A job that is not remembered has an empty history.
#[utoipa::path(get, path = "/jobs/{job}/history", tag = "history", params(("job" = u32, Path)),
    responses((status = 200, body = JobHistory), (status = 404, body = Problem)))]
pub(super) async fn job_history(
    State(api): Shared,
    visitor: Visitor,
    At(job): At<u32>,
) -> Answer<JobHistory> {
    api.job(&visitor, job).await?;
    let known = api.past()?.job(JobId(job));
    Ok(Json(known.unwrap_or_else(|| JobHistory { job, every: 1, ..JobHistory::default() })))
}

impl Api {
    pub(super) fn past(&self) -> Result<&crate::history::History, Refused> {
        self.services.history.as_ref().ok_or_else(|| {
            let detail = "this hub keeps no history";
            Refused::new(StatusCode::NOT_FOUND, "no_history", detail)
        })
    }

    pub(super) async fn group_id(&self, group: Option<Name>) -> Result<Option<GroupId>, Refused> {
        let Some(group) = group else { return Ok(None) };
        match self.ask(Command::Query(Query::Group(group))).await? {
            Reply::Groups(groups) => Ok(groups.first().map(|group| group.group)),
            reply => Err(Refused::unexpected(&reply)),
        }
    }
}

//! Schedules: looking at them, and what an admin does to them.

use super::answer::{Answer, Refused};
use super::entry::Visitor;
use super::extract::At;
use super::{Api, Shared};
use crate::schedules::{ScheduleError, Schedules};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use laboro_api::{self as api, Problem};
use laboro_core::Name;

/// Jobs that the hub submits by the clock, as hub.toml has them.
#[utoipa::path(get, path = "/schedules", tag = "schedules", responses((status = 200, body = api::Schedules)))]
pub(super) async fn schedules(State(api): Shared, visitor: Visitor) -> Answer<api::Schedules> {
    let all = api.services.schedules.as_ref().map_or_else(Vec::new, Schedules::list);
    let schedules = all.into_iter().filter(|schedule| sees(&visitor, schedule)).collect();
    Ok(Json(api::Schedules { schedules }))
}

/// One of them.
#[utoipa::path(get, path = "/schedules/{name}", tag = "schedules", params(("name" = String, Path)),
    responses((status = 200, body = api::Schedule), (status = 404, body = Problem)))]
pub(super) async fn schedule(
    State(api): Shared,
    visitor: Visitor,
    At(name): At<String>,
) -> Answer<api::Schedule> {
    let schedule = known(&api, &name)?.show(&name)?;
    match sees(&visitor, &schedule) {
        true => Ok(Json(schedule)),
        false => Err(ScheduleError::Missing(name).into()),
    }
}

/// Submits its job now, whatever runs. For admins.
#[utoipa::path(post, path = "/schedules/{name}/run", operation_id = "run_schedule", tag = "schedules",
    params(("name" = String, Path)),
    responses((status = 200, body = api::Schedule), (status = 404, body = Problem), (status = 422, body = Problem)))]
pub(super) async fn run(
    State(api): Shared,
    visitor: Visitor,
    At(name): At<String>,
) -> Answer<api::Schedule> {
    may_change(&visitor)?;
    changed(&api, name, |schedules, name| async move { schedules.run_now(&name).await }).await
}

/// Submits nothing until it is resumed. For admins.
#[utoipa::path(post, path = "/schedules/{name}/pause", operation_id = "pause_schedule", tag = "schedules",
    params(("name" = String, Path)),
    responses((status = 200, body = api::Schedule), (status = 404, body = Problem)))]
pub(super) async fn pause(
    State(api): Shared,
    visitor: Visitor,
    At(name): At<String>,
) -> Answer<api::Schedule> {
    may_change(&visitor)?;
    changed(&api, name, |schedules, name| async move { schedules.pause(&name, true).await }).await
}

/// Undoes a pause; what was planned meanwhile is left out. For admins.
#[utoipa::path(post, path = "/schedules/{name}/resume", operation_id = "resume_schedule", tag = "schedules",
    params(("name" = String, Path)),
    responses((status = 200, body = api::Schedule), (status = 404, body = Problem)))]
pub(super) async fn resume(
    State(api): Shared,
    visitor: Visitor,
    At(name): At<String>,
) -> Answer<api::Schedule> {
    may_change(&visitor)?;
    changed(&api, name, |schedules, name| async move { schedules.pause(&name, false).await }).await
}

fn sees(visitor: &Visitor, schedule: &api::Schedule) -> bool {
    let group = schedule.group.as_deref();
    group.map_or(visitor.bound_to().is_none(), |group| visitor.sees(&Name::from(group)))
}

fn may_change(visitor: &Visitor) -> Result<(), Refused> {
    visitor.must_be_admin()?;
    visitor.must_be_unbound()
}

/// To its end, also when the client hangs up meanwhile.
async fn changed<F: Future<Output = Result<api::Schedule, ScheduleError>> + Send + 'static>(
    api: &Api,
    name: String,
    change: impl FnOnce(Schedules, String) -> F,
) -> Answer<api::Schedule> {
    let schedules = known(api, &name)?.clone();
    let came_to = tokio::spawn(change(schedules, name)).await;
    Ok(Json(came_to.map_err(|error| super::operation::internal(&error))??))
}

fn known<'a>(api: &'a Api, name: &str) -> Result<&'a Schedules, Refused> {
    let none = || ScheduleError::Missing(name.to_owned());
    Ok(api.services.schedules.as_ref().ok_or_else(none)?)
}

impl From<ScheduleError> for Refused {
    fn from(error: ScheduleError) -> Refused {
        let (status, reason) = match &error {
            ScheduleError::Missing(_) => (StatusCode::NOT_FOUND, "no_such_schedule"),
            ScheduleError::NotSubmitted(_) => (StatusCode::UNPROCESSABLE_ENTITY, "not_submitted"),
            ScheduleError::Store(_) => (StatusCode::INTERNAL_SERVER_ERROR, "not_written"),
        };
        Refused::new(status, reason, error.to_string())
    }
}

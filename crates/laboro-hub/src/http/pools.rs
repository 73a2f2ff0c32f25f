//! Pools: looking at them, and what an admin does to them.

use super::Shared;
use super::answer::{Answer, Refused};
use super::entry::Visitor;
use super::extract::{At, JsonBody};
use crate::pools::{PoolRefusal, Pools};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use laboro_api::{self as api, PoolSpec, PoolTest, Problem};
use laboro_core::Name;
use laboro_pool::Standing;

/// The pools that the token may see, in the order they were made.
#[utoipa::path(get, path = "/pools", tag = "pools", responses((status = 200, body = api::Pools)))]
pub(super) async fn pools(State(api): Shared, visitor: Visitor) -> Answer<api::Pools> {
    let all = api.services.pools.as_ref().map_or_else(Vec::new, Pools::list);
    let pools = all.into_iter().filter(|pool| sees(&visitor, pool)).collect();
    Ok(Json(api::Pools { pools }))
}

/// Makes a pool: workers are started when there is work for them. For admins.
#[utoipa::path(post, path = "/pools", operation_id = "add_pool", tag = "pools", request_body = PoolSpec,
    responses((status = 200, body = api::Pool), (status = 409, body = Problem), (status = 422, body = Problem)))]
pub(super) async fn add(
    State(api): Shared,
    visitor: Visitor,
    JsonBody(body): JsonBody<serde_json::Map<String, serde_json::Value>>,
) -> Answer<api::Pool> {
    may_change(&visitor)?;
    if let Some(unknown) = body.keys().find(|key| !PoolSpec::FIELDS.contains(&key.as_str())) {
        return Err(Refused::bad_request(
            "unknown_field",
            format!("a pool has no field `{unknown}`"),
        ));
    }
    let spec: PoolSpec =
        serde_json::from_value(body.into()).map_err(|error| super::extract::malformed(&error))?;
    visitor.note(format!("pool {}", spec.name));
    changed(&api, |pools| async move { pools.add(spec).await }).await
}

/// One pool with its allocations and what happened lately.
#[utoipa::path(get, path = "/pools/{pool}", tag = "pools", params(("pool" = String, Path)),
    responses((status = 200, body = api::Pool), (status = 404, body = Problem)))]
pub(super) async fn pool(
    State(api): Shared,
    visitor: Visitor,
    At(name): At<String>,
) -> Answer<api::Pool> {
    let pool = known(&api)?.show(&name)?;
    match sees(&visitor, &pool) {
        true => Ok(Json(pool)),
        false => Err(PoolRefusal::Missing(name).into()),
    }
}

/// Cancels all allocations of a pool; it goes with the last of them. For admins.
#[utoipa::path(delete, path = "/pools/{pool}", operation_id = "remove_pool", tag = "pools",
    params(("pool" = String, Path)),
    responses((status = 200, body = api::Pool), (status = 404, body = Problem)))]
pub(super) async fn remove(
    State(api): Shared,
    visitor: Visitor,
    At(name): At<String>,
) -> Answer<api::Pool> {
    may_change(&visitor)?;
    changed(&api, |pools| async move { pools.set(&name, Standing::Removing).await }).await
}

/// Nothing more is started; what is there stays. For admins.
#[utoipa::path(post, path = "/pools/{pool}/pause", operation_id = "pause_pool", tag = "pools",
    params(("pool" = String, Path)),
    responses((status = 200, body = api::Pool), (status = 404, body = Problem)))]
pub(super) async fn pause(
    State(api): Shared,
    visitor: Visitor,
    At(name): At<String>,
) -> Answer<api::Pool> {
    may_change(&visitor)?;
    changed(&api, |pools| async move { pools.set(&name, Standing::Paused).await }).await
}

/// Undoes a pause, and ends the wait after a failure. For admins.
#[utoipa::path(post, path = "/pools/{pool}/resume", operation_id = "resume_pool", tag = "pools",
    params(("pool" = String, Path)),
    responses((status = 200, body = api::Pool), (status = 404, body = Problem)))]
pub(super) async fn resume(
    State(api): Shared,
    visitor: Visitor,
    At(name): At<String>,
) -> Answer<api::Pool> {
    may_change(&visitor)?;
    changed(&api, |pools| async move { pools.set(&name, Standing::Active).await }).await
}

/// Tries the commands of a pool without submitting anything. For admins.
#[utoipa::path(post, path = "/pools/{pool}/test", operation_id = "test_pool", tag = "pools",
    params(("pool" = String, Path)),
    responses((status = 200, body = PoolTest), (status = 404, body = Problem)))]
pub(super) async fn test(
    State(api): Shared,
    visitor: Visitor,
    At(name): At<String>,
) -> Answer<PoolTest> {
    may_change(&visitor)?;
    Ok(Json(known(&api)?.test(&name).await?))
}

fn sees(visitor: &Visitor, pool: &api::Pool) -> bool {
    visitor.sees(&Name::from(pool.spec.group.as_str()))
}

/// A pool runs commands as the hub's user.
fn may_change(visitor: &Visitor) -> Result<(), Refused> {
    visitor.must_be_admin()?;
    visitor.must_be_unbound()
}

/// To its end, also when the client hangs up meanwhile.
async fn changed<F: Future<Output = Result<api::Pool, PoolRefusal>> + Send + 'static>(
    api: &super::Api,
    change: impl FnOnce(Pools) -> F,
) -> Answer<api::Pool> {
    let came_to = tokio::spawn(change(known(api)?.clone())).await;
    Ok(Json(came_to.map_err(|error| super::operation::internal(&error))??))
}

fn known(api: &super::Api) -> Result<&Pools, Refused> {
    let detail = "this hub starts no workers";
    api.services
        .pools
        .as_ref()
        .ok_or_else(|| Refused::new(StatusCode::NOT_FOUND, "no_pools", detail))
}

impl From<PoolRefusal> for Refused {
    fn from(refusal: PoolRefusal) -> Refused {
        let (status, reason) = match &refusal {
            PoolRefusal::Bad(_) => (StatusCode::UNPROCESSABLE_ENTITY, "bad_pool"),
            PoolRefusal::Taken(_) => (StatusCode::CONFLICT, "pool_exists"),
            PoolRefusal::Missing(_) => (StatusCode::NOT_FOUND, "no_such_pool"),
            PoolRefusal::Store(_) | PoolRefusal::Security(_) => {
                (StatusCode::INTERNAL_SERVER_ERROR, "not_written")
            }
        };
        Refused::new(status, reason, refusal.to_string())
    }
}

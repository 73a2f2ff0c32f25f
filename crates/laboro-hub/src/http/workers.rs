//! Workers: looking at them, and what an admin does to them. A worker is meant by its number, or by its name in
//! the group given.

use super::answer::{Answer, Refused};
use super::entry::Visitor;
use super::extract::{Asked, At, JsonBody};
use super::jobs::{PAGE, PAGE_USUAL};
use super::{Api, Shared};
use axum::Json;
use axum::extract::{FromRequestParts, State};
use axum::http::request::Parts;
use laboro_api::{Eject, Problem, StopSlots, Worker, Workers};
use laboro_core::{Command, Drain, Query, Reply, WorkerId, WorkerRef, counted};
use serde::Deserialize;
use std::sync::Arc;
use utoipa::IntoParams;

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct WorkersQuery {
    group: Option<String>,
    /// The `next` of the page before.
    from: Option<u32>,
    /// At most this many, 1000 at most; 100 if not given.
    limit: Option<u32>,
    /// Only these: numbers with commas, 100 at most. Those that are not there are left out.
    numbers: Option<String>,
}

const NUMBERS_MAX: usize = 100;

/// Workers by number, a page at a time.
#[utoipa::path(get, path = "/workers", tag = "workers", params(WorkersQuery),
    responses((status = 200, body = Workers)))]
pub(super) async fn workers(
    State(api): Shared,
    visitor: Visitor,
    Asked(asked): Asked<WorkersQuery>,
) -> Answer<Workers> {
    let group = match asked.group {
        None => visitor.bound_to().cloned(),
        Some(named) => Some(visitor.group(Some(named.into()))?),
    };
    if let Some(numbers) = &asked.numbers {
        return api.some_workers(&visitor, numbers).await;
    }
    let limit = asked.limit.unwrap_or(PAGE_USUAL).clamp(1, PAGE);
    // The core gives a thousand at most, so a full page ends where the next begins.
    let most = (limit + 1).min(PAGE);
    let from = WorkerId(asked.from.unwrap_or(0));
    let mut views = match api.ask(Command::Query(Query::Workers { group, from, most })).await? {
        Reply::Workers(views) => views,
        reply => return Err(Refused::unexpected(&reply)),
    };
    let mut next = None;
    if views.len() == most as usize {
        next = if most > limit {
            views.pop().map(|view| view.worker.0)
        } else {
            views.last().and_then(|view| view.worker.0.checked_add(1))
        };
    }
    let shown = views.into_iter().map(|view| Worker { leases: Vec::new(), ..Worker::from(view) });
    Ok(Json(Workers { workers: shown.collect(), next }))
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct WorkerQuery {
    /// Given: the worker is meant by its name in this group, not by its number.
    group: Option<String>,
}

/// One worker with what it holds.
#[utoipa::path(get, path = "/workers/{worker}", tag = "workers",
    params(("worker" = String, Path, description = "its number, or with `group` its name"), WorkerQuery),
    responses((status = 200, body = Worker), (status = 404, body = Problem)))]
pub(super) async fn worker(State(api): Shared, Meant { visitor, worker }: Meant) -> Answer<Worker> {
    Ok(Json(api.worker(&visitor, worker).await?.into()))
}

/// It gets nothing more; what runs there is finished.
#[utoipa::path(post, path = "/workers/{worker}/drain", tag = "workers",
    params(("worker" = String, Path), WorkerQuery),
    responses((status = 200, body = Worker), (status = 404, body = Problem)))]
pub(super) async fn drain(State(api): Shared, Meant { visitor, worker }: Meant) -> Answer<Worker> {
    api.change_worker(&visitor, worker, |worker| Command::Drain(worker, Drain::All)).await
}

/// With `slots` it has so many fewer; without, it gets nothing more and what runs there is taken back.
#[utoipa::path(post, path = "/workers/{worker}/stop", tag = "workers",
    params(("worker" = String, Path), WorkerQuery), request_body = StopSlots,
    responses((status = 200, body = Worker), (status = 404, body = Problem)))]
pub(super) async fn stop(
    State(api): Shared,
    Meant { visitor, worker }: Meant,
    JsonBody(stop): JsonBody<StopSlots>,
) -> Answer<Worker> {
    let how = match stop.slots {
        Some(slots) => {
            visitor.note(counted(slots, "slot"));
            Drain::Slots(slots)
        }
        None => Drain::AtOnce,
    };
    api.change_worker(&visitor, worker, |worker| Command::Drain(worker, how)).await
}

/// Back to work after `drain` or `stop`.
#[utoipa::path(post, path = "/workers/{worker}/lift", tag = "workers",
    params(("worker" = String, Path), WorkerQuery),
    responses((status = 200, body = Worker), (status = 404, body = Problem)))]
pub(super) async fn lift(State(api): Shared, Meant { visitor, worker }: Meant) -> Answer<Worker> {
    api.change_worker(&visitor, worker, |worker| Command::Drain(worker, Drain::Lift)).await
}

/// It is sent away and not let in again until it is pardoned; what it runs goes to others.
#[utoipa::path(post, path = "/workers/{worker}/eject", tag = "workers",
    params(("worker" = String, Path), WorkerQuery), request_body = Eject,
    responses((status = 200, body = Worker), (status = 404, body = Problem)))]
pub(super) async fn eject(
    State(api): Shared,
    Meant { visitor, worker }: Meant,
    JsonBody(eject): JsonBody<Eject>,
) -> Answer<Worker> {
    let reason = eject.reason.unwrap_or_else(|| "ejected by an admin".to_owned());
    if reason.len() > REASON_BYTES_MAX {
        let detail = format!("the reason is longer than {REASON_BYTES_MAX} bytes");
        return Err(Refused::bad_request("bad_value", detail));
    }
    visitor.note(&reason);
    api.change_worker(&visitor, worker, |worker| Command::Eject(worker, reason)).await
}

/// In good standing again.
#[utoipa::path(post, path = "/workers/{worker}/pardon", tag = "workers",
    params(("worker" = String, Path), WorkerQuery),
    responses((status = 200, body = Worker), (status = 404, body = Problem)))]
pub(super) async fn pardon(State(api): Shared, Meant { visitor, worker }: Meant) -> Answer<Worker> {
    api.change_worker(&visitor, worker, Command::Pardon).await
}

/// It is journaled and shown in tables.
const REASON_BYTES_MAX: usize = 1000;

/// The worker of a path, as the visitor may mean it.
pub(super) struct Meant {
    visitor: Visitor,
    worker: WorkerRef,
}

impl FromRequestParts<Arc<Api>> for Meant {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, api: &Arc<Api>) -> Result<Meant, Refused> {
        let visitor = Visitor::from_request_parts(parts, api).await?;
        let At(worker) = At::<String>::from_request_parts(parts, api).await?;
        let Asked(asked) = Asked::<WorkerQuery>::from_request_parts(parts, api).await?;
        let worker = match asked.group {
            Some(group) => {
                let group = visitor.group(Some(group.into()))?;
                WorkerRef::Name { group, name: worker.as_str().into() }
            }
            None => worker.parse().map(|id| WorkerRef::Id(WorkerId(id))).map_err(|_| {
                let detail = format!("`{worker}` is not the number of a worker");
                Refused::bad_request("bad_path", detail)
                    .hint("add ?group=GROUP to mean it by its name")
            })?,
        };
        Ok(Meant { visitor, worker })
    }
}

impl Api {
    async fn some_workers(&self, visitor: &Visitor, numbers: &str) -> Answer<Workers> {
        let numbers: Result<Vec<u32>, _> = numbers.split(',').map(str::parse).collect();
        let Some(numbers) = numbers.ok().filter(|numbers| numbers.len() <= NUMBERS_MAX) else {
            let detail = format!("`numbers` are at most {NUMBERS_MAX} numbers with commas");
            return Err(Refused::bad_request("bad_query", detail));
        };
        let mut workers = Vec::new();
        for number in numbers {
            let query = Query::Worker(WorkerRef::Id(WorkerId(number)));
            match self.services.handle.ask(Command::Query(query)).await? {
                Reply::Workers(views) => {
                    let seen = views.into_iter().filter(|view| visitor.sees(&view.group));
                    let shown = |view| Worker { leases: Vec::new(), ..Worker::from(view) };
                    workers.extend(seen.map(shown));
                }
                Reply::Refused(_) => {}
                reply => return Err(Refused::unexpected(&reply)),
            }
        }
        Ok(Json(Workers { workers, next: None }))
    }

    async fn change_worker(
        &self,
        visitor: &Visitor,
        worker: WorkerRef,
        what: impl FnOnce(WorkerRef) -> Command,
    ) -> Answer<Worker> {
        visitor.must_be_admin()?;
        let id = WorkerRef::Id(self.worker(visitor, worker).await?.worker);
        self.ask(what(id.clone())).await?;
        Ok(Json(self.worker(visitor, id).await?.into()))
    }
}

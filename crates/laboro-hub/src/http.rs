//! The HTTP API of the hub: what clients ask in JSON becomes commands, and replies become JSON. Who may do what
//! is asked of the doorman; deciding and remembering are the core's. Nothing here walks over tasks.
//!
//! `router` makes the routes, `serve` carries them over TLS.

#![allow(unused_qualifications, reason = "what utoipa's macros expand to names types in full")]

mod answer;
mod attempts;
mod audit;
mod bells;
mod body;
mod brokers;
mod budget;
mod bulk;
mod control;
mod dashboard;
mod document;
mod entry;
mod events;
mod extract;
mod feed;
mod finishes;
mod fold;
mod groups;
mod head;
mod history;
mod hooks;
mod jobs;
mod leftover;
mod limits;
mod lines;
mod local;
mod manual;
mod metrics;
mod operation;
mod output;
mod overview;
mod places;
mod pools;
mod quiet;
mod reading;
mod results;
mod schedules;
mod seats;
mod serve;
mod standby_redirect;
mod standing;
mod stream;
mod strict;
mod submission;
mod submit;
mod tasks;
mod trace;
mod wait;
mod workers;

pub use audit::{Audit, AuditError, AuditOptions};
pub use entry::Peer;
pub use limits::Limits;
pub use local::{serve_local, serve_within};
pub(crate) use overview::{disk_of, is_disk_low};
pub use places::ServeStats;
pub use serve::serve;
pub(crate) use standby_redirect::StandbyRedirect;

use crate::Handle;
use crate::history::History;
use crate::hooks::Hooks;
use crate::keep::Outputs;
use crate::mq::Observer;
use crate::pools::Pools;
use crate::schedules::Schedules;
use crate::security::Doorman;
use crate::traces::TraceCounts;
use answer::Refused;
use axum::Router;
use axum::http::StatusCode;
use axum::middleware::{from_fn, from_fn_with_state, map_response};
use budget::Budget;
use feed::Feed;
use laboro_api as api;
use laboro_net::Clock;
use reading::Readers;
use seats::Seats;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Gives the link, or why there is none.
pub type OpenDashboard = Arc<dyn Fn() -> Result<String, String> + Send + Sync>;

/// What the API stands on.
#[derive(Clone)]
pub struct Services {
    pub handle: Handle,
    pub clock: Clock,
    pub doorman: Arc<dyn Doorman>,
    /// What tasks printed. `None`: it is not kept.
    pub outputs: Option<Outputs>,
    /// Then it may be found here.
    pub results_dir: Option<PathBuf>,
    /// `None`: nobody is told who did what.
    pub audit: Option<Arc<Audit>>,
    /// The doors that are open, with their counters as of now.
    pub doors: Arc<dyn Fn() -> Vec<api::DoorStatus> + Send + Sync>,
    /// What happened lately. `None`: nobody remembers.
    pub history: Option<History>,
    /// Where the hub writes, to see how much room is left.
    pub dir: Option<PathBuf>,
    /// Files of the dashboard are read from here at each request, for whoever writes them.
    pub dashboard_dir: Option<PathBuf>,
    /// The request brokers behind the doors, with where they listen.
    pub brokers: Arc<dyn Fn() -> Vec<(SocketAddr, Observer)> + Send + Sync>,
    /// Opens a dashboard for a browser and gives its link, where it is not open from the start.
    pub open_dashboard: Option<OpenDashboard>,
    /// The counters of `serve`, for the metrics.
    pub serving: Arc<ServeStats>,
    /// Tokens with the role submit may also change jobs of others.
    pub change_all_jobs: bool,
    /// `None`: workers are started by others.
    pub pools: Option<Pools>,
    /// `None`: nobody is told when a job ends.
    pub hooks: Option<Hooks>,
    /// `None`: nothing is submitted by the clock.
    pub schedules: Option<Schedules>,
    /// `None`: jobs have no spans.
    pub traces: Option<TraceCounts>,
    pub limits: Limits,
}

impl std::fmt::Debug for Services {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Services").field("limits", &self.limits).finish_non_exhaustive()
    }
}

impl Services {
    /// Without outputs, audit log and doors.
    pub fn new(handle: Handle, clock: Clock, doorman: Arc<dyn Doorman>) -> Services {
        Services {
            handle,
            clock,
            doorman,
            outputs: None,
            results_dir: None,
            audit: None,
            doors: Arc::new(Vec::new),
            history: None,
            dir: None,
            dashboard_dir: None,
            brokers: Arc::new(Vec::new),
            open_dashboard: None,
            serving: Arc::default(),
            change_all_jobs: false,
            pools: None,
            hooks: None,
            schedules: None,
            traces: None,
            limits: Limits::default(),
        }
    }
}

/// What every handler is given.
struct Api {
    services: Services,
    feed: Arc<Feed>,
    seats: Seats,
    budget: Arc<Budget>,
    readers: Readers,
    requests: metrics::RequestCounts,
    made: overview::Made,
    started_ms: u64,
    /// The OpenAPI document, made once, and what it says of what routes take.
    document: std::sync::OnceLock<axum::body::Bytes>,
    takers: std::sync::OnceLock<strict::Takers>,
}

type Shared = axum::extract::State<Arc<Api>>;

pub fn router(services: Services) -> Router {
    let started_ms = services.clock.now().0;
    let api = Arc::new(Api {
        feed: Feed::new(services.handle.clone(), services.clock),
        seats: Seats::default(),
        budget: Budget::new(services.limits.bodies_bytes.max(services.limits.body_bytes)),
        readers: Readers::default(),
        requests: metrics::RequestCounts::default(),
        made: overview::Made::default(),
        started_ms,
        document: std::sync::OnceLock::new(),
        takers: std::sync::OnceLock::new(),
        services,
    });
    let (routes, mut document) = all_routes(&api).split_for_parts();
    document::complete(&mut document);
    api.takers.set(strict::Takers::of(&document)).expect("they are set once");
    let document = document.to_json().expect("the document is made of strings");
    api.document.set(document.into()).expect("it is set once");
    routes
        .merge(dashboard::routes())
        .merge(manual::routes())
        .merge(usual_metrics(&api))
        .merge(own_dashboard(&api))
        .fallback(no_such_path)
        .method_not_allowed_fallback(no_such_method)
        .layer(from_fn_with_state(api.clone(), head::check))
        .layer(from_fn_with_state(api.clone(), metrics::count))
        .layer(map_response(answer::sign))
        .layer(from_fn(leftover::take))
        .with_state(api)
}

/// The same metrics where Prometheus looks for them unless told otherwise.
fn usual_metrics(api: &Arc<Api>) -> Router<Arc<Api>> {
    let metrics = axum::routing::get(metrics::metrics);
    Router::new()
        .route("/metrics", metrics)
        .route_layer(from_fn_with_state(api.clone(), entry::enter))
}

/// For the user of a run, who asks its socket for a link that a browser can open. No part of the API: a hub has a
/// dashboard where its API is.
fn own_dashboard(api: &Arc<Api>) -> Router<Arc<Api>> {
    let open = async |axum::extract::State(api): Shared| {
        let opened = api.services.open_dashboard.as_ref().map(|open| open());
        match opened {
            Some(Ok(link)) => Ok(axum::Json(link)),
            Some(Err(why)) => {
                Err(Refused::new(StatusCode::INTERNAL_SERVER_ERROR, "no_dashboard", why))
            }
            None => Err(Refused::new(
                StatusCode::NOT_FOUND,
                "no_dashboard",
                "the dashboard is where the API is".to_owned(),
            )),
        }
    };
    Router::new()
        .route(&format!("{}/dashboard", api::BASE), axum::routing::post(open))
        .route_layer(from_fn_with_state(api.clone(), entry::enter))
}

/// The OpenAPI document and the routes come from the same list.
fn all_routes(api: &Arc<Api>) -> OpenApiRouter<Arc<Api>> {
    let guarded = OpenApiRouter::new()
        .routes(routes!(operation::openapi))
        .routes(routes!(operation::doors))
        .routes(routes!(brokers::brokers))
        .routes(routes!(operation::audit))
        .routes(routes!(overview::me))
        .routes(routes!(overview::overview))
        .routes(routes!(history::history))
        .routes(routes!(history::job_history))
        .routes(routes!(metrics::metrics))
        .routes(routes!(groups::groups))
        .routes(routes!(groups::pause))
        .routes(routes!(groups::resume))
        .routes(routes!(groups::task))
        .routes(routes!(groups::explain))
        .routes(routes!(groups::output))
        .routes(routes!(groups::act))
        .routes(routes!(jobs::jobs, submit::submit))
        .routes(routes!(stream::stream))
        .routes(routes!(jobs::job, jobs::forget))
        .routes(routes!(jobs::close))
        .routes(routes!(tasks::tasks, submit::add))
        .routes(routes!(tasks::parts))
        .routes(routes!(tasks::ranges))
        .routes(routes!(tasks::task))
        .routes(routes!(tasks::explain))
        .routes(routes!(results::results))
        .routes(routes!(output::output))
        .routes(routes!(control::hold))
        .routes(routes!(control::release))
        .routes(routes!(control::cancel))
        .routes(routes!(control::retry))
        .routes(routes!(control::priority))
        .routes(routes!(control::limit))
        .routes(routes!(hooks::hooks))
        .routes(routes!(hooks::retry))
        .routes(routes!(schedules::schedules))
        .routes(routes!(schedules::schedule))
        .routes(routes!(schedules::run))
        .routes(routes!(schedules::pause))
        .routes(routes!(schedules::resume))
        .routes(routes!(bulk::bulk))
        .routes(routes!(pools::pools, pools::add))
        .routes(routes!(pools::pool, pools::remove))
        .routes(routes!(pools::pause))
        .routes(routes!(pools::resume))
        .routes(routes!(pools::test))
        .routes(routes!(workers::workers))
        .routes(routes!(workers::worker))
        .routes(routes!(workers::drain))
        .routes(routes!(workers::stop))
        .routes(routes!(workers::lift))
        .routes(routes!(workers::eject))
        .routes(routes!(workers::pardon))
        .routes(routes!(events::events))
        .routes(routes!(wait::wait))
        .route_layer(from_fn_with_state(api.clone(), strict::check))
        .route_layer(from_fn_with_state(api.clone(), entry::enter));
    let open =
        OpenApiRouter::new().routes(routes!(operation::health)).routes(routes!(operation::version));
    OpenApiRouter::with_openapi(document::Document::openapi()).nest(api::BASE, guarded.merge(open))
}

async fn no_such_path(uri: axum::http::Uri) -> Refused {
    let detail = format!("there is nothing at {}", uri.path());
    Refused::new(StatusCode::NOT_FOUND, "no_such_path", detail)
        .hint("see /api/v1/openapi.json for what there is")
}

async fn no_such_method(method: axum::http::Method, uri: axum::http::Uri) -> Refused {
    let detail = format!("{} does not take {method}", uri.path());
    Refused::new(StatusCode::METHOD_NOT_ALLOWED, "no_such_method", detail)
        .hint("see /api/v1/openapi.json for what it takes")
}

#[cfg(test)]
mod tests;

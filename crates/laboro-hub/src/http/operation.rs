//! What is said about the hub itself: health, version, doors, the audit log; and the document of `document` is served.

use super::answer::{Answer, Refused};
use super::entry::Visitor;
use super::extract::Asked;
use super::{Api, Shared};
use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use laboro_api::{self as api, AuditPage, Doors, Health, Version};
use laboro_core::{Command, Query};
use serde::Deserialize;
use std::sync::Arc;
use utoipa::IntoParams;

/// Whether the hub runs and its engine answers. Needs no token.
#[utoipa::path(get, path = "/health", tag = "hub", security(()),
    responses((status = 200, body = Health), (status = 503, body = api::Problem)))]
pub(super) async fn health(State(api): Shared) -> Answer<Health> {
    // Any question will do that goes through the engine.
    let asked = api.ask(Command::Query(Query::Groups));
    match tokio::time::timeout(std::time::Duration::from_secs(5), asked).await {
        Ok(answered) => answered.map(drop)?,
        Err(_) => {
            let detail = "the engine has not answered for 5 seconds";
            return Err(Refused::new(StatusCode::SERVICE_UNAVAILABLE, "engine_silent", detail)
                .retry_after(5));
        }
    }
    let uptime_ms = api.services.clock.now().0.saturating_sub(api.started_ms);
    Ok(Json(Health { status: "ok".to_owned(), uptime_ms }))
}

/// The versions of the program and of the API. Needs no token.
#[utoipa::path(get, path = "/version", tag = "hub", security(()),
    responses((status = 200, body = Version)))]
pub(super) async fn version() -> Json<Version> {
    Json(Version { version: api::VERSION.to_owned(), api: api::API_VERSION.to_owned() })
}

/// This description.
#[utoipa::path(get, path = "/openapi.json", tag = "hub",
    responses((status = 200, description = "OpenAPI", content_type = "application/json")))]
pub(super) async fn openapi(State(api): Shared) -> Response {
    let document = api.document.get().cloned().unwrap_or_default();
    ([(header::CONTENT_TYPE, "application/json")], document).into_response()
}

/// The doors that are open, with what happened there. For admins.
#[utoipa::path(get, path = "/doors", tag = "hub",
    responses((status = 200, body = Doors), (status = 403, body = api::Problem)))]
pub(super) async fn doors(State(api): Shared, visitor: Visitor) -> Answer<Doors> {
    visitor.must_be_admin()?;
    visitor.must_be_unbound()?;
    Ok(Json(Doors { doors: (api.services.doors)() }))
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct AuditQuery {
    /// Entries older than this number.
    before: Option<u64>,
    /// At most this many, 1000 at most.
    limit: Option<usize>,
}

/// Who did what, newest first. For admins.
#[utoipa::path(get, path = "/audit", tag = "hub", params(AuditQuery),
    responses((status = 200, body = AuditPage), (status = 403, body = api::Problem)))]
pub(super) async fn audit(
    State(api): Shared,
    visitor: Visitor,
    Asked(asked): Asked<AuditQuery>,
) -> Answer<AuditPage> {
    visitor.must_be_admin()?;
    visitor.must_be_unbound()?;
    let most = asked.limit.unwrap_or(100).clamp(1, 1000);
    let page = read_audit(&api, asked.before, most).await?;
    Ok(Json(page))
}

async fn read_audit(
    api: &Arc<Api>,
    before: Option<u64>,
    most: usize,
) -> Result<AuditPage, Refused> {
    let Some(audit) = api.services.audit.clone() else {
        let detail = "this hub keeps no audit log";
        return Err(Refused::new(StatusCode::NOT_FOUND, "no_audit_log", detail));
    };
    // Reading files may block.
    let read = tokio::task::spawn_blocking(move || audit.read(before, most)).await;
    match read {
        Ok(Ok(page)) => Ok(page),
        Ok(Err(error)) => Err(internal(&error)),
        Err(error) => Err(internal(&error)),
    }
}

pub(super) fn internal(error: &dyn std::error::Error) -> Refused {
    tracing::error!(%error, "a request could not be answered");
    Refused::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", error.to_string())
}

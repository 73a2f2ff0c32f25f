//! What is said about the hub itself: health, version, doors, the audit log, and this API's own description.

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
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{
    ContentBuilder, OpenApi, Ref, RefOr, Response as OpenApiResponse, ResponseBuilder,
};

/// The frame of the OpenAPI document; paths and types are added with the routes.
#[derive(utoipa::OpenApi)]
#[openapi(
    info(
        title = "Laboro",
        description = "Submit jobs to a hub, watch them, control them. Wherever a string is bytes of a \
            program (names, commands, values), {\"base64\": \"...\"} is taken too, and given where the bytes \
            are not UTF-8. Errors are application/problem+json with a stable `reason`."
    ),
    components(schemas(laboro_api::Problem, laboro_api::Event)),
    modifiers(&Bearer),
    security(("token" = []))
)]
pub(super) struct Document;

struct Bearer;

impl utoipa::Modify for Bearer {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        document.info.version = api::API_VERSION.to_owned();
        let scheme = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
        let components = document.components.get_or_insert_default();
        components.add_security_scheme("token", SecurityScheme::Http(scheme));
    }
}

/// What every route may answer that is behind a token, and 404 where something is named.
pub(super) fn add_common_answers(document: &mut OpenApi) {
    for (path, item) in &mut document.paths.paths {
        let operations = [&mut item.get, &mut item.post, &mut item.put, &mut item.delete];
        // Where no token is needed, that is said.
        for operation in operations.into_iter().flatten().filter(|one| one.security.is_none()) {
            let named = path.contains('{').then_some(("404", "there is none, or none to be seen"));
            for (status, words) in COMMON_ANSWERS.into_iter().chain(named) {
                let answers = &mut operation.responses.responses;
                answers.entry(status.to_owned()).or_insert_with(|| problem(words));
            }
        }
    }
}

const COMMON_ANSWERS: [(&str, &str); 5] = [
    ("400", "a parameter, a field or a value that makes no sense"),
    ("401", "no token, an unknown one, or one that has expired"),
    ("403", "the role or the group of the token does not allow it"),
    ("429", "too many wrong tokens from this address"),
    ("503", "the hub stops"),
];

fn problem(words: &str) -> RefOr<OpenApiResponse> {
    let schema = Ref::from_schema_name("Problem");
    let content = ContentBuilder::new().schema(Some(schema)).build();
    let response = ResponseBuilder::new().description(words);
    RefOr::T(response.content("application/problem+json", content).build())
}

/// Is the hub there and does its engine answer? Needs no token.
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

/// Which program this is and which words it speaks. Needs no token.
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
    /// At most so many, 1000 at most.
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

//! What a route does not take is refused by its name, instead of being passed over: parameters behind the `?`, and
//! fields in a body. Which routes take any is known from the OpenAPI document.

use super::Shared;
use super::answer::Refused;
use super::extract::{Asked, JsonBody};
use axum::body::Body;
use axum::extract::{FromRequest, FromRequestParts, MatchedPath, Request};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use std::collections::HashSet;
use utoipa::openapi::path::{Operation, ParameterIn};
use utoipa::openapi::{OpenApi, RefOr};

/// Routes by method and path.
#[derive(Debug, Default)]
pub(super) struct Takers {
    queries: HashSet<(Method, String)>,
    bodies: HashSet<(Method, String)>,
}

impl Takers {
    pub(super) fn of(document: &OpenApi) -> Takers {
        let mut takers = Takers::default();
        for (path, item) in &document.paths.paths {
            let operations = [
                (Method::GET, &item.get),
                (Method::POST, &item.post),
                (Method::PUT, &item.put),
                (Method::DELETE, &item.delete),
            ];
            for (method, operation) in operations {
                let Some(operation) = operation else { continue };
                if has_query(operation) {
                    takers.queries.insert((method.clone(), path.clone()));
                }
                if operation.request_body.is_some() {
                    takers.bodies.insert((method, path.clone()));
                }
            }
        }
        takers
    }
}

fn has_query(operation: &Operation) -> bool {
    operation.parameters.iter().flatten().any(|parameter| match parameter {
        RefOr::T(parameter) => parameter.parameter_in == ParameterIn::Query,
        RefOr::Ref(_) => false,
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Nothing {}

pub(super) async fn check(
    axum::extract::State(api): Shared,
    mut request: Request,
    next: Next,
) -> Response {
    let Some(takers) = api.takers.get() else { return next.run(request).await };
    let Some(path) = request.extensions().get::<MatchedPath>() else {
        return next.run(request).await;
    };
    let is_reading = matches!(*request.method(), Method::GET | Method::HEAD);
    // Whoever asks for the head only asks the same.
    let method = if is_reading { Method::GET } else { request.method().clone() };
    let route = (method, path.as_str().to_owned());
    if request.uri().query().is_some() && !takers.queries.contains(&route) {
        let (mut parts, body) = request.into_parts();
        if let Err(refused) = Asked::<Nothing>::from_request_parts(&mut parts, &api).await {
            return refused.into_response();
        }
        request = Request::from_parts(parts, body);
    }
    if !is_reading && !takers.bodies.contains(&route) {
        let (parts, body) = request.into_parts();
        let said: Result<JsonBody<Option<Nothing>>, Refused> =
            JsonBody::from_request(Request::new(body), &api).await;
        if let Err(refused) = said {
            return refused.into_response();
        }
        request = Request::from_parts(parts, Body::empty());
    }
    next.run(request).await
}

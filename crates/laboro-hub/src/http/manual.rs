//! The manual of this version, under `/docs`: files that are part of the program, for anybody who reaches the hub. They
//! are kept compressed and sent so, which every browser understands.

use super::Api;
use super::answer::Refused;
use super::dashboard::{HEADERS, kind, tag};
use axum::Router;
use axum::extract::Path;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use laboro_manual::FILES;
use std::sync::{Arc, LazyLock};

pub(super) fn routes() -> Router<Arc<Api>> {
    let front = async || Redirect::permanent("/docs/index.html");
    Router::new()
        .route("/docs", get(front))
        .route("/docs/", get(front))
        .route("/docs/{*file}", get(file))
}

async fn file(Path(name): Path<String>, headers: HeaderMap) -> Response {
    // Only names that are known: no path is made of a stranger's words.
    let Some(at) = FILES.iter().position(|(known, _)| *known == name) else {
        let detail = format!("the manual has no page {name}");
        return Refused::new(StatusCode::NOT_FOUND, "no_such_path", detail).into_response();
    };
    let (name, gzip) = FILES[at];
    let is_known = headers.get(header::IF_NONE_MATCH).is_some_and(|known| *known == TAGS[at]);
    let mut response = match is_known {
        true => StatusCode::NOT_MODIFIED.into_response(),
        false => gzip.into_response(),
    };
    let headers = response.headers_mut();
    for (header, value) in HEADERS {
        headers.insert(header, HeaderValue::from_static(value));
    }
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind(name)));
    headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    headers.insert(header::ETAG, TAGS[at].clone());
    response
}

/// Made once, in the order of the files.
static TAGS: LazyLock<Vec<HeaderValue>> =
    LazyLock::new(|| FILES.iter().map(|(_, gzip)| tag(gzip)).collect());

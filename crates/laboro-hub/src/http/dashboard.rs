//! The dashboard: static files that are part of the program, for a browser that then asks the API like any other
//! client. Nothing here knows a job or a token; whoever may see what is decided there.

mod files;

use super::answer::Refused;
use super::{Api, Shared};
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use files::FILES;
use std::sync::Arc;
use std::sync::LazyLock;

/// Only from here, only what is a file, nothing in line; nobody may put the pages into theirs.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
    connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// What is the same for all of them.
pub(super) const HEADERS: [(HeaderName, &str); 5] = [
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    // Asked for again each time, and then mostly not sent again.
    (header::CACHE_CONTROL, "no-cache"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
];

pub(super) fn routes() -> Router<Arc<Api>> {
    Router::new().route("/", get(front)).route("/dashboard/{*file}", get(file))
}

async fn front(State(api): Shared, headers: HeaderMap) -> Response {
    serve(&api, "index.html", &headers).await
}

async fn file(State(api): Shared, Path(name): Path<String>, headers: HeaderMap) -> Response {
    serve(&api, &name, &headers).await
}

async fn serve(api: &Api, name: &str, headers: &HeaderMap) -> Response {
    // Only names that are known: no path is made of a stranger's words.
    let Some(at) = FILES.iter().position(|(known, _)| *known == name) else {
        let detail = format!("the dashboard has no file {name}");
        return Refused::new(StatusCode::NOT_FOUND, "no_such_path", detail).into_response();
    };
    let (name, built_in) = FILES[at];
    let (bytes, tag) = match &api.services.dashboard_dir {
        None => (Bytes::from_static(built_in), TAGS[at].clone()),
        Some(dir) => match std::fs::read(dir.join(name)) {
            Ok(bytes) => (bytes.clone().into(), tag(&bytes)),
            Err(error) => return super::operation::internal(&error).into_response(),
        },
    };
    let is_known = headers.get(header::IF_NONE_MATCH).is_some_and(|known| *known == tag);
    let mut response = match is_known {
        true => StatusCode::NOT_MODIFIED.into_response(),
        false => Response::new(Body::from(bytes)),
    };
    let headers = response.headers_mut();
    for (header, value) in HEADERS {
        headers.insert(header, HeaderValue::from_static(value));
    }
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind(name)));
    headers.insert(header::ETAG, tag);
    response
}

/// Made once, in the order of the files.
static TAGS: LazyLock<Vec<HeaderValue>> =
    LazyLock::new(|| FILES.iter().map(|(_, bytes)| tag(bytes)).collect());

pub(super) fn tag(bytes: &[u8]) -> HeaderValue {
    let digest = ring::digest::digest(&ring::digest::SHA256, bytes);
    let hex: String = digest.as_ref()[..12].iter().map(|byte| format!("{byte:02x}")).collect();
    HeaderValue::try_from(format!("\"{hex}\"")).expect("hex digits are fine in a header")
}

pub(super) fn kind(name: &str) -> &'static str {
    match name.rsplit('.').next() {
        Some("html") => "text/html; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("svg") => "image/svg+xml",
        _ => "application/octet-stream",
    }
}

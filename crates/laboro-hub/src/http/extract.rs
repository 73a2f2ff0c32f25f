//! Takes requests apart: bodies, queries and paths, each with a refusal that says what is wrong.

use super::Api;
use super::answer::Refused;
use super::body::Sent;
use axum::body::Body;
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::StatusCode;
use axum::http::request::Parts;
use bytes::Bytes;
use http_body_util::BodyExt;
use serde::de::DeserializeOwned;
use std::sync::Arc;
use std::time::Duration;

/// A selection of tasks is the longest of them, and is read at once.
const JSON_BODY_BYTES_MAX: usize = 256 << 10;

/// A small JSON body. No body at all is `{}`.
pub(super) struct JsonBody<T>(pub(super) T);

impl<T: DeserializeOwned> FromRequest<Arc<Api>> for JsonBody<T> {
    type Rejection = Refused;

    async fn from_request(request: Request, api: &Arc<Api>) -> Result<JsonBody<T>, Refused> {
        let bytes_max = api.services.limits.body_bytes.min(JSON_BODY_BYTES_MAX);
        let sent = Sent::receive(request, api, bytes_max).await?;
        let json: &[u8] = if sent.bytes.is_empty() { b"{}" } else { &sent.bytes };
        object(json).map(JsonBody)
    }
}

pub(super) fn object<T: DeserializeOwned>(json: &[u8]) -> Result<T, Refused> {
    check_object(json)?;
    serde_json::from_slice(json).map_err(|error| malformed(&error))
}

/// One JSON object. A list would be taken for its fields in their order, which nobody means.
pub(super) fn check_object(json: &[u8]) -> Result<(), Refused> {
    let first = json.iter().find(|byte| !byte.is_ascii_whitespace());
    if first.is_some_and(|first| matches!(first, b'[' | b'"' | b'0'..=b'9' | b'-')) {
        return Err(Refused::bad_request("bad_value", "a JSON object is expected: {...}"));
    }
    Ok(())
}

pub(super) fn too_slow(most: Duration) -> Refused {
    let detail = format!("the body did not arrive within {} seconds", most.as_secs());
    Refused::new(StatusCode::REQUEST_TIMEOUT, "too_slow", detail)
}

/// In serde's words, which name the field and the place.
pub(super) fn malformed(error: &serde_json::Error) -> Refused {
    let detail = error.to_string();
    let reason = if detail.starts_with("unknown field") {
        "unknown_field"
    } else if error.is_data() {
        "bad_value"
    } else {
        "malformed"
    };
    Refused::bad_request(reason, detail)
}

/// A refusal sent while the client still writes would be lost with the connection, so what comes is taken for a
/// while and thrown away.
pub(super) async fn drain(mut body: Body, most: usize) {
    const DRAIN_TIME_MAX: Duration = Duration::from_secs(5);
    let drained = async {
        let mut left = most;
        while let Some(Ok(frame)) = body.frame().await {
            let bytes = frame.data_ref().map_or(0, Bytes::len);
            match left.checked_sub(bytes) {
                Some(rest) => left = rest,
                None => return,
            }
        }
    };
    // Whoever is slower than that does not wait for an answer.
    drop(tokio::time::timeout(DRAIN_TIME_MAX, drained).await);
}

/// What stands behind the `?`.
pub(super) struct Asked<T>(pub(super) T);

impl<T: DeserializeOwned> FromRequestParts<Arc<Api>> for Asked<T> {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, _: &Arc<Api>) -> Result<Asked<T>, Refused> {
        match Query::<T>::try_from_uri(&parts.uri) {
            Ok(Query(asked)) => Ok(Asked(asked)),
            Err(rejection) => {
                let detail = rejection.body_text();
                let unknown = detail.contains("unknown field");
                let reason = if unknown { "unknown_field" } else { "bad_query" };
                Err(Refused::bad_request(reason, detail))
            }
        }
    }
}

/// The variable parts of the path.
pub(super) struct At<T>(pub(super) T);

impl<T: DeserializeOwned + Send> FromRequestParts<Arc<Api>> for At<T> {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, api: &Arc<Api>) -> Result<At<T>, Refused> {
        match Path::<T>::from_request_parts(parts, api).await {
            Ok(Path(at)) => Ok(At(at)),
            Err(rejection) => Err(Refused::bad_request("bad_path", rejection.body_text())),
        }
    }
}

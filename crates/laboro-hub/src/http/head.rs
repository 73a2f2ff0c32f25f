//! Refuses heads that somebody on the way may have read in another way than this hub, and those with more headers
//! than anyone needs. What `hyper` settles before it gives a head away is not seen here: the same length said
//! twice is one, and of a length beside chunks the chunks count and the connection ends, as the standard has it.

use super::Shared;
use super::answer::Refused;
use axum::extract::{Request, State};
use axum::http::header::{CONNECTION, CONTENT_LENGTH, HOST};
use axum::http::{HeaderValue, StatusCode, Version};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

pub(super) async fn check(State(api): Shared, request: Request, next: Next) -> Response {
    let version = request.version();
    let Err(refused) = has_one_meaning(&request, api.services.limits.headers) else {
        return next.run(request).await;
    };
    let mut response = refused.into_response();
    // Where such a head ends is in doubt, and so is where the next one begins. HTTP/2 has frames for that.
    if version != Version::HTTP_2 {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

fn has_one_meaning(request: &Request, headers_max: usize) -> Result<(), Refused> {
    let headers = request.headers();
    let count = headers.len();
    if count > headers_max {
        let detail = format!("{count} headers; at most {headers_max} are allowed");
        let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
        return Err(Refused::new(status, "too_many_headers", detail));
    }
    let wrong = |detail: &str| Err(Refused::bad_request("bad_head", detail));
    for (name, word) in [(HOST, "Host"), (CONTENT_LENGTH, "Content-Length")] {
        if headers.get_all(name).iter().nth(1).is_some() {
            return wrong(&format!("there is more than one {word} header"));
        }
    }
    match (request.version(), headers.get(HOST), request.uri().authority()) {
        (Version::HTTP_11, None, _) => wrong("there is no Host header, which HTTP/1.1 asks for"),
        (Version::HTTP_2, Some(host), Some(authority))
            if !host.as_bytes().eq_ignore_ascii_case(authority.as_str().as_bytes()) =>
        {
            wrong("the Host header and :authority name different hosts")
        }
        _ => Ok(()),
    }
}

//! Answers with the status codes, words and JSON of the original. A reason follows where it helps and the
//! original says nothing.

use super::message::Unclear;
use super::poller::Unasked;
use crate::inbox::Lost;
use crate::security::SecurityError;
use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{ALLOW, CONNECTION, CONTENT_TYPE, HeaderValue, RETRY_AFTER, SET_COOKIE};
use hyper::{Method, Response, StatusCode};
use serde::Serialize;

pub(super) type FuqAnswer = Response<Full<Bytes>>;

/// Why there is no better answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum FuqRefused {
    /// The peer makes no sense. Counted.
    Malformed(String),
    /// It makes sense and cannot be.
    Bad(String),
    /// No cookie, or one that could not be one, or another's session.
    Unauthorized(&'static str),
    /// Counted.
    Forbidden(&'static str),
    /// Too many wrong passwords: so many seconds are to pass. Counted.
    TooMany(u64),
    NotFound,
    Method(Method),
    /// Counted; the connection ends.
    TooLarge(u64),
    /// The hub stops.
    Stopping,
    /// Too much was asked at once; the connection ends.
    Crowded,
    Trouble(String),
}

/// So says the original.
pub(super) const ACCESS: &str = "403 access forbidden";
pub(super) const COOKIE: &str = "cannot validate cookie";
pub(super) const SESSION: &str =
    "the session is not that of this unique_name: say hello without both";

impl FuqRefused {
    pub(super) fn answer(self) -> FuqAnswer {
        let wait_s = match self {
            FuqRefused::TooMany(seconds) => Some(seconds),
            _ => None,
        };
        let (status, words) = match self {
            FuqRefused::Malformed(why) | FuqRefused::Bad(why) => {
                (StatusCode::BAD_REQUEST, format!("400 bad request: {why}"))
            }
            FuqRefused::Unauthorized(why) => (StatusCode::UNAUTHORIZED, why.to_owned()),
            FuqRefused::Forbidden(why) => (StatusCode::FORBIDDEN, why.to_owned()),
            FuqRefused::TooMany(seconds) => {
                let words = format!("429 too many wrong passwords: try again in {seconds} s");
                (StatusCode::TOO_MANY_REQUESTS, words)
            }
            FuqRefused::NotFound => (StatusCode::NOT_FOUND, "404 page not found".to_owned()),
            FuqRefused::Method(method) => {
                let words = format!("405 method {method} not allowed");
                (StatusCode::METHOD_NOT_ALLOWED, words)
            }
            FuqRefused::TooLarge(most) => {
                let words = format!("413 a request has at most {most} bytes");
                (StatusCode::PAYLOAD_TOO_LARGE, words)
            }
            FuqRefused::Stopping => {
                (StatusCode::SERVICE_UNAVAILABLE, "503 the hub stops".to_owned())
            }
            FuqRefused::Crowded => {
                let words = "503 too many requests of this node wait already: ask again later";
                (StatusCode::SERVICE_UNAVAILABLE, words.to_owned())
            }
            FuqRefused::Trouble(why) => {
                (StatusCode::INTERNAL_SERVER_ERROR, format!("500 internal error: {why}"))
            }
        };
        let mut answer = text(status, words + "\n");
        let closes =
            matches!(status, StatusCode::PAYLOAD_TOO_LARGE | StatusCode::SERVICE_UNAVAILABLE);
        if closes {
            answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        if let Some(seconds) = wait_s {
            answer.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        if status == StatusCode::METHOD_NOT_ALLOWED {
            answer.headers_mut().insert(ALLOW, HeaderValue::from_static("POST"));
        }
        answer
    }
}

impl From<Unclear> for FuqRefused {
    fn from(Unclear(why): Unclear) -> FuqRefused {
        FuqRefused::Malformed(why)
    }
}

impl From<Lost> for FuqRefused {
    fn from(_: Lost) -> FuqRefused {
        FuqRefused::Stopping
    }
}

impl From<Unasked> for FuqRefused {
    fn from(why: Unasked) -> FuqRefused {
        match why {
            Unasked::Lost => FuqRefused::Stopping,
            Unasked::Crowded => FuqRefused::Crowded,
        }
    }
}

impl From<SecurityError> for FuqRefused {
    fn from(error: SecurityError) -> FuqRefused {
        FuqRefused::Trouble(error.to_string())
    }
}

/// One line of JSON, called text as the original calls it.
pub(super) fn json<T: Serialize>(value: &T) -> FuqAnswer {
    match serde_json::to_string(value) {
        Ok(line) => text(StatusCode::OK, line + "\n"),
        Err(error) => FuqRefused::Trouble(error.to_string()).answer(),
    }
}

/// The original's empty answer.
pub(super) fn done() -> FuqAnswer {
    text(StatusCode::OK, "{}\n".to_owned())
}

fn text(status: StatusCode, words: String) -> FuqAnswer {
    let mut answer = Response::new(Full::from(words));
    *answer.status_mut() = status;
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    answer.headers_mut().insert(CONTENT_TYPE, kind);
    answer
}

/// The name of the cookie that says who a node is.
pub(super) const COOKIE_NAME: &str = "fuq_foreman_auth";

/// It does not say for how long it is good: a node that has dropped its cookie hears 401 and gives up, and one that
/// shows an old cookie hears 403 and renews it.
pub(super) fn set_cookie(answer: &mut FuqAnswer, cookie: &str) {
    let text = format!("{COOKIE_NAME}={cookie}; Path=/; HttpOnly");
    if let Ok(value) = HeaderValue::from_str(&text) {
        answer.headers_mut().insert(SET_COOKIE, value);
    }
}

//! Answers: JSON where it went well, problem+json where not, and the version on every one.

use crate::inbox::Lost;
use axum::Json;
use axum::http::header::{
    CONTENT_RANGE, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use laboro_api::{API_VERSION, API_VERSION_HEADER, BadSelection, BadTask, Problem};
use laboro_api::{VERSION, VERSION_HEADER};
use laboro_core::{Refusal, Reply};

pub(super) type Answer<T> = Result<Json<T>, Refused>;

/// A no, in a form for programs and for people.
#[derive(Clone, Debug)]
pub(super) struct Refused {
    problem: Box<Problem>,
    retry_after_s: Option<u64>,
    /// How much there is, where a part was asked for that there is not.
    size: Option<u64>,
}

impl Refused {
    pub(super) fn new(
        status: StatusCode,
        reason: &'static str,
        detail: impl Into<String>,
    ) -> Refused {
        let problem = Problem {
            title: status.canonical_reason().unwrap_or("Refused").to_owned(),
            status: status.as_u16(),
            reason: reason.to_owned(),
            detail: detail.into(),
            hint: None,
        };
        Refused { problem: Box::new(problem), retry_after_s: None, size: None }
    }

    pub(super) fn hint(mut self, hint: impl Into<String>) -> Refused {
        self.problem.hint = Some(hint.into());
        self
    }

    /// The reason, and the same for people.
    pub(super) fn words(&self) -> (String, String) {
        (self.problem.reason.clone(), self.problem.detail.clone())
    }

    pub(super) fn reason(&self) -> &str {
        &self.problem.reason
    }

    pub(super) fn retry_after(mut self, seconds: u64) -> Refused {
        self.retry_after_s = Some(seconds);
        self
    }

    pub(super) fn of_size(mut self, size: u64) -> Refused {
        self.size = Some(size);
        self
    }

    /// Words in front of the detail: which line, which request.
    pub(super) fn at(mut self, place: &str) -> Refused {
        self.problem.detail = format!("{place}: {}", self.problem.detail);
        self
    }

    pub(super) fn bad_request(reason: &'static str, detail: impl Into<String>) -> Refused {
        Refused::new(StatusCode::BAD_REQUEST, reason, detail)
    }

    pub(super) fn forbidden(detail: impl Into<String>) -> Refused {
        Refused::new(StatusCode::FORBIDDEN, "forbidden", detail)
            .hint("use a token whose role and group allow it: `laboro access` makes one")
    }

    /// The hub answered something that the question cannot have: our own mistake, not the client's.
    pub(super) fn unexpected(reply: &Reply) -> Refused {
        tracing::error!(?reply, "a reply does not fit its question");
        Refused::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "internal",
            "the hub gave an answer that does not fit the question",
        )
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.problem.status);
        let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = (status, Json(&*self.problem)).into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if let Some(seconds) = self.retry_after_s {
            headers.insert(RETRY_AFTER, seconds.into());
        }
        if let Some(size) = self.size
            && let Ok(size) = HeaderValue::try_from(format!("bytes */{size}"))
        {
            headers.insert(CONTENT_RANGE, size);
        }
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

impl From<Lost> for Refused {
    fn from(lost: Lost) -> Refused {
        Refused::new(StatusCode::SERVICE_UNAVAILABLE, "hub_stopped", lost.to_string())
            .hint("try again when it is back")
            .retry_after(1)
    }
}

impl From<BadTask> for Refused {
    fn from(bad: BadTask) -> Refused {
        Refused::new(StatusCode::UNPROCESSABLE_ENTITY, "bad_task", bad.to_string())
    }
}

impl From<BadSelection> for Refused {
    fn from(bad: BadSelection) -> Refused {
        Refused::new(StatusCode::UNPROCESSABLE_ENTITY, "bad_selection", bad.to_string())
    }
}

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Refused {
        const GONE: StatusCode = StatusCode::NOT_FOUND;
        const CLASH: StatusCode = StatusCode::CONFLICT;
        const WRONG: StatusCode = StatusCode::UNPROCESSABLE_ENTITY;
        let (status, reason, hint) = match &refusal {
            Refusal::NoSuchJob(_) => (GONE, "no_such_job", "it never existed or was forgotten"),
            Refusal::NoSuchTask(_) => (GONE, "no_such_task", "list them with GET jobs/{id}/tasks"),
            Refusal::NoSuchGroup(_) => (GONE, "no_such_group", "list them with GET groups"),
            Refusal::NoSuchWorker(_) => (GONE, "no_such_worker", "list them with GET workers"),
            Refusal::JobClosed(_) => (CLASH, "job_closed", "submit a new job"),
            Refusal::JobNotFinished(_) => {
                (CLASH, "job_not_finished", "wait for it, or cancel and close it first")
            }
            Refusal::NameTaken(_) => {
                (CLASH, "name_taken", "choose another name, or set `if_taken`")
            }
            Refusal::WorkerTaken { .. } => (CLASH, "worker_taken", "choose another name"),
            Refusal::NameTwice(_) => (WRONG, "name_twice", "names are unique in a group"),
            Refusal::BadName { .. } => (WRONG, "bad_name", "choose another name"),
            Refusal::BadProfile(_) => (WRONG, "bad_profile", "submit again"),
            Refusal::NodesAndVariants => {
                (WRONG, "nodes_and_variants", "leave out nodes, or the variants")
            }
            Refusal::UnknownPred { .. } => {
                (WRONG, "unknown_predecessor", "submit it first, or set `unknown_after: ignore`")
            }
            Refusal::Cycle(_) => (WRONG, "cycle", "take one of the dependencies away"),
            Refusal::UnequalArrays { .. } => {
                (WRONG, "unequal_arrays", "`each` needs arrays of the same size")
            }
            Refusal::NotAnArray(_) => (WRONG, "not_an_array", "`each` needs arrays: say `after`"),
            Refusal::Limit { .. } => {
                (WRONG, "limit", "do it in several parts, or raise the limit of the hub")
            }
            Refusal::Quota(_) => (
                CLASH,
                "quota",
                "wait for tasks to end, cancel some, or raise `[quotas]` of the hub",
            ),
            Refusal::TooLarge { .. } => {
                (WRONG, "task_too_large", "split it, or put what it works on in a file")
            }
            Refusal::NotYours(_) => (CLASH, "not_yours", "only its worker can report that"),
            Refusal::NotStarted(_) => (CLASH, "not_started", "it has to be dispatched first"),
            Refusal::AlreadyFinished { .. } => (CLASH, "already_finished", "retry it to run again"),
            Refusal::NothingSelected => (
                CLASH,
                "nothing_selected",
                "none of the selected tasks is in a state in which this is possible",
            ),
            Refusal::WorkerAway(_) => (CLASH, "worker_away", "start it first"),
            Refusal::WorkerLeaves(_) => {
                (CLASH, "worker_leaves", "start it again after it has ended")
            }
            Refusal::WorkerHere(_) => (CLASH, "worker_here", "choose another name"),
            Refusal::Ejected { .. } => (CLASH, "ejected", "pardon it first"),
            Refusal::NotYet(_) => (StatusCode::NOT_IMPLEMENTED, "not_yet", "use a newer hub"),
        };
        Refused::new(status, reason, refusal.to_string()).hint(hint)
    }
}

/// Every answer says which program gave it and in which words.
pub(super) async fn sign(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert(VERSION_HEADER, HeaderValue::from_static(VERSION));
    headers.insert(API_VERSION_HEADER, HeaderValue::from_static(API_VERSION));
    // What a task printed is no page, whatever it looks like.
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

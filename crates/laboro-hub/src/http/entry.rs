//! Who comes in: the token is shown to the doorman, its role says what may be done, and what was done is
//! written down. Roles here: watch reads, submit also submits and controls its own jobs, admin does everything, work
//! does nothing. A token bound to a group does not learn that there are others.

use super::answer::Refused;
use super::standing::{Standing, TokenEnded};
use super::trace::SubmitTrace;
use super::{Api, Shared};
use crate::security::{Denied, Role, Who};
use axum::Extension;
use axum::extract::{FromRequestParts, Request};
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use laboro_api::AuditEntry;
use laboro_core::{Command, JobId, JobView, Name, Query, Refusal, Reply, WorkerRef, WorkerView};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

/// Where a request comes from. `serve` puts it into every one.
#[derive(Clone, Copy, Debug)]
pub struct Peer(pub SocketAddr);

impl Peer {
    /// Nobody connects from port 0: it stands for the socket that only the hub's own user and root can reach.
    fn is_own_user(self) -> bool {
        self.0.port() == 0
    }
}

/// Whoever asks, once the token was found good.
#[derive(Clone)]
pub(super) struct Visitor {
    pub(super) who: Arc<Who>,
    /// The user who runs the hub, as the kernel says.
    pub(super) is_own_user: bool,
    /// What exactly was asked, for the audit log.
    note: Arc<Mutex<Option<String>>>,
    standing: Arc<Standing>,
    pub(super) trace: SubmitTrace,
}

/// Lets in who may come in, and writes down what changed something.
pub(super) async fn enter(
    axum::extract::State(api): Shared,
    mut request: Request,
    next: Next,
) -> Response {
    let peer = request.extensions().get::<Peer>().map(|peer| peer.0);
    let who = match identify(&api, request.headers(), peer) {
        Ok(who) => api.within_job(who).await,
        Err(refused) => Err(refused),
    };
    let who = match who {
        Ok(who) => Arc::new(who),
        Err(refused) => return refused.into_response(),
    };
    if who.role == Role::Work {
        return Refused::forbidden("worker tokens cannot use the API").into_response();
    }
    let changes_something = request.method() != Method::GET && request.method() != Method::HEAD;
    let standing = Standing::new(&api, who.clone());
    let is_own_user = request.extensions().get::<Peer>().is_some_and(|peer| peer.is_own_user());
    let parent = request.headers().get(laboro_net::trace::HEADER);
    let parent = parent.and_then(|value| value.to_str().ok());
    let trace = SubmitTrace::of(parent, api.services.traces.is_some());
    let (note, standing_of) = (Arc::default(), standing.clone());
    let visitor = Visitor { who: who.clone(), is_own_user, note, standing: standing_of, trace };
    if !changes_something {
        request.extensions_mut().insert(visitor);
        // Nothing is lost with a question that is dropped.
        let response = tokio::select! {
            biased;
            response = next.run(request) => response,
            () = standing.end() => return standing.refusal().into_response(),
        };
        return response.map(|body| standing.hold(body));
    }
    let action = format!("{} {}", request.method(), request.uri().path());
    // Before its body is read: it would be read for nothing.
    if let Err(refused) = visitor.must_submit() {
        return refused.into_response();
    }
    request.extensions_mut().insert(visitor.clone());
    // Once its body is here a request is carried out, and its answer says so.
    let answer = next.run(request.map(|body| standing.hold(body))).await;
    let response = if standing.is_over() {
        (Extension(TokenEnded), standing.refusal()).into_response()
    } else {
        answer.map(|body| standing.hold(body))
    };
    if let Some(audit) = &api.services.audit {
        audit.write(AuditEntry {
            number: 0,
            at_ms: api.services.clock.now().0,
            token: who.token.clone(),
            owner: Some(who.owner.clone()).filter(|owner| *owner != who.token),
            role: word(who.role).to_owned(),
            peer: peer.map(|peer| peer.ip().to_string()),
            action,
            detail: visitor.note.lock().unwrap_or_else(PoisonError::into_inner).take(),
            status: response.status().as_u16(),
        });
    }
    response
}

fn identify(api: &Api, headers: &HeaderMap, peer: Option<SocketAddr>) -> Result<Who, Refused> {
    let unauthorized =
        |reason, detail: String| Refused::new(StatusCode::UNAUTHORIZED, reason, detail);
    let mut shown = headers.get_all(AUTHORIZATION).iter();
    let Some(header) = shown.next() else {
        return Err(unauthorized("no_token", "the request has no token".to_owned())
            .hint("send `Authorization: Bearer TOKEN`; `laboro access` makes one"));
    };
    // Whoever stands in between may have looked at the other one.
    if shown.next().is_some() {
        let detail = "there is more than one Authorization header";
        return Err(unauthorized("bad_token", detail.to_owned()).hint("send one"));
    }
    let Some(secret) = bearer(header.as_bytes()) else {
        return Err(unauthorized(
            "bad_token",
            "the Authorization header has no bearer token token".to_owned(),
        )
        .hint("send `Authorization: Bearer TOKEN`"));
    };
    let now = api.services.clock.now();
    let ip = peer.map(|peer| peer.ip());
    api.services.doorman.identify(secret, ip, now).map_err(|denied| {
        api.requests.denied();
        match &denied {
            Denied::Unknown => unauthorized("unknown_token", denied.to_string()),
            Denied::Expired(_) => unauthorized("expired_token", denied.to_string()),
            Denied::TooMany(seconds) => {
                let status = StatusCode::TOO_MANY_REQUESTS;
                Refused::new(status, "too_many_wrong_tokens", denied.to_string())
                    .retry_after(*seconds)
            }
        }
    })
}

fn bearer(header: &[u8]) -> Option<&[u8]> {
    let (scheme, secret) = header.split_at_checked(7)?;
    (scheme.eq_ignore_ascii_case(b"bearer ")).then(|| secret.trim_ascii())
}

pub(super) fn word(role: Role) -> &'static str {
    match role {
        Role::Watch => "watch",
        Role::Submit => "submit",
        Role::Work => "work",
        Role::Admin => "admin",
    }
}

impl FromRequestParts<Arc<Api>> for Visitor {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, _: &Arc<Api>) -> Result<Visitor, Refused> {
        let visitor = parts.extensions.get::<Visitor>().cloned();
        Ok(visitor.expect("every guarded route is behind `enter`"))
    }
}

impl Visitor {
    /// For the audit log: what exactly. Never a secret.
    pub(super) fn note(&self, what: impl Into<String>) {
        let mut what: String = what.into();
        if let Some((end, _)) = what.char_indices().nth(NOTE_CHARS_MAX) {
            what.truncate(end);
        }
        *self.note.lock().unwrap_or_else(PoisonError::into_inner) = Some(what);
    }

    /// The token was revoked or has expired while its request came.
    pub(super) fn has_ended(&self) -> bool {
        self.standing.is_over()
    }

    /// Whose jobs are those that are submitted here.
    pub(super) fn owner(&self) -> Name {
        Name::from(self.who.owner.as_str())
    }

    /// The group a token is bound to, if to one.
    pub(super) fn bound_to(&self) -> Option<&Name> {
        self.who.group.as_ref()
    }

    pub(super) fn sees(&self, group: &Name) -> bool {
        self.bound_to().is_none_or(|own| own == group)
    }

    pub(super) fn must_submit(&self) -> Result<(), Refused> {
        match self.who.role {
            Role::Submit | Role::Admin => Ok(()),
            Role::Watch | Role::Work => {
                let role = word(self.who.role);
                Err(Refused::forbidden(format!("a token with the role {role} may only read")))
            }
        }
    }

    pub(super) fn must_be_admin(&self) -> Result<(), Refused> {
        match self.who.role {
            Role::Admin => Ok(()),
            role => {
                let role = word(role);
                Err(Refused::forbidden(format!(
                    "this needs the role admin, and the token has the role {role}"
                )))
            }
        }
    }

    /// For what belongs to the hub as a whole.
    pub(super) fn must_be_unbound(&self) -> Result<(), Refused> {
        match self.bound_to() {
            None => Ok(()),
            Some(own) => Err(Refused::forbidden(format!("this token is bound to the group {own}"))),
        }
    }

    /// The group that is meant: the one named, or the token's own.
    pub(super) fn group(&self, named: Option<Name>) -> Result<Name, Refused> {
        match (named, self.bound_to()) {
            (Some(named), _) if self.sees(&named) => Ok(named),
            (Some(named), _) => Err(Refusal::NoSuchGroup(named).into()),
            (None, Some(own)) => Ok(own.clone()),
            (None, None) => Ok(laboro_api::DEFAULT_GROUP.into()),
        }
    }
}

/// A list of ten thousand ranges is not what an audit log is for.
const NOTE_CHARS_MAX: usize = 500;

impl Api {
    /// Asks the hub; a refusal becomes one of ours.
    pub(super) async fn ask(&self, command: Command) -> Result<Reply, Refused> {
        match self.services.handle.ask(command).await? {
            Reply::Refused(refusal) => Err(refusal.into()),
            reply => Ok(reply),
        }
    }

    /// A task is let in while its job lives, to the group of its job.
    async fn within_job(&self, who: Who) -> Result<Who, Refused> {
        let Some(job) = who.job else { return Ok(who) };
        let view = match self.ask(Command::Query(Query::Job(job))).await {
            Ok(Reply::Jobs(views)) => views.into_iter().next().filter(|view| view.ended.is_none()),
            _ => None,
        };
        match view {
            Some(view) => {
                // What a task submits belongs to the owner of its job.
                let owner = view.owner.map_or(who.owner, |owner| owner.to_string());
                Ok(Who { owner, group: Some(view.group), ..who })
            }
            None => {
                let detail = format!(
                    "job {} has ended, so the token of its tasks is no longer valid",
                    job.0
                );
                Err(Refused::new(StatusCode::UNAUTHORIZED, "token_ended", detail))
            }
        }
    }

    /// A job that the visitor may see.
    pub(super) async fn job(&self, visitor: &Visitor, job: u32) -> Result<JobView, Refused> {
        let job = JobId(job);
        let view = match self.ask(Command::Query(Query::Job(job))).await? {
            Reply::Jobs(views) => views.into_iter().next(),
            reply => return Err(Refused::unexpected(&reply)),
        };
        match view.filter(|view| visitor.sees(&view.group)) {
            Some(view) => Ok(view),
            None => Err(Refusal::NoSuchJob(job).into()),
        }
    }

    /// A job that the visitor may change: its own, or any that it sees where it is an admin or the hub's settings say so.
    pub(super) async fn job_to_change(
        &self,
        visitor: &Visitor,
        job: u32,
    ) -> Result<JobView, Refused> {
        visitor.must_submit()?;
        let view = self.job(visitor, job).await?;
        let is_own = view.owner.as_ref() == Some(&visitor.owner());
        if is_own || visitor.who.role == Role::Admin || self.services.change_all_jobs {
            return Ok(view);
        }
        let whose = view.owner.map_or("no known owner".to_owned(), |owner| owner.to_string());
        let detail = format!(
            "job {job} belongs to {whose}, and this token may change jobs of {} only",
            visitor.owner()
        );
        Err(Refused::new(StatusCode::FORBIDDEN, "not_owner", detail).hint(
            "ask its owner or an admin; `owners.change_jobs = \"all\"` in hub.toml allows it",
        ))
    }

    /// A worker that the visitor may see.
    pub(super) async fn worker(
        &self,
        visitor: &Visitor,
        worker: WorkerRef,
    ) -> Result<WorkerView, Refused> {
        let shown = match &worker {
            WorkerRef::Id(id) => Name::from(id.0.to_string()),
            WorkerRef::Name { name, .. } | WorkerRef::Of { name, .. } => name.clone(),
        };
        let view = match self.ask(Command::Query(Query::Worker(worker))).await? {
            Reply::Workers(views) => views.into_iter().next(),
            reply => return Err(Refused::unexpected(&reply)),
        };
        match view.filter(|view| visitor.sees(&view.group)) {
            Some(view) => Ok(view),
            None => Err(Refusal::NoSuchWorker(shown).into()),
        }
    }
}

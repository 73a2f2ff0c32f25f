//! `GET events`: changes as they happen, as server-sent events.

use super::answer::Refused;
use super::entry::Visitor;
use super::extract::Asked;
use super::feed::{FeedUpdate, Viewer};
use super::{Api, Shared};
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use laboro_api::{self as api, Event, EventKind};
use laboro_core::{Command, GroupId, JobId, Name, Query, Reply, WorkerId, WorkerRef};
use serde::Deserialize;
use std::collections::HashMap;
use std::convert::Infallible;
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;
use utoipa::IntoParams;

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct EventsQuery {
    /// Only what happens to this job.
    job: Option<u32>,
}

/// A sign of life for proxies, and a way to notice that nobody reads.
const SILENCE_MAX: Duration = Duration::from_secs(15);

/// Changes as they happen. Every event has a number; `Last-Event-ID` continues after it. An event of the kind `gap` means that events are missing: read everything again.
#[utoipa::path(get, path = "/events", tag = "events",
    params(EventsQuery, ("last-event-id" = Option<String>, Header)),
    responses((status = 200, body = Event, content_type = "text/event-stream"),
        (status = 503, body = api::Problem)))]
pub(super) async fn events(
    State(api): Shared,
    visitor: Visitor,
    Asked(asked): Asked<EventsQuery>,
    headers: HeaderMap,
) -> Result<Response, Refused> {
    if let Some(job) = asked.job {
        api.job(&visitor, job).await?;
    }
    let viewer = api.view(headers.get("last-event-id").and_then(|id| id.to_str().ok())).await?;
    let hello = format!("id: {}\nretry: 1000\n\n", viewer.id());
    let groups = visitor.bound_to().cloned().map(Groups::new);
    let show = Show { api, viewer, groups, job: asked.job };
    // Asked for the next piece only when the last was taken: a slow receiver falls behind in the ring.
    let body = stream::unfold((show, Some(hello)), |(mut show, hello)| async move {
        let text = match hello {
            Some(hello) => hello,
            None => show.next().await?,
        };
        Some((Ok::<_, Infallible>(Bytes::from(text)), (show, None)))
    });
    let headers =
        [(header::CONTENT_TYPE, "text/event-stream"), (header::CACHE_CONTROL, "no-store")];
    Ok((headers, Body::from_stream(body)).into_response())
}

struct Show {
    api: Arc<Api>,
    viewer: Viewer,
    /// For a token bound to a group: whose things are whose.
    groups: Option<Groups>,
    job: Option<u32>,
}

impl Show {
    /// The next piece of the stream. `None`: the hub has stopped.
    async fn next(&mut self) -> Option<String> {
        loop {
            let Ok(news) = tokio::time::timeout(SILENCE_MAX, self.viewer.next()).await else {
                return Some(":\n\n".to_owned());
            };
            let mut text = String::new();
            match news {
                FeedUpdate::Over => return None,
                FeedUpdate::Gap => {
                    let gap = Event::bare(EventKind::Gap, self.api.services.clock.now().0);
                    put(&mut text, &self.viewer.id(), &gap);
                }
                FeedUpdate::Events(events) => {
                    for (number, event) in events {
                        if self.is_wanted(&event).await {
                            put(&mut text, &self.api.feed.id(number), &event);
                        }
                    }
                }
            }
            if !text.is_empty() {
                return Some(text);
            }
        }
    }

    async fn is_wanted(&mut self, event: &Event) -> bool {
        if event.kind == EventKind::Gap {
            return true;
        }
        let fits = self.job.is_none_or(|job| event.job == Some(job));
        fits && match &mut self.groups {
            None => true,
            Some(groups) => groups.has(&self.api, event).await,
        }
    }
}

fn put(text: &mut String, id: &str, event: &Event) {
    let json = serde_json::to_string(event).expect("an event is made of numbers and words");
    let word = event.kind.word();
    write!(text, "id: {id}\nevent: {word}\ndata: {json}\n\n").expect("a string takes all");
}

/// Which jobs, workers and groups belong to the viewer's own group. Asked once each.
struct Groups {
    own: Name,
    known: HashMap<Subject, bool>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Subject {
    Job(u32),
    Worker(u32),
    Group(u32),
}

/// A viewer that stays for months meets many jobs.
const SUBJECTS_KEPT_MAX: usize = 10_000;

impl Groups {
    fn new(own: Name) -> Groups {
        Groups { own, known: HashMap::new() }
    }

    async fn has(&mut self, api: &Api, event: &Event) -> bool {
        let subject = match (event.job, event.worker, event.group) {
            (Some(job), _, _) => Subject::Job(job),
            (None, Some(worker), _) => Subject::Worker(worker),
            (None, None, Some(group)) => Subject::Group(group),
            (None, None, None) => return false,
        };
        if let Some(&known) = self.known.get(&subject) {
            return known;
        }
        if self.known.len() >= SUBJECTS_KEPT_MAX {
            self.known.clear();
        }
        let is_ours = self.ask(api, subject).await;
        self.known.insert(subject, is_ours);
        is_ours
    }

    /// What is gone already is nobody's.
    async fn ask(&self, api: &Api, subject: Subject) -> bool {
        let query = match subject {
            Subject::Job(job) => Query::Job(JobId(job)),
            Subject::Worker(worker) => Query::Worker(WorkerRef::Id(WorkerId(worker))),
            Subject::Group(_) => Query::Group(self.own.clone()),
        };
        match (subject, api.services.handle.ask(Command::Query(query)).await) {
            (Subject::Job(_), Ok(Reply::Jobs(jobs))) => {
                jobs.first().is_some_and(|job| job.group == self.own)
            }
            (Subject::Worker(_), Ok(Reply::Workers(workers))) => {
                workers.first().is_some_and(|worker| worker.group == self.own)
            }
            (Subject::Group(id), Ok(Reply::Groups(groups))) => {
                groups.first().is_some_and(|group| group.group == GroupId(id))
            }
            _ => false,
        }
    }
}

impl Api {
    /// A place among the viewers, if one is free.
    pub(super) async fn view(&self, resume: Option<&str>) -> Result<Viewer, Refused> {
        let most = self.services.limits.viewers;
        if self.feed.viewers() >= most {
            let detail = format!("there are {most} viewers already, the maximum");
            return Err(Refused::new(StatusCode::SERVICE_UNAVAILABLE, "too_many_viewers", detail)
                .retry_after(5));
        }
        Ok(self.feed.join(resume).await)
    }
}

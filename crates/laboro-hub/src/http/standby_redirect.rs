//! What a hub that follows answers: where the one that leads is, whatever was asked. Nothing is read or changed
//! here, so nobody needs a token for it. Whoever comes while nobody leads waits a little, since somebody will.

use super::answer::{Refused, sign};
use super::leftover;
use axum::Router;
use axum::extract::State;
use axum::http::header::LOCATION;
use axum::http::{HeaderValue, StatusCode, Uri};
use axum::middleware::{from_fn, map_response};
use axum::response::{IntoResponse, Response};
use laboro_api::BASE;
use laboro_jetstream::Following;
use std::time::Duration;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

#[derive(Clone)]
pub(crate) struct StandbyRedirect {
    pub following: watch::Receiver<Following>,
    /// Where this hub is, to which people are sent once it leads itself.
    pub own: String,
    pub leads: CancellationToken,
}

/// A takeover after a good-bye is quicker than this.
const WAIT: Duration = Duration::from_secs(5);

impl StandbyRedirect {
    pub fn routes(self) -> Router {
        Router::new()
            .fallback(show)
            .layer(map_response(sign))
            .layer(from_fn(leftover::take))
            .with_state(self)
    }

    /// As far as it is known now.
    fn leader(&self) -> Option<String> {
        let leader = self.following.borrow().leader.clone();
        leader.map(|leader| leader.http.clone()).filter(|http| !http.is_empty())
    }

    async fn leader_soon(&mut self) -> Option<String> {
        if let Some(leader) = self.leader() {
            return Some(leader);
        }
        let is_known = |now: &Following| now.leader.as_ref().is_some_and(|at| !at.http.is_empty());
        tokio::select! {
            () = self.leads.cancelled() => return Some(self.own.clone()),
            _ = self.following.wait_for(is_known) => {}
            () = tokio::time::sleep(WAIT) => {}
        }
        self.leader()
    }
}

async fn show(State(mut redirect): State<StandbyRedirect>, uri: Uri) -> Response {
    let unavailable = StatusCode::SERVICE_UNAVAILABLE;
    if uri.path().strip_prefix(BASE) == Some("/health") {
        // Whoever spreads requests over several hubs asks this, and shall use the other one.
        let detail = match redirect.leader() {
            Some(leader) => format!("this hub is a standby; the leader is at {leader}"),
            None => "this hub is a standby, and there is no leader at the moment".to_owned(),
        };
        return Refused::new(unavailable, "not_leader", detail).into_response();
    }
    let Some(leader) = redirect.leader_soon().await else {
        let detail = "there is no leader at the moment, and this hub is a standby";
        return Refused::new(unavailable, "no_leader", detail)
            .hint("try again in a moment")
            .retry_after(1)
            .into_response();
    };
    let detail = format!("this hub is a standby; the leader is at {leader}");
    let mut response = Refused::new(StatusCode::TEMPORARY_REDIRECT, "not_leader", detail)
        .hint("ask there; curl needs --location-trusted")
        .into_response();
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    // An address that is none of HTTP's is still told in the body.
    if let Ok(place) = HeaderValue::try_from(format!("https://{leader}{path}")) {
        response.headers_mut().insert(LOCATION, place);
    }
    response
}

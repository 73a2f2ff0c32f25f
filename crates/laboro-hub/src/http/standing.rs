//! What takes long stands with the token that opened it: a question that waits, and a body that comes or goes, end
//! once the token was revoked or has expired. What is asked and answered at once costs nothing here.

use super::Api;
use super::answer::Refused;
use crate::security::{Doorman, Who};
use axum::body::{Body, Bytes, HttpBody};
use axum::http::StatusCode;
use hyper::body::{Frame, SizeHint};
use laboro_core::{Command, Query, Reply};
use laboro_net::Clock;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Instant, Sleep};

/// The token of one request.
pub(super) struct Standing {
    doorman: Arc<dyn Doorman>,
    clock: Clock,
    who: Arc<Who>,
    every: Duration,
    is_over: Arc<AtomicBool>,
    /// Looks whether the job of a task lives.
    _job: Option<JobWatch>,
}

/// Ends with the request.
struct JobWatch(tokio::task::JoinHandle<()>);

impl Drop for JobWatch {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// On its way out as an error, and as a mark on the answer.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the token was revoked or has expired")]
pub(super) struct TokenEnded;

impl Standing {
    pub(super) fn new(api: &Api, who: Arc<Who>) -> Arc<Standing> {
        let services = &api.services;
        let (every, is_over) = (services.limits.admission, Arc::new(AtomicBool::new(false)));
        let watch = |job| {
            let (handle, is_over) = (services.handle.clone(), is_over.clone());
            JobWatch(tokio::spawn(async move {
                loop {
                    tokio::time::sleep(every).await;
                    if !lives(handle.ask(Command::Query(Query::Job(job))).await.ok()) {
                        return is_over.store(true, Ordering::Relaxed);
                    }
                }
            }))
        };
        let _job = who.job.map(watch);
        let (doorman, clock) = (services.doorman.clone(), services.clock);
        Arc::new(Standing { doorman, clock, who, every, is_over, _job })
    }

    /// Whether somebody has looked and found that the token is good no more.
    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// Comes when the token has ended.
    pub(super) async fn end(&self) {
        loop {
            tokio::time::sleep(self.every).await;
            if self.look().is_err() {
                return;
            }
        }
    }

    pub(super) fn refusal(&self) -> Refused {
        let detail = format!("the token {} was revoked or expired meanwhile", self.who.token);
        Refused::new(StatusCode::UNAUTHORIZED, "token_ended", detail)
            .hint("make a new one with `laboro access` on the hub's machine, and ask again")
    }

    /// The same body, for as long as the token is good.
    pub(super) fn hold(self: &Arc<Standing>, body: Body) -> Body {
        if body.is_end_stream() {
            return body;
        }
        let look_at = Instant::now() + self.every;
        Body::new(Held { body, standing: self.clone(), look_at, alarm: None })
    }

    fn look(&self) -> Result<(), TokenEnded> {
        if !self.is_over() && self.doorman.still_holds(&self.who, self.clock.now()) {
            return Ok(());
        }
        self.is_over.store(true, Ordering::Relaxed);
        Err(TokenEnded)
    }
}

struct Held {
    body: Body,
    standing: Arc<Standing>,
    look_at: Instant,
    /// Only where a piece had to be waited for.
    alarm: Option<Pin<Box<Sleep>>>,
}

impl Held {
    /// There is a piece, or the end.
    fn glance(&mut self, is_end: bool) -> Result<(), TokenEnded> {
        let now = Instant::now();
        // A body that was waited for is not whole before its token was looked at.
        let is_late_end = is_end && self.alarm.is_some();
        if is_late_end || now >= self.look_at || self.standing.is_over() {
            self.standing.look()?;
            self.look_at = now + self.standing.every;
        }
        Ok(())
    }

    /// There is nothing yet. Whoever waits for it is woken to look at the token.
    fn watch(&mut self, context: &mut Context<'_>) -> Result<(), TokenEnded> {
        let look_at = self.look_at;
        let alarm = self.alarm.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(look_at)));
        while alarm.as_mut().poll(context).is_ready() {
            self.standing.look()?;
            self.look_at = Instant::now() + self.standing.every;
            alarm.as_mut().reset(self.look_at);
        }
        Ok(())
    }
}

impl HttpBody for Held {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        let looked = match &polled {
            Poll::Ready(piece) => self.glance(piece.is_none()),
            Poll::Pending => self.watch(context),
        };
        match looked {
            Ok(()) => polled,
            Err(ended) => Poll::Ready(Some(Err(axum::Error::new(ended)))),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Whether the answer is about a job whose tasks are not all over.
fn lives(job: Option<Reply>) -> bool {
    matches!(job, Some(Reply::Jobs(views)) if views.iter().any(|view| view.ended.is_none()))
}

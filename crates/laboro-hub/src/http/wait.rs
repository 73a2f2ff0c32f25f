//! `GET wait`: answers when jobs have come to an end, or when the time is over; whoever wants more asks again.

use super::answer::{Answer, Refused};
use super::entry::Visitor;
use super::extract::Asked;
use super::feed::FeedUpdate;
use super::{Api, Shared};
use axum::Json;
use axum::extract::State;
use laboro_api::{EventKind, Job, Problem, Waited};
use serde::Deserialize;
use std::time::Duration;
use tokio::time::Instant;
use utoipa::{IntoParams, ToSchema};

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct WaitQuery {
    /// Numbers with commas, 100 at most; all of them are waited for.
    jobs: String,
    /// How long at most; 30 seconds if not given, and no longer than the hub allows.
    timeout_ms: Option<u64>,
    #[serde(default)]
    #[param(inline)]
    until: Until,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Until {
    /// Closed, and every task done, failed or cancelled.
    #[default]
    Ended,
    /// Or closed, and what is left of it waits for a person: blocked by a failure, held.
    Idle,
}

const JOBS_MAX: usize = 100;
const TIMEOUT_USUAL: Duration = Duration::from_secs(30);

/// Waits until jobs have ended.
#[utoipa::path(get, path = "/wait", tag = "events", params(WaitQuery),
    responses((status = 200, body = Waited), (status = 404, body = Problem)))]
pub(super) async fn wait(
    State(api): Shared,
    visitor: Visitor,
    Asked(asked): Asked<WaitQuery>,
) -> Answer<Waited> {
    let numbers = numbers(&asked.jobs)?;
    let timeout = asked.timeout_ms.map_or(TIMEOUT_USUAL, Duration::from_millis);
    let deadline = Instant::now() + timeout.min(api.services.limits.wait);
    // First a place among the viewers, then the question: what changes after it is told.
    let mut viewer = api.view(None).await?;
    let bell = api.feed.bells.hang(&numbers);
    let mut jobs = api.look(&visitor, &numbers).await?;
    loop {
        let is_over = |job: &Job| match asked.until {
            Until::Ended => job.ended_ms.is_some(),
            Until::Idle => job.is_idle(),
        };
        if jobs.iter().all(is_over) {
            return Ok(Json(Waited { finished: true, jobs }));
        }
        loop {
            let news = tokio::select! {
                // The end of a job is told before viewers learn of it.
                () = bell.rung() => break,
                () = tokio::time::sleep_until(deadline) => {
                    return Ok(Json(Waited { finished: false, jobs }));
                }
                news = viewer.next() => news,
            };
            match news {
                FeedUpdate::Over => return Err(crate::Lost.into()),
                FeedUpdate::Gap => break,
                FeedUpdate::Events(events) => {
                    let is_about = |event: &laboro_api::Event| {
                        event.kind == EventKind::Gap
                            || event.job.is_some_and(|job| numbers.contains(&job))
                    };
                    if events.iter().any(|(_, event)| is_about(event)) {
                        break;
                    }
                }
            }
        }
        jobs = api.look(&visitor, &numbers).await?;
    }
}

fn numbers(text: &str) -> Result<Vec<u32>, Refused> {
    let numbers: Result<Vec<u32>, _> =
        text.split(',').take(JOBS_MAX + 1).map(|number| number.trim().parse()).collect();
    match numbers {
        Ok(numbers) if numbers.len() <= JOBS_MAX => Ok(numbers),
        Ok(_) => {
            let detail = format!("more than {JOBS_MAX} jobs in one wait");
            Err(Refused::bad_request("bad_query", detail).hint("wait for them in turn"))
        }
        Err(_) => Err(Refused::bad_request("bad_query", "`jobs` is not a list of numbers: 1,2,3")),
    }
}

impl Api {
    async fn look(&self, visitor: &Visitor, numbers: &[u32]) -> Result<Vec<Job>, Refused> {
        let mut jobs = Vec::with_capacity(numbers.len());
        for &number in numbers {
            jobs.push(self.job(visitor, number).await?.into());
        }
        Ok(jobs)
    }
}

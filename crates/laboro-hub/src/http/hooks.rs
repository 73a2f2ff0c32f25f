//! Deliveries of hooks: looking at them, trying one again, and who may have what called when a job ends.

use super::answer::{Answer, Refused};
use super::entry::Visitor;
use super::extract::At;
use super::{Api, Shared};
use crate::hooks::{self, HookError, Requester};
use crate::security::Role;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use laboro_api::{Deliveries, Delivery, Problem};
use laboro_core::Name;

/// What is to be delivered and what was, the newest first: all of it for admins, else what is about the token's own jobs.
#[utoipa::path(get, path = "/hooks", tag = "hooks", responses((status = 200, body = Deliveries)))]
pub(super) async fn hooks(State(api): Shared, visitor: Visitor) -> Answer<Deliveries> {
    let mut all = known(&api)?.list();
    all.deliveries.retain(|one| visitor.sees_delivery(one));
    Ok(Json(all))
}

/// Tries a delivery again that failed.
#[utoipa::path(post, path = "/hooks/{number}/retry", operation_id = "retry_hook", tag = "hooks",
    params(("number" = u64, Path)),
    responses((status = 200, body = Delivery), (status = 404, body = Problem), (status = 409, body = Problem)))]
pub(super) async fn retry(
    State(api): Shared,
    visitor: Visitor,
    At(number): At<u64>,
) -> Answer<Delivery> {
    let hooks = known(&api)?;
    if !hooks.get(number).is_some_and(|one| visitor.sees_delivery(&one)) {
        return Err(HookError::Missing(number).into());
    }
    visitor.note(format!("delivery {number}"));
    let hooks = hooks.clone();
    // To its end, also when the client hangs up meanwhile.
    let came_to = tokio::spawn(async move { hooks.retry(number).await }).await;
    Ok(Json(came_to.map_err(|error| super::operation::internal(&error))??))
}

impl Visitor {
    fn sees_delivery(&self, one: &Delivery) -> bool {
        let is_in_sight = match (self.bound_to(), &one.group) {
            (None, _) => true,
            (Some(own), Some(group)) => *own == Name::from(group.as_str()),
            (Some(_), None) => false,
        };
        let is_own = one.owner.as_deref() == Some(self.who.owner.as_str());
        is_in_sight && (is_own || self.who.role == Role::Admin)
    }

    fn asker(&self) -> Requester {
        match self.who.role {
            _ if self.is_own_user => Requester::OwnUser,
            Role::Admin if self.bound_to().is_none() => Requester::Admin,
            _ => Requester::Submitter,
        }
    }
}

impl Api {
    /// May this visitor have all of these called when a job ends?
    pub(super) fn check_on_end(
        &self,
        visitor: &Visitor,
        targets: &[String],
    ) -> Result<(), Refused> {
        if targets.is_empty() {
            return Ok(());
        }
        let refusal = hooks::refusal(known(self)?.settings(), visitor.asker(), targets);
        let Some(refusal) = refusal else { return Ok(()) };
        let refused = match refusal.is_malformed {
            true => Refused::bad_request("bad_value", refusal.why),
            false => Refused::new(StatusCode::FORBIDDEN, "hook_not_allowed", refusal.why),
        };
        Err(match refusal.hint {
            Some(hint) => refused.hint(hint),
            None => refused,
        })
    }
}

fn known(api: &Api) -> Result<&hooks::Hooks, Refused> {
    let detail = "this hub sends nothing when a job ends";
    (api.services.hooks.as_ref())
        .ok_or_else(|| Refused::new(StatusCode::NOT_FOUND, "no_hooks", detail))
}

impl From<HookError> for Refused {
    fn from(error: HookError) -> Refused {
        let (status, reason) = match &error {
            HookError::Missing(_) => (StatusCode::NOT_FOUND, "no_such_delivery"),
            HookError::NotFailed(_) => (StatusCode::CONFLICT, "not_failed"),
            HookError::Store(_) => (StatusCode::INTERNAL_SERVER_ERROR, "not_written"),
        };
        Refused::new(status, reason, error.to_string())
    }
}

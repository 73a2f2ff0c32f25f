//! `GET brokers`: the request brokers of this hub, each with its table. They know no groups, so only tokens of
//! no group see them.

use super::Api;
use super::Shared;
use super::answer::{Answer, Refused};
use super::entry::Visitor;
use super::operation::internal;
use axum::Json;
use axum::extract::State;
use laboro_api::{Broker, Brokers, Problem};

/// The request brokers and their workers: slots, requests, rates, and what was dropped why.
#[utoipa::path(get, path = "/brokers", tag = "hub",
    responses((status = 200, body = Brokers), (status = 403, body = Problem)))]
pub(super) async fn brokers(State(api): Shared, visitor: Visitor) -> Answer<Brokers> {
    visitor.must_be_unbound()?;
    Ok(Json(Brokers { brokers: tables(&api).await? }))
}

/// One that has just ended has none.
pub(super) async fn tables(api: &Api) -> Result<Vec<Broker>, Refused> {
    let brokers = (api.services.brokers)();
    if brokers.is_empty() {
        return Ok(Vec::new());
    }
    let ask = move || {
        let each = brokers.into_iter();
        let one = |(address, observer): (std::net::SocketAddr, crate::mq::Observer)| {
            Some(Broker { address: address.to_string(), table: observer.table()? })
        };
        each.filter_map(one).collect()
    };
    // They answer between two turns of their own.
    tokio::task::spawn_blocking(ask).await.map_err(|error| internal(&error))
}

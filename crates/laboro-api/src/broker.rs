//! Request brokers as the API tells of them.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Broker {
    /// Where it listens.
    pub address: String,
    #[serde(flatten)]
    pub table: BrokerTable,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Brokers {
    pub brokers: Vec<Broker>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct BrokerTable {
    /// Who comes next is first.
    pub workers: Vec<BrokerWorker>,
    pub connections: u64,
    pub waiting: u64,
    pub waiting_bytes: u64,
    pub requests: u64,
    pub dispatched: u64,
    /// Sent on to somebody who was named: answers, mostly.
    pub passed: u64,
    /// Said to peers that have not read it yet.
    pub unread_bytes: u64,
    /// Peers that did not read, and were cut off.
    pub slow: u64,
    /// By reason; only what happened.
    pub dropped: BTreeMap<String, u64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct BrokerWorker {
    pub address: String,
    pub free: u32,
    pub slots: u32,
    pub away: bool,
    /// Requests that it was given.
    pub messages: u64,
    pub per_s: f64,
}

//! Request brokers as the API shows them.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// One request broker.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Broker {
    /// Where it listens.
    pub address: String,
    /// What it has and did.
    #[serde(flatten)]
    pub table: BrokerTable,
}

/// All request brokers of a hub.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Brokers {
    /// One for each rrmq door.
    pub brokers: Vec<Broker>,
}

/// What a request broker has and what went through it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct BrokerTable {
    /// Who comes next is first.
    pub workers: Vec<BrokerWorker>,
    /// Connections that stand.
    pub connections: u64,
    /// Requests that wait for a worker.
    pub waiting: u64,
    /// Their size.
    pub waiting_bytes: u64,
    /// Requests so far.
    pub requests: u64,
    /// Requests given to workers so far.
    pub dispatched: u64,
    /// Forwarded to the peer that they name: answers, mostly.
    pub passed: u64,
    /// Bytes that peers have not read yet.
    pub unread_bytes: u64,
    /// Peers that were disconnected because they did not read.
    pub slow: u64,
    /// By reason; only what happened.
    pub dropped: BTreeMap<String, u64>,
}

/// One worker of a request broker.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct BrokerWorker {
    /// Its identity.
    pub address: String,
    /// Slots that are free.
    pub free: u32,
    /// Its slots.
    pub slots: u32,
    /// Its connection is lost, and its place kept.
    pub away: bool,
    /// Requests that it was given.
    pub messages: u64,
    /// Requests per second of late.
    pub per_s: f64,
}

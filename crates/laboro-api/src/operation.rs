//! The hub itself: version, health, doors, and the audit log.

use super::text::Text;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The versions of the program and of the API.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Version {
    /// Of the program.
    pub version: String,
    /// Of these words.
    pub api: String,
}

/// Whether the hub works.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Health {
    /// `ok`, or a word for what is wrong.
    pub status: String,
    /// Time since the hub started.
    #[serde(default)]
    pub uptime_ms: u64,
}

/// A dialect listening at an address, and what happened there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct DoorStatus {
    /// What is spoken there.
    pub dialect: String,
    /// Where it listens.
    pub address: String,
    /// The group of its tasks and workers.
    #[schema(value_type = Option<String>)]
    pub group: Option<Text>,
    /// Connections that stand.
    pub connections: u64,
    /// Connections so far.
    pub connections_total: u64,
    /// Messages received.
    pub messages_in: u64,
    /// Messages sent.
    pub messages_out: u64,
    /// Bytes received.
    pub bytes_in: u64,
    /// Bytes sent.
    pub bytes_out: u64,
    /// Connections that were forwarded to another door.
    #[serde(default)]
    pub tunnels: u64,
    /// Refused because a limit was reached or the address is not allowed.
    pub refused: u64,
    /// Messages that could be neither understood nor answered.
    #[serde(default)]
    pub dropped: u64,
    /// Closed because they sent malformed data.
    pub malformed: u64,
    /// Connections without a valid token.
    pub denied: u64,
    /// Closed because they were silent.
    pub silent: u64,
    /// Closed because they did not read.
    pub slow: u64,
}

/// All open doors.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Doors {
    /// The native one first.
    pub doors: Vec<DoorStatus>,
}

/// One line of the audit log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct AuditEntry {
    /// Counts up; never used twice.
    pub number: u64,
    /// When.
    pub at_ms: u64,
    /// The token's name, never its secret.
    pub token: String,
    /// Whose token it is, where that is another name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// The role of the token.
    pub role: String,
    /// From where.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peer: Option<String>,
    /// What was asked: `POST /jobs/7/cancel`.
    pub action: String,
    /// What exactly: the selection, the priority, the reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// How it was answered.
    pub status: u16,
}

/// Newest first. `next` is the `before` of the next page, where there is one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AuditPage {
    /// The newest first.
    pub entries: Vec<AuditEntry>,
    /// `before` of the next page; `null` on the last.
    #[serde(default)]
    pub next: Option<u64>,
}

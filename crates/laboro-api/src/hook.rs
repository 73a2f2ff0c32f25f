//! Deliveries of hooks as the hub shows them.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Where a delivery is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum DeliveryState {
    /// It is due, or waits for its next try.
    #[default]
    Pending,
    /// The receiver took it.
    Delivered,
    /// It was tried as often as it may be.
    Failed,
    /// A word that this program does not know yet.
    #[serde(other)]
    Unknown,
}

impl DeliveryState {
    /// As it is written.
    pub fn word(self) -> &'static str {
        match self {
            DeliveryState::Pending => "pending",
            DeliveryState::Delivered => "delivered",
            DeliveryState::Failed => "failed",
            DeliveryState::Unknown => "unknown",
        }
    }
}

/// One thing that one receiver is told.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Delivery {
    /// Its number at this hub.
    pub number: u64,
    /// The same for every try; receivers know by it what they have had already.
    pub id: String,
    /// What happened: `job_done`, `job_failed`, `worker_lost` …
    pub event: String,
    /// When it happened.
    pub at_ms: u64,
    /// Where it goes; of a URL only the host.
    pub to: String,
    /// The job that it is about.
    #[serde(default)]
    pub job: Option<u32>,
    /// The owner of that job.
    #[serde(default)]
    pub owner: Option<String>,
    /// The group of what it is about.
    #[serde(default)]
    pub group: Option<String>,
    /// Where it is.
    pub state: DeliveryState,
    /// How often it was tried.
    pub attempts: u32,
    /// When it is tried next.
    #[serde(default)]
    pub next_ms: Option<u64>,
    /// When it was delivered or given up.
    #[serde(default)]
    pub ended_ms: Option<u64>,
    /// Why the last try failed.
    #[serde(default)]
    pub error: Option<String>,
}

/// Deliveries, the newest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Deliveries {
    /// Those that the token may see.
    pub deliveries: Vec<Delivery>,
    /// Events that were not delivered because too many waited.
    #[serde(default)]
    pub dropped: u64,
}

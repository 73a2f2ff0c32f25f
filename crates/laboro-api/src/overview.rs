//! The hub at a glance: who is there, what failed, what a person should look at.

use super::history::EndedAttempt;
use super::worker::Standing;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Who asks: what the token allows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Me {
    /// The token's name.
    pub token: String,
    /// `watch`, `submit` or `admin`.
    pub role: String,
    /// The group that the token is bound to.
    #[serde(default)]
    pub group: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct Overview {
    pub at_ms: u64,
    pub workers: Fleet,
    /// The newest first.
    pub failures: Vec<EndedAttempt>,
    pub warnings: Vec<Warning>,
    /// Only for tokens that see all groups.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk: Option<Disk>,
}

/// Workers by how they are. Standing and drain are counted for those that are connected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct Fleet {
    pub connected: u64,
    pub away: u64,
    pub draining: u64,
    pub on_hold: u64,
    pub on_probation: u64,
    pub ejected: u64,
    pub slots: u64,
    pub slots_used: u64,
    /// Taken by what was given ahead, once there is room for it.
    pub slots_ahead: u64,
}

impl Fleet {
    pub fn stands(&mut self, standing: Standing) {
        match standing {
            Standing::Good | Standing::Unknown => {}
            Standing::OnHold => self.on_hold += 1,
            Standing::OnProbation => self.on_probation += 1,
            Standing::Ejected => self.ejected += 1,
        }
    }
}

/// Where the hub keeps everything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Disk {
    pub free_bytes: u64,
    pub total_bytes: u64,
}

/// Something that a person should look at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Warning {
    /// A stable word: `worker_on_hold`, `worker_ejected`, `no_workers`, `group_paused`, `job_stopped`,
    /// `door_without_workers`, `inbox_full`, `history_missed`, `disk_low`, `outputs_failing`, `output_lost`.
    pub kind: String,
    /// In plain words.
    pub words: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
}

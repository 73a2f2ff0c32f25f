//! The hub at a glance: who is there, what failed, what a person should look at.

use super::history::EndedAttempt;
use super::text::Text;
use super::worker::{Standing, Worker};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Who asks: what the token allows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Me {
    /// The token's name.
    pub token: String,
    /// Whose jobs the token's are.
    #[serde(default)]
    pub owner: String,
    /// `watch`, `submit` or `admin`.
    pub role: String,
    /// The group that the token is bound to.
    #[serde(default)]
    pub group: Option<String>,
}

/// The hub at a glance.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct Overview {
    /// The hub's clock.
    pub at_ms: u64,
    /// Workers by how they are.
    pub workers: Fleet,
    /// The newest first.
    pub failures: Vec<EndedAttempt>,
    /// What a person should look at.
    pub warnings: Vec<Warning>,
    /// Only for tokens that see all groups.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk: Option<Disk>,
}

/// Workers by state. Standing and drain are counted for connected workers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct Fleet {
    /// Connected now.
    pub connected: u64,
    /// Known, and not connected.
    pub away: u64,
    /// They get nothing more.
    pub draining: u64,
    /// They get no tasks for a while.
    pub on_hold: u64,
    /// Their next task decides.
    pub on_probation: u64,
    /// Sent away for good.
    pub ejected: u64,
    /// Slots of those that are connected.
    pub slots: u64,
    /// Slots in use.
    pub slots_used: u64,
    /// Slots that tasks dispatched ahead will take.
    pub slots_ahead: u64,
    /// Kept free for a task that takes more than a worker has free now, or several workers.
    pub reserved: u64,
    /// Memory of those that are connected, and what tasks were given of it.
    pub memory_bytes: u64,
    /// What tasks asked for of it.
    pub memory_used_bytes: u64,
    /// Countable things of those that are connected, each kind once.
    pub resources: Vec<FleetResource>,
}

/// How much of something countable all workers have.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FleetResource {
    /// What it is called.
    #[schema(value_type = String)]
    pub name: Text,
    /// How much of it there is.
    pub count: u64,
    /// What is given out, with fractions.
    pub used: f64,
}

impl Fleet {
    /// Counts what one more that is connected has, and what of it is in use.
    pub fn has(&mut self, worker: &Worker) {
        self.slots += u64::from(worker.slots);
        self.slots_used += u64::from(worker.slots_used);
        self.slots_ahead += u64::from(worker.slots_ahead);
        self.reserved += u64::from(worker.reserved);
        self.memory_bytes = self.memory_bytes.saturating_add(worker.memory_bytes);
        self.memory_used_bytes = self.memory_used_bytes.saturating_add(worker.memory_used_bytes);
        for resource in &worker.resources {
            let known = self.resources.binary_search_by(|known| known.name.cmp(&resource.name));
            let at = known.unwrap_or_else(|at| {
                let name = resource.name.clone();
                self.resources.insert(at, FleetResource { name, ..FleetResource::default() });
                at
            });
            let sum = &mut self.resources[at];
            sum.count = sum.count.saturating_add(resource.count);
            sum.used += resource.used;
        }
    }

    /// What of its resources is in use: `gpu 3.5/8`.
    pub fn resources_in_use(&self) -> Vec<String> {
        let shown = |one: &FleetResource| {
            let used = (one.used * 10_000.0).round() / 10_000.0;
            format!("{} {used}/{}", one.name, one.count)
        };
        self.resources.iter().map(shown).collect()
    }

    /// Counts one more with this standing.
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
    /// Free for the hub.
    pub free_bytes: u64,
    /// The whole file system.
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
    /// The worker it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<u32>,
    /// The job it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<u32>,
    /// The group it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
}

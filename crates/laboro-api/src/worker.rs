//! Workers as the hub shows them.

use super::text::Text;
use laboro_core::{Amount, ResourceView, WorkerView};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Worker {
    pub worker: u32,
    #[schema(value_type = String)]
    pub name: Text,
    #[schema(value_type = String)]
    pub group: Text,
    #[serde(default)]
    #[schema(value_type = String)]
    pub dialect: Text,
    pub connected: bool,
    #[serde(default)]
    pub draining: bool,
    pub slots: u32,
    #[serde(default)]
    pub slots_used: u32,
    /// What it was given ahead waits there until a slot is free, and takes so many then.
    #[serde(default)]
    pub slots_ahead: u32,
    /// In bytes, as the next one; nothing where it does not say, or is away.
    #[serde(default)]
    pub memory_bytes: u64,
    #[serde(default)]
    pub memory_used_bytes: u64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<Resource>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<String>)]
    pub tags: Vec<Text>,
    /// The machine it is on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub host: Option<Text>,
    /// It leaves then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leaves_ms: Option<u64>,
    /// How many tasks it holds.
    #[serde(default)]
    pub lease_count: u32,
    /// The first 1000 of them; only where one worker is asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leases: Vec<Held>,
    #[serde(default)]
    pub succeeded: u64,
    #[serde(default)]
    pub failed: u64,
    #[serde(default)]
    pub conduct: Conduct,
    #[serde(default)]
    pub seen_ms: u64,
}

/// Something countable that a worker has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Resource {
    #[schema(value_type = String)]
    pub name: Text,
    pub count: u64,
    /// What is given out, with fractions.
    #[serde(default)]
    pub used: f64,
    /// What they are called, where they have names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<String>)]
    pub items: Vec<Text>,
}

/// A task that a worker has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Held {
    pub job: u32,
    pub task: u32,
    pub lease: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct Conduct {
    pub standing: Standing,
    pub reason: Option<String>,
    pub until_ms: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    #[default]
    Good,
    OnHold,
    OnProbation,
    Ejected,
    /// A word that this program does not know yet.
    #[serde(other)]
    Unknown,
}

impl From<laboro_core::Standing> for Standing {
    fn from(standing: laboro_core::Standing) -> Standing {
        use laboro_core::Standing as Core;
        match standing {
            Core::Good => Standing::Good,
            Core::OnHold => Standing::OnHold,
            Core::Probation => Standing::OnProbation,
            Core::Ejected => Standing::Ejected,
        }
    }
}

impl From<WorkerView> for Worker {
    fn from(view: WorkerView) -> Worker {
        let leases = view.leases.into_iter().map(|(task, lease)| Held {
            job: task.job.0,
            task: task.number(),
            lease: lease.to_string(),
        });
        // How many slots one has that is away nobody knows.
        let ahead = if view.connected { view.slots_used.saturating_sub(view.slots) } else { 0 };
        Worker {
            worker: view.worker.0,
            name: (&view.name).into(),
            group: (&view.group).into(),
            dialect: (&view.dialect).into(),
            connected: view.connected,
            draining: view.draining,
            slots: view.slots,
            slots_used: view.slots_used - ahead,
            slots_ahead: ahead,
            memory_bytes: view.memory,
            memory_used_bytes: view.memory_used,
            resources: view.resources.iter().map(Resource::from).collect(),
            tags: view.tags.iter().map(Text::from).collect(),
            host: (!view.host.is_empty()).then(|| (&view.host).into()),
            leaves_ms: view.leaves.map(|time| time.0),
            lease_count: view.lease_count,
            leases: leases.collect(),
            succeeded: view.succeeded,
            failed: view.failed,
            conduct: Conduct {
                standing: view.conduct.standing.into(),
                reason: view.conduct.reason.map(String::from),
                until_ms: view.conduct.until.map(|time| time.0),
            },
            seen_ms: view.seen.0,
        }
    }
}

impl From<&ResourceView> for Resource {
    fn from(view: &ResourceView) -> Resource {
        Resource {
            name: (&view.name).into(),
            count: view.supply.count,
            used: view.used.parts() as f64 / Amount::PARTS as f64,
            items: view.supply.items.iter().map(Text::from).collect(),
        }
    }
}

/// One page. `next` is the `from` of the next page, where there is one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Workers {
    pub workers: Vec<Worker>,
    #[serde(default)]
    pub next: Option<u32>,
}

//! Workers as the hub shows them.

use super::text::Text;
use laboro_core::{Amount, ResourceView, WorkerView};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A worker that the hub knows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Worker {
    /// Its number.
    pub worker: u32,
    /// Its name.
    #[schema(value_type = String)]
    pub name: Text,
    /// The group whose tasks it takes.
    #[schema(value_type = String)]
    pub group: Text,
    /// What it speaks.
    #[serde(default)]
    #[schema(value_type = String)]
    pub dialect: Text,
    /// Whether it is connected.
    pub connected: bool,
    /// It gets nothing more.
    #[serde(default)]
    pub draining: bool,
    /// Its slots.
    pub slots: u32,
    /// Slots in use.
    #[serde(default)]
    pub slots_used: u32,
    /// Slots for tasks dispatched ahead, which wait there until a slot is free.
    #[serde(default)]
    pub slots_ahead: u32,
    /// Its memory; missing if it does not report it, or is disconnected.
    #[serde(default)]
    pub memory_bytes: u64,
    /// How much of it its tasks use.
    #[serde(default)]
    pub memory_used_bytes: u64,
    /// Countable things that it has.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<Resource>,
    /// What it is, for tasks that require it.
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
    /// It is kept free for a task that takes more than it has free now, or several workers.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reserved: bool,
    /// What it holds runs on another worker, and it is kept for it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub kept: bool,
    /// Attempts that succeeded.
    #[serde(default)]
    pub succeeded: u64,
    /// Attempts that failed.
    #[serde(default)]
    pub failed: u64,
    /// How it is judged.
    #[serde(default)]
    pub conduct: Conduct,
    /// When it was last heard of.
    #[serde(default)]
    pub seen_ms: u64,
}

/// Something countable that a worker has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Resource {
    /// What it is called.
    #[schema(value_type = String)]
    pub name: Text,
    /// How much of it there is.
    pub count: u64,
    /// How much is in use, with fractions.
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
    /// The job.
    pub job: u32,
    /// The task.
    pub task: u32,
    /// The lease.
    pub lease: String,
}

/// How a worker is judged.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct Conduct {
    /// Whether it gets tasks.
    pub standing: Standing,
    /// Why.
    pub reason: Option<String>,
    /// Until when.
    pub until_ms: Option<u64>,
}

/// Whether a worker gets tasks, by what it did before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// Nothing is held against it.
    #[default]
    Good,
    /// It gets nothing for a while.
    OnHold,
    /// The next task decides.
    OnProbation,
    /// It is sent away for good.
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
            reserved: view.is_reserved,
            kept: view.is_node,
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
    /// This page.
    pub workers: Vec<Worker>,
    /// `from` of the next page; `null` on the last.
    #[serde(default)]
    pub next: Option<u32>,
}

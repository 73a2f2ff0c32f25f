//! Pools: workers that the hub starts through a batch system when there is work for them.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// Which commands start workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum PoolKind {
    /// sbatch, squeue, scancel.
    Slurm,
    /// qsub, qstat, qdel of PBS Pro, OpenPBS or Torque.
    Pbs,
    /// qsub, qstat, qdel of Grid Engine.
    Sge,
    /// Machines that are reached by ssh; each has one worker at most.
    Ssh,
    /// Commands of the pool's own.
    Command,
}

impl PoolKind {
    /// As it is written.
    pub fn word(self) -> &'static str {
        match self {
            PoolKind::Slurm => "slurm",
            PoolKind::Pbs => "pbs",
            PoolKind::Sge => "sge",
            PoolKind::Ssh => "ssh",
            PoolKind::Command => "command",
        }
    }
}

/// What a pool is. An allocation is one job of the batch system, in which one worker runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PoolSpec {
    /// Letters, digits, dots, dashes and underlines.
    pub name: String,
    /// The group whose tasks its workers run.
    #[serde(default = "default_group")]
    pub group: String,
    /// Which commands start workers.
    pub kind: PoolKind,
    /// Slots of a worker.
    pub slots: u32,
    /// Memory of a worker. Not given: as much as any task needs, and what the batch system allows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Countable things that a worker has.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub resources: BTreeMap<String, u64>,
    /// What a worker is, for tasks that require it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// How long an allocation lasts. Not given: as long as the batch system allows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_limit_ms: Option<u64>,
    /// How many allocations may wait in the queue of the batch system.
    #[serde(default = "default_backlog")]
    pub backlog: u32,
    /// How many allocations there may be in all.
    #[serde(default = "default_max")]
    pub max_allocations: u32,
    /// A worker without work exits after this time.
    #[serde(default = "default_idle")]
    pub idle_ms: u64,
    /// A worker stops this long before the end of its allocation, and gives its tasks back.
    #[serde(default = "default_grace")]
    pub grace_ms: u64,
    /// `ssh:LOGIN`: the commands of the batch system are run there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<String>,
    /// Further arguments of the command that submits; the machines of `ssh`; the whole command of `command`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<String>,
    /// Of `command`: a shell line that lists allocations, one per line: `ID STATE [NAME]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub list_command: Option<String>,
    /// Of `command`: a shell line that cancels the allocations whose ids are its arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancel_command: Option<String>,
    /// Where laboro is on the machines of the workers. Not given: where the hub's own program is; `laboro` by ssh.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub laboro: Option<String>,
}

impl PoolSpec {
    /// What a client may send; anything else is refused by its name.
    pub const FIELDS: [&'static str; 17] = [
        "name",
        "group",
        "kind",
        "slots",
        "memory_bytes",
        "resources",
        "tags",
        "time_limit_ms",
        "backlog",
        "max_allocations",
        "idle_ms",
        "grace_ms",
        "via",
        "arguments",
        "list_command",
        "cancel_command",
        "laboro",
    ];
}

fn default_group() -> String {
    crate::DEFAULT_GROUP.to_owned()
}
fn default_backlog() -> u32 {
    1
}
fn default_max() -> u32 {
    20
}
fn default_idle() -> u64 {
    300_000
}
fn default_grace() -> u64 {
    60_000
}

/// A pool as it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Pool {
    /// What it is.
    pub spec: PoolSpec,
    /// `active`, `paused` or `removing`.
    pub state: String,
    /// Why it starts nothing, or what it does, in words for people.
    pub reason: String,
    /// Allocations that wait in the queue of the batch system.
    pub queued: u32,
    /// Allocations that run.
    pub running: u32,
    /// Failures in a row.
    #[serde(default)]
    pub failures: u32,
    /// Failures since the pool was made.
    #[serde(default)]
    pub failures_total: u64,
    /// Allocations submitted in all.
    #[serde(default)]
    pub submitted_total: u64,
    /// Those that are there.
    #[serde(default)]
    pub allocations: Vec<PoolAllocation>,
    /// What happened lately, the newest last.
    #[serde(default)]
    pub events: Vec<PoolEvent>,
}

/// One job of the batch system.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PoolAllocation {
    /// Counted from 1 in the hub's life.
    pub number: u64,
    /// What the batch system calls it, once that is known.
    #[serde(default)]
    pub id: Option<String>,
    /// `submitting`, `queued`, `running` or `cancelling`.
    pub state: String,
    /// Its worker's name.
    pub worker: String,
    /// Whether its worker has connected.
    pub worked: bool,
    /// When it was submitted.
    pub submitted_ms: u64,
    /// When its state last changed.
    pub since_ms: u64,
    /// What the batch system says about it, such as why it waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// Something that happened to a pool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PoolEvent {
    /// When.
    pub at_ms: u64,
    /// What, in words for people.
    pub text: String,
}

/// All pools that the token may see.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Pools {
    /// By name.
    pub pools: Vec<Pool>,
}

/// What came of trying a pool's commands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PoolTest {
    /// Whether all succeeded.
    pub ok: bool,
    /// Each command and its result.
    pub steps: Vec<PoolStep>,
}

/// One command of a test.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PoolStep {
    /// As it could be typed.
    pub command: String,
    /// Whether it succeeded.
    pub ok: bool,
    /// What it printed, or what was wrong.
    pub text: String,
}

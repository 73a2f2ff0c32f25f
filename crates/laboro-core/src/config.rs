//! Limits and rules with their defaults. Reaching a limit is a refusal, never growth without end.

use crate::bounds::WORK_BYTES_MAX;
use crate::command::ConductRule;
use crate::id::Name;
use std::collections::BTreeMap;
use std::sync::Arc;

/// All rules and limits of a hub.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Config {
    pub limits: Limits,
    pub conduct: Conduct,
    pub keep: Keep,
    pub documents: DocumentLimits,
    pub quotas: Quotas,
    pub shares: Arc<Shares>,
    /// How often a task may be passed over by smaller ones at workers that could hold it before one
    /// of them is kept free for it.
    pub passes_max: u32,
    /// The largest description of a task, in bytes, that can be sent to a worker.
    pub work_bytes: usize,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            limits: Limits::default(),
            conduct: Conduct::default(),
            keep: Keep::default(),
            documents: DocumentLimits::default(),
            quotas: Quotas::default(),
            shares: Arc::default(),
            passes_max: 8,
            work_bytes: WORK_BYTES_MAX,
        }
    }
}

/// How much there may be of everything.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Limits {
    pub name_bytes: usize,
    /// Those with jobs, workers or settings.
    pub groups: usize,
    pub jobs: usize,
    /// Tasks with a record of their own.
    pub tasks: usize,
    pub tasks_a_submit: usize,
    pub array_elements: u32,
    pub edges: usize,
    pub preds_a_task: usize,
    /// Different needs with tasks in one group: matching walks over these.
    pub classes: usize,
    /// Different settings of tasks in one group.
    pub profiles: usize,
    pub workers: usize,
    pub offers: usize,
    pub watches: usize,
    pub page: u32,
    pub preds_shown: usize,
    /// How many tasks a search for a cycle visits before others are served.
    pub cycle_search: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            name_bytes: 4096,
            groups: 1000,
            jobs: 1_000_000,
            tasks: 50_000_000,
            tasks_a_submit: 1_000_000,
            array_elements: 1_000_000_000,
            edges: 200_000_000,
            preds_a_task: 1_000_000,
            classes: 4096,
            profiles: 65_536,
            workers: 100_000,
            offers: 200_000,
            watches: 10_000,
            page: 1000,
            preds_shown: 100,
            cycle_search: 20_000,
        }
    }
}

/// How much parts of the hub beside the core may keep in its journal.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct DocumentLimits {
    /// Documents of all kinds together.
    pub count: usize,
    /// Of one of them.
    pub bytes: usize,
    pub bytes_in_all: u64,
}

impl Default for DocumentLimits {
    fn default() -> DocumentLimits {
        DocumentLimits { count: 50_000, bytes: 256 << 10, bytes_in_all: 256 << 20 }
    }
}

/// How much may be queued at once: tasks that have not ended, and what they were submitted with. A submit that
/// would go beyond is refused.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct Quotas {
    pub group_tasks: u64,
    pub group_bytes: u64,
    /// Of all jobs that one token made.
    pub token_tasks: u64,
    pub token_bytes: u64,
}

impl Default for Quotas {
    fn default() -> Quotas {
        let none = u64::MAX;
        Quotas { group_tasks: none, group_bytes: none, token_tasks: none, token_bytes: none }
    }
}

/// How the owners of one group share its workers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Shares {
    /// Of everybody who is not named, and of jobs without an owner.
    pub usual: OwnerShare,
    pub owners: BTreeMap<Name, OwnerShare>,
}

impl Shares {
    /// What this owner may have.
    pub fn of(&self, owner: Option<&Name>) -> OwnerShare {
        owner.and_then(|owner| self.owners.get(owner)).copied().unwrap_or(self.usual)
    }
}

/// What one owner may have in each group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct OwnerShare {
    /// While several have something to do, their slots in use are as their weights. At least 1.
    pub weight: u32,
    /// Its tasks never take more slots than this at once.
    pub max_running_slots: Option<u64>,
}

impl Default for OwnerShare {
    fn default() -> OwnerShare {
        OwnerShare { weight: 1, max_running_slots: None }
    }
}

/// When a worker is put on hold or ejected. See `hub/conduct.rs`.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Conduct {
    pub rule: ConductRule,
    /// Nobody is judged before so many results.
    pub results_min: u32,
    /// Ejected below this share of good results.
    pub good_share_min: f64,
    /// More failures than this among the last ten put a worker on hold.
    pub recent_failures_max: u32,
    /// How many results of others make a comparison.
    pub others_min: u32,
    /// How long the first hold without news lasts; each further one twice as long.
    pub hold_ms: u64,
    pub hold_most_ms: u64,
    /// How long an ejected worker is remembered.
    pub ejected_ms: u64,
}

impl Default for Conduct {
    fn default() -> Conduct {
        Conduct {
            rule: ConductRule::Compared,
            results_min: 10,
            good_share_min: 0.60,
            recent_failures_max: 2,
            others_min: 5,
            hold_ms: 10_000,
            hold_most_ms: 600_000,
            ejected_ms: 3_600_000,
        }
    }
}

/// What finished work is remembered, so that memory stays bounded over months.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Keep {
    pub jobs: usize,
    pub age_ms: u64,
    /// Finished tasks of a job that stays open.
    pub tasks_of_open_job: u32,
    /// Workers that are away and hold nothing.
    pub worker_ms: u64,
    /// How many tasks one step forgets at most, so that no step takes long.
    pub slice: u32,
}

impl Default for Keep {
    fn default() -> Keep {
        Keep {
            jobs: 10_000,
            age_ms: 30 * 86_400_000,
            tasks_of_open_job: 1_000_000,
            worker_ms: 7 * 86_400_000,
            slice: 1000,
        }
    }
}

//! The settings of the core in a form for files: the core itself knows no files, and its types may change
//! without changing what a file means.

use laboro_core::{Conduct, ConductRule, Keep, Limits, Quotas};

/// A table with the fields of a core type and its defaults.
macro_rules! mirror {
    ($(#[$about:meta])* $name:ident of $core:ident { $($(#[$how:meta])* $field:ident: $type:ty),* $(,)? }) => {
        $(#[$about])*
        #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct $name {
            $($(#[$how])* pub $field: $type,)*
        }

        impl Default for $name {
            fn default() -> $name {
                let core = $core::default();
                $name { $($field: core.$field.into(),)* }
            }
        }

        impl $name {
            pub(crate) fn core(&self) -> $core {
                $core { $($field: self.$field.into(),)* }
            }
        }
    };
}

mirror! {
    /// Limits of what the hub knows at once. See `laboro_core::Limits`.
    TaskSettings of Limits {
        name_bytes: usize,
        groups: usize,
        jobs: usize,
        tasks: usize,
        #[serde(rename = "tasks_per_submit", alias = "tasks_a_submit")]
        tasks_a_submit: usize,
        array_elements: u32,
        edges: usize,
        #[serde(rename = "after_per_task", alias = "preds_a_task")]
        preds_a_task: usize,
        classes: usize,
        profiles: usize,
        workers: usize,
        offers: usize,
        watches: usize,
        page: u32,
        #[serde(rename = "after_shown", alias = "preds_shown")]
        preds_shown: usize,
        cycle_search: usize,
    }
}

/// How much may be queued at once. 0: no limit. See `laboro_core::Quotas`.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct QuotaSettings {
    pub max_tasks_per_group: u64,
    pub max_bytes_per_group: u64,
    pub max_tasks_per_token: u64,
    pub max_bytes_per_token: u64,
}

impl Default for QuotaSettings {
    fn default() -> QuotaSettings {
        // An array may have so many elements, which cost next to nothing; tasks of their own cost bytes.
        let (tasks, bytes) = (2_000_000_000, 8 << 30);
        QuotaSettings {
            max_tasks_per_group: tasks,
            max_bytes_per_group: bytes,
            max_tasks_per_token: tasks,
            max_bytes_per_token: bytes,
        }
    }
}

impl QuotaSettings {
    pub(crate) fn core(&self) -> Quotas {
        let most = |most: u64| if most == 0 { u64::MAX } else { most };
        Quotas {
            group_tasks: most(self.max_tasks_per_group),
            group_bytes: most(self.max_bytes_per_group),
            token_tasks: most(self.max_tasks_per_token),
            token_bytes: most(self.max_bytes_per_token),
        }
    }
}

mirror! {
    /// How workers are judged. See `laboro_core::Conduct`.
    ConductSettings of Conduct {
        rule: Rule,
        #[serde(rename = "min_results", alias = "results_min")]
        results_min: u32,
        #[serde(rename = "min_good_share", alias = "good_share_min")]
        good_share_min: f64,
        #[serde(rename = "max_recent_failures", alias = "recent_failures_max")]
        recent_failures_max: u32,
        #[serde(rename = "min_others", alias = "others_min")]
        others_min: u32,
        hold_ms: u64,
        #[serde(rename = "max_hold_ms", alias = "hold_most_ms")]
        hold_most_ms: u64,
        ejected_ms: u64,
    }
}

mirror! {
    /// How long finished work is remembered. See `laboro_core::Keep`.
    KeepSettings of Keep {
        jobs: usize,
        age_ms: u64,
        tasks_of_open_job: u32,
        worker_ms: u64,
        slice: u32,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Rule {
    Off,
    Compared,
    Fixed,
}

impl From<ConductRule> for Rule {
    fn from(rule: ConductRule) -> Rule {
        match rule {
            ConductRule::Off => Rule::Off,
            ConductRule::Compared => Rule::Compared,
            ConductRule::Fixed => Rule::Fixed,
        }
    }
}

impl From<Rule> for ConductRule {
    fn from(rule: Rule) -> ConductRule {
        match rule {
            Rule::Off => ConductRule::Off,
            Rule::Compared => ConductRule::Compared,
            Rule::Fixed => ConductRule::Fixed,
        }
    }
}

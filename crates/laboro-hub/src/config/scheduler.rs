//! The settings of the core in a form for files: the core itself knows no files, and its types may change
//! without changing what a file means.

use laboro_core::{Conduct, ConductRule, Keep, Limits};

/// A table with the fields of a core type and its defaults.
macro_rules! mirror {
    ($(#[$about:meta])* $name:ident of $core:ident { $($field:ident: $type:ty),* $(,)? }) => {
        $(#[$about])*
        #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct $name {
            $(pub $field: $type,)*
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
        tasks_a_submit: usize,
        array_elements: u32,
        edges: usize,
        preds_a_task: usize,
        classes: usize,
        profiles: usize,
        workers: usize,
        offers: usize,
        watches: usize,
        page: u32,
        preds_shown: usize,
        cycle_search: usize,
    }
}

mirror! {
    /// How workers are judged. See `laboro_core::Conduct`.
    ConductSettings of Conduct {
        rule: Rule,
        results_min: u32,
        good_share_min: f64,
        recent_failures_max: u32,
        others_min: u32,
        hold_ms: u64,
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

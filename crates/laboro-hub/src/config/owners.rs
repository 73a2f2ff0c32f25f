//! What the owners of jobs may do and have: whose jobs a token may change, and how owners share the workers of a group.

use laboro_core::{Name, OwnerShare, Shares};
use std::collections::BTreeMap;

#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OwnerSettings {
    /// Which jobs a token with the role submit may change.
    pub change_jobs: ChangeJobs,
    /// Of owners that are not named.
    pub weight: u32,
    /// Of owners that are not named, in each group. 0: no limit.
    pub max_running_slots: u64,
    /// By the owner's name.
    pub named: BTreeMap<String, NamedOwner>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChangeJobs {
    /// Those of its own owner.
    Own,
    /// All that it sees.
    All,
}

/// What is not said of an owner is as for the others.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NamedOwner {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_running_slots: Option<u64>,
}

impl Default for OwnerSettings {
    fn default() -> OwnerSettings {
        let change_jobs = ChangeJobs::Own;
        OwnerSettings { change_jobs, weight: 1, max_running_slots: 0, named: BTreeMap::new() }
    }
}

/// More cannot be told apart for a single slot.
const WEIGHT_MAX: u32 = 1_000_000;

impl OwnerSettings {
    pub(super) fn check(&self) -> Result<(), String> {
        let named = self.named.iter().filter_map(|(name, owner)| {
            owner.weight.map(|weight| (format!("owners.named.{name}.weight"), weight))
        });
        let mut all = named.chain([("owners.weight".to_owned(), self.weight)]);
        match all.find(|(_, weight)| !(1..=WEIGHT_MAX).contains(weight)) {
            None => Ok(()),
            Some((key, weight)) => Err(format!("{key} = {weight}: say 1 to {WEIGHT_MAX}")),
        }
    }

    pub(crate) fn shares(&self) -> Shares {
        let share = |weight: u32, most: u64| OwnerShare {
            weight,
            max_running_slots: (most > 0).then_some(most),
        };
        let named = self.named.iter().map(|(name, owner)| {
            let most = owner.max_running_slots.unwrap_or(self.max_running_slots);
            (Name::from(name.as_str()), share(owner.weight.unwrap_or(self.weight), most))
        });
        Shares { usual: share(self.weight, self.max_running_slots), owners: named.collect() }
    }
}

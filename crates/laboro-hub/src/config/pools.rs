//! Pools in `hub.toml`: how often batch systems are asked, and the pools that the file itself makes. What a pool is and
//! does is in `laboro-pool`.

use laboro_api::PoolSpec;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PoolSettings {
    /// How often a batch system is asked what it has.
    pub list_ms: u64,
}

impl Default for PoolSettings {
    fn default() -> PoolSettings {
        PoolSettings { list_ms: 10_000 }
    }
}

/// A `[[pool]]`, with the fields that the API has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct NamedPool(pub PoolSpec);

impl<'de> Deserialize<'de> for NamedPool {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<NamedPool, D::Error> {
        let table = toml::Table::deserialize(from)?;
        if let Some(unknown) = table.keys().find(|key| !PoolSpec::FIELDS.contains(&key.as_str())) {
            return Err(D::Error::custom(format!("a pool has no field `{unknown}`")));
        }
        let spec = PoolSpec::deserialize(table).map_err(D::Error::custom)?;
        laboro_pool::check(&spec).map_err(D::Error::custom)?;
        Ok(NamedPool(spec))
    }
}

/// Two of one name would take turns.
pub(super) fn check(pools: &[NamedPool]) -> Result<(), String> {
    let mut names: Vec<&str> = pools.iter().map(|pool| pool.0.name.as_str()).collect();
    names.sort_unstable();
    match names.windows(2).find(|two| two[0] == two[1]) {
        Some(two) => Err(format!("two pools are named {}: give one of them another name", two[0])),
        None => Ok(()),
    }
}

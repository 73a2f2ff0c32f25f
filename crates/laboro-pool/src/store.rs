//! What is known of pools, and `pools.json`, in which earlier versions kept it. That file is read once and never written.

use crate::pool::Pool;
use laboro_net::{SecurityError, secret_file};
use serde::Deserialize;
use std::path::Path;

#[derive(Clone, Debug, Default, Deserialize)]
pub struct State {
    pub version: u32,
    /// The number of the last allocation.
    pub last_number: u64,
    /// In the order in which they were made.
    pub pools: Vec<Pool>,
}

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error(transparent)]
    File(#[from] SecurityError),
    #[error(
        "{path}: {why}; move it away to start without the pools in it, whose allocations are not watched then"
    )]
    Malformed { path: String, why: String },
}

const VERSION: u32 = 1;

impl State {
    pub fn read(path: &Path) -> Result<Option<State>, StoreError> {
        let Some(text) = secret_file::read(path)? else { return Ok(None) };
        let malformed =
            |why: String| StoreError::Malformed { path: path.display().to_string(), why };
        let state: State =
            serde_json::from_str(&text).map_err(|error| malformed(error.to_string()))?;
        match state.version {
            0..=VERSION => Ok(Some(state)),
            newer => Err(malformed(format!("version {newer} is of a newer laboro"))),
        }
    }

    pub fn find(&self, name: &str) -> Option<&Pool> {
        self.pools.iter().find(|pool| pool.spec.name == name)
    }

    pub fn find_mut(&mut self, name: &str) -> Option<&mut Pool> {
        self.pools.iter_mut().find(|pool| pool.spec.name == name)
    }
}

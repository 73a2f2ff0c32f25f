//! What is known of schedules beside their settings, in one file of the hub's directory that is replaced as a whole.

use crate::security::SecurityError;
use laboro_net::secret_file;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Known {
    #[serde(default)]
    pub paused: bool,
    /// Up to this time everything was decided.
    pub decided_ms: u64,
    /// The last time for which something was done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<Run>,
    /// The last job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<u32>,
    /// Waits for the end of that job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queued_ms: Option<u64>,
    /// Times that passed while the hub was down.
    #[serde(default)]
    pub missed: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Run {
    pub planned_ms: u64,
    pub at_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<u32>,
    /// Why there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

pub(super) type State = BTreeMap<String, Known>;

pub(super) fn read(path: &Path) -> Result<State, SecurityError> {
    match secret_file::read(path)? {
        None => Ok(State::new()),
        Some(text) => serde_json::from_str(&text).map_err(|error| {
            let why = format!("{error}; move it away to start without what it knows of schedules");
            SecurityError::malformed(path, why)
        }),
    }
}

pub(super) fn write(path: &Path, state: &State) -> Result<(), SecurityError> {
    let text = serde_json::to_string(state).expect("strings and numbers have a JSON form");
    secret_file::replace(path, &text)
}

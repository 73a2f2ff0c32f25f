//! What is known of schedules beside their settings: a document of the journal for each.

use crate::documents::{self, DocumentError, Opening};
use crate::security::SecurityError;
use laboro_core::DocumentChange;
use laboro_net::secret_file;
use serde::{Deserialize, Serialize};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
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

const SCHEDULE: &str = "schedule";

pub(super) fn set(name: &str, known: &Known) -> DocumentChange {
    documents::set(SCHEDULE, name, known)
}

/// Of these schedules, whose past begins now where there is none. One that is gone from the settings is forgotten; if it
/// returns, it starts without a past. `file` is that of earlier versions.
pub(super) fn open(
    opening: &mut Opening<'_>,
    file: &Path,
    names: &[&str],
    now: u64,
) -> Result<State, DocumentError> {
    let mut state: State = opening.read(SCHEDULE)?.into_iter().collect();
    let mut changed: BTreeSet<String> = BTreeSet::new();
    let mut add = |name: &str, known: Known| {
        if let Entry::Vacant(new) = state.entry(name.to_owned()) {
            new.insert(known);
            changed.insert(name.to_owned());
        }
    };
    if let Some(old) = read_file(file)? {
        opening.replaces(file);
        old.into_iter().for_each(|(name, known)| add(&name, known));
    }
    names.iter().for_each(|name| add(name, Known { decided_ms: now, ..Known::default() }));
    let is_gone = |name: &&String| !names.contains(&name.as_str());
    let gone: Vec<String> = state.keys().filter(is_gone).cloned().collect();
    for name in gone {
        state.remove(&name);
        changed.remove(&name);
        opening.write([DocumentChange::remove(SCHEDULE, &name)]);
    }
    opening.write(changed.iter().map(|name| set(name, &state[name])));
    Ok(state)
}

fn read_file(path: &Path) -> Result<Option<State>, SecurityError> {
    let Some(text) = secret_file::read(path)? else { return Ok(None) };
    serde_json::from_str(&text).map(Some).map_err(|error| {
        let why = format!("{error}; move it away to start without what it knows of schedules");
        SecurityError::malformed(path, why)
    })
}

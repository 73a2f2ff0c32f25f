//! Which tasks of a job are meant, and what is to be done with them.

use super::task::TaskState;
use laboro_core::{JobId, TaskId, Which};
use serde::{Deserialize, Deserializer, Serialize};
use utoipa::ToSchema;

/// Some tasks of a job: by number (`{"tasks": "1-100,200"}`) or by state (`{"state": "failed"}`). With
/// neither, the job itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Selection {
    /// Numbers and ranges of numbers: `1-100,200`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(
        pattern = r"^[1-9][0-9]{0,6}(-[1-9][0-9]{0,6})?(,[1-9][0-9]{0,6}(-[1-9][0-9]{0,6})?)*$"
    )]
    pub tasks: Option<String>,
    /// All tasks in this state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<TaskState>,
}

/// A new priority for a selection.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Prioritise {
    /// Numbers and ranges of numbers: `1-100,200`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(
        pattern = r"^[1-9][0-9]{0,6}(-[1-9][0-9]{0,6})?(,[1-9][0-9]{0,6}(-[1-9][0-9]{0,6})?)*$"
    )]
    pub tasks: Option<String>,
    /// All tasks in this state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<TaskState>,
    /// Higher runs first.
    pub priority: i32,
}

/// New limits of a job. A field that is left out does not change; `null` lifts the limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Limit {
    /// At most this many tasks run at once; `null`: no limit.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<u32>)]
    pub max_running: Option<Option<u32>>,
    /// The job stops when more tasks have failed; `null`: no limit.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<u32>)]
    pub max_fails: Option<Option<u32>>,
}

/// `POST workers/{id}/stop`: with `slots` so many fewer, without them all at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StopSlots {
    /// How many slots are taken away. Default: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slots: Option<u32>,
}

/// Why a worker is sent away.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Eject {
    /// In words for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// How many tasks a command changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Changed {
    /// How many tasks were changed.
    pub tasks: u64,
}

/// Why a selection makes no sense.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadSelection {
    /// Two ways to select at once.
    #[error("give `tasks` or `state`, not both")]
    Both,
    /// Not numbers of tasks.
    #[error("`{0}` is not a list of task numbers: write 1-100,200")]
    NotNumbers(String),
    /// Too many ranges.
    #[error("more than {RANGES_MAX} ranges in `tasks`: select in several requests")]
    TooMany,
    /// Not the state of a task.
    #[error("`state` is not the state of a task")]
    NotAState,
}

/// More than anybody types; what is larger is selected by state or in parts.
const RANGES_MAX: usize = 10_000;

impl Selection {
    /// As the core takes it.
    pub fn to_core(&self, job: JobId) -> Result<laboro_core::Selection, BadSelection> {
        let which = match (&self.tasks, self.state) {
            (Some(_), Some(_)) => return Err(BadSelection::Both),
            (Some(tasks), None) => Which::Ranges(ranges(tasks)?),
            (None, Some(state)) => Which::InState(state.to_core().ok_or(BadSelection::NotAState)?),
            (None, None) => Which::Job,
        };
        Ok(laboro_core::Selection { job, which })
    }
}

/// `1-100,200`
fn ranges(text: &str) -> Result<Vec<(u32, u32)>, BadSelection> {
    let mut ranges = Vec::new();
    for part in text.split(',') {
        let bad = || BadSelection::NotNumbers(part.trim().chars().take(40).collect());
        let number = |text: &str| -> Result<u32, BadSelection> {
            let number = text.trim().parse::<u32>().ok();
            number.filter(|n| (1..=TaskId::INDEX_MAX).contains(n)).ok_or_else(bad)
        };
        let (first, last) = match part.split_once('-') {
            Some((first, last)) => (number(first)?, number(last)?),
            None => (number(part)?, number(part)?),
        };
        if first > last {
            return Err(bad());
        }
        if ranges.len() == RANGES_MAX {
            return Err(BadSelection::TooMany);
        }
        ranges.push((first, last));
    }
    Ok(ranges)
}

/// Tells `null` from a field that is not there.
fn given<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<u32>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

//! Schedules as the hub shows them: jobs that it submits by the clock.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A job file that is submitted again and again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Schedule {
    /// Its name in hub.toml.
    pub name: String,
    /// Minute, hour, day, month, weekday.
    pub cron: String,
    /// The time zone that the line is read in.
    pub time_zone: String,
    /// The job file, on the hub's machine.
    pub file: String,
    /// What happens when the job before has not ended: `skip`, `queue` or `replace`.
    pub if_running: String,
    /// Whose jobs they are; `null`: the hub's user.
    #[serde(default)]
    pub owner: Option<String>,
    /// The group of the jobs; `null`: what the job file says.
    #[serde(default)]
    pub group: Option<String>,
    /// The last job that was missed while the hub was down is submitted when it is back.
    #[serde(default)]
    pub catch_up: bool,
    /// Nothing is submitted until it is resumed.
    #[serde(default)]
    pub paused: bool,
    /// The next planned time.
    #[serde(default)]
    pub next_ms: Option<u64>,
    /// The planned time that waits for the end of the job before.
    #[serde(default)]
    pub queued_ms: Option<u64>,
    /// What came of the last planned time.
    #[serde(default)]
    pub last: Option<ScheduleRun>,
    /// Planned times that passed while the hub was down.
    #[serde(default)]
    pub missed: u64,
}

/// What came of one planned time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ScheduleRun {
    /// When it was planned.
    pub planned_ms: u64,
    /// When it was acted on.
    pub at_ms: u64,
    /// The job that was submitted.
    #[serde(default)]
    pub job: Option<u32>,
    /// Why none was.
    #[serde(default)]
    pub why: Option<String>,
}

/// All schedules of a hub.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Schedules {
    /// In the order of hub.toml.
    pub schedules: Vec<Schedule>,
}

//! Jobs that a hub submits by the clock: one `[[schedule]]` each.

use crate::schedules::{Cron, time_zone};
use std::path::PathBuf;

#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScheduleSettings {
    /// Letters, digits, dots, dashes and underlines.
    pub name: String,
    /// Minute, hour, day, month, weekday.
    pub cron: String,
    /// Such as Europe/Berlin, or UTC. Not given: that of the hub's machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<String>,
    /// The job file, as for `laboro submit`. Its tasks run in its directory.
    pub file: PathBuf,
    #[serde(default)]
    pub if_running: IfRunning,
    /// Whose jobs they are. Not given: the hub's user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// The group of the jobs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// After a time at which the hub was down, submit the last job that was missed. Else it is only told.
    #[serde(default)]
    pub catch_up: bool,
}

/// What to do when the job before has not ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IfRunning {
    /// Leave this time out.
    #[default]
    Skip,
    /// Submit when it has ended. One at most waits.
    Queue,
    /// Cancel it.
    Replace,
}

impl IfRunning {
    pub fn word(self) -> &'static str {
        match self {
            IfRunning::Skip => "skip",
            IfRunning::Queue => "queue",
            IfRunning::Replace => "replace",
        }
    }
}

const NAME_MAX: usize = 56;

/// What is wrong with the schedules of a settings file.
pub(super) fn check(schedules: &[ScheduleSettings]) -> Result<(), String> {
    for (at, schedule) in schedules.iter().enumerate() {
        let name = &schedule.name;
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
        if name.is_empty() || name.len() > NAME_MAX || !name.bytes().all(is_plain) {
            return Err(format!(
                "schedule {}: the name {name:?} is not 1 to {NAME_MAX} letters, digits, dots, dashes or underlines",
                at + 1
            ));
        }
        if schedules[..at].iter().any(|other| other.name == *name) {
            return Err(format!("schedule {name}: there are two of this name"));
        }
        Cron::parse(&schedule.cron).map_err(|why| format!("schedule {name}: cron: {why}"))?;
        time_zone(schedule.time_zone.as_deref())
            .map_err(|why| format!("schedule {name}: {why}"))?;
        if !schedule.file.is_absolute() {
            let file = schedule.file.display();
            return Err(format!("schedule {name}: file = {file}: write the whole path, from /"));
        }
    }
    Ok(())
}

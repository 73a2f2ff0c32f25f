//! Jobs that the hub submits by the clock. A thread of its own waits for the times and runs `laboro submit` for each, as a person
//! would, with an idempotency key made of the schedule's name and the planned time: a hub that was killed in the middle
//! submits it again, and the job is there once.

mod cron;
mod keeper;
mod store;

#[cfg(test)]
mod tests;

pub use cron::Cron;
pub(crate) use keeper::start;
pub use keeper::{ScheduleError, Schedules};

use crate::documents::{DocumentError, Opening};
use jiff::tz::TimeZone;
use std::path::Path;

const OLD_FILE: &str = "schedules.json";

/// Nothing but the reading, of one schedule.
pub(crate) fn read_kept(opening: &mut Opening<'_>, dir: &Path) -> Result<(), DocumentError> {
    store::open(opening, &dir.join(OLD_FILE), &["night"], 0).map(drop)
}

/// That of a name, or of this machine.
pub(crate) fn time_zone(name: Option<&str>) -> Result<TimeZone, String> {
    match name {
        None => Ok(TimeZone::system()),
        Some(name) => TimeZone::get(name).map_err(|_| {
            format!("time_zone = {name:?} is not known on this machine: write one such as Europe/Berlin or UTC")
        }),
    }
}

//! Room for open files: every task that runs costs this program a few.

use super::Options;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The journal, the outputs, the guardian and what a runtime needs.
const OWN: u64 = 64;

/// Gives how many tasks may be launched beyond the slots, which is at most what is asked for.
pub(crate) fn make_room(options: &Options, ahead: u32) -> Result<u32, String> {
    let pipes_a_task = 2;
    let places = [options.output_dir.is_some(), options.results.is_some()];
    let copies_a_task = places.map(|is_given| if is_given { 2 } else { 0 }).iter().sum::<u64>();
    make_room_for(options.slots, ahead, pipes_a_task + copies_a_task)
}

/// Raises the limit as far as these slots need it and no further, because tasks inherit it.
pub(crate) fn make_room_for(slots: u32, ahead: u32, files_a_task: u64) -> Result<u32, String> {
    let needed = |tasks: u64| OWN + tasks * files_a_task;
    let all = needed(u64::from(slots) + u64::from(ahead));
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|allowed| all <= allowed) {
        return Ok(ahead);
    }
    let wanted = limit.maximum.map_or(all, |most| all.min(most));
    let raised = Rlimit { current: Some(wanted), maximum: limit.maximum };
    let allowed = match setrlimit(Resource::Nofile, raised) {
        Ok(()) => wanted,
        Err(_) => limit.current.unwrap_or(wanted),
    };
    let tasks = allowed.saturating_sub(OWN) / files_a_task;
    match tasks.checked_sub(u64::from(slots)) {
        Some(left) => Ok(u32::try_from(left).unwrap_or(ahead).min(ahead)),
        None => Err(format!(
            "-j {slots} needs {} open files and {allowed} are allowed: lower -j or raise `ulimit -n`",
            needed(u64::from(slots))
        )),
    }
}

//! Room for open files: every task that runs costs this program a few.

use super::Options;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The journal, the outputs, the guardian and what a runtime needs.
const OWN: u64 = 64;

pub(crate) fn make_room(options: &Options) -> Result<(), String> {
    let pipes_a_task = 2;
    let copies_a_task = if options.output_dir.is_some() { 2 } else { 0 };
    make_room_for(options.slots, pipes_a_task + copies_a_task)
}

/// Raises the limit as far as these slots need it and no further, because tasks inherit it.
pub(crate) fn make_room_for(slots: u32, files_a_task: u64) -> Result<(), String> {
    let needed = OWN + u64::from(slots) * files_a_task;
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|allowed| needed <= allowed) {
        return Ok(());
    }
    let raised = Rlimit { current: Some(needed), maximum: limit.maximum };
    let fits = limit.maximum.is_none_or(|most| needed <= most);
    if fits && setrlimit(Resource::Nofile, raised).is_ok() {
        return Ok(());
    }
    let most = limit.maximum.unwrap_or(0);
    Err(format!(
        "-j {slots} needs {needed} open files and {most} are allowed: lower -j or raise `ulimit -n`"
    ))
}

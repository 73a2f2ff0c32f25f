//! `laboro journal check nats://...`.

use super::{as_map, contents};
use crate::exit::Exit;
use crate::output::{bytes, counted, print};
use laboro_jetstream::Options;
use serde_json::json;
use std::path::Path;

pub(super) fn check(place: &Path, options: &Options, as_json: bool) -> anyhow::Result<Exit> {
    let (check, _) = laboro_jetstream::check(options)?;
    let exit = if check.problem.is_some() { Exit::Trouble } else { Exit::Done };
    if as_json {
        let report = json!({
            "journal": place.display().to_string(),
            "name": options.name,
            "problem": check.problem,
            "last_number": check.last_number,
            "last_sequence": check.last_sequence,
            "messages": check.messages,
            "message_bytes": check.bytes,
            "snapshot_bytes": check.snapshot_bytes,
            "events": check.events,
            "jobs": check.jobs,
            "workers": check.workers,
            "tasks": as_map(&check.tasks),
        });
        print(report)?;
        return Ok(exit);
    }
    print(format_args!(
        "{} in NATS: records up to number {}, a snapshot of {} and {} of {} after it; {}",
        options.name,
        check.last_number,
        bytes(check.snapshot_bytes),
        counted(check.messages, "message"),
        bytes(check.bytes),
        counted(check.events, "event")
    ))?;
    print(contents(check.jobs, check.workers, &check.tasks))?;
    match &check.problem {
        Some(problem) => print(format_args!("wrong: {problem}"))?,
        None => print("nothing is wrong with it")?,
    }
    Ok(exit)
}

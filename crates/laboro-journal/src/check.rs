//! Reads a whole journal and says what it holds and whether it adds up. Changes nothing, and does not
//! mind a hub that is writing meanwhile. Takes as much memory as a hub on this journal would.

use crate::log::{self, LogError, Report};
use crate::replay::Replay;
use laboro_core::State;
use std::path::Path;

/// What a journal holds and what is wrong with it.
#[derive(Debug, Clone)]
#[non_exhaustive]
#[allow(missing_docs)]
pub struct Check {
    /// What was found below the level of events.
    pub log: Report,
    pub events: u64,
    pub jobs: u64,
    pub workers: u64,
    pub tasks: [(State, u64); State::COUNT],
    /// The first thing that keeps a hub from starting on this journal. If there is one, the counts are
    /// of what came before it.
    pub problem: Option<String>,
}

/// Reads the whole journal, adds it up, and changes nothing.
pub fn check(dir: &Path) -> Result<Check, LogError> {
    let (log, seen) = log::check_with(dir, Seen::default, |seen, _, number, payload| {
        // What cannot be read as events may still be a sound log, and the rest of that is looked at.
        if seen.problem.is_none()
            && let Err(reason) = seen.replay.absorb(payload)
        {
            seen.problem = Some(format!("record {number}: {reason}"));
        }
        Ok(())
    })?;
    let ledger = &seen.replay.ledger;
    let problem = seen.problem.or_else(|| log.problem.as_ref().map(ToString::to_string));
    Ok(Check {
        events: seen.replay.events,
        jobs: ledger.job_count() as u64,
        workers: ledger.worker_count() as u64,
        tasks: State::ALL.map(|state| (state, ledger.tasks_in(state))),
        // A ledger that was left half changed need not add up.
        problem: problem.or_else(|| ledger.check().err()),
        log,
    })
}

#[derive(Default)]
struct Seen {
    replay: Replay,
    problem: Option<String>,
}

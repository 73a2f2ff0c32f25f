//! When a runner has to go: it was idle for too long, has taken enough calls or memory, was not ready in time, or its
//! call takes too long. What becomes of its calls then is in `calls`.

use super::Calls;
use super::process::{EndReason, RunnerProcess};
use std::time::{Duration, Instant};

/// A runner that asks for nothing else ends after this time without a call.
const IDLE: Duration = Duration::from_secs(60);

/// A runner that has not said by then that it is ready never will.
const START_MAX: Duration = Duration::from_secs(120);

impl Calls {
    /// Twice as many as can be busy are kept; then the one goes that was longest without a call.
    pub(super) fn make_room(&mut self, slots: u32) {
        let idle = self.processes.iter().filter(|(_, process)| process.calls.is_empty());
        let live = idle.clone().filter(|(_, process)| process.ending.is_none());
        if self.processes.len() >= 2 * slots as usize
            && let Some((&id, _)) = live.min_by_key(|(_, process)| process.since)
        {
            self.end(id, EndReason::Retired);
        }
    }

    pub(super) fn end(&mut self, id: u64, why: EndReason) {
        let Some(process) = self.processes.get_mut(&id) else { return };
        if process.ending.is_none() {
            process.ending = Some(why);
            if let Some(crew) = &self.crew {
                crew.stop(id, self.grace);
            }
        }
    }

    /// Ends a process that has had enough, once it has nothing to do.
    pub(super) fn look_after(&mut self, id: u64) {
        let Some(process) = self.processes.get(&id) else { return };
        let Some(runner) = process.need.runner() else { return };
        let is_worn = runner.calls_max.is_some_and(|most| process.taken >= most)
            || runner.memory_max.is_some_and(|most| process.memory.resident_bytes > most);
        if is_worn && process.calls.is_empty() {
            self.end(id, EndReason::Retired);
        }
    }

    /// When `tick` is to be called at the latest.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let deadlines = self.processes.values().filter(|process| process.ending.is_none());
        deadlines.filter_map(|process| self.due(process)).map(|(at, _)| at).min()
    }

    pub(crate) fn tick(&mut self, now: Instant) {
        let is_due = |(&id, process): (&u64, &RunnerProcess)| {
            let (at, why) = self.due(process).filter(|_| process.ending.is_none())?;
            (at <= now).then_some((id, why))
        };
        let due: Vec<(u64, EndReason)> = self.processes.iter().filter_map(is_due).collect();
        due.into_iter().for_each(|(id, why)| self.end(id, why));
    }

    fn due(&self, process: &RunnerProcess) -> Option<(Instant, EndReason)> {
        if process.ahead.is_none() {
            let why = format!("the runner was not ready after {} s", START_MAX.as_secs());
            return Some((process.since + START_MAX, EndReason::Broken(why)));
        }
        let Some(front) = process.calls.front() else {
            let idle = process.need.runner().and_then(|runner| runner.idle_ms);
            let idle = idle.map_or(IDLE, Duration::from_millis);
            return process.since.checked_add(idle).map(|at| (at, EndReason::Retired));
        };
        let begun = front.begun?;
        if front.is_cancelled {
            return Some((begun + self.grace, EndReason::Cancelled));
        }
        let limit = Duration::from_millis(front.assignment.time_limit_ms?);
        begun.checked_add(limit).map(|at| (at, EndReason::TimedOut))
    }
}

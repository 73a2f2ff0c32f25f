//! What is done when the machine has no room to start a task: no process, memory or file more. The launch waits, fewer
//! run at once, and now and then one more is tried. Nothing fails by it.

use std::time::{Duration, Instant};

use super::RunnerEvent;
use super::prepare::Unsent;
use super::table::RunnerState;
use crate::ending::Ending;

#[derive(Debug)]
pub(super) struct Shortage {
    /// How many launches the guardian may have: as many as ran when there was no room for more.
    cap: usize,
    /// When one more is tried.
    pub probe_at: Instant,
    /// Twice as long when that fails, half as long when it does not.
    wait: Duration,
    has_failed: bool,
}

const WAIT_MIN: Duration = Duration::from_millis(20);
const WAIT_MAX: Duration = Duration::from_secs(5);

/// When to say that nothing at all can be started.
#[derive(Debug)]
pub(super) struct Telling {
    /// Since when nothing runs and nothing can be started.
    nothing_since: Option<Instant>,
    /// After so long it is said again.
    next: Duration,
}

const NOTHING_FIRST: Duration = Duration::from_secs(10);

impl Default for Telling {
    fn default() -> Telling {
        Telling { nothing_since: None, next: NOTHING_FIRST }
    }
}

impl Telling {
    /// Something has started.
    pub fn started(&mut self) {
        if self.nothing_since.is_some() {
            *self = Telling::default();
        }
    }

    /// For how long nothing could be started, if it is time to say so.
    fn nothing(&mut self, now: Instant) -> Option<Duration> {
        let since = *self.nothing_since.get_or_insert(now);
        let lasted = now.saturating_duration_since(since);
        (lasted >= self.next).then(|| {
            self.next *= 2;
            lasted
        })
    }
}

/// A launch that there was no room for so often lets others go first: it may be the one that needs much.
const REFUSALS_IN_FRONT: u32 = 3;

impl RunnerState {
    /// Whether the guardian may have one more launch.
    pub fn has_room(&self) -> bool {
        let most = self.shortage.as_ref().map_or(self.ahead_max, |shortage| shortage.cap);
        self.tasks.len() < most.min(self.ahead_max)
    }

    /// The guardian could not start it. It is sent again in its turn, unless it was told to end meanwhile. False: it
    /// is not known what to send.
    pub fn put_back(&mut self, seq: u64) -> bool {
        let Some(task) = self.tasks.get_mut(&seq) else { return false };
        let Some(mut launch) = task.launch.take() else { return false };
        let is_stopped = task.is_stopped;
        self.tasks.remove(&seq);
        if is_stopped {
            self.end_unsent(launch.id, Ending::Stopped { killed: false });
            return true;
        }
        launch.refusals += 1;
        let at = match launch.refusals % REFUSALS_IN_FRONT {
            0 => None,
            _ => self.unsent.iter().position(|other| other.seq() > seq),
        };
        self.unsent.insert(at.unwrap_or(self.unsent.len()), Unsent::Ready(launch));
        true
    }

    /// A launch that the guardian has, and that may come back for want of room: then it is not sent again.
    pub fn stop_sent(&mut self, id: u64) {
        let seq = self.by_id.get(&id);
        if let Some(task) = seq.and_then(|seq| self.tasks.get_mut(seq)) {
            task.is_stopped = true;
        }
    }

    pub fn stop_unbegun(&mut self) {
        self.stop_unsent(|_| true);
        self.tasks.values_mut().for_each(|task| task.is_stopped = true);
    }

    /// Nothing more is sent until something ends or it is time to try.
    pub fn no_room(&mut self, why: String, now: Instant) {
        let is_running =
            |task: &&super::table::LaunchedTask| task.launch.is_none() && task.ended.is_none();
        let running = self.tasks.values().filter(is_running).count();
        let is_new = self.shortage.is_none();
        let shortage = self.shortage.get_or_insert(Shortage {
            cap: running,
            probe_at: now,
            wait: WAIT_MIN / 2,
            has_failed: false,
        });
        shortage.cap = running;
        if !shortage.has_failed {
            shortage.has_failed = true;
            shortage.wait = (shortage.wait * 2).min(WAIT_MAX);
        }
        shortage.probe_at = now + shortage.wait;
        let nothing_for = if running == 0 { self.telling.nothing(now) } else { None };
        if is_new || nothing_for.is_some() {
            self.tell(RunnerEvent::NoRoom { why, running, nothing_for });
        }
    }

    /// Whether another try is worth it.
    pub fn may_try(&self, now: Instant) -> bool {
        self.shortage.as_ref().is_none_or(|shortage| shortage.probe_at <= now)
    }

    /// There was no room for another guardian.
    pub fn no_guardian(&mut self, why: String, now: Instant) {
        if let Some(shortage) = &mut self.shortage {
            shortage.has_failed = false;
        }
        self.no_room(why, now);
    }

    /// Lets one more be tried when it is time for that.
    pub fn probe(&mut self, now: Instant) {
        if self.link.is_gone() {
            return;
        }
        let Some(shortage) = self.shortage.as_mut().filter(|shortage| shortage.probe_at <= now)
        else {
            return;
        };
        if self.unsent.is_empty() || shortage.cap >= self.ahead_max {
            self.shortage = None;
            self.tell(RunnerEvent::Room);
            return;
        }
        if !std::mem::take(&mut shortage.has_failed) {
            shortage.wait = (shortage.wait / 2).max(WAIT_MIN);
        }
        shortage.cap = shortage.cap.max(self.tasks.len()) + 1;
        shortage.probe_at = now + shortage.wait;
    }
}

/// What people are told of it.
#[must_use]
pub fn no_room_words(why: &str, nothing_for: Option<Duration>) -> String {
    match nothing_for {
        None => format!("{why}; fewer tasks run at once, the others wait"),
        Some(lasted) => format!(
            "no task could be started for {} s: {why}; still trying (see `ulimit -u`, `ulimit -n` and free memory)",
            lasted.as_secs()
        ),
    }
}

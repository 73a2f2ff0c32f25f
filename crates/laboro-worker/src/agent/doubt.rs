//! In a batch job, a signal that ends it goes to every process of it: to tasks as well as to this worker, in any order. A
//! task that dies of it has not failed, so its end is told a moment later, when it is known whether this worker is to go too.

use std::time::{Duration, Instant};

use laboro_dialects::worker::{Key, News};

use super::Agent;
use super::confine::Excess;
use super::running::Running;
use crate::{Ending, Usage};

/// Between the first process that is told and the last.
const MOMENT: Duration = Duration::from_secs(2);

const TERM: i32 = 15;
/// As a shell says it of a child.
const CHILD_TERM: i32 = 128 + TERM;

pub(super) enum Doubt {
    None,
    /// This worker goes, and the task with it.
    Returned,
    Later(Instant),
}

/// An end that is not told yet, and when it is.
pub(super) type Doubtful = (Instant, Box<(Key, Running, Ending, Usage, Option<Excess>)>);

impl Agent {
    pub(super) fn doubt(&self, ending: &Ending, running: &Running) -> Doubt {
        let is_terminated = matches!(ending, Ending::Signalled(TERM) | Ending::Exited(CHILD_TERM));
        if !self.options.shares_signals || !is_terminated || running.is_cancelled {
            return Doubt::None;
        }
        match self.signals {
            0 => Doubt::Later(Instant::now() + MOMENT),
            _ => Doubt::Returned,
        }
    }

    /// Tells what is not in doubt any more.
    pub(super) fn resolve_doubts(&mut self) {
        if self.doubtful.is_empty() {
            return;
        }
        let now = Instant::now();
        let is_going = self.signals > 0;
        let (due, still) = std::mem::take(&mut self.doubtful)
            .into_iter()
            .partition(|(until, _)| is_going || *until <= now);
        self.doubtful = still;
        let due: Vec<Doubtful> = due;
        for (_, end) in due {
            let (key, running, ending, usage, why) = *end;
            match is_going {
                true => self.tell(News::Returned(key)),
                false => self.tell_end(key, running, &ending, &usage, why),
            }
        }
    }

    pub(super) fn doubt_deadline(&self) -> Option<Instant> {
        self.doubtful.iter().map(|(until, _)| *until).min()
    }
}

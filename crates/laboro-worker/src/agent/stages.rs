//! How a worker comes to its end: it takes nothing more, waits for what runs or ends it, sees that the hub has
//! heard everything, and says goodbye.

use laboro_core::counted;
use std::time::{Duration, Instant};

use laboro_dialects::worker::{Assignment, News};

use super::link::{Link, Next};
use super::{Agent, AgentOptions, Farewell};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    Working,
    /// Takes nothing more; what runs is waited for, until then at the most.
    Draining {
        until: Option<Instant>,
    },
    /// What runs is being ended.
    Ending,
    /// Goodbye is said; its answer is waited for until then.
    Leaving {
        until: Instant,
    },
}

/// How long the hub has to answer to a goodbye, and to take what is left to tell after the last task.
const GOODBYE: Duration = Duration::from_secs(5);

impl AgentOptions {
    /// How much of its time limit is for tasks; the rest is for ending them and saying so.
    pub fn time_for_work(&self) -> Option<Duration> {
        let limit = self.time_limit?;
        let farewell = self.grace + GOODBYE;
        // Of a very short time most is for work.
        Some(limit - farewell.min(limit / 4))
    }
}

impl Agent {
    /// Somebody wants an end to it. The first time what runs may finish, the second time it may not, the
    /// third time nothing is waited for.
    pub(super) fn signalled(&mut self) {
        let now = Instant::now();
        self.signals += 1;
        match (self.signals, self.stage) {
            (1, Stage::Working | Stage::Draining { .. }) => {
                let drain = self.options.drain;
                self.has_to_say_it_stops = true;
                self.drain(drain.and_then(|drain| now.checked_add(drain)));
                if let Some(drain) = drain {
                    self.be_gone_after(drain + self.options.grace + GOODBYE);
                }
            }
            (1 | 2, _) => {
                let grace = self.options.haste;
                self.end_tasks(grace);
                self.gone_by = None;
                self.be_gone_after(grace + HASTE);
            }
            _ => self.gone_by = Some(now),
        }
    }

    /// When it is true: what was launched ahead has come back, and nothing more begins.
    pub(super) fn say_once_that_it_stops(&mut self) {
        if self.unbegun > 0 || !std::mem::take(&mut self.has_to_say_it_stops) {
            return;
        }
        if self.running.is_empty() {
            return;
        }
        let running = counted(self.running.len(), "running task");
        let most = match self.options.drain {
            Some(drain) => format!(", at most {} s", drain.as_secs()),
            None => String::new(),
        };
        self.note(&format!("stopping: waiting for {running}{most}; interrupt again to end now"));
    }

    fn be_gone_after(&mut self, time: Duration) {
        let then = Instant::now().checked_add(time);
        self.gone_by = [self.gone_by, then].into_iter().flatten().min();
    }

    /// Takes nothing more and gives back what has not begun, where somebody else would get it.
    pub(super) fn drain(&mut self, until: Option<Instant>) {
        self.take_no_more(until);
        if matches!(self.stage, Stage::Draining { .. }) && !self.side.must_finish() {
            self.give_back_waiting();
        }
    }

    /// The same because the hub wants it so. What it would not take back is run first.
    pub(super) fn drain_for_hub(&mut self) {
        match self.side.takes_back() {
            true => self.drain(None),
            false => self.take_no_more(None),
        }
    }

    fn take_no_more(&mut self, until: Option<Instant>) {
        if self.stage == Stage::Working {
            self.tell(News::Draining);
        }
        if matches!(self.stage, Stage::Working | Stage::Draining { .. }) {
            self.stage = Stage::Draining { until };
        }
    }

    /// Ends what runs; it goes back to the hub.
    pub(super) fn end_tasks(&mut self, grace: Duration) {
        self.take_no_more(None);
        if matches!(self.stage, Stage::Draining { .. }) {
            self.give_back_waiting();
        }
        if let Some(crew) = &self.crew {
            crew.runner.stop_all(grace);
        }
        self.calls.stop_all(grace);
        for key in std::mem::take(&mut self.kept_for) {
            self.tell(News::Returned(key));
        }
        if matches!(self.stage, Stage::Draining { .. }) {
            self.stage = Stage::Ending;
        }
        self.be_gone_after(grace + GOODBYE);
    }

    /// Whether a task can be over before this worker has to go. One without a limit may be.
    pub(super) fn has_time_for(&self, assignment: &Assignment) -> bool {
        let (Some(last_call), Some(limit)) = (self.last_call(), assignment.time_limit_ms) else {
            return true;
        };
        Instant::now().checked_add(Duration::from_millis(limit)).is_some_and(|end| end <= last_call)
    }

    /// From then on there is only time enough to end what runs and say so.
    fn last_call(&self) -> Option<Instant> {
        self.started.checked_add(self.options.time_for_work()?)
    }

    /// How long tasks have to end themselves near the time limit, so that a moment is left to say so.
    fn last_grace(&self, now: Instant) -> Duration {
        let left = self.time_over().map_or(Duration::MAX, |at| at.saturating_duration_since(now));
        self.options.grace.min(left - GOODBYE.min(left / 3))
    }

    /// Whether an assignment is taken now. One that nobody else would get is also when this worker leaves.
    pub(super) fn takes(&self) -> bool {
        match self.stage {
            Stage::Working => true,
            Stage::Draining { .. } => self.side.must_finish(),
            Stage::Ending | Stage::Leaving { .. } => false,
        }
    }

    /// Whether people need to know of a connection that is gone: not when this worker is as good as gone itself.
    pub(super) fn is_busy(&self) -> bool {
        self.stage == Stage::Working || !self.is_idle()
    }

    fn is_idle(&self) -> bool {
        self.running.is_empty()
            && self.waiting.is_empty()
            && self.doubtful.is_empty()
            && self.kept_for.is_empty()
    }

    /// Gone by then, whoever has heard what.
    fn time_over(&self) -> Option<Instant> {
        self.started.checked_add(self.options.time_limit?)
    }

    fn idle_until(&self) -> Option<Instant> {
        // Who still tells the hub something is not idle; a hub that is not there is not waited for.
        let tells = self.is_connected && !self.side.is_settled();
        let is_idle = self.stage == Stage::Working && self.is_idle() && !tells;
        self.idle_since.checked_add(self.options.idle_timeout.filter(|_| is_idle)?)
    }

    pub(super) fn stage_deadline(&self) -> Option<Instant> {
        let own = match self.stage {
            Stage::Working => [self.last_call(), self.idle_until()].into_iter().flatten().min(),
            // Once nothing runs, there is nothing to end then: a moment that has passed would be waited for in vain.
            Stage::Draining { until } => {
                let until = until.filter(|_| !self.is_idle());
                [self.last_call(), until].into_iter().flatten().min()
            }
            Stage::Ending => None,
            Stage::Leaving { until } => Some(until),
        };
        [own, self.gone_by, self.time_over()].into_iter().flatten().min()
    }

    pub(super) fn advance(&mut self, link: &mut Link) {
        let now = Instant::now();
        let is_past = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        if is_past(self.gone_by) || is_past(self.time_over()) {
            let has_told_all = self.is_idle() && self.side.is_settled();
            self.bid(if has_told_all { Farewell::Finished } else { Farewell::Unsettled });
            return;
        }
        match self.stage {
            Stage::Working if is_past(self.idle_until()) => {
                self.note("no work for the time of --idle-timeout: exiting");
                self.drain(None);
                self.be_gone_after(GOODBYE);
            }
            Stage::Working if self.slots == 0 => self.drain_for_hub(),
            Stage::Working | Stage::Draining { .. } if is_past(self.last_call()) => {
                let running = counted(self.running.len(), "task");
                self.note(&format!("the time limit is near: ending {running} and exiting"));
                self.end_tasks(self.last_grace(now));
            }
            Stage::Draining { until } if is_past(until) && !self.is_idle() => {
                let running = counted(self.running.len(), "running task");
                self.note(&format!("ending {running}"));
                self.end_tasks(self.options.grace);
            }
            Stage::Leaving { until } if is_past(Some(until)) => self.bid(Farewell::Finished),
            _ => {}
        }
        if self.stage != Stage::Working && self.is_idle() {
            self.leave(link, now);
        }
    }

    /// Nothing runs any more.
    fn leave(&mut self, link: &mut Link, now: Instant) {
        if link.is_closed() {
            // The conversation itself has said that it is over.
            self.bid(Farewell::Finished);
            return;
        }
        if !self.side.is_settled() || matches!(self.stage, Stage::Leaving { .. }) {
            return;
        }
        if link.is_up() {
            self.stage = Stage::Leaving { until: now + GOODBYE };
            self.tell(News::Leaving);
        } else {
            // The hub knows all but that we go, and will find that out.
            link.hang_up(Next::Never);
            self.bid(Farewell::Finished);
        }
    }

    fn bid(&mut self, farewell: Farewell) {
        let farewell = match (farewell, self.unable.take()) {
            (Farewell::Finished, Some(why)) => Farewell::Unable(why),
            (farewell, why) => {
                why.iter().for_each(|why| self.note(why));
                farewell
            }
        };
        self.farewell.get_or_insert(farewell);
    }
}

/// Who asks twice waits no longer than this.
const HASTE: Duration = Duration::from_secs(2);

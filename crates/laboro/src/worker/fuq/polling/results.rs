//! What a node that polls tells of results, and how it comes to know that they are taken.

use super::super::tasks;
use super::{PAUSE_MS, Polling};
use laboro_core::{Outcome, Time};
use laboro_dialects::fuq2::Task;
use laboro_dialects::worker::Orders;

#[derive(Clone, Debug)]
pub(super) struct UpdateReport {
    pub(super) task: Task,
    pub(super) outcome: Outcome,
    pub(super) message: Option<String>,
    /// The foreman may have it already: it was said before.
    pub(super) is_repeated: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Asking {
    pub(super) told: UpdateReport,
    /// It was said again alone.
    pub(super) is_doubted: bool,
}

/// A foreman takes a result at once and then waits for work: one that waits for so long is said again alone, so that
/// it can be said to be taken.
const DOUBT_MS: u64 = 1000;

/// Saying it again would not change the answer: it is not understood, or nobody knows the task.
pub(super) fn is_final(status: u16) -> bool {
    matches!(status, 400 | 404 | 405 | 413)
}

/// An original says so to a result that it has, and to one that it cannot store.
const KNOWN_ALREADY: u16 = 500;

impl Polling {
    /// With a request for the next task, where the slot may have one. What was said before is said alone, because the
    /// answer to that is an error where it is known.
    pub(super) fn say_result(&mut self, now: Time, told: UpdateReport, out: &mut Orders) {
        let may_ask = !self.drains && self.pause_until.is_none() && self.has_room();
        let asks = may_ask && !told.is_repeated;
        let UpdateReport { task, outcome, message, .. } = &told;
        let body = tasks::update(task, *outcome, message.as_deref(), asks);
        let id = self.ask("job/update", body, out);
        if asks {
            self.asking.insert(id, Asking { told, is_doubted: false });
            self.doubts.push_back((now.after_ms(DOUBT_MS), id));
        } else {
            self.updates.insert(id, told);
        }
    }

    /// What waits for work for so long is said again alone.
    pub(super) fn look_at_doubts(&mut self, now: Time, out: &mut Orders) {
        while let Some(&(at, id)) = self.doubts.front() {
            let asking = self.asking.get_mut(&id);
            if asking.is_some() && at > now {
                return;
            }
            self.doubts.pop_front();
            let Some(asking) = asking else { continue };
            asking.is_doubted = true;
            let UpdateReport { task, outcome, message, .. } = &asking.told;
            let body = tasks::update(task, *outcome, message.as_deref(), false);
            let again = self.ask("job/update", body, out);
            self.again.insert(again, id);
        }
    }

    /// One that leaves does not wait for work in order to know.
    pub(super) fn doubt_all(&mut self, now: Time) {
        self.doubts.iter_mut().for_each(|(at, _)| *at = now);
    }

    /// A result is not taken, or was taken before.
    pub(super) fn hear_refusal(
        &mut self,
        now: Time,
        told: UpdateReport,
        is_repeated: bool,
        status: u16,
    ) {
        let (job, number) = (told.task.job.id, told.task.task);
        if status == KNOWN_ALREADY && (is_repeated || told.is_repeated) {
            tracing::debug!("the foreman has the result of task {number} of job {job} already");
        } else if is_final(status) {
            tracing::warn!(
                "the foreman answers {status} to the result of task {number} of job {job}"
            );
        } else {
            // It stops, or its disk is full: it must not run again because of that.
            let again_at = now.after_ms(PAUSE_MS);
            let is_repeated = told.is_repeated || status == KNOWN_ALREADY;
            self.refused.push(UpdateReport { is_repeated, ..told });
            self.again_at = self.again_at.or(Some(again_at));
            if status != KNOWN_ALREADY {
                self.pause_until = Some(again_at);
            }
        }
    }

    /// What became of a result whose request waits for work: that goes on as a request for work alone.
    pub(super) fn hear_again(&mut self, now: Time, id: u64, status: u16) {
        let Some(asking) = self.asking.get_mut(&id) else { return };
        if status == 200 || status == KNOWN_ALREADY || is_final(status) {
            self.asking.remove(&id);
            self.polls.insert(id);
        } else {
            asking.is_doubted = false;
            self.doubts.push_back((now.after_ms(PAUSE_MS), id));
        }
    }
}

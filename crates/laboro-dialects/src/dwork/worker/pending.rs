//! What a worker has sent and still has to send: requests without an answer, and results in the order they came,
//! gathered into as few messages as the answers allow.

use bytes::Bytes;
use laboro_core::Time;
use std::collections::VecDeque;

/// Requests that the hub has not answered, each with its number.
#[derive(Debug, Default)]
pub(super) struct OpenRequests {
    pub(super) steal: Option<(u64, Time)>,
    pub(super) told: Option<(u64, ResultReport)>,
    pub(super) exit: Option<u64>,
    /// When something was last asked or answered.
    pub(super) asked_at: Time,
}

/// A hub that leaves a request without an answer for so long is asked anew.
const ANSWER_MS_MAX: u64 = 60_000;

impl OpenRequests {
    pub(super) fn deadline(&self) -> Option<Time> {
        let any = self.steal.is_some() || self.told.is_some() || self.exit.is_some();
        any.then(|| self.asked_at.after_ms(ANSWER_MS_MAX))
    }
}

/// A task with all that is told about it, as it stands on the wire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ReportedTask {
    pub(super) name: Bytes,
    pub(super) notes: Bytes,
}

/// One message about tasks that ended here.
#[derive(Debug)]
pub(super) enum ResultReport {
    Done(Vec<ReportedTask>),
    Back(Vec<ReportedTask>),
}

/// What is still to be told.
#[derive(Debug, Default)]
pub(super) struct Results(VecDeque<(ResultReport, bool)>);

/// Tasks in one message.
const TOGETHER_MAX: usize = 1000;

impl Results {
    pub(super) fn done(&mut self, task: ReportedTask) {
        match self.0.back_mut() {
            Some((ResultReport::Done(tasks), false)) if tasks.len() < TOGETHER_MAX => {
                tasks.push(task);
            }
            _ => self.0.push_back((ResultReport::Done(vec![task]), false)),
        }
    }

    pub(super) fn back(&mut self, task: ReportedTask) {
        match self.0.back_mut() {
            Some((ResultReport::Back(tasks), false)) if tasks.len() < TOGETHER_MAX => {
                tasks.push(task);
            }
            _ => self.0.push_back((ResultReport::Back(vec![task]), false)),
        }
    }

    /// In a message of its own.
    pub(super) fn back_alone(&mut self, task: ReportedTask) {
        self.0.push_back((ResultReport::Back(vec![task]), true));
    }

    /// ResultReport before, and not heard.
    pub(super) fn again(&mut self, told: ResultReport) {
        self.0.push_front((told, true));
    }

    pub(super) fn next(&mut self) -> Option<ResultReport> {
        self.0.pop_front().map(|(told, _)| told)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

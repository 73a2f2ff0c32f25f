//! A job as the parts it was submitted in: an array is one, whatever number of elements it has. For pictures of
//! what waits for what.

use super::Hub;
use crate::id::{JobId, TaskId};
use crate::job::Counts;
use crate::ledger::{Array, Job};
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::task::State;
use crate::view::{PartView, Ties};

impl Hub {
    pub(super) fn parts(&self, job: JobId, from: u32, most: usize) -> Result<Reply, Refusal> {
        let this = self.ledger().job(self.find_job(job)?);
        let next = |from: u32| -> Option<u32> {
            State::ALL.iter().filter_map(|&state| this.set(state).next(from)).min()
        };
        let mut parts = Vec::new();
        let mut at = next(from.max(1));
        while let Some(index) = at.filter(|_| parts.len() < most) {
            let (part, last) = match this.array_at(index) {
                Some(array) => {
                    let array = &this.arrays[array];
                    (self.array_part(this, array), array.last())
                }
                None => (self.single_part(this, index), index),
            };
            parts.push(part);
            at = last.checked_add(1).and_then(next);
        }
        Ok(Reply::Parts { parts, next: at })
    }

    fn array_part(&self, job: &Job, array: &Array) -> PartView {
        let ledger = self.ledger();
        let before = ledger.graph().preds_of(ledger.task(array.gate).preds);
        let before = before.map(|handle| ledger.id_of(handle)).take(self.config.limits.preds_shown);
        let (mut preds, mut each) = (Ties::default(), Ties::default());
        self.add_ties(job.id, before, &mut preds);
        self.add_ties(job.id, array.each.iter().copied(), &mut each);
        PartView {
            first: array.first,
            count: array.count,
            name: array.name.clone(),
            state: None,
            counts: job.counts_in(array.first, array.last()),
            preds,
            each,
        }
    }

    fn single_part(&self, job: &Job, index: u32) -> PartView {
        let ledger = self.ledger();
        let id = TaskId::new(job.id, index);
        let state = job.state_of(index).expect("it was found in one of the sets");
        let mut counts = Counts::default();
        counts.add(state, 1);
        let mut preds = Ties::default();
        if let Some(handle) = job.pages.find(index) {
            let known = ledger.graph().preds_of(ledger.task(handle).preds);
            let known =
                known.map(|handle| ledger.id_of(handle)).take(self.config.limits.preds_shown);
            self.add_ties(job.id, known, &mut preds);
        }
        PartView {
            first: index,
            count: 1,
            name: ledger.shown_name(id),
            state: Some(state),
            counts,
            preds,
            each: Ties::default(),
        }
    }
}

//! Forgetting what is long finished, so that memory follows what is alive.

use crate::event::Ranges;
use crate::id::JobId;
use crate::ledger::handle::TaskHandle;
use crate::ledger::load::Load;
use crate::ledger::reading::{Ledger, Timer};
use crate::ledger::record::Record;
use crate::task::State;

impl Ledger {
    /// Tasks with records that are over. They leave the counts too.
    pub(super) fn tasks_forgotten(&mut self, job: JobId, ranges: &Ranges) {
        let job = self.live_job(job);
        for handle in self.records_in(job, ranges) {
            if let Some(state) = self.tasks[handle].state().filter(|state| state.is_over()) {
                let index = self.tasks[handle].index;
                if self.job(job).array_at(index).is_some() {
                    // Elements cost next to nothing and are forgotten with their job.
                    self.fold_ended(handle);
                    continue;
                }
                self.uncount_failure(handle);
                self.count(job, index, Some(state), None);
                self.drop_record(handle);
            }
        }
    }

    fn drop_record(&mut self, handle: TaskHandle) {
        self.graph.detach(&mut self.tasks, handle);
        let scope = self.scope_of(self.tasks[handle].job);
        let record = self.tasks.release(handle, Record::vacant());
        if !record.name.is_empty() {
            self.names.remove(scope, &record.name, handle);
        }
        self.profiles.release(record.profile);
        if !record.is_gate() {
            self.job_mut(record.job).pages.remove(record.index);
        }
    }

    pub(super) fn job_forgotten(&mut self, id: JobId) {
        let job = self.live_job(id);
        for handle in self.records_in(job, &self.job(job).all()) {
            self.drop_record(handle);
        }
        for at in 0..self.job(job).arrays.len() {
            let gate = self.job(job).arrays[at].gate;
            self.drop_record(gate);
        }
        while let Some(&lane) = self.job(job).lanes.last() {
            self.drop_lane(job, lane);
        }
        self.unend(job);
        let gone = self.jobs.remove(job, None).expect("a job in use is there");
        if let Some(begin) = gone.options.begin {
            self.timers.remove(&(begin, Timer::Begin(id)));
        }
        self.job_ids.remove(&id);
        let group = self.group_mut(gone.group);
        group.jobs.remove(&id);
        group.queued_bytes -= gone.queued_bytes;
        for state in State::ALL {
            group.counts.subtract(state, gone.counts.of(state));
        }
        let queued = Load { tasks: gone.counts.unfinished(), bytes: gone.queued_bytes };
        self.disown(gone.owner, id, queued);
        self.lanes.leave_account(gone.account);
        if let Some(key) = gone.options.key {
            let key = (gone.group, gone.owner, key);
            if self.keys.get(&key) == Some(&id) {
                self.keys.remove(&key);
            }
        }
        self.note_if_unused(gone.group);
    }
}

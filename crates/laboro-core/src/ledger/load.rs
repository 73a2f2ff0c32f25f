//! How much is queued, for quotas: tasks that have not ended and what they were submitted with, of each group and of
//! each owner of jobs. Each job keeps one number of bytes, and a task that ends takes its even share of it along: so
//! every step costs the same, and nothing is left when all have ended. Nothing here is journaled: events add up
//! to it.

use super::handle::{JobHandle, OwnerHandle};
use super::reading::{Group, Ledger};
use crate::event::Added;
use crate::id::{JobId, Name};
use crate::task::{Program, Setting, State, Values, Work};
use std::collections::BTreeSet;
use std::sync::Arc;

/// What is queued by one owner, or in one group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Load {
    pub tasks: u64,
    pub bytes: u64,
}

#[derive(Debug)]
pub(crate) struct Owner {
    pub(crate) name: Name,
    /// Jobs that are remembered.
    pub(in crate::ledger) jobs: BTreeSet<JobId>,
    load: Load,
}

impl Owner {
    pub(crate) fn vacant() -> Owner {
        Owner { name: Name::default(), jobs: BTreeSet::new(), load: Load::default() }
    }
}

/// What a record takes beside its name and its work.
const RECORD_BYTES: u64 = 128;

/// Adds up the bytes of tasks that come together. The setting that many of them share counts once.
#[derive(Default)]
pub(crate) struct Scale<'a> {
    last: Option<&'a Arc<Setting>>,
    pub(crate) bytes: u64,
}

impl<'a> Scale<'a> {
    pub(crate) fn task(&mut self, name: &Name, work: Option<&'a Arc<Work>>, preds: usize) {
        self.bytes += RECORD_BYTES + name.len() as u64 + 16 * preds as u64;
        match work.map(|work| &**work) {
            None | Some(Work::Named) => {}
            Some(Work::Command(command)) => {
                self.bytes += match &command.program {
                    Program::Argv(words) => words.weight() as u64,
                    Program::Shell(line) => line.len() as u64,
                };
                self.setting(&command.setting);
            }
            Some(Work::Script(script)) => {
                self.bytes += script.kind.len() as u64 + script.body.len() as u64;
                self.setting(&script.setting);
            }
            Some(Work::Indexed(indexed)) => {
                let parts = [&indexed.program, &indexed.dir, &indexed.log_dir];
                self.bytes += parts.iter().map(|part| part.len() as u64).sum::<u64>();
            }
            Some(Work::Call(call)) => {
                self.bytes += call.payload.len() as u64;
                self.setting(&call.setting);
            }
        }
    }

    pub(crate) fn array(
        &mut self,
        name: &Name,
        work: &'a Arc<Work>,
        values: &Values,
        preds: usize,
    ) {
        self.task(name, Some(work), preds);
        if let Values::List(list) = values {
            self.bytes += list.weight() as u64;
        }
    }

    fn setting(&mut self, setting: &'a Arc<Setting>) {
        if self.last == Some(setting) {
            return;
        }
        self.last = Some(setting);
        let env = setting.env.iter().map(|(name, value)| 32 + name.len() + value.len());
        self.bytes += (setting.text_bytes() + env.sum::<usize>()) as u64;
    }
}

impl Ledger {
    /// What is queued in this group.
    pub fn group_load(&self, group: &Name) -> Load {
        let found = self.find_group(group).map(|group| self.group(group));
        let load =
            |group: &Group| Load { tasks: group.counts.unfinished(), bytes: group.queued_bytes };
        found.map(load).unwrap_or_default()
    }

    /// What the jobs of this owner have queued.
    pub fn owner_load(&self, owner: &Name) -> Load {
        let found = self.owner_names.get(owner);
        found.map(|&owner| self.owners[owner].load).unwrap_or_default()
    }

    pub(in crate::ledger) fn own(
        &mut self,
        owner: Option<&Name>,
        job: JobId,
    ) -> Option<OwnerHandle> {
        let name = owner?;
        let handle = match self.owner_names.get(name) {
            Some(&handle) => handle,
            None => {
                let owner = Owner { name: name.clone(), ..Owner::vacant() };
                let handle = self.owners.insert(owner);
                self.owner_names.insert(name.clone(), handle);
                handle
            }
        };
        self.owners[handle].jobs.insert(job);
        Some(handle)
    }

    /// A job of it is forgotten, with what was blocked there.
    pub(in crate::ledger) fn disown(
        &mut self,
        owner: Option<OwnerHandle>,
        job: JobId,
        queued: Load,
    ) {
        let Some(handle) = owner else { return };
        let owner = &mut self.owners[handle];
        owner.load.tasks -= queued.tasks;
        owner.load.bytes -= queued.bytes;
        owner.jobs.remove(&job);
        if owner.jobs.is_empty() {
            let gone = self.owners.remove(handle, Owner::vacant());
            self.owner_names.remove(&gone.name);
        }
    }

    /// So many tasks of a job change from one state to another, before they are counted so.
    pub(in crate::ledger) fn weigh(
        &mut self,
        job: JobHandle,
        count: u32,
        from: Option<State>,
        to: Option<State>,
    ) {
        let is_queued = |state: Option<State>| state.is_some_and(|state| !state.is_finished());
        let this = self.jobs[job].as_mut().expect("a job in use is there");
        let tasks = u128::from(count);
        match (is_queued(from), is_queued(to)) {
            (false, true) => {
                // Those that are new were weighed with all that came with them.
                let bytes = match from {
                    None => 0,
                    Some(_) => {
                        let all = u128::from(this.next_index.max(2) - 1);
                        share(this.bytes_ever, tasks, all)
                    }
                };
                let owner = this.owner;
                if let Some(owner) = owner {
                    self.owners[owner].load.tasks += u64::from(count);
                }
                self.load_bytes(job, bytes);
            }
            (true, false) => {
                let all = u128::from(this.counts.unfinished());
                let bytes = share(this.queued_bytes, tasks, all);
                this.queued_bytes -= bytes;
                self.groups[this.group.at()]
                    .as_mut()
                    .expect("a job's group is there")
                    .queued_bytes -= bytes;
                if let Some(owner) = this.owner {
                    let load = &mut self.owners[owner].load;
                    load.tasks -= u64::from(count);
                    load.bytes -= bytes;
                }
            }
            (true, true) | (false, false) => {}
        }
    }

    pub(in crate::ledger) fn load_added(&mut self, job: JobHandle, added: &Added) {
        let mut scale = Scale::default();
        for array in &added.arrays {
            let preds = array.preds.len() + array.each.len();
            scale.array(&array.name, &array.work, &array.values, preds);
        }
        for task in &added.tasks {
            scale.task(&task.name, task.work.as_ref(), task.preds.len());
        }
        self.load_ever(job, scale.bytes);
        self.load_bytes(job, scale.bytes);
    }

    pub(in crate::ledger) fn load_ever(&mut self, job: JobHandle, bytes: u64) {
        let this = self.job_mut(job);
        this.bytes_ever = this.bytes_ever.saturating_add(bytes);
    }

    pub(in crate::ledger) fn load_bytes(&mut self, job: JobHandle, bytes: u64) {
        let this = self.jobs[job].as_mut().expect("a job in use is there");
        this.queued_bytes += bytes;
        self.groups[this.group.at()].as_mut().expect("a job's group is there").queued_bytes +=
            bytes;
        if let Some(owner) = this.owner {
            self.owners[owner].load.bytes += bytes;
        }
    }

    /// Do the loads agree with the jobs?
    pub(in crate::ledger) fn check_loads(&self) -> Result<(), String> {
        let jobs = || self.jobs_from(JobId(0)).map(|handle| self.job(handle));
        if let Some(job) = jobs().find(|job| job.counts.unfinished() == 0 && job.queued_bytes > 0) {
            return Err(format!("job {} has ended and has bytes queued", job.id));
        }
        for group in self.groups() {
            let own = jobs().filter(|job| job.group == group.id);
            if own.map(|job| job.queued_bytes).sum::<u64>() != group.queued_bytes {
                return Err(format!("group {} miscounts queued bytes", group.name));
            }
        }
        for (name, &handle) in &self.owner_names {
            let own = || jobs().filter(|job| job.owner == Some(handle));
            let load = Load {
                tasks: own().map(|job| job.counts.unfinished()).sum(),
                bytes: own().map(|job| job.queued_bytes).sum(),
            };
            let owner = &self.owners[handle];
            if load != owner.load || !own().map(|job| job.id).eq(owner.jobs.iter().copied()) {
                return Err(format!("owner {name} miscounts what is queued"));
            }
        }
        Ok(())
    }
}

/// The part of `bytes` that so many of all tasks have.
fn share(bytes: u64, tasks: u128, all: u128) -> u64 {
    let part = u128::from(bytes) * tasks / all.max(1);
    u64::try_from(part).unwrap_or(u64::MAX).min(bytes)
}

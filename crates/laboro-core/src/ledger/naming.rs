//! What tasks are called, and which one a name means. The table of names is in `names`.

use super::handle::{JobHandle, TaskHandle};
use super::names::NameScope;
use super::reading::Ledger;
use crate::id::{GroupId, JobId, Name, TaskId};

/// A name that is not in a job's scope costs no more than this.
const JOBS_LOOKED_THROUGH: usize = 1000;

impl Ledger {
    /// The task of this name in a group; `array.7` is an element.
    pub fn find_task(&self, group: &Name, name: &Name) -> Option<TaskId> {
        let group = self.find_group(group)?;
        self.find_named(NameScope::Group(group), name)
    }

    pub(crate) fn find_name(&self, scope: NameScope, name: &Name) -> Option<TaskHandle> {
        self.names.find(&self.tasks, |record| self.scope_of(record.job), scope, name)
    }

    /// Where the names of a job's tasks are looked for.
    pub(crate) fn scope_of(&self, job: JobHandle) -> NameScope {
        let this = self.job(job);
        if this.options.own_names { NameScope::Job(job) } else { NameScope::Group(this.group) }
    }

    /// The task or array of this name; `array.7` is an element.
    pub(crate) fn find_named(&self, scope: NameScope, name: &Name) -> Option<TaskId> {
        match self.find_name(scope, name) {
            Some(handle) => Some(self.id_of(handle)),
            None => self.find_element(scope, name),
        }
    }

    /// `12/fit.3`: a task of a job in this group, by its name. What stands behind the slash of a job without names of its own is no
    /// other name than the plain one.
    pub(crate) fn find_in_job(&self, group: GroupId, text: &Name) -> Option<TaskId> {
        let slash = text.bytes().iter().position(|&byte| byte == b'/')?;
        let (job, name) = (&text.bytes()[..slash], Name::new(&text.bytes()[slash + 1..]));
        let number = std::str::from_utf8(job).ok()?.parse().ok()?;
        let job = self.find_job(JobId(number))?;
        let this = self.job(job);
        let is_its = this.group == group && !name.is_empty();
        let found = is_its.then(|| self.find_named(self.scope_of(job), &name)).flatten();
        found.filter(|found| found.job == this.id)
    }

    /// The newest job with names of its own that has this one. Looks at so many at most.
    pub(crate) fn find_in_newest(&self, group: GroupId, name: &Name) -> Option<TaskId> {
        let jobs = self.jobs_of_group_before(group, JobId(u32::MAX)).take(JOBS_LOOKED_THROUGH);
        let mut own = jobs.filter(|&job| self.job(job).options.own_names);
        own.find_map(|job| self.find_named(NameScope::Job(job), name))
    }

    /// `array.7`
    fn find_element(&self, scope: NameScope, name: &Name) -> Option<TaskId> {
        let (array, number) = name.split_element()?;
        let gate = self.find_name(scope, &array)?;
        if !self.task(gate).is_gate() {
            return None;
        }
        let (job, at) = self.array_of(gate);
        let array = &self.job(job).arrays[at];
        let position = number.checked_sub(1).filter(|&position| position < array.count)?;
        Some(TaskId::new(self.job(job).id, array.first + position))
    }

    /// What a task is called from another job, or where names of all jobs meet.
    pub(crate) fn full_name(&self, id: TaskId) -> Name {
        let has_own = self.find_job(id.job).is_some_and(|job| self.job(job).options.own_names);
        let shown = self.shown_name(id);
        let is_named = shown.bytes() != id.to_string().as_bytes();
        if !has_own || !is_named {
            return shown;
        }
        let mut name = format!("{}/", id.job).into_bytes();
        name.extend_from_slice(shown.bytes());
        Name::new(&name)
    }

    /// A task without a name, by what is shown instead of one.
    pub(crate) fn find_unnamed(&self, group: GroupId, shown: &Name) -> Option<TaskId> {
        let text = std::str::from_utf8(shown.bytes()).ok()?;
        let (job, number) = text.split_once('/')?;
        let id = TaskId::new(JobId(job.parse().ok()?), number.parse().ok()?);
        let job = self.job(self.find_job(id.job)?);
        let is_there = !id.is_whole() && job.group == group && job.state_of(id.index).is_some();
        (is_there && self.shown_name(id) == *shown).then_some(id)
    }

    /// For tables of names beside the ledger, with the ledger's seed.
    pub(crate) fn hash_name(&self, name: &Name) -> u64 {
        self.names.hash(NameScope::Group(GroupId(u32::MAX)), name)
    }

    /// What people call it: its name, `array.5` for an element, else its id.
    pub fn shown_name(&self, id: TaskId) -> Name {
        if let Some(handle) = self.record_of(id)
            && !self.tasks[handle].name.is_empty()
        {
            return self.tasks[handle].name.clone();
        }
        match self.array(id) {
            Some((_, array)) if !array.name.is_empty() => {
                let mut name = array.name.bytes().to_vec();
                name.extend_from_slice(format!(".{}", id.number() - array.first + 1).as_bytes());
                Name::new(&name)
            }
            _ => Name::from(id.to_string()),
        }
    }
}

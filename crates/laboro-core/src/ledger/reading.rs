//! The state itself and how to read it. Everything that changes it is in `apply` and `moves`.

use super::documents::Documents;
use super::graph::Graph;
use super::handle::{JobHandle, LeaseHandle, OwnerHandle, TaskHandle, WorkerHandle};
use super::jobs::{Array, Job};
use super::lanes::Lanes;
use super::load::Owner;
use super::moves::Word;
use super::names::Names;
use super::order::Levels;
use super::profiles::Profiles;
use super::record::{Extra, Record};
use super::slab::Slab;
use super::workers::Workers;
use crate::effect::Change;
use crate::id::{GroupId, JobId, LeaseNo, Name, TaskId, Time, WorkerId};
use crate::job::Counts;
use crate::task::{Outcome, State};
use hashbrown::HashMap;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

/// What a hub knows: start with `Ledger::default()` and apply every event of a journal, in order.
#[derive(Debug, Default)]
pub struct Ledger {
    pub(in crate::ledger) life: u32,
    pub(in crate::ledger) seed: u64,
    /// By number. Those that were forgotten leave a gap, which the next new group takes.
    pub(in crate::ledger) groups: Vec<Option<Group>>,
    pub(in crate::ledger) group_names: HashMap<Name, GroupId, foldhash::fast::FixedState>,
    pub(in crate::ledger) tasks: Slab<TaskHandle, Record>,
    pub(in crate::ledger) names: Names,
    pub(in crate::ledger) jobs: Slab<JobHandle, Option<Box<Job>>>,
    pub(in crate::ledger) job_ids: BTreeMap<JobId, JobHandle>,
    pub(in crate::ledger) next_job: u32,
    /// Jobs by idempotency key.
    pub(in crate::ledger) keys: HashMap<JobKey, JobId, foldhash::fast::FixedState>,
    pub(in crate::ledger) owners: Slab<OwnerHandle, Owner>,
    pub(in crate::ledger) owner_names: HashMap<Name, OwnerHandle, foldhash::fast::FixedState>,
    /// Finished jobs, the longest finished first.
    pub(in crate::ledger) ended: BTreeSet<(Time, JobId)>,
    /// Jobs that ended with the event being applied.
    pub(in crate::ledger) just_ended: Vec<JobId>,
    pub(in crate::ledger) profiles: Profiles,
    pub(in crate::ledger) lanes: Lanes,
    pub(in crate::ledger) graph: Graph,
    pub(in crate::ledger) levels: Levels,
    /// There has been an array. Where there was none, a node is known without a look at its record.
    pub(in crate::ledger) has_arrays: bool,
    pub(in crate::ledger) workers: Workers,
    pub(in crate::ledger) timers: BTreeSet<(Time, Timer)>,
    pub(in crate::ledger) documents: Documents,
    pub(in crate::ledger) changes: Vec<Change>,
    pub(in crate::ledger) collects_changes: bool,
    /// Workers that gave room back; the hub takes these up.
    pub(in crate::ledger) loosened: Vec<WorkerHandle>,
    /// Workers that are not kept any more for a task that ran on another; they are to be told.
    pub(in crate::ledger) freed_nodes: Vec<(WorkerHandle, TaskId, LeaseNo)>,
    /// Groups in which nothing goes on by itself any more; the hub takes these up, too.
    pub(in crate::ledger) idle_groups: BTreeSet<GroupId>,
    /// Groups in which nothing is left; and these.
    pub(in crate::ledger) unused_groups: BTreeSet<GroupId>,
    /// What tasks have yet to be told of others, and whether somebody is at it.
    pub(in crate::ledger) words: VecDeque<Word>,
    pub(in crate::ledger) is_spreading: bool,
    /// A snapshot was read that was made when only what finished was over.
    pub(in crate::ledger) has_old_counts: bool,
    /// When the event being applied happened, or the last one did, and who did it how.
    pub(in crate::ledger) at: Time,
    pub(in crate::ledger) actor: (Option<WorkerId>, Option<Outcome>),
    pub(in crate::ledger) next_lease: u64,
    /// What the task that came last was given; the next one mostly gets the same. Means nothing.
    last_extra: Option<Arc<Extra>>,
}

/// An idempotency key, of one owner in one group.
pub(in crate::ledger) type JobKey = (GroupId, Option<OwnerHandle>, Box<[u8]>);

#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) id: GroupId,
    pub(crate) name: Name,
    pub(crate) paused: bool,
    /// Something was submitted to it.
    pub(crate) ever_used: bool,
    pub(crate) counts: Counts,
    pub(in crate::ledger) queued_bytes: u64,
    pub(in crate::ledger) jobs: BTreeSet<JobId>,
    pub(in crate::ledger) workers: u32,
}

impl Group {
    /// Nobody would miss it.
    pub(crate) fn is_unused(&self) -> bool {
        self.jobs.is_empty() && self.workers == 0 && !self.paused
    }
}

/// What the ledger waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Timer {
    /// The job may start.
    Begin(JobId),
    /// The task's delay is over.
    Delay(TaskId),
    /// The time of the lease at this handle is over. Its number comes first: of those that end together
    /// the oldest goes first, whatever handles they have.
    Lease(LeaseNo, LeaseHandle),
}

impl Ledger {
    /// How often a hub began with it.
    pub fn life(&self) -> u32 {
        self.life
    }

    /// When anything last happened.
    pub(crate) fn at(&self) -> Time {
        self.at
    }

    /// Forgets what has become worth a look. For whoever follows a journal and gives nobody work: a hub that
    /// begins does the same, and until then it would only grow.
    pub fn forget_wakeups(&mut self) {
        self.lanes.take_awake();
        self.loosened.clear();
        self.freed_nodes.clear();
        self.idle_groups.clear();
        self.unused_groups.clear();
    }

    /// Where the task with this number is.
    pub fn state_of(&self, task: TaskId) -> Option<State> {
        self.job(self.find_job(task.job)?).state_of(task.number())
    }

    /// Tasks of a job that are in this state, within these numbers, as runs.
    pub fn runs_in_state(
        &self,
        job: JobId,
        state: State,
        (first, last): (u32, u32),
    ) -> Vec<(u32, u32)> {
        let job = self.find_job(job).map(|job| self.job(job));
        job.map_or_else(Vec::new, |job| job.set(state).runs(first, last).collect())
    }

    /// Tasks that have a record of their own.
    pub fn records(&self) -> usize {
        self.tasks.len()
    }

    /// The number that the next lease gets: none that was ever used.
    pub(crate) fn next_lease(&self) -> LeaseNo {
        LeaseNo::new(self.life, self.next_lease)
    }

    pub(crate) fn group(&self, group: GroupId) -> &Group {
        self.groups[group.at()].as_ref().expect("a group in use is there")
    }

    pub(in crate::ledger) fn group_mut(&mut self, group: GroupId) -> &mut Group {
        self.groups[group.at()].as_mut().expect("a group in use is there")
    }

    pub(crate) fn groups(&self) -> impl Iterator<Item = &Group> {
        self.groups.iter().flatten()
    }

    pub(crate) fn group_count(&self) -> usize {
        self.group_names.len()
    }

    /// The lowest number that no group has.
    pub(crate) fn next_group(&self) -> GroupId {
        let gap = (self.group_names.len() < self.groups.len())
            .then(|| self.groups.iter().position(Option::is_none))
            .flatten();
        GroupId(gap.unwrap_or(self.groups.len()) as u32)
    }

    pub(crate) fn find_group(&self, name: &Name) -> Option<GroupId> {
        self.group_names.get(name).copied()
    }

    pub(in crate::ledger) fn add_group(&mut self, id: GroupId, name: &Name) -> &mut Group {
        let at = id.at();
        if at >= self.groups.len() {
            self.groups.resize_with(at + 1, || None);
        }
        debug_assert!(self.groups[at].is_none(), "a number is one group's");
        self.group_names.insert(name.clone(), id);
        self.groups[at].insert(Group {
            id,
            name: name.clone(),
            paused: false,
            ever_used: false,
            counts: Counts::default(),
            queued_bytes: 0,
            jobs: BTreeSet::new(),
            workers: 0,
        })
    }

    pub(in crate::ledger) fn forget_group(&mut self, id: GroupId) {
        let gone = self.groups[id.at()].take().expect("a group in use is there");
        self.group_names.remove(&gone.name);
        self.idle_groups.remove(&id);
    }

    /// There is a group of this number, and nothing in it.
    pub(crate) fn is_unused_group(&self, group: GroupId) -> bool {
        let found = self.groups.get(group.at()).and_then(Option::as_ref);
        found.is_some_and(Group::is_unused)
    }

    /// Something of the group is gone: it may be the last.
    pub(in crate::ledger) fn note_if_unused(&mut self, group: GroupId) {
        if self.group(group).is_unused() {
            self.unused_groups.insert(group);
        }
    }

    /// Tables of names that peers choose are seeded, so that nobody can choose ones that collide. Only
    /// while they are empty.
    pub(in crate::ledger) fn set_seed(&mut self, seed: u64) {
        self.seed = seed;
        self.names.seed(seed);
        self.workers.seed(seed);
        self.keys = HashMap::with_hasher(foldhash::fast::FixedState::with_seed(seed));
    }

    pub(crate) fn next_job(&self) -> JobId {
        JobId(self.next_job + 1)
    }

    /// Jobs that are remembered.
    pub fn job_count(&self) -> usize {
        self.job_ids.len()
    }

    /// Workers that are remembered.
    pub fn worker_count(&self) -> usize {
        self.workers.len()
    }

    /// How many tasks of all groups are in a state.
    pub fn tasks_in(&self, state: State) -> u64 {
        self.groups().map(|group| u64::from(group.counts.of(state))).sum()
    }

    pub(crate) fn job(&self, handle: JobHandle) -> &Job {
        self.jobs[handle].as_ref().expect("a job in use is there")
    }

    pub(in crate::ledger) fn job_mut(&mut self, handle: JobHandle) -> &mut Job {
        self.jobs[handle].as_mut().expect("a job in use is there")
    }

    pub(crate) fn find_job(&self, id: JobId) -> Option<JobHandle> {
        self.job_ids.get(&id).copied()
    }

    pub(crate) fn jobs_from(&self, id: JobId) -> impl Iterator<Item = JobHandle> + '_ {
        self.job_ids.range(id..).map(|(_, &handle)| handle)
    }

    /// The jobs of one owner with numbers in this range.
    pub(crate) fn jobs_of_owner(
        &self,
        owner: &Name,
        range: impl std::ops::RangeBounds<JobId>,
    ) -> impl DoubleEndedIterator<Item = (JobId, JobHandle)> + '_ {
        let found = self.owner_names.get(owner).map(|&owner| self.owners[owner].jobs.range(range));
        let ids = found.into_iter().flatten();
        ids.map(|&id| (id, self.find_job(id).expect("an owner's jobs are there")))
    }

    pub(crate) fn jobs_of_group(
        &self,
        group: GroupId,
        id: JobId,
    ) -> impl Iterator<Item = JobHandle> + '_ {
        let jobs = self.group(group).jobs.range(id..);
        jobs.map(|id| self.find_job(*id).expect("a group's jobs are there"))
    }

    /// Newest first.
    pub(crate) fn jobs_before(&self, id: JobId) -> impl Iterator<Item = JobHandle> + '_ {
        self.job_ids.range(..id).rev().map(|(_, &handle)| handle)
    }

    pub(crate) fn jobs_of_group_before(
        &self,
        group: GroupId,
        id: JobId,
    ) -> impl Iterator<Item = JobHandle> + '_ {
        let jobs = self.group(group).jobs.range(..id).rev();
        jobs.map(|id| self.find_job(*id).expect("a group's jobs are there"))
    }

    /// The job of this owner with this key; else one that nobody is known to own.
    pub(crate) fn job_by_key(
        &self,
        group: GroupId,
        owner: Option<&Name>,
        key: &[u8],
    ) -> Option<JobId> {
        let of = |owner| self.keys.get(&(group, owner, Box::from(key))).copied();
        let owner = owner.and_then(|owner| self.owner_names.get(owner));
        owner.and_then(|&owner| of(Some(owner))).or_else(|| of(None))
    }

    pub(crate) fn first_ended(&self) -> Option<(Time, JobId)> {
        self.ended.first().copied()
    }

    /// In the order of their ends.
    pub(crate) fn all_ended(&self) -> impl Iterator<Item = (Time, JobId)> {
        self.ended.iter().copied()
    }

    /// In the order of their ends: after one of them, and before this time.
    pub(crate) fn ended_between(
        &self,
        after: (Time, JobId),
        before: Time,
    ) -> impl Iterator<Item = JobHandle> {
        let last = (before, JobId(0));
        let some = (after < last)
            .then(|| self.ended.range((Bound::Excluded(after), Bound::Excluded(last))));
        some.into_iter().flatten().filter_map(|&(_, job)| self.find_job(job))
    }

    pub(crate) fn ended_count(&self) -> usize {
        self.ended.len()
    }

    pub(crate) fn task(&self, handle: TaskHandle) -> &Record {
        &self.tasks[handle]
    }

    pub(crate) fn graph(&self) -> &Graph {
        &self.graph
    }

    pub(crate) fn lanes(&self) -> &Lanes {
        &self.lanes
    }

    pub(crate) fn profiles(&self) -> &Profiles {
        &self.profiles
    }

    pub(crate) fn workers(&self) -> &Workers {
        &self.workers
    }

    /// What a task has that has nothing but these notes.
    pub(in crate::ledger) fn extra_of(&mut self, memo: &Arc<[u8]>) -> Arc<Extra> {
        match &self.last_extra {
            Some(last) if last.is_only(memo) => Arc::clone(last),
            _ => self.share(Extra { memo: Some(Arc::clone(memo)), ..Extra::default() }),
        }
    }

    /// The same as that of the task before, if it is the same.
    pub(in crate::ledger) fn share(&mut self, extra: Extra) -> Arc<Extra> {
        match &self.last_extra {
            Some(last) if **last == extra => Arc::clone(last),
            _ => Arc::clone(self.last_extra.insert(Arc::new(extra))),
        }
    }

    pub(crate) fn id_of(&self, handle: TaskHandle) -> TaskId {
        let record = &self.tasks[handle];
        let job = self.job(record.job).id;
        if record.is_gate() {
            TaskId::whole(job, record.index)
        } else {
            TaskId::new(job, record.index)
        }
    }

    /// The record of a task or, marked so, of a whole array.
    pub(crate) fn record_of(&self, id: TaskId) -> Option<TaskHandle> {
        let job = self.job(self.find_job(id.job)?);
        if id.is_whole() {
            let array = &job.arrays[job.array_at(id.number())?];
            (array.first == id.number()).then_some(array.gate)
        } else {
            job.pages.find(id.index)
        }
    }

    pub(crate) fn array_of(&self, gate: TaskHandle) -> (JobHandle, usize) {
        let record = &self.tasks[gate];
        let at = self.job(record.job).array_at(record.index);
        (record.job, at.expect("a gate stands for an array"))
    }

    pub(crate) fn array(&self, id: TaskId) -> Option<(JobHandle, &Array)> {
        let handle = self.find_job(id.job)?;
        let job = self.job(handle);
        Some((handle, &job.arrays[job.array_at(id.number())?]))
    }

    pub(crate) fn next_timer(&self) -> Option<(Time, Timer)> {
        self.timers.first().copied()
    }
}

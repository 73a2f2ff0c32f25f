//! Submit: one task, many, a graph, an array; all of it or none. Everything is checked on a draft first.

mod cycle;
mod draft;
mod exact;
mod lookup;
mod quota;
mod resolved;

use super::Hub;
use super::search::{CycleCheck, Halt, Long};
use crate::bounds::{Excess, WorkCheck, check_needs};
use crate::command::{ArraySpec, Command, IfTaken, Submit, SubmitTo, TaskSpec};
use crate::event::Event;
use crate::id::{GroupId, JobId, Name, TaskId};
use crate::job::JobOptions;
use crate::ledger::NameScope;
use crate::profile::{NODES_MAX, VARIANTS_MAX};
use crate::refusal::Refusal;
use crate::reply::Reply;
pub(super) use cycle::{Check, Node, Verdict};
use draft::Draft;
pub(super) use exact::Search;
use resolved::{Renewed, Resolved, Step};

impl Hub {
    pub(super) fn submit(
        &mut self,
        mut submit: Submit,
        cycle_check: CycleCheck,
    ) -> Result<Reply, Halt> {
        let group = self.ledger().find_group(&submit.group);
        let is_keyed_once = matches!(submit.job, SubmitTo::New(_));
        if let SubmitTo::Open(options) = &submit.job {
            submit.job = self.open_job(group, options, &submit);
        }
        self.check_limits(&submit)?;
        if is_keyed_once
            && let SubmitTo::New(options) = &submit.job
            && let (Some(group), Some(key)) = (group, &options.key)
            && let Some(job) = self.ledger().job_by_key(group, options.owner.as_ref(), key)
        {
            return Ok(Reply::Submitted {
                job,
                first: 1,
                count: self.task_count(job),
                again: true,
            });
        }
        let (job, first) = match &submit.job {
            SubmitTo::New(_) | SubmitTo::Open(_) => (self.ledger().next_job(), 1),
            SubmitTo::Add(job) => (*job, self.next_index(*job, group)?),
        };
        for profile in &mut submit.profiles {
            profile.needs.tidy();
            profile.attempts = profile.attempts.max(1);
            if profile.needs.variants.len() > VARIANTS_MAX {
                let most = VARIANTS_MAX as u64;
                return Err(Refusal::Limit { what: "variants of a task", most }.into());
            }
            if profile.needs.nodes > NODES_MAX {
                let most = NODES_MAX.into();
                return Err(Refusal::Limit { what: "nodes of a task", most }.into());
            }
            if profile.needs.nodes > 0 && !profile.needs.variants.is_empty() {
                return Err(Refusal::NodesAndVariants.into());
            }
        }
        let count = self.check_numbers(first, &submit)?;
        check_profiles(&submit)?;
        self.check_quotas(&submit, count)?;
        self.check_sizes(first, &submit)?;
        let if_taken = submit.if_taken;
        let scope = self.name_scope(&submit.job, group);
        let job_first = TaskId::new(job, first);
        let resolved = Draft::new(self, group, scope, job_first, &mut submit)?.resolve(self)?;
        let (resolved, submit) = self.check_cycles(resolved, submit, cycle_check)?;
        let drafted = resolved.place(submit.profiles);

        // Nothing fails from here on.
        let taken = drafted.taken();
        if let SubmitTo::New(mut options) = submit.job {
            // A time that is past is now.
            options.begin = options.begin.filter(|&begin| begin > self.ledger.now());
            let group = self.group_or_new(submit.group);
            let open = options.open;
            self.ledger.post(Event::JobMade { job, group, options: Box::new(options) });
            if !open && !drafted.adds_something() {
                // Nothing in it will ever end, so it ends now and is forgotten in its time.
                self.ledger.post(Event::JobClosed { job });
            }
        }
        // Tasks are not finished any more before others come to wait for them, then they wait for others.
        for step in drafted.steps {
            self.ledger.post(match step {
                Step::Added(added) => Event::Added(Box::new(added)),
                Step::Renewed(Renewed { task, memo }) => {
                    Event::Renewed { task, preds: Vec::new(), memo }
                }
            });
        }
        for (task, preds) in drafted.merged {
            self.ledger.post(Event::PredsAdded { task, preds });
        }
        let count = count - taken;
        Ok(Reply::Submitted { job, first, count, again: count == 0 && if_taken != IfTaken::Refuse })
    }

    /// Where the names of a submit must be new.
    fn name_scope(&self, job: &SubmitTo, group: Option<GroupId>) -> Option<NameScope> {
        match job {
            SubmitTo::New(options) | SubmitTo::Open(options) if options.own_names => None,
            SubmitTo::New(_) | SubmitTo::Open(_) => group.map(NameScope::Group),
            SubmitTo::Add(job) => {
                self.ledger().find_job(*job).map(|job| self.ledger().scope_of(job))
            }
        }
    }

    /// When this takes long the submit is put together again, to be tried later.
    fn check_cycles(
        &mut self,
        resolved: Resolved,
        mut submit: Submit,
        how: CycleCheck,
    ) -> Result<(Resolved, Submit), Halt> {
        let long =
            self.check_edges(how, |hub| resolved.check(hub), |hub| resolved.check_exactly(hub))?;
        if let Some(check) = long {
            (submit.tasks, submit.arrays) = resolved.into_specs();
            let command = Command::Submit(submit);
            return Err(Halt::Long(Box::new(Long { command, check })));
        }
        Ok((resolved, submit))
    }

    /// Where a submit into an open job really goes.
    fn open_job(&self, group: Option<GroupId>, options: &JobOptions, submit: &Submit) -> SubmitTo {
        let arrays = submit.arrays.iter().map(|array| u64::from(array.count)).sum::<u64>();
        let coming = submit.tasks.len() as u64 + arrays;
        let has_room = |&job: &JobId| {
            let handle = self.ledger().find_job(job);
            handle.map(|handle| self.ledger().job(handle)).is_some_and(|this| {
                let last = u64::from(this.next_index) + coming;
                this.options.open && last <= u64::from(TaskId::INDEX_MAX)
            })
        };
        let known = group.zip(options.key.as_deref());
        let owner = options.owner.as_ref();
        let known = known.and_then(|(group, key)| self.ledger().job_by_key(group, owner, key));
        match known.filter(has_room) {
            Some(job) => SubmitTo::Add(job),
            None => SubmitTo::New(JobOptions { open: true, ..options.clone() }),
        }
    }

    fn check_limits(&self, submit: &Submit) -> Result<(), Refusal> {
        let limits = &self.config.limits;
        let over = |what, most: usize| Err(Refusal::Limit { what, most: most as u64 });
        check_name(&submit.group, limits.name_bytes)?;
        if submit.group.is_empty() {
            return Err(Refusal::BadName { name: Name::default(), why: "is empty" });
        }
        let records = submit.tasks.len() + submit.arrays.len();
        if records > limits.tasks_a_submit {
            return over("tasks and arrays in one submit", limits.tasks_a_submit);
        }
        if self.ledger().records() + records > limits.tasks {
            return over("tasks", limits.tasks);
        }
        if self.ledger().job_count() >= limits.jobs && matches!(submit.job, SubmitTo::New(_)) {
            return over("jobs", limits.jobs);
        }
        let group = self.ledger().find_group(&submit.group);
        let (classes, profiles) = group.map_or((0, 0), |group| {
            (self.ledger().lanes().class_count(group), self.ledger().profiles().count(group))
        });
        // Each profile may bring a class for every kind of work it is used with.
        if classes + submit.profiles.len() > limits.classes {
            return over("different needs in a group", limits.classes);
        }
        if profiles + submit.profiles.len() > limits.profiles {
            return over("different settings in a group", limits.profiles);
        }
        if self.ledger().group_count() >= limits.groups && group.is_none() {
            return over("groups", limits.groups);
        }
        Ok(())
    }

    /// How many tasks come, if the job has numbers for them.
    fn check_numbers(&self, first: u32, submit: &Submit) -> Result<u32, Refusal> {
        let limits = &self.config.limits;
        let mut count = submit.tasks.len() as u64;
        for array in &submit.arrays {
            if array.count == 0 {
                let name = array.name.clone();
                return Err(Refusal::BadName { name, why: "is an array without elements" });
            }
            if array.count > limits.array_elements {
                let most = u64::from(limits.array_elements);
                return Err(Refusal::Limit { what: "elements in an array", most });
            }
            if !array.values.suit(array.count) {
                let (name, why) = (array.name.clone(), "has not a value for every element");
                return Err(Refusal::BadName { name, why });
            }
            count += u64::from(array.count);
        }
        if u64::from(first) + count > u64::from(TaskId::INDEX_MAX) {
            let most = u64::from(TaskId::INDEX_MAX);
            return Err(Refusal::Limit { what: "tasks in a job", most });
        }
        Ok(u32::try_from(count).expect("below the largest number"))
    }

    /// Whether a worker could take each of them.
    fn check_sizes(&self, first: u32, submit: &Submit) -> Result<(), Refusal> {
        let mut check = WorkCheck::new(self.config.work_bytes);
        let refused = |name: &Name, number: u32, excess: Excess| {
            let number = || Name::from(number.to_string());
            let task = if name.is_empty() { number() } else { name.clone() };
            Err(Refusal::TooLarge { task, excess })
        };
        let mut number = first;
        for ArraySpec { name, count, work, values, .. } in &submit.arrays {
            if let Err(excess) = check.check(work, Some(values)) {
                return refused(name, number, excess);
            }
            number += count;
        }
        for (TaskSpec { name, work, .. }, number) in submit.tasks.iter().zip(number..) {
            if let Some(work) = work
                && let Err(excess) = check.check(work, None)
            {
                return refused(name, number, excess);
            }
        }
        let too_many = submit.profiles.iter().find_map(|profile| check_needs(&profile.needs).err());
        match too_many {
            Some(Excess { what, most, .. }) => Err(Refusal::Limit { what, most: most as u64 }),
            None => Ok(()),
        }
    }

    fn next_index(&self, job: JobId, group: Option<GroupId>) -> Result<u32, Refusal> {
        let this = self.ledger().job(self.find_job(job)?);
        if Some(this.group) != group {
            return Err(Refusal::NoSuchJob(job));
        }
        if !this.options.open {
            return Err(Refusal::JobClosed(job));
        }
        Ok(this.next_index)
    }

    fn task_count(&self, job: JobId) -> u32 {
        let ledger = self.ledger();
        ledger.find_job(job).map_or(0, |handle| ledger.job(handle).next_index - 1)
    }

    pub(super) fn group_or_new(&mut self, name: Name) -> GroupId {
        if let Some(group) = self.ledger().find_group(&name) {
            return group;
        }
        let group = self.ledger().next_group();
        self.ledger.post(Event::GroupMade { group, name });
        group
    }

    pub(super) fn close(&mut self, job: JobId) -> Result<Reply, Refusal> {
        let handle = self.find_job(job)?;
        if self.ledger().job(handle).options.open {
            self.ledger.post(Event::JobClosed { job });
        }
        Ok(Reply::Ok)
    }
}

fn check_profiles(submit: &Submit) -> Result<(), Refusal> {
    let used = submit.arrays.iter().map(|array| array.profile);
    let mut used = used.chain(submit.tasks.iter().map(|task| task.profile));
    match used.find(|&profile| profile as usize >= submit.profiles.len()) {
        Some(profile) => Err(Refusal::BadProfile(profile)),
        None => Ok(()),
    }
}

pub(super) fn check_name(name: &Name, most: usize) -> Result<(), Refusal> {
    if name.len() > most {
        let short = Name::new(&name.bytes()[..32.min(name.len())]);
        return Err(Refusal::BadName { name: short, why: "is too long" });
    }
    Ok(())
}

//! Questions. Counts are kept, pages are walked from where they start: no answer costs more than what it
//! shows.

use super::Hub;
use super::explain::Sight;
use crate::command::{Query, TaskRef};
use crate::effect::Element;
use crate::id::{GroupId, JobId, Name, TaskId, WorkerId};
use crate::ledger::Worker;
use crate::ledger::{JobHandle, LeaseHandle, Ledger, Phase, Record, TaskHandle, WorkerHandle};
use crate::presence::Member;
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::resources::Supply;
use crate::task::{Outcome, State};
use crate::view::{
    AttemptView, ConductView, GroupView, JobView, ResourceView, TaskView, Ties, WorkerView,
};
use std::sync::Arc;

impl Hub {
    pub(super) fn query(&self, query: &Query) -> Result<Reply, Refusal> {
        let ledger = self.ledger();
        let page = |most: u32| most.min(self.config.limits.page) as usize;
        match query {
            Query::Groups => {
                let groups = ledger.groups().map(|group| self.group_view(group.id));
                Ok(Reply::Groups(groups.collect()))
            }
            Query::Group(name) => {
                let group = self.find_group(name)?;
                Ok(Reply::Groups(vec![self.group_view(group)]))
            }
            Query::Jobs { group, owner, from, most } => {
                let group = group.as_ref().map(|group| self.find_group(group)).transpose()?;
                let (from, most) = (*from, page(*most));
                let jobs: Vec<JobHandle> = match (owner, group) {
                    (Some(owner), _) => {
                        let own = ledger.jobs_of_owner(owner, from..).map(|(_, handle)| handle);
                        own.filter(self.is_in(group)).take(most).collect()
                    }
                    (None, Some(group)) => ledger.jobs_of_group(group, from).take(most).collect(),
                    (None, None) => ledger.jobs_from(from).take(most).collect(),
                };
                Ok(Reply::Jobs(jobs.into_iter().map(|handle| self.job_view(handle)).collect()))
            }
            Query::JobsBefore { group, owner, before, most } => {
                let group = group.as_ref().map(|group| self.find_group(group)).transpose()?;
                let (before, most) = (*before, page(*most));
                let jobs: Vec<JobHandle> = match (owner, group) {
                    (Some(owner), _) => {
                        let own = ledger.jobs_of_owner(owner, ..before).map(|(_, handle)| handle);
                        own.rev().filter(self.is_in(group)).take(most).collect()
                    }
                    (None, Some(group)) => {
                        ledger.jobs_of_group_before(group, before).take(most).collect()
                    }
                    (None, None) => ledger.jobs_before(before).take(most).collect(),
                };
                Ok(Reply::Jobs(jobs.into_iter().map(|handle| self.job_view(handle)).collect()))
            }
            Query::Ended { after, most } => {
                let ended = ledger.ended_between(*after, self.ledger.now()).take(page(*most));
                Ok(Reply::Jobs(ended.map(|handle| self.job_view(handle)).collect()))
            }
            Query::Owners { group, after, most } => {
                let group = self.find_group(group)?;
                let owners = ledger.lanes().owners_after(group, after.as_ref());
                Ok(Reply::Owners(owners.take(page(*most)).collect()))
            }
            Query::Job(job) => Ok(Reply::Jobs(vec![self.job_view(self.find_job(*job)?)])),
            Query::Tasks { job, state, from, most } => self.tasks(*job, *state, *from, page(*most)),
            Query::Ranges { job, state, from, most } => {
                let set = ledger.job(self.find_job(*job)?).set(*state);
                let mut runs = set.runs((*from).max(1), u32::MAX - 1);
                let ranges: Vec<(u32, u32)> = runs.by_ref().take(page(*most)).collect();
                Ok(Reply::Ranges { ranges, next: runs.next().map(|(first, _)| first) })
            }
            Query::Parts { job, from, most } => self.parts(*job, *from, page(*most)),
            Query::Task { group, task } => {
                let group = ledger.find_group(group);
                let missing = || Refusal::NoSuchTask(shown(task));
                let id = self.find_shown(group, task).filter(|id| !id.is_whole());
                Ok(Reply::Task(Box::new(self.task_view(id.ok_or_else(missing)?))))
            }
            Query::Explain { group, task } => {
                let group = ledger.find_group(group);
                let id = self.find_shown(group, task).filter(|id| !id.is_whole());
                let id = id.ok_or_else(|| Refusal::NoSuchTask(shown(task)))?;
                let sight = match task {
                    TaskRef::Own(_) => Sight::OwnGroup,
                    TaskRef::Id(_) | TaskRef::Name(_) => Sight::All,
                };
                Ok(Reply::Explained(Box::new(self.explain(id, sight))))
            }
            Query::Workers { group, from, most } => {
                let group = group.as_ref().map(|group| self.find_group(group)).transpose()?;
                let workers = ledger.workers().from(*from).filter(|&handle| {
                    group.is_none_or(|group| ledger.workers().get(handle).group == group)
                });
                let views = workers.take(page(*most)).map(|handle| self.worker_view(handle));
                Ok(Reply::Workers(views.collect()))
            }
            Query::Worker(worker) => {
                Ok(Reply::Workers(vec![self.worker_view(self.find_worker(worker)?)]))
            }
            Query::Retention { within_ms } => Ok(Reply::Retention(self.retention(*within_ms))),
            Query::Backlog { group, most } => {
                let found = ledger.find_group(group);
                Ok(Reply::Backlog(found.map_or(Vec::new(), |group| self.backlog(group, *most))))
            }
        }
    }

    /// Is a job in this group, if one is meant?
    fn is_in(&self, group: Option<GroupId>) -> impl Fn(&JobHandle) -> bool + '_ {
        move |&job| group.is_none_or(|group| self.ledger().job(job).group == group)
    }

    fn group_view(&self, group: GroupId) -> GroupView {
        let this = self.ledger().group(group);
        GroupView {
            group: this.id,
            name: this.name.clone(),
            counts: this.counts,
            paused: this.paused,
            ever_used: this.ever_used,
        }
    }

    fn job_view(&self, handle: JobHandle) -> JobView {
        let job = self.ledger().job(handle);
        JobView {
            job: job.id,
            group: self.ledger().group(job.group).name.clone(),
            name: job.options.name.clone(),
            owner: job.options.owner.clone(),
            counts: job.counts,
            open: job.options.open,
            held: job.options.held,
            begin: job.options.begin,
            stopped: job.stopped,
            max_running: job.options.max_running,
            max_fails: job.options.max_fails,
            submitted: job.submitted,
            ended: job.ended,
            forgotten: job.ended.map(|ended| ended.after_ms(self.config.keep.age_ms)),
            on_end: job.options.on_end.clone(),
            failures: job.failures.iter().map(|(&o, &count)| (o, u64::from(count))).collect(),
        }
    }

    fn tasks(
        &self,
        job: JobId,
        wanted: Option<State>,
        from: u32,
        most: usize,
    ) -> Result<Reply, Refusal> {
        let this = self.ledger().job(self.find_job(job)?);
        let next = |from: u32| -> Option<u32> {
            match wanted {
                Some(state) => this.set(state).next(from),
                None => State::ALL.iter().filter_map(|&state| this.set(state).next(from)).min(),
            }
        };
        let mut tasks = Vec::new();
        let mut at = next(from.max(1));
        while let Some(index) = at.filter(|_| tasks.len() < most) {
            tasks.push(self.task_view(TaskId::new(job, index)));
            at = next(index + 1);
        }
        Ok(Reply::Tasks { tasks, next: at })
    }

    /// Of a task that is there.
    fn task_view(&self, id: TaskId) -> TaskView {
        let ledger = self.ledger();
        let job = ledger.job(ledger.find_job(id.job).expect("the task was found"));
        let mut view = TaskView {
            task: id,
            name: ledger.shown_name(id),
            owner: job.options.owner.clone(),
            state: job.state_of(id.index).expect("the task was found"),
            priority: 0,
            failed_attempts: 0,
            lost_attempts: 0,
            attempts: Vec::new(),
            attempt: 1,
            lease: None,
            nodes: Vec::new(),
            delayed_until: None,
            memo: None,
            message: job.why_failed(id.index).map(Box::from),
            preds: Ties::default(),
            succs: Ties::default(),
            work: None,
            profile: Arc::default(),
            element: None,
        };
        if let Some((_, array)) = ledger.array(id) {
            let (position, values) = (id.index - array.first, array.values.clone());
            view.element = Some(Element { position, count: array.count, values });
            view.work = Some(array.work.clone());
            view.profile = ledger.profiles().get(array.profile).clone();
        }
        if let Some(handle) = job.pages.find(id.index) {
            self.add_record(handle, &mut view);
        }
        if let Some((_, array)) = ledger.array(id) {
            // What its array as a whole waits for, and its counterparts in other arrays.
            let position = id.index - array.first;
            let whole = ledger.graph().preds_of(ledger.task(array.gate).preds);
            let each =
                array.each.iter().map(|pred| TaskId::new(pred.job, pred.number() + position));
            let room = self.config.limits.preds_shown.saturating_sub(view.preds.len());
            let more = whole.map(|handle| ledger.id_of(handle)).chain(each).take(room);
            self.add_ties(id.job, more, &mut view.preds);
        }
        view.priority = view.profile.priority;
        view
    }

    fn add_record(&self, handle: TaskHandle, view: &mut TaskView) {
        let ledger = self.ledger();
        let record = ledger.task(handle);
        view.profile = ledger.profiles().get(record.profile).clone();
        view.work.clone_from(&record.work);
        view.failed_attempts = record.fails;
        view.lost_attempts = record.lost;
        if let Some(extra) = &record.extra {
            view.memo.clone_from(&extra.memo);
            view.message.clone_from(&extra.message);
            view.attempts = (extra.past.iter())
                .map(|past| AttemptView {
                    number: 0,
                    worker: past.worker,
                    name: self.worker_name(past.worker),
                    started: past.started,
                    ended: Some(past.started.after_ms(u64::from(past.took_ms))),
                    outcome: Some(past.outcome),
                })
                .collect();
        }
        match record.phase {
            Phase::Leased { lease } => {
                let others = ledger.workers().nodes_of(lease);
                let others = others.map(|node| ledger.workers().lease(node).worker);
                view.nodes = others.map(|other| ledger.workers().get(other).name.clone()).collect();
                let lease = ledger.workers().lease(lease);
                let worker = ledger.workers().get(lease.worker);
                view.lease = Some(lease.no);
                view.attempts.push(AttemptView {
                    number: 0,
                    worker: worker.id,
                    name: worker.name.clone(),
                    started: lease.started,
                    ended: None,
                    outcome: None,
                });
            }
            Phase::Finished { outcome, worker, took_ms, started }
                if worker != WorkerId::UNKNOWN =>
            {
                let ended = Some(started.after_ms(u64::from(took_ms)));
                let outcome = Some(outcome);
                let name = self.worker_name(worker);
                view.attempts.push(AttemptView {
                    number: 0,
                    worker,
                    name,
                    started,
                    ended,
                    outcome,
                });
            }
            Phase::Delayed { until } => view.delayed_until = Some(until),
            _ => {}
        }
        number_attempts(record, view);
        let most = self.config.limits.preds_shown;
        let ids = |handle| ledger.id_of(handle);
        let (preds, succs) =
            (ledger.graph().preds_of(record.preds), ledger.graph().succs_of(record.succs));
        self.add_ties(view.task.job, preds.map(ids).take(most), &mut view.preds);
        self.add_ties(view.task.job, succs.map(ids).take(most), &mut view.succs);
    }

    /// Of a job that is there. What belongs to one that is forgotten cannot be said to be of its group.
    pub(super) fn add_ties(
        &self,
        job: JobId,
        others: impl Iterator<Item = TaskId>,
        ties: &mut Ties,
    ) {
        let ledger = self.ledger();
        let group_of = |job| ledger.find_job(job).map(|handle| ledger.job(handle).group);
        for other in others {
            match other.job == job || group_of(other.job) == group_of(job) {
                true => ties.own.push(other),
                false => ties.elsewhere.push(other),
            }
        }
    }

    fn worker_view(&self, handle: WorkerHandle) -> WorkerView {
        let ledger = self.ledger();
        let worker = ledger.workers().get(handle);
        let member = self.presence.member(handle);
        let leases = ledger.workers().leases_of(handle).take(self.config.limits.page as usize);
        let record = &worker.record;
        WorkerView {
            worker: worker.id,
            name: worker.name.clone(),
            group: ledger.group(worker.group).name.clone(),
            dialect: worker.dialect.clone(),
            connected: member.is_some_and(|member| member.session.is_some()),
            engaged: member.is_some_and(|member| member.engaged || worker.leases > 0),
            draining: member.is_some_and(|member| member.draining),
            slots: member
                .map_or(0, |member| member.capacity.slots.saturating_sub(member.fewer_slots)),
            slots_used: u32::try_from(worker.used.slots).unwrap_or(u32::MAX),
            memory: member.map_or(0, |member| member.capacity.memory),
            memory_used: u64::try_from(worker.used.memory).unwrap_or(u64::MAX),
            resources: member.map_or(Vec::new(), |member| resource_views(member, worker)),
            tags: member.map_or(Vec::new(), |member| member.tags.clone()),
            host: member.map_or(Name::default(), |member| member.host.clone()),
            leaves: member.and_then(|member| member.until),
            leases: leases.map(|lease| lease_of(ledger, lease)).collect(),
            lease_count: worker.leases,
            is_reserved: member
                .is_some_and(|member| member.gathered.is_some() || member.kept_for.is_some()),
            is_node: (ledger.workers().last_lease_of(handle))
                .is_some_and(|lease| ledger.workers().lease(lease).is_node),
            succeeded: record.good,
            failed: record.bad,
            conduct: ConductView {
                standing: record.standing,
                reason: record.reason.clone(),
                until: record.until,
            },
            seen: worker.seen,
        }
    }

    pub(super) fn worker_name(&self, worker: WorkerId) -> Name {
        let workers = self.ledger().workers();
        match workers.find(worker) {
            Some(handle) => workers.get(handle).name.clone(),
            None => Name::from(worker.0.to_string()),
        }
    }
}

/// The last is counted by the record already when it has failed.
fn number_attempts(record: &Record, view: &mut TaskView) {
    let tried = record.fails.saturating_add(record.lost);
    let shown = u16::try_from(view.attempts.len()).unwrap_or(u16::MAX);
    let last = match record.phase {
        Phase::Leased { .. } => record.attempt(),
        Phase::Finished { outcome: Outcome::Success, .. } => shown.max(tried.saturating_add(1)),
        _ => shown.max(tried),
    };
    for (back, attempt) in view.attempts.iter_mut().rev().enumerate() {
        attempt.number = last.saturating_sub(u16::try_from(back).unwrap_or(u16::MAX)).max(1);
    }
    let runs = matches!(record.phase, Phase::Leased { .. });
    view.attempt = if runs { last } else { last.saturating_add(1) };
}

fn resource_views(member: &Member, worker: &Worker) -> Vec<ResourceView> {
    let view = |(name, supply): &(Name, Supply)| ResourceView {
        name: name.clone(),
        supply: supply.clone(),
        used: worker.used.resource(name).total(),
    };
    member.capacity.resources.iter().map(view).collect()
}

fn lease_of(ledger: &Ledger, lease: LeaseHandle) -> (TaskId, crate::id::LeaseNo) {
    let lease = ledger.workers().lease(lease);
    (ledger.id_of(lease.task), lease.no)
}

fn shown(task: &TaskRef) -> Name {
    match task {
        TaskRef::Id(id) | TaskRef::Own(id) => Name::from(id.to_string()),
        TaskRef::Name(name) => name.clone(),
    }
}

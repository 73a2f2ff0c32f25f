//! What should be true, told as plainly as possible: maps and full walks, no indexes, no counters. It
//! follows the events and refuses those that must not happen; where a task stands is worked out anew
//! each time it is asked. It knows nothing of who is connected.

use laboro_core::*;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

#[derive(Debug, Default)]
pub struct Model {
    pub groups: BTreeMap<GroupId, Group>,
    pub jobs: BTreeMap<JobId, Job>,
    pub tasks: BTreeMap<TaskId, Task>,
    pub arrays: BTreeMap<TaskId, Array>,
    pub workers: BTreeMap<WorkerId, Worker>,
    pub documents: BTreeMap<DocumentId, Arc<[u8]>>,
    leases_seen: BTreeSet<LeaseNo>,
    /// When anything last happened.
    at: Time,
}

#[derive(Debug)]
pub struct Group {
    pub name: Name,
    pub paused: bool,
}

#[derive(Debug)]
pub struct Job {
    pub group: GroupId,
    pub options: JobOptions,
    pub stopped: bool,
    next: u32,
}

#[derive(Debug)]
pub struct Task {
    pub name: Name,
    pub demand: Demand,
    pub profile: Profile,
    pub phase: Phase,
    pub array: Option<TaskId>,
    deps: Vec<Dep>,
    /// Who may still come with a late result.
    pub late: Option<WorkerId>,
    /// An element that ended is again what its array is.
    pub ended_once: bool,
    /// With its worker, since a person last had it tried again.
    pub lost: u16,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Phase {
    Idle,
    Delayed(Time),
    Held,
    Leased { lease: LeaseNo, worker: WorkerId, share: Option<Share> },
    Done,
    Failed,
    Cancelled,
}

#[derive(Debug)]
pub struct Array {
    pub count: u32,
    deps: Vec<Dep>,
    each: Vec<TaskId>,
    runs_anyway: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Dep {
    On(TaskId),
    /// It failed and is forgotten: nobody can run it again.
    Broken,
}

#[derive(Debug)]
pub struct Worker {
    pub group: GroupId,
    pub standing: Standing,
}

impl Model {
    pub fn state(&self, id: TaskId) -> State {
        self.state_by(id, &mut BTreeMap::new())
    }

    fn state_by(&self, id: TaskId, known: &mut BTreeMap<TaskId, State>) -> State {
        if let Some(&state) = known.get(&id) {
            return state;
        }
        let state = match self.tasks[&id].phase {
            Phase::Idle => self.fate(id, known),
            Phase::Delayed(_) => State::Delayed,
            Phase::Held => State::Held,
            Phase::Leased { .. } => State::Leased,
            Phase::Done => State::Done,
            Phase::Failed => State::Failed,
            Phase::Cancelled => State::Cancelled,
        };
        known.insert(id, state);
        state
    }

    /// Tasks of these jobs that have not ended.
    pub fn queued(&self, wanted: impl Fn(&Job) -> bool) -> u64 {
        let is_queued =
            |task: &Task| !matches!(task.phase, Phase::Done | Phase::Failed | Phase::Cancelled);
        let queued = self
            .tasks
            .iter()
            .filter(|(id, task)| is_queued(task) && self.jobs.get(&id.job).is_some_and(&wanted));
        queued.count() as u64
    }

    /// Where its predecessors let a task be: its own, its array's, those of its element.
    fn fate(&self, id: TaskId, known: &mut BTreeMap<TaskId, State>) -> State {
        let task = &self.tasks[&id];
        let mut fates = vec![self.allowed(&task.deps, task.profile.runs_anyway, known)];
        if let Some(array) = task.array.map(|array| &self.arrays[&array]) {
            fates.push(self.allowed(&array.deps, array.runs_anyway, known));
            fates.push(self.allowed(&self.each_before(id), array.runs_anyway, known));
        }
        // Nothing is decided before all of them are over.
        let strictest = [State::Waiting, State::Blocked].into_iter().find(|s| fates.contains(s));
        strictest.unwrap_or(State::Ready)
    }

    fn each_before(&self, id: TaskId) -> Vec<Dep> {
        let Some(array_id) = self.tasks[&id].array else { return Vec::new() };
        let position = id.index - array_id.number();
        let each = self.arrays[&array_id].each.iter();
        each.map(|other| TaskId::new(other.job, other.number() + position))
            // An array that is forgotten stands in nobody's way.
            .filter(|pred| self.tasks.contains_key(pred))
            .map(Dep::On)
            .collect()
    }

    /// Element by element after an array that is forgotten: if that one had failed, its follower is blocked
    /// until it is looked at again, so both are right; and so it is for all that come after it.
    pub fn is_unclear(&self, id: TaskId) -> bool {
        let (mut open, mut seen) = (vec![id], BTreeSet::new());
        while let Some(here) = open.pop() {
            let Some(task) = self.tasks.get(&here).filter(|_| seen.insert(here)) else { continue };
            if here != id && task.phase != Phase::Idle {
                continue;
            }
            let array = task.array.map(|array| &self.arrays[&array]);
            if array.is_some_and(|own| own.each.iter().any(|it| !self.arrays.contains_key(it))) {
                return true;
            }
            let of_array = array.map(|array| array.deps.clone()).unwrap_or_default();
            for dep in task.deps.iter().copied().chain(of_array).chain(self.each_before(here)) {
                match dep {
                    Dep::On(pred) if pred.is_whole() => open.extend(self.elements(pred)),
                    Dep::On(pred) => open.push(pred),
                    Dep::Broken => {}
                }
            }
        }
        false
    }

    fn allowed(
        &self,
        deps: &[Dep],
        runs_anyway: bool,
        known: &mut BTreeMap<TaskId, State>,
    ) -> State {
        let ends: Vec<Option<bool>> = deps.iter().map(|&dep| self.over(dep, known)).collect();
        if ends.contains(&None) {
            State::Waiting
        } else if !runs_anyway && ends.contains(&Some(false)) {
            State::Blocked
        } else {
            State::Ready
        }
    }

    /// `None` while something may still come of it, else whether it ended well. What is blocked did not.
    fn over(&self, dep: Dep, known: &mut BTreeMap<TaskId, State>) -> Option<bool> {
        let Dep::On(id) = dep else { return Some(false) };
        if !id.is_whole() {
            return match self.state_by(id, known) {
                State::Done => Some(true),
                State::Failed | State::Cancelled | State::Blocked => Some(false),
                _ => None,
            };
        }
        let ends: Vec<Option<bool>> =
            self.elements(id).map(|element| self.over(Dep::On(element), known)).collect();
        if ends.contains(&None) { None } else { Some(!ends.contains(&Some(false))) }
    }

    fn elements(&self, whole: TaskId) -> impl Iterator<Item = TaskId> + use<> {
        let first = whole.number();
        let count = self.arrays[&whole].count;
        (first..first + count).map(move |index| TaskId::new(whole.job, index))
    }

    pub fn in_job(&self, job: JobId) -> impl Iterator<Item = (&TaskId, &Task)> {
        self.tasks.range(TaskId::new(job, 0)..=TaskId::new(job, u32::MAX))
    }

    pub fn running(&self, job: JobId) -> u32 {
        let leased = |task: &Task| matches!(task.phase, Phase::Leased { .. });
        self.in_job(job).filter(|(_, task)| leased(task)).count() as u32
    }

    /// May tasks of the job start at all?
    pub fn is_open(&self, job: JobId) -> bool {
        let this = &self.jobs[&job];
        let full = this.options.max_running.is_some_and(|most| self.running(job) >= most);
        let is_early = this.options.begin.is_some();
        !this.options.held
            && !this.stopped
            && !is_early
            && !full
            && !self.groups[&this.group].paused
    }

    pub fn leases(&self) -> Vec<(TaskId, LeaseNo, WorkerId)> {
        let live = |(&id, task): (&TaskId, &Task)| match &task.phase {
            Phase::Leased { lease, worker, .. } => Some((id, *lease, *worker)),
            _ => None,
        };
        self.tasks.iter().filter_map(live).collect()
    }

    /// The workers that a task has, the one on which it runs first.
    pub fn workers_of(&self, id: TaskId) -> Vec<WorkerId> {
        match &self.tasks[&id].phase {
            Phase::Leased { worker, share, .. } => {
                let others = share.iter().flat_map(|share| &share.nodes).copied();
                std::iter::once(*worker).chain(others).collect()
            }
            _ => Vec::new(),
        }
    }

    /// What this worker holds, with what each lease was given; nothing is given where a task only keeps it.
    pub fn held_by(
        &self,
        worker: WorkerId,
    ) -> impl Iterator<Item = (&Task, LeaseNo, Option<&Share>)> {
        self.tasks.values().filter_map(move |task| match &task.phase {
            Phase::Leased { lease, worker: holder, share } if *holder == worker => {
                Some((task, *lease, share.as_ref()))
            }
            Phase::Leased { lease, share: Some(share), .. } if share.nodes.contains(&worker) => {
                Some((task, *lease, None))
            }
            _ => None,
        })
    }

    pub fn follow(&mut self, at: Time, event: &Event) {
        let before = std::mem::replace(&mut self.at, at);
        match event {
            Event::Began { .. } => {
                // The clock may have been set back: no wait is longer than it was.
                for task in self.tasks.values_mut() {
                    if let Phase::Delayed(until) = &mut task.phase {
                        *until = (*until).min(at.after_ms(until.since_ms(before)));
                    }
                }
            }
            Event::GroupMade { group, name } => {
                let made = Group { name: name.clone(), paused: false };
                assert!(self.groups.values().all(|other| other.name != made.name), "{name} twice");
                assert!(self.groups.insert(*group, made).is_none(), "{group:?} is two groups");
            }
            Event::GroupPaused { group, paused } => {
                self.groups.get_mut(group).expect("it is there").paused = *paused;
            }
            Event::GroupForgotten { group } => {
                let gone = self.groups.remove(group).expect("it is there");
                assert!(!gone.paused, "a paused group is forgotten");
                assert!(self.jobs.values().all(|job| job.group != *group), "it has a job");
                assert!(self.workers.values().all(|worker| worker.group != *group), "and a worker");
            }
            Event::JobMade { job, group, options } => {
                let options = (**options).clone();
                let made = Job { group: *group, options, stopped: false, next: 1 };
                assert!(self.jobs.insert(*job, made).is_none(), "job {job} is made twice");
            }
            Event::JobClosed { job } => self.job(*job).options.open = false,
            Event::JobHeld { job, held } => self.job(*job).options.held = *held,
            Event::JobStopped { job, stopped } => self.job(*job).stopped = *stopped,
            Event::JobDue { job } => {
                let begin = self.job(*job).options.begin.take().expect("it was to begin later");
                assert!(begin <= at, "job {job} begins at {at:?} and not at {begin:?}");
            }
            Event::JobDeferred { job, begin } => self.job(*job).options.begin = *begin,
            Event::JobLimited { job, max_running, max_fails } => {
                let options = &mut self.job(*job).options;
                (options.max_running, options.max_fails) = (*max_running, *max_fails);
            }
            Event::DocumentChanged(change) => {
                let DocumentChange { id, body } = &**change;
                let before = match body {
                    Some(body) => self.documents.insert(id.clone(), body.clone()),
                    None => self.documents.remove(id),
                };
                assert_ne!(before, *body, "{id:?} is changed to what it was");
            }
            Event::JobForgotten { job } => {
                let ids: Vec<TaskId> = self.in_job(*job).map(|(&id, _)| id).collect();
                self.forget(&ids);
                self.jobs.remove(job);
            }
            Event::Added(added) => self.added(added),
            Event::PredsAdded { task, preds } => self.add_preds(*task, preds),
            Event::Renewed { task, preds, .. } => {
                let renewed = self.tasks.get_mut(task).expect("it is there");
                let was_done = renewed.phase == Phase::Done;
                renewed.phase = Phase::Idle;
                renewed.lost = 0;
                renewed.deps.clear();
                // What waited for the run before has been told; a failed one is still waited for.
                if was_done {
                    for other in self.tasks.values_mut() {
                        other.deps.retain(|dep| *dep != Dep::On(*task));
                    }
                    for array in self.arrays.values_mut() {
                        array.deps.retain(|dep| *dep != Dep::On(*task));
                    }
                }
                self.add_preds(*task, preds);
            }
            Event::WorkerMet { worker, group, .. } => {
                let fresh = Worker { group: *group, standing: Standing::Good };
                self.workers.entry(*worker).or_insert(fresh);
            }
            Event::WorkerForgotten { worker } => {
                assert!(self.held_by(*worker).next().is_none());
                self.workers.remove(worker);
            }
            Event::Judged { worker, standing, .. } => {
                self.workers.get_mut(worker).expect("it is there").standing = *standing;
            }
            Event::Leased { task, lease, worker, share, .. } => {
                assert!(self.is_open(task.job), "{task} of a parked job is leased");
                let state = self.state(*task);
                assert!(state == State::Ready || self.is_unclear(*task), "{task} is {state:?}");
                assert!(self.leases_seen.insert(*lease), "lease {lease} is used twice");
                let (lease, worker) = (*lease, *worker);
                let nodes = share.as_ref().map_or(&[][..], |share| &share.nodes);
                let workers: BTreeSet<WorkerId> = nodes.iter().copied().chain([worker]).collect();
                let wanted = self.tasks[task].profile.needs.nodes.max(1) as usize;
                assert!(
                    workers.len() == nodes.len() + 1 && workers.len() == wanted,
                    "{task} takes {wanted} workers and gets {worker:?} and {nodes:?}"
                );
                let group = self.jobs[&task.job].group;
                assert!(workers.iter().all(|worker| self.workers[worker].group == group));
                let beside: Vec<TaskId> = (self.leases().into_iter())
                    .filter(|(other, ..)| {
                        self.workers_of(*other).iter().any(|other| workers.contains(other))
                    })
                    .map(|(other, ..)| other)
                    .collect();
                let wants_to_be_alone = |id: &TaskId| {
                    self.tasks[id].is_suspect() || self.tasks[id].profile.needs.nodes > 0
                };
                assert!(
                    beside.is_empty() || !beside.iter().chain([task]).any(wants_to_be_alone),
                    "{task} is given to a worker beside {beside:?}, and one of them runs alone"
                );
                let share = share.as_deref().cloned();
                let task = self.tasks.get_mut(task).expect("it is there");
                task.phase = Phase::Leased { lease, worker, share };
                task.late = None;
            }
            Event::Finished { task, worker, outcome, then, .. } => {
                let id = task;
                let task = self.tasks.get_mut(task).expect("it is there");
                match &task.phase {
                    Phase::Leased { worker: holder, .. } => assert_eq!(holder, worker, "{id}"),
                    Phase::Done | Phase::Failed | Phase::Cancelled => panic!("{id} ends twice"),
                    _ => assert_eq!(task.late, Some(*worker), "{id} was never given to it"),
                }
                task.late = None;
                task.ended_once = true;
                task.lost += u16::from(*outcome == Outcome::Lost);
                assert!(
                    (*outcome, *then) != (Outcome::Lost, Then::Failed),
                    "{id} fails because its worker was lost"
                );
                task.phase = match then {
                    Then::Done => Phase::Done,
                    Then::Failed => Phase::Failed,
                    Then::Again(until) if *until > at => Phase::Delayed(*until),
                    Then::Again(_) => Phase::Idle,
                };
            }
            Event::Returned { task, why, preds } => {
                let back = self.tasks.get_mut(task).expect("it is there");
                let worker = back.sole_worker(*task);
                back.phase = Phase::Idle;
                back.late =
                    worker.filter(|_| matches!(why, ReturnReason::Lapsed | ReturnReason::Left));
                back.lost += u16::from(*why == ReturnReason::Lapsed);
                self.add_preds(*task, preds);
            }
            Event::HeldBack { task, why, .. } => {
                let back = self.tasks.get_mut(task).expect("it is there");
                let worker = back.sole_worker(*task);
                let too_often = back.lost >= back.profile.lost_max;
                assert!(*why == ReturnReason::Handed || too_often, "{task} is held for nothing");
                back.phase = Phase::Held;
                back.late = worker.filter(|_| *why == ReturnReason::Lapsed);
                back.lost += u16::from(*why == ReturnReason::Lapsed);
            }
            Event::Woken { task } => {
                let task = self.tasks.get_mut(task).expect("it is there");
                assert!(matches!(task.phase, Phase::Delayed(until) if until <= at));
                task.phase = Phase::Idle;
            }
            Event::Cancelled { job, ranges } => self.change(*job, ranges, |phase| {
                let ended = matches!(phase, Phase::Done | Phase::Failed | Phase::Cancelled);
                (!ended).then_some(Phase::Cancelled)
            }),
            Event::MarkedDone { job, ranges } => {
                for id in self.selected(*job, ranges) {
                    let task = self.tasks.get_mut(&id).expect("it is there");
                    if matches!(task.phase, Phase::Idle | Phase::Delayed(_) | Phase::Held) {
                        (task.phase, task.ended_once) = (Phase::Done, true);
                    }
                }
            }
            Event::Held { job, ranges } => self.change(*job, ranges, |phase| {
                matches!(phase, Phase::Idle | Phase::Delayed(_)).then_some(Phase::Held)
            }),
            Event::Released { job, ranges } => self
                .change(*job, ranges, |phase| matches!(phase, Phase::Held).then_some(Phase::Idle)),
            Event::Retried { job, ranges } => {
                for id in self.selected(*job, ranges) {
                    let task = self.tasks.get_mut(&id).expect("it is there");
                    if matches!(task.phase, Phase::Failed | Phase::Cancelled) {
                        (task.phase, task.lost) = (Phase::Idle, 0);
                    }
                }
            }
            Event::Prioritised { job, ranges, priority } => {
                for id in self.selected(*job, ranges) {
                    let task = self.tasks.get_mut(&id).expect("it is there");
                    if !matches!(task.phase, Phase::Done | Phase::Failed | Phase::Cancelled) {
                        task.profile.priority = *priority;
                    }
                }
            }
            Event::TasksForgotten { job, ranges } => {
                let ids: Vec<TaskId> = (self.selected(*job, ranges).into_iter())
                    .filter(|id| self.tasks[id].array.is_none())
                    .collect();
                self.forget(&ids);
            }
            Event::Restored(_) => panic!("nobody posts a piece of a snapshot"),
        }
    }

    fn job(&mut self, id: JobId) -> &mut Job {
        self.jobs.get_mut(&id).expect("events name only jobs that are there")
    }

    fn added(&mut self, added: &Added) {
        let mut next = self.jobs[&added.job].next;
        for array in &added.arrays {
            let whole = TaskId::whole(added.job, next);
            let profile = &added.profiles[array.profile as usize];
            let (runs_anyway, count) = (profile.runs_anyway, array.count);
            let deps = array.preds.iter().map(|&pred| Dep::On(pred)).collect();
            let each = array.each.clone();
            self.arrays.insert(whole, Array { count, deps, each, runs_anyway });
            for index in next..next + count {
                let task = Task::new(&array.name, array.work.demand(), profile, Some(whole));
                self.tasks.insert(TaskId::new(added.job, index), task);
            }
            next += count;
        }
        for task in &added.tasks {
            let demand = task.work.as_ref().map_or(Demand::NAMED, |work| work.demand());
            let profile = &added.profiles[task.profile as usize];
            let mut new = Task::new(&task.name, demand, profile, None);
            new.deps = task.preds.iter().map(|&pred| Dep::On(pred)).collect();
            self.tasks.insert(TaskId::new(added.job, next), new);
            next += 1;
        }
        self.job(added.job).next = next;
    }

    fn add_preds(&mut self, task: TaskId, preds: &[TaskId]) {
        let deps = preds.iter().map(|&pred| Dep::On(pred));
        self.tasks.get_mut(&task).expect("it is there").deps.extend(deps);
    }

    /// Whether single tasks that are not done wait for each other in a ring through this one.
    pub fn waits_for_itself(&self, task: TaskId) -> bool {
        let mut seen = BTreeSet::new();
        let mut open = vec![task];
        while let Some(here) = open.pop() {
            let Some(known) = self.tasks.get(&here).filter(|known| known.phase != Phase::Done)
            else {
                continue;
            };
            for dep in &known.deps {
                match dep {
                    Dep::On(pred) if *pred == task => return true,
                    Dep::On(pred) if seen.insert(*pred) => open.push(*pred),
                    Dep::On(_) | Dep::Broken => {}
                }
            }
        }
        false
    }

    fn selected(&self, job: JobId, ranges: &Ranges) -> Vec<TaskId> {
        let inside = |index: u32| ranges.iter().any(|&(a, b)| (a..=b).contains(&index));
        self.in_job(job).map(|(&id, _)| id).filter(|id| inside(id.index)).collect()
    }

    fn change(&mut self, job: JobId, ranges: &Ranges, to: impl Fn(&Phase) -> Option<Phase>) {
        for id in self.selected(job, ranges) {
            let task = self.tasks.get_mut(&id).expect("it is there");
            if let Some(phase) = to(&task.phase) {
                task.ended_once |= phase == Phase::Cancelled;
                task.phase = phase;
            }
        }
    }

    /// What came after a forgotten task keeps in mind how it ended.
    fn forget(&mut self, ids: &[TaskId]) {
        let gone: BTreeSet<TaskId> = ids.iter().copied().collect();
        let whole_gone =
            |id: &TaskId| id.is_whole() && gone.contains(&TaskId::new(id.job, id.number()));
        let is_gone = |id: &TaskId| gone.contains(id) || whole_gone(id);
        let mut verdicts = BTreeMap::new();
        let deps = self.tasks.values().map(|task| &task.deps);
        for dep in deps.chain(self.arrays.values().map(|array| &array.deps)).flatten() {
            if let Dep::On(id) = dep
                && is_gone(id)
            {
                // What is unclear may have been blocked.
                let ended = self.over(*dep, &mut BTreeMap::new()).unwrap_or(false);
                verdicts.insert(*id, ended);
            }
        }
        let settle = |deps: &mut Vec<Dep>| {
            deps.retain(|dep| !matches!(dep, Dep::On(id) if verdicts.get(id) == Some(&true)));
            for dep in deps {
                if matches!(dep, Dep::On(id) if verdicts.contains_key(id)) {
                    *dep = Dep::Broken;
                }
            }
        };
        self.tasks.values_mut().for_each(|task| settle(&mut task.deps));
        self.arrays.values_mut().for_each(|array| settle(&mut array.deps));
        self.arrays.retain(|id, _| !whole_gone(id));
        self.tasks.retain(|id, _| !gone.contains(id));
    }
}

impl Task {
    /// Where it runs. Nobody who had it together with others may come with a late result.
    fn sole_worker(&self, id: TaskId) -> Option<WorkerId> {
        let Phase::Leased { worker, share, .. } = &self.phase else { panic!("{id} not leased") };
        let is_sole = share.as_ref().is_none_or(|share| share.nodes.is_empty());
        is_sole.then_some(*worker)
    }

    fn new(name: &Name, demand: Demand, profile: &Profile, array: Option<TaskId>) -> Task {
        Task {
            name: name.clone(),
            demand,
            profile: profile.clone(),
            phase: Phase::Idle,
            array,
            deps: Vec::new(),
            late: None,
            ended_once: false,
            lost: 0,
        }
    }

    /// What it needs, the way that its lease goes.
    pub fn way(&self, share: Option<&Share>) -> &Needs {
        match share.map_or(0, |share| usize::from(share.variant)).checked_sub(1) {
            None => &self.profile.needs,
            Some(other) => &self.profile.needs.variants[other],
        }
    }

    /// It was lost so often that it is given to a worker only alone.
    pub fn is_suspect(&self) -> bool {
        self.lost > 0 && self.lost >= self.profile.lost_max
    }
}

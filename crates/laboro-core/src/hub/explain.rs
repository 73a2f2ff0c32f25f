//! "Why is this task not running?" for any task, as data.

use super::Hub;
use super::policy::{self, supply};
use crate::explanation::{Before, Explanation, Lack, Prospect, Shortfall};
use crate::fields::Fields;
use crate::id::{GroupId, TaskId, WorkerId};
use crate::ledger::{Phase, Record, most_slots};
use crate::presence::Member;
use crate::resources::Amount;
use crate::setting::NODES;
use crate::task::{Demand, Kinds, Needs, Profile, State};
use crate::view::Standing;
use std::collections::{BTreeSet, VecDeque};

/// How many predecessors are named.
const NAMED: usize = 3;
/// How many tasks are looked at to find what failed.
const CAUSES: usize = 1000;
/// How many workers are looked at to say why none fits.
const WORKERS: usize = 1000;

/// What whoever asks may be told of.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Sight {
    All,
    /// Not of tasks of other groups: neither which they are nor what they are called.
    OwnGroup,
}

impl Hub {
    /// Of a task that is there.
    pub(super) fn explain(&self, id: TaskId, sight: Sight) -> Explanation {
        let ledger = self.ledger();
        let job = ledger.job(ledger.find_job(id.job).expect("the task was found"));
        match job.state_of(id.index).expect("the task was found") {
            State::Leased => self.explain_leased(id),
            State::Done => Explanation::Done,
            State::Cancelled => Explanation::Cancelled,
            State::Failed => self.explain_failed(id),
            State::Held => {
                let reason = self.task_record(id).and_then(Record::held_because);
                Explanation::Held { reason: reason.map(Box::from) }
            }
            State::Delayed => {
                let wait_ms = match self.record_phase(id) {
                    Some(Phase::Delayed { until }) => until.since_ms(self.ledger.now()),
                    _ => 0,
                };
                Explanation::Delayed { wait_ms }
            }
            State::Waiting => self.explain_waiting(id, sight),
            State::Blocked => Explanation::Blocked(self.causes(id, sight)),
            State::Ready => self.explain_ready(id),
        }
    }

    fn record_phase(&self, id: TaskId) -> Option<Phase> {
        self.task_record(id).map(|record| record.phase)
    }

    fn task_record(&self, id: TaskId) -> Option<&Record> {
        self.ledger().record_of(id).map(|handle| self.ledger().task(handle))
    }

    fn explain_leased(&self, id: TaskId) -> Explanation {
        let Some(Phase::Leased { lease }) = self.record_phase(id) else {
            unreachable!("a leased task has a lease")
        };
        let lease = self.ledger().workers().lease(lease);
        let member = self.presence.member(lease.worker);
        Explanation::Running {
            worker: self.ledger().workers().get(lease.worker).name.clone(),
            since_ms: self.ledger.now().since_ms(lease.started),
            is_away: member.is_none_or(|member| member.session.is_none()),
        }
    }

    fn explain_failed(&self, id: TaskId) -> Explanation {
        let ledger = self.ledger();
        let job = ledger.job(ledger.find_job(id.job).expect("the task was found"));
        let (outcome, worker) = match self.record_phase(id) {
            Some(Phase::Finished { outcome, worker, .. }) => {
                let worker = (worker != WorkerId::UNKNOWN).then(|| self.worker_name(worker));
                (Some(outcome), worker)
            }
            _ => {
                let found = job.failed_elements.iter().find(|(_, set)| set.contains(id.index));
                (found.map(|(outcome, _)| *outcome), None)
            }
        };
        let extra = self.task_record(id).and_then(|record| record.extra.as_ref());
        let why = extra.and_then(|extra| extra.message.as_deref()).or(job.why_failed(id.index));
        Explanation::Failed { outcome, why: why.map(Box::from), worker }
    }

    /// What it waits for, and what has failed already where it will not run because of that.
    fn explain_waiting(&self, id: TaskId, sight: Sight) -> Explanation {
        let before = |wanted: fn(Option<bool>) -> bool| {
            let mut before = Before::default();
            for pred in self.preds_of(id).into_iter().filter(|&pred| wanted(self.verdict(pred))) {
                self.add_before(&mut before, id, pred, sight);
            }
            before
        };
        let failed = before(|verdict| verdict == Some(false));
        let failed = (!failed.is_empty() && !self.runs_anyway(id)).then_some(failed);
        Explanation::Waiting { before: before(|verdict| verdict.is_none()), failed }
    }

    /// Behind blocked tasks there is one that failed or was cancelled, and that is the one to know of.
    fn causes(&self, id: TaskId, sight: Sight) -> Before {
        let (mut open, mut seen) = (VecDeque::from([id]), BTreeSet::new());
        let mut causes = Before::default();
        while let Some(here) = open.pop_front() {
            for pred in self.preds_of(here) {
                if self.verdict(pred) != Some(false) || seen.len() == CAUSES || !seen.insert(pred) {
                    continue;
                }
                if self.is_only_blocked(pred) {
                    open.push_back(pred);
                } else {
                    self.add_before(&mut causes, id, pred, sight);
                }
            }
        }
        causes
    }

    fn add_before(&self, before: &mut Before, task: TaskId, pred: TaskId, sight: Sight) {
        let ledger = self.ledger();
        let group_of = |job| ledger.find_job(job).map(|handle| ledger.job(handle).group);
        if sight == Sight::OwnGroup && group_of(pred.job) != group_of(task.job) {
            before.hidden += 1;
        } else if before.names.len() < NAMED {
            before.names.push(match pred.job == task.job {
                true => ledger.shown_name(pred),
                false => ledger.full_name(pred),
            });
        } else {
            before.more += 1;
        }
    }

    /// Whatever a task or a whole array comes after: its own predecessors, its array's, and those of its element.
    fn preds_of(&self, id: TaskId) -> Vec<TaskId> {
        let ledger = self.ledger();
        let array = ledger.array(id).map(|(_, array)| array);
        let gate = array.map(|array| array.gate);
        let own = ledger.record_of(id).filter(|&handle| Some(handle) != gate);
        let records = own.into_iter().chain(gate);
        let mut preds: Vec<TaskId> = records
            .flat_map(|handle| ledger.graph().preds_of(ledger.task(handle).preds))
            .map(|pred| ledger.id_of(pred))
            .collect();
        for &each in array.iter().flat_map(|array| &array.each) {
            let (Some((_, other)), Some(own)) = (ledger.array(each), array) else { continue };
            preds.push(match id.is_whole() {
                true => each,
                false => TaskId::new(each.job, other.first + (id.index - own.first)),
            });
        }
        preds
    }

    /// Whether it is over, and well. What is forgotten ended somehow.
    fn verdict(&self, id: TaskId) -> Option<bool> {
        let ledger = self.ledger();
        match ledger.array(id) {
            Some((_, array)) if id.is_whole() => array.verdict(),
            _ => ledger.state_of(id).map_or(Some(false), State::verdict),
        }
    }

    fn is_only_blocked(&self, id: TaskId) -> bool {
        let ledger = self.ledger();
        match ledger.array(id) {
            Some((_, array)) if id.is_whole() => array.bad == 0,
            _ => ledger.state_of(id) == Some(State::Blocked),
        }
    }

    fn runs_anyway(&self, id: TaskId) -> bool {
        let ledger = self.ledger();
        let own = ledger.record_of(id).map(|handle| ledger.task(handle).profile);
        let profile = own.or_else(|| ledger.array(id).map(|(_, array)| array.profile));
        profile.is_some_and(|profile| ledger.profiles().get(profile).runs_anyway)
    }

    fn explain_ready(&self, id: TaskId) -> Explanation {
        let ledger = self.ledger();
        let job = ledger.job(ledger.find_job(id.job).expect("the task was found"));
        if job.options.held {
            return Explanation::JobHeld(job.id);
        }
        if let Some(begin) = job.options.begin {
            let wait_ms = begin.since_ms(self.ledger.now());
            return Explanation::JobBegins { job: job.id, begin, wait_ms };
        }
        if job.stopped {
            return Explanation::JobStopped { job: job.id, failures: job.failed_now() };
        }
        if let Some(most) = job.options.max_running
            && job.counts.of(State::Leased) >= most
        {
            return Explanation::JobFull { job: job.id, most };
        }
        let group = ledger.group(job.group);
        if group.paused {
            return Explanation::GroupPaused(group.name.clone());
        }
        let (profile, kind) = match ledger.record_of(id) {
            Some(handle) => {
                let record = ledger.task(handle);
                (record.profile, record.work.as_ref().map_or(Demand::NAMED, |work| work.demand()))
            }
            None => {
                let (_, array) = ledger.array(id).expect("a task without a record is an element");
                (array.profile, array.work.demand())
            }
        };
        let profile = ledger.profiles().get(profile);
        let account = ledger.lanes().account(job.account);
        if let Some(most) = account.max_slots
            && account.slots + most_slots(&profile.needs) > most
        {
            let (owner, used) = (job.options.owner.clone(), account.slots);
            return Explanation::OwnerFull {
                owner,
                most,
                used,
                wanted: most_slots(&profile.needs),
            };
        }
        let suspect = self.task_record(id).filter(|record| record.is_suspect(profile));
        Explanation::Ready {
            group: group.name.clone(),
            prospect: self.prospect_of(id, job.group, profile, kind),
            lost: suspect.map(|record| record.lost),
        }
    }

    /// Also of a task that takes several workers.
    fn prospect_of(
        &self,
        id: TaskId,
        group: GroupId,
        profile: &Profile,
        demand: Demand,
    ) -> Prospect {
        let wanted = profile.needs.nodes;
        if wanted == 0 {
            return self.prospect(group, profile, demand);
        }
        let demand = Demand { fields: demand.fields.with(NODES), ..demand };
        match self.prospect(group, profile, demand) {
            Prospect::Busy { workers } if workers < wanted => Prospect::TooFew { wanted, workers },
            Prospect::Busy { workers } => match self.gathered_for(id) {
                Some(free) => Prospect::Gathering { wanted, free },
                None => Prospect::Busy { workers },
            },
            other => other,
        }
    }

    /// How many of the workers that are kept for tasks such as this one are free.
    fn gathered_for(&self, id: TaskId) -> Option<u32> {
        let ledger = self.ledger();
        let handle = ledger.record_of(id).or_else(|| Some(ledger.array(id)?.1.gate))?;
        let (Phase::Ready(link) | Phase::Gate(link)) = ledger.task(handle).phase else {
            return None;
        };
        let class = ledger.lanes().lane(link.lane.some()?).class;
        let (_, free) = self.passes.gathers.kept(class, ledger.lanes().class(class).serial)?;
        u32::try_from(free).ok()
    }

    fn prospect(&self, group: GroupId, profile: &Profile, demand: Demand) -> Prospect {
        let ledger = self.ledger();
        let (mut there, mut could, mut barred, mut late) = (0, 0, 0, 0);
        let mut closest: Option<(WorkerId, Vec<Lack>)> = None;
        // What every worker that was looked at lacks.
        let mut general: Option<Vec<Lack>> = None;
        let all = ledger.workers().from(WorkerId::default());
        for handle in all.filter(|&one| ledger.workers().get(one).group == group).take(WORKERS) {
            let Some(member) = self.presence.member(handle).filter(|m| m.session.is_some()) else {
                continue;
            };
            there += 1;
            let worker = ledger.workers().get(handle);
            let lacks = fewest_lacks(member, &profile.needs, demand);
            if !lacks.is_empty() {
                match &mut general {
                    Some(general) => general.retain(|one| lacks.iter().any(|lack| lack.is_of(one))),
                    None => general = Some(lacks.clone()),
                }
                if closest.as_ref().is_none_or(|(_, best)| is_closer(&lacks, best)) {
                    closest = Some((worker.id, lacks));
                }
                continue;
            }
            could += 1;
            let wanted_ms = profile.time_request_ms.or(profile.time_limit_ms);
            let has_time = policy::has_time(member, wanted_ms, self.ledger.now());
            let off = member.draining
                || matches!(worker.record.standing, Standing::OnHold | Standing::Ejected);
            late += u32::from(!has_time);
            barred += u32::from(has_time && off);
        }
        if let (0, Some((worker, lacks))) = (could, closest) {
            let is_general = general.is_some_and(|all| all.iter().any(|one| one.is_of(&lacks[0])));
            let closest = self.worker_name(worker);
            return Prospect::Lacking(Shortfall { workers: there, closest, lacks, is_general });
        }
        match could - late {
            _ if there == 0 => Prospect::NoWorker,
            0 => Prospect::TooLate { workers: late },
            left if left == barred => Prospect::Barred { workers: left },
            left => Prospect::Busy { workers: left - barred },
        }
    }
}

/// What a worker lacks for the way that suits it best; nothing where it could run the task.
fn fewest_lacks(member: &Member, needs: &Needs, demand: Demand) -> Vec<Lack> {
    let mut ways = needs.ways().map(|(_, way)| lacks(member, way, demand));
    let first = ways.next().unwrap_or_default();
    ways.fold(first, |best, other| if is_closer(&other, &best) { other } else { best })
}

fn is_closer(one: &[Lack], other: &[Lack]) -> bool {
    let least = |lacks: &[Lack]| lacks.iter().map(Lack::permille).min().unwrap_or(1000);
    (one.len(), 1000 - least(one).min(1000)) < (other.len(), 1000 - least(other).min(1000))
}

fn lacks(member: &Member, needs: &Needs, demand: Demand) -> Vec<Lack> {
    let mut lacks = Vec::new();
    let has = member.capacity.slots.saturating_sub(member.fewer_slots);
    if needs.slots > has {
        lacks.push(Lack::Slots { wanted: needs.slots, has });
    }
    if needs.memory > member.capacity.memory {
        lacks.push(Lack::Memory { wanted: needs.memory, has: member.capacity.memory });
    }
    for (name, wanted) in &needs.resources {
        let supply = supply(&member.capacity, name);
        if !supply.is_enough(*wanted) {
            let (name, has) = (name.clone(), Amount::whole(supply.count));
            lacks.push(Lack::Resource { name, wanted: *wanted, has });
        }
    }
    let missing = needs.tags.iter().filter(|tag| member.tags.binary_search(tag).is_err());
    lacks.extend(missing.cloned().map(Lack::Tag));
    if !member.kinds.has(Demand::of(demand.kind)) {
        lacks.push(Lack::Kind(demand.kind));
    } else if !member.kinds.has(demand) {
        lacks.push(Lack::Fields(unknown(member.kinds, demand)));
    }
    lacks
}

/// The fields of a task that a worker does not understand.
fn unknown(kinds: Kinds, demand: Demand) -> Fields {
    let is_known = |tag: u32| kinds.has(Demand { fields: Fields::NONE.with(tag), ..demand });
    demand.fields.tags().filter(|&tag| !is_known(tag)).fold(Fields::NONE, Fields::with)
}

//! Judges what was seen at the hub's borders. It has its own account of what must be true: the naive model
//! that the core's property tests use, the sum of all that was kept, and what is still owed an answer.

#[allow(dead_code)] // It answers more questions in the tests of the core.
#[path = "../../laboro-core/tests/properties/model.rs"]
mod model;

#[allow(dead_code)] // As the model.
#[path = "../../laboro-core/tests/properties/fairness.rs"]
mod fairness;

mod rooms;
#[cfg(test)]
mod tests;

use crate::journal::Doubt;
use crate::promise::{Broken, Kept, Promise};
use crate::tap::Seen;
use laboro_core::{
    Ask, Command, Demand, DocumentId, Effect, Event, Fields, Grant, JobId, Join, LeaseNo, LeaseRef,
    Ledger, Name, Offer, Outcome, Patience, Reply, Report, ReturnReason, Role, Route, Share,
    Shares, State, TaskId, TaskRef, Then, Time, Token, WorkerId, WorkerRef,
};
use model::{Model, Phase};
use rooms::Room;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

pub(crate) struct Oracle {
    model: Model,
    /// The sum of all batches that were kept.
    sum: Ledger,
    owed: BTreeMap<Token, Owed>,
    rooms: BTreeMap<WorkerId, Room>,
    /// Of the batch whose effects come next.
    leased: Granted,
    pulled: BTreeSet<LeaseNo>,
    /// Leases that were live once, for late and repeated results.
    pub old_leases: Vec<(WorkerId, TaskId, LeaseNo)>,
    /// Ends that a worker was told are recorded.
    pub ends_acked: BTreeSet<TaskId>,
    /// Started over by the last batch, perhaps after an end that its effects tell of.
    renewed: BTreeSet<TaskId>,
    /// Tasks that a worker without a lease said are done, and whether it counts also where another holds
    /// them: the wire of dwork lets anybody say so.
    done_by_name: BTreeMap<Name, bool>,
    /// All tasks that were ever recorded, also those that are forgotten since.
    met: BTreeSet<TaskId>,
    /// How the hub lets owners share.
    shares: Arc<Shares>,
    pub batches: u64,
    pub grants: u64,
    /// By the hub's clock.
    now: Time,
    /// When the batch was decided whose effects come next.
    at: Time,
}

/// Who got what, by which lease.
type Granted = BTreeSet<(WorkerId, TaskId, LeaseNo)>;

/// A command without an answer.
#[derive(Debug)]
struct Owed {
    words: &'static str,
    asked_at: Time,
    /// It may wait until then.
    until: Option<Time>,
    join: Option<Box<Join>>,
    results: Vec<(LeaseRef, Outcome)>,
}

const OLD_LEASES_MAX: usize = 100;
/// How long an answer takes at most when nothing is wrong.
const ANSWER_MS: u64 = 4000;

impl Oracle {
    pub fn new(shares: Arc<Shares>) -> Oracle {
        Oracle {
            shares,
            model: Model::default(),
            sum: Ledger::default(),
            owed: BTreeMap::new(),
            rooms: BTreeMap::new(),
            leased: BTreeSet::new(),
            pulled: BTreeSet::new(),
            old_leases: Vec::new(),
            ends_acked: BTreeSet::new(),
            renewed: BTreeSet::new(),
            done_by_name: BTreeMap::new(),
            met: BTreeSet::new(),
            batches: 0,
            grants: 0,
            now: Time(0),
            at: Time(0),
        }
    }

    /// When something was last seen.
    pub fn now(&self) -> Time {
        self.now
    }

    pub fn see(&mut self, now: Time, seen: Seen) -> Kept {
        self.now = now;
        match seen {
            Seen::Asked(asks) => asks.into_iter().try_for_each(|ask| self.asked(ask)),
            Seen::Kept { at, events } => self.kept(at, &events),
            Seen::LetOut(effects) => self.let_out(effects),
        }
    }

    /// A life is over, and its journal was opened again. `ledger` is what it gave back.
    pub fn recovered(&mut self, ledger: &Ledger, doubt: Option<Doubt>) -> Kept {
        self.owed.clear();
        self.leased.clear();
        let found = ledger.describe();
        if found != self.sum.describe() {
            let Some(Doubt { at, events }) = doubt else {
                return Err(difference(&found, &self.sum.describe()));
            };
            self.kept(at, &events)?;
            self.leased.clear();
            if found != self.sum.describe() {
                return Err(difference(&found, &self.sum.describe()));
            }
        }
        ledger.check().map_err(|what| Broken::new(Promise::Sound, what.to_string()))
    }

    fn asked(&mut self, ask: Ask) -> Kept {
        let Ask { token, command } = ask;
        if token == Token(0) {
            return Ok(());
        }
        let mut owed = Owed {
            words: "a command",
            asked_at: self.now,
            until: None,
            join: None,
            results: Vec::new(),
        };
        match command {
            Command::Join(join) => (owed.words, owed.join) = ("a join", Some(Box::new(join))),
            Command::Offer(Offer { worker, route, .. }) => {
                owed.words = "an offer";
                match route {
                    // What is sent for it leaves before its answer.
                    Route::Push { ahead } => {
                        if let WorkerRef::Id(worker) = worker {
                            let room = self.rooms.entry(worker).or_default();
                            room.ahead = room.ahead.max(ahead);
                        }
                    }
                    Route::Answer { patience, .. } => owed.until = until(patience),
                }
            }
            Command::Report(Report { results, .. }) => {
                owed.words = "a report";
                for result in results {
                    if let LeaseRef::HeldOrFree(TaskRef::Name(name))
                    | LeaseRef::Anyones(TaskRef::Name(name)) = &result.lease
                    {
                        let is_anyones = matches!(result.lease, LeaseRef::Anyones(_));
                        *self.done_by_name.entry(name.clone()).or_default() |= is_anyones;
                    }
                    owed.results.push((result.lease, result.outcome));
                }
            }
            Command::Submit(_) => owed.words = "a submit",
            Command::Query(_) => owed.words = "a query",
            Command::Return(_) => owed.words = "a return",
            _ => {}
        }
        match self.owed.insert(token, owed) {
            None => Ok(()),
            Some(_) => Err(Broken::new(Promise::OneAnswer, format!("{token:?} is used twice"))),
        }
    }

    fn kept(&mut self, at: Time, events: &[Event]) -> Kept {
        self.batches += 1;
        self.at = at;
        self.renewed.clear();
        for event in events {
            self.judge(at, event)?;
            self.remember_ending(event);
            self.excuse(event);
            let model = &mut self.model;
            // The model refuses what must not happen by a panic.
            catch_unwind(AssertUnwindSafe(|| model.follow(at, event)))
                .map_err(|panic| Broken::new(law(event), crate::words(&*panic)))?;
            self.sum.apply(at, event);
            match event {
                Event::Leased { task, lease, worker, share, .. } => {
                    self.leased.insert((*worker, *task, *lease));
                    let others = share.iter().flat_map(|share| &share.nodes);
                    self.leased.extend(others.map(|other| (*other, *task, *lease)));
                    self.check_share(*task, share.as_deref())?;
                    self.check_items(*worker)?;
                }
                Event::PredsAdded { task, .. } | Event::Returned { task, .. }
                    if self.model.waits_for_itself(*task) =>
                {
                    return Err(Broken::new(Promise::Graphs, format!("{task} waits for itself")));
                }
                Event::Renewed { task, .. } => {
                    self.ends_acked.remove(task);
                    self.renewed.insert(*task);
                }
                Event::Added(added) => {
                    self.met.extend(self.model.in_job(added.job).map(|(&id, _)| id));
                }
                _ => {}
            }
        }
        self.check_loads()
    }

    /// What is queued, by group and by the owner of jobs, is what quotas are counted by.
    fn check_loads(&self) -> Kept {
        let miscounted = |whose: String, found: u64, there: u64| {
            let what = format!("{whose} has {there} tasks queued, and is said to have {found}");
            Err(Broken::new(Promise::Sound, what))
        };
        let jobs = &self.model.jobs;
        let owners: BTreeSet<&Name> =
            jobs.values().filter_map(|job| job.options.owner.as_ref()).collect();
        for owner in owners {
            let there = self.model.queued(|job| job.options.owner.as_ref() == Some(owner));
            let load = self.sum.owner_load(owner);
            if load.tasks != there || (there == 0 && load.bytes > 0) {
                return miscounted(format!("owner {owner}"), load.tasks, there);
            }
        }
        for (id, group) in &self.model.groups {
            let there = self.model.queued(|job| job.group == *id);
            let load = self.sum.group_load(&group.name);
            if load.tasks != there || (there == 0 && load.bytes > 0) {
                return miscounted(format!("group {}", group.name), load.tasks, there);
            }
        }
        Ok(())
    }

    /// The promises about one event, by name. What else must hold is the model's affair.
    fn judge(&self, at: Time, event: &Event) -> Kept {
        self.judge_begin(at, event)?;
        match event {
            Event::Leased { task, lease, worker, share, .. }
                if self.model.tasks.contains_key(task) =>
            {
                self.check_nodes(*task, *worker, share.as_deref())?;
                let promise = match self.model.state(*task) {
                    State::Ready => return self.judge_turn(*task, share.as_deref()),
                    // Which of them it is depends on what was forgotten since.
                    State::Blocked | State::Waiting if self.model.is_unclear(*task) => {
                        return Ok(());
                    }
                    State::Leased => Promise::OneLease,
                    State::Done | State::Failed | State::Cancelled => Promise::NoSecondRun,
                    State::Waiting | State::Blocked => Promise::PredecessorsFirst,
                    State::Delayed | State::Held => Promise::Sound,
                };
                let state = self.model.state(*task).word();
                Err(Broken::new(promise, format!("{task} is {state} and gets lease {lease}")))
            }
            Event::Finished { task, outcome: Outcome::Lost, then: Then::Failed, .. } => {
                let what = format!("{task} fails because its workers were lost");
                Err(Broken::new(Promise::NeighboursUnharmed, what))
            }
            Event::HeldBack { task, why: ReturnReason::Lapsed, .. } => self.judge_held(*task),
            Event::Finished { task, worker, .. } => match self.model.tasks.get(task) {
                Some(known) if matches!(known.phase, Phase::Done | Phase::Failed) => {
                    let what = format!("{task} has ended and ends again by worker {}", worker.0);
                    Err(Broken::new(Promise::LateResults, what))
                }
                _ => Ok(()),
            },
            _ => Ok(()),
        }
    }

    /// Neither is a job due before its time, nor does anything of it start before it is due or a person said so.
    fn judge_begin(&self, at: Time, event: &Event) -> Kept {
        let begin = |job: &JobId| self.model.jobs.get(job).and_then(|job| job.options.begin);
        let what = match event {
            Event::JobDue { job } if begin(job).is_none_or(|begin| begin > at) => {
                format!("job {job} is due at {at:?}, and begins at {:?}", begin(job))
            }
            Event::Leased { task, .. } if begin(&task.job).is_some() => {
                format!("{task} starts, and its job begins at {:?}", begin(&task.job))
            }
            _ => return Ok(()),
        };
        Err(Broken::new(Promise::BeginTimes, what))
    }

    /// With equal tasks, the owner with the fewest slots in use for its weight goes first.
    fn judge_turn(&self, task: TaskId, share: Option<&Share>) -> Kept {
        match fairness::unfair(&self.model, &self.shares, task, share) {
            None => Ok(()),
            Some(what) => Err(Broken::new(Promise::FairShares, what)),
        }
    }

    /// Only what was lost often enough, and the last time with no other task on its worker.
    fn judge_held(&self, task: TaskId) -> Kept {
        let leases = self.model.leases();
        let holder = leases.iter().find(|(held, ..)| *held == task).map(|(.., worker)| *worker);
        let beside = leases.iter().find(|(held, _, by)| Some(*by) == holder && *held != task);
        let known = &self.model.tasks[&task];
        let what = match beside {
            Some((other, ..)) => format!("{task} is held, though {other} was on its worker, too"),
            None if known.lost < known.profile.lost_max => {
                format!("{task} is held after {} losses", known.lost)
            }
            None => return Ok(()),
        };
        Err(Broken::new(Promise::NeighboursUnharmed, what))
    }

    /// A result without a lease, of a task that could be done: nobody held it, or it was said to be done
    /// whoever did.
    fn excuse(&mut self, event: &Event) {
        let Event::Finished { task: id, worker, then, .. } = event else { return };
        let state = self.state(*id);
        let Some(task) = self.model.tasks.get_mut(id) else { return };
        let own_names = self.model.jobs[&id.job].options.own_names;
        let said = self.done_by_name.get(&shown(*id, task, own_names)).copied();
        let holder = match task.phase {
            Phase::Leased { worker, .. } => Some(worker),
            _ => None,
        };
        match (state, said) {
            (Some(State::Ready | State::Delayed), Some(_)) => task.late = Some(*worker),
            (Some(State::Leased), Some(true)) if holder != Some(*worker) && *then == Then::Done => {
                (task.phase, task.late) = (Phase::Idle, Some(*worker));
            }
            _ => {}
        }
    }

    /// Somebody was told that the task of this name is done. Of a name that stands in several groups one is.
    fn check_done(&self, name: &Name) -> Kept {
        let mut named =
            self.model.tasks.iter().filter(|(id, task)| self.is_shown(**id, task, name)).peekable();
        if named.peek().is_none() || named.any(|(_, task)| task.ended_once) {
            return Ok(());
        }
        let what = format!("{name} was acknowledged as done and never was");
        Err(Broken::new(Promise::NothingLost, what))
    }

    fn is_shown(&self, id: TaskId, task: &model::Task, name: &Name) -> bool {
        let own_names = self.model.jobs.get(&id.job).is_some_and(|job| job.options.own_names);
        shown(id, task, own_names) == *name
    }

    fn remember_ending(&mut self, event: &Event) {
        let (Event::Finished { task, .. }
        | Event::Returned { task, .. }
        | Event::HeldBack { task, .. }) = event
        else {
            return;
        };
        if let Some(Phase::Leased { lease, worker, .. }) =
            self.model.tasks.get(task).map(|task| &task.phase)
        {
            self.old_leases.push((*worker, *task, *lease));
            if self.old_leases.len() > OLD_LEASES_MAX {
                self.old_leases.remove(0);
            }
        }
    }

    fn let_out(&mut self, effects: Vec<Effect>) -> Kept {
        let mut granted = BTreeSet::new();
        for effect in effects {
            match effect {
                Effect::Reply { token, reply } => {
                    if let Reply::Work { worker, grants } = &reply {
                        self.pulled.extend(grants.iter().map(|grant| grant.lease));
                        self.give(*worker, grants, &mut granted)?;
                    }
                    self.replied(token, &reply)?;
                }
                Effect::Dispatch { worker, grants, .. } => {
                    self.give(worker, &grants, &mut granted)?;
                    self.check_slots(worker, &self.yet_to_give(&granted))?;
                }
                Effect::Revoke { leases, .. } => {
                    let live = self.model.leases();
                    let is_live = |no: &LeaseNo| live.iter().any(|(_, lease, _)| lease == no);
                    if let Some((task, no)) = leases.iter().find(|(_, no)| is_live(no)) {
                        let what = format!("live lease {no} of {task} is revoked");
                        return Err(Broken::new(Promise::Sound, what));
                    }
                }
                Effect::Stop { .. } | Effect::Replaced { .. } | Effect::Notify { .. } => {}
            }
        }
        self.grants += granted.len() as u64;
        let leased = std::mem::take(&mut self.leased);
        if leased != granted {
            let what = format!("recorded leases {leased:?} are not those given out {granted:?}");
            return Err(Broken::new(Promise::OneLease, what));
        }
        Ok(())
    }

    /// A worker gets these, after all that was given out in the batch before.
    fn give(&self, worker: WorkerId, grants: &[Grant], granted: &mut Granted) -> Kept {
        for grant in grants {
            if !granted.insert((worker, grant.task, grant.lease)) {
                let what = format!("{} is given out twice by lease {}", grant.task, grant.lease);
                return Err(Broken::new(Promise::OneLease, what));
            }
        }
        self.check_understood(worker, grants)?;
        let yet_to_give = self.yet_to_give(granted);
        grants.iter().try_for_each(|grant| self.check_room(worker, grant, &yet_to_give))
    }

    /// Leases of the batch that nobody was told of so far: they do not count yet.
    fn yet_to_give(&self, granted: &Granted) -> BTreeSet<LeaseNo> {
        self.leased.difference(granted).map(|(.., lease)| *lease).collect()
    }

    fn check_understood(&self, worker: WorkerId, grants: &[Grant]) -> Kept {
        let Some(kinds) = self.rooms.get(&worker).and_then(|room| room.kinds) else {
            return Ok(());
        };
        let of_work =
            |grant: &Grant| grant.work.as_ref().map_or(Demand::NAMED, |work| work.demand());
        // Who is kept for a task need not be able to run it.
        let demand = |grant: &Grant| match grant.role {
            Role::Only => of_work(grant),
            Role::First(_) | Role::Kept => Demand { fields: Fields::NODES, ..of_work(grant) },
        };
        match grants.iter().find(|grant| !kinds.has(demand(grant))) {
            None => Ok(()),
            Some(grant) => {
                let what = format!("{worker:?} got {}: {:?}", grant.task, demand(grant));
                Err(Broken::new(Promise::Understood, what))
            }
        }
    }

    fn replied(&mut self, token: Token, reply: &Reply) -> Kept {
        if token == Token(0) {
            return Ok(());
        }
        let Some(owed) = self.owed.remove(&token) else {
            let what = format!("{token:?} gets an answer that nobody waits for: {reply:?}");
            return Err(Broken::new(Promise::OneAnswer, what));
        };
        if let (Some(join), Reply::Joined { worker, .. }) = (&owed.join, reply) {
            self.rooms.entry(*worker).or_default().joined(join, owed.asked_at);
        }
        if let Reply::Reported(verdicts) = reply {
            if verdicts.len() != owed.results.len() {
                let what = format!("{} results get {verdicts:?}", owed.results.len());
                return Err(Broken::new(Promise::OneAnswer, what));
            }
            for ((lease, outcome), verdict) in owed.results.into_iter().zip(verdicts) {
                match (lease, verdict, outcome) {
                    (LeaseRef::Number { task, .. }, Ok(()), Outcome::Success)
                        if !self.renewed.contains(&task) =>
                    {
                        self.ends_acked.insert(task);
                    }
                    (LeaseRef::Anyones(TaskRef::Name(name)), Ok(()), _) => {
                        self.check_done(&name)?;
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// What nobody is waiting for any more must have been answered.
    pub fn check_answers(&self, now: Time) -> Kept {
        let is_late = |owed: &Owed| owed.until.unwrap_or(owed.asked_at).after_ms(ANSWER_MS) < now;
        match self.owed.iter().find(|(_, owed)| is_late(owed)) {
            None => Ok(()),
            Some((token, owed)) => {
                let what = format!("{} ({token:?}) was never answered", owed.words);
                Err(Broken::new(Promise::OneAnswer, what))
            }
        }
    }

    /// Whether the task was ever recorded.
    pub fn has_met(&self, task: TaskId) -> bool {
        self.met.contains(&task)
    }

    /// Where a task stands by the model's account.
    pub fn state(&self, task: TaskId) -> Option<State> {
        self.model.tasks.contains_key(&task).then(|| self.model.state(task))
    }

    /// Tasks that could go on by themselves.
    pub fn active(&self) -> Vec<(TaskId, State)> {
        let ids = self.model.tasks.keys().map(|&id| (id, self.model.state(id)));
        ids.filter(|(id, state)| match state {
            State::Ready | State::Delayed => {
                let job = &self.model.jobs[&id.job];
                !job.stopped
            }
            State::Leased | State::Held => true,
            State::Waiting | State::Blocked => false,
            State::Done | State::Failed | State::Cancelled => false,
        })
        .collect()
    }

    pub fn unfinished(&self) -> usize {
        let ids = self.model.tasks.keys();
        ids.filter(|id| !self.model.state(**id).is_finished()).count()
    }

    pub fn jobs(&self) -> impl Iterator<Item = (JobId, &model::Job)> {
        self.model.jobs.iter().map(|(id, job)| (*id, job))
    }

    /// What it holds.
    pub fn document(&self, id: &DocumentId) -> Option<&Arc<[u8]>> {
        self.model.documents.get(id)
    }

    pub fn documents(&self) -> impl Iterator<Item = &DocumentId> {
        self.model.documents.keys()
    }

    pub fn workers(&self) -> Vec<WorkerId> {
        self.model.workers.keys().copied().collect()
    }

    /// Leases that are live by the model's account.
    pub fn leases(&self) -> Vec<(TaskId, LeaseNo, WorkerId)> {
        self.model.leases()
    }
}

/// What peers that know nothing but names call it.
fn shown(id: TaskId, task: &model::Task, own_names: bool) -> Name {
    let job = if own_names { format!("{}/", id.job) } else { String::new() };
    match task.array {
        None if !own_names => task.name.clone(),
        None => Name::from(format!("{job}{}", task.name)),
        Some(array) => Name::from(format!("{job}{}.{}", task.name, id.index - array.number() + 1)),
    }
}

fn until(patience: Patience) -> Option<Time> {
    match patience {
        Patience::None => None,
        Patience::Until(until) | Patience::InTurn { until, .. } | Patience::Always(until) => {
            Some(until)
        }
    }
}

/// Which promise it is that the model saw broken.
fn law(event: &Event) -> Promise {
    match event {
        Event::Leased { .. } => Promise::OneLease,
        Event::Finished { .. } => Promise::LateResults,
        _ => Promise::Sound,
    }
}

fn difference(found: &str, expected: &str) -> Broken {
    let lines = found.lines().zip(expected.lines()).find(|(one, other)| one != other);
    let what = match lines {
        Some((found, expected)) => format!("the journal says `{found}`, it was `{expected}`"),
        None => format!(
            "the journal gives {} lines, it were {}",
            found.lines().count(),
            expected.lines().count()
        ),
    };
    Broken::new(Promise::NothingLost, what)
}

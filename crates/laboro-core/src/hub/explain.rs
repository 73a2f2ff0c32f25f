//! "Why is this task not running?" in plain words, for any task.

use super::Hub;
use super::loss::times;
use super::policy::{self, Fit, Room};
use crate::id::{GroupId, TaskId, WorkerId};
use crate::ledger::{Phase, Record};
use crate::presence::OfferKind;
use crate::task::{Demand, Needs, Profile, State, WorkKind};
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
    pub(super) fn explain(&self, id: TaskId, sight: Sight) -> String {
        let ledger = self.ledger();
        let job = ledger.job(ledger.find_job(id.job).expect("the task was found"));
        match job.state_of(id.index).expect("the task was found") {
            State::Leased => self.explain_leased(id),
            State::Done => "it is done".into(),
            State::Cancelled => "it was cancelled; `retry` runs it again".into(),
            State::Failed => self.explain_failed(id),
            State::Held => match self.task_record(id).and_then(Record::held_because) {
                Some(why) => format!("it is held: {why}; `release` lets it go on"),
                None => "it is held; `release` lets it go on".into(),
            },
            State::Delayed => {
                let until = self.record_phase(id).and_then(|phase| match phase {
                    Phase::Delayed { until } => Some(until),
                    _ => None,
                });
                let wait = until.map_or(0, |until| until.since_ms(self.ledger.now()));
                format!(
                    "its last attempt failed; the next one starts in {:.1} s",
                    wait as f64 / 1000.0
                )
            }
            State::Waiting => self.explain_waiting(id, sight),
            State::Blocked => self.explain_blocked(id, sight),
            State::Ready => self.explain_ready(id),
        }
    }

    fn record_phase(&self, id: TaskId) -> Option<Phase> {
        self.task_record(id).map(|record| record.phase)
    }

    fn task_record(&self, id: TaskId) -> Option<&Record> {
        self.ledger().record_of(id).map(|handle| self.ledger().task(handle))
    }

    fn explain_leased(&self, id: TaskId) -> String {
        let Some(Phase::Leased { lease }) = self.record_phase(id) else { return "it runs".into() };
        let lease = self.ledger().workers().lease(lease);
        let worker = self.ledger().workers().get(lease.worker);
        let since = self.ledger.now().since_ms(lease.started) as f64 / 1000.0;
        let away = match self.presence.member(lease.worker) {
            Some(member) if member.session.is_some() => "",
            _ => ", which is away: the task goes back when it stays so",
        };
        format!("it runs on {} for {since:.1} s{away}", worker.name)
    }

    fn explain_failed(&self, id: TaskId) -> String {
        let (outcome, by) = match self.record_phase(id) {
            Some(Phase::Finished { outcome, worker, .. }) if worker != WorkerId::UNKNOWN => {
                (Some(outcome), format!(" on {}", self.worker_name(worker)))
            }
            Some(Phase::Finished { outcome, .. }) => (Some(outcome), String::new()),
            _ => {
                let ledger = self.ledger();
                let job = ledger.job(ledger.find_job(id.job).expect("the task was found"));
                let found = job.failed_elements.iter().find(|(_, set)| set.contains(id.index));
                (found.map(|(outcome, _)| *outcome), String::new())
            }
        };
        let ledger = self.ledger();
        let job = ledger.job(ledger.find_job(id.job).expect("the task was found"));
        let extra = self.task_record(id).and_then(|record| record.extra.as_ref());
        let why = extra.and_then(|extra| extra.message.as_deref()).or(job.why_failed(id.index));
        let why = why.map_or_else(String::new, |why| format!(": {why}"));
        let how = outcome.map_or_else(String::new, |outcome| format!(" ({outcome}{why}{by})"));
        format!("it failed{how}; `retry` runs it again")
    }

    /// What it waits for, and what has failed already where it will not run because of that.
    fn explain_waiting(&self, id: TaskId, sight: Sight) -> String {
        let preds = self.name_preds(id, sight, |verdict| verdict.is_none());
        let preds = preds.unwrap_or_else(|| "others".into());
        match self.name_preds(id, sight, |verdict| verdict == Some(false)) {
            Some(failed) if !self.runs_anyway(id) => {
                format!("it waits for {preds}, and will not run: {failed} did not end well")
            }
            _ => format!("it waits for {preds}"),
        }
    }

    /// Behind blocked tasks there is one that failed or was cancelled, and that is the one to know of.
    fn explain_blocked(&self, id: TaskId, sight: Sight) -> String {
        let (mut open, mut seen) = (VecDeque::from([id]), BTreeSet::new());
        let mut causes = Causes::default();
        while let Some(here) = open.pop_front() {
            for pred in self.preds_of(here) {
                if self.verdict(pred) != Some(false) || seen.len() == CAUSES || !seen.insert(pred) {
                    continue;
                }
                if self.is_only_blocked(pred) {
                    open.push_back(pred);
                } else {
                    causes.add(self, id, pred, sight);
                }
            }
        }
        match causes.words() {
            Some(causes) => format!(
                "it is blocked: {causes} failed or was cancelled; a retry of that releases it"
            ),
            None => "it is blocked: what it comes after failed and is forgotten; \
                cancel it, or submit it anew"
                .into(),
        }
    }

    /// The first few predecessors of this kind, in words.
    fn name_preds(
        &self,
        id: TaskId,
        sight: Sight,
        wanted: impl Fn(Option<bool>) -> bool,
    ) -> Option<String> {
        let mut causes = Causes::default();
        for pred in self.preds_of(id).into_iter().filter(|&pred| wanted(self.verdict(pred))) {
            causes.add(self, id, pred, sight);
        }
        causes.words()
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

    fn explain_ready(&self, id: TaskId) -> String {
        let ledger = self.ledger();
        let handle = ledger.find_job(id.job).expect("the task was found");
        let job = ledger.job(handle);
        if job.options.held {
            return format!("job {} is held; `release` lets it go on", job.id);
        }
        if job.stopped {
            let fails = job.failed_now();
            return format!(
                "job {} was stopped after {fails} failures; `release` lets it go on",
                job.id
            );
        }
        if let Some(most) = job.options.max_running
            && job.counts.of(State::Leased) >= most
        {
            return format!("job {} already runs as many tasks as it may ({most})", job.id);
        }
        let group = ledger.group(job.group);
        if group.paused {
            return format!("group {} is paused; `resume` lets it go on", group.name);
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
        let why = self.explain_no_worker(job.group, profile, kind);
        match self.task_record(id).filter(|record| record.is_suspect(profile)) {
            Some(record) => format!(
                "{why}; its worker was lost {}, so it runs only on a worker that has nothing else",
                times(record.lost.into())
            ),
            None => why,
        }
    }

    fn explain_no_worker(&self, group: GroupId, profile: &Profile, kind: Demand) -> String {
        let (ledger, needs) = (self.ledger(), &profile.needs);
        let (mut there, mut could, mut barred, mut late) = (0, 0, 0, 0);
        let all = ledger.workers().from(Default::default());
        for handle in
            all.filter(|&handle| ledger.workers().get(handle).group == group).take(WORKERS)
        {
            let Some(member) = self.presence.member(handle).filter(|m| m.session.is_some()) else {
                continue;
            };
            there += 1;
            let worker = ledger.workers().get(handle);
            let offer = OfferKind::Push;
            let fits = Room::of(member, worker, offer).fit(member, worker, offer, needs, false)
                != Fit::Never
                && member.kinds.has(kind);
            could += u32::from(fits);
            let has_time = policy::has_time(member, profile.time_limit_ms, self.ledger.now());
            late += u32::from(fits && !has_time);
            let off = member.draining
                || matches!(worker.record.standing, Standing::OnHold | Standing::Ejected);
            barred += u32::from(fits && has_time && off);
        }
        let name = &ledger.group(group).name;
        if there == 0 {
            return format!("it is ready, but no worker is connected to group {name}");
        }
        if could == 0 {
            let needs = say_needs(needs, kind);
            return format!(
                "it is ready, but none of the {there} workers of group {name} has {needs}"
            );
        }
        if late > 0 && could == late {
            return format!(
                "it is ready, but all {could} workers that could run it leave before its time limit is over"
            );
        }
        let could = could - late;
        if could == barred {
            return format!(
                "it is ready, but all {could} workers that could run it are on hold, ejected or draining"
            );
        }
        let free = could - barred;
        format!(
            "it is ready and waits its turn: {free} workers can run it and are busy with others"
        )
    }
}

/// Tasks that stand in the way of one: the first few by name, the others by number.
#[derive(Default)]
struct Causes {
    names: Vec<String>,
    more: u32,
    hidden: u32,
}

impl Causes {
    fn add(&mut self, hub: &Hub, task: TaskId, cause: TaskId, sight: Sight) {
        let ledger = hub.ledger();
        let group_of = |job| ledger.find_job(job).map(|handle| ledger.job(handle).group);
        if sight == Sight::OwnGroup && group_of(cause.job) != group_of(task.job) {
            self.hidden += 1;
        } else if self.names.len() < NAMED {
            self.names.push(ledger.shown_name(cause).to_string());
        } else {
            self.more += 1;
        }
    }

    fn words(mut self) -> Option<String> {
        match self.hidden {
            0 => {}
            1 => self.names.push("a task of another group".into()),
            hidden => self.names.push(format!("{hidden} tasks of other groups")),
        }
        match (self.names.is_empty(), self.more) {
            (true, _) => None,
            (false, 0) => Some(self.names.join(", ")),
            (false, more) => Some(format!("{} and {more} more", self.names.join(", "))),
        }
    }
}

fn say_needs(needs: &Needs, demand: Demand) -> String {
    let mut words = vec![format!("{} slots", needs.slots)];
    if needs.memory > 0 {
        words.push(format!("{} MiB of memory", needs.memory >> 20));
    }
    words.extend(needs.resources.iter().map(|(name, count)| format!("{count} {name}")));
    words.extend(needs.tags.iter().map(|tag| format!("the tag {tag}")));
    let kind = match demand.kind {
        WorkKind::Named => "tasks known by name",
        WorkKind::Command => "commands",
        WorkKind::Script => "scripts",
        WorkKind::Indexed => "numbered tasks of a program",
    };
    words.push(format!("a way to run {kind}"));
    let fields: Vec<&str> = demand.fields.words().collect();
    if !fields.is_empty() {
        words.push(format!("support for a {} (newer workers have it)", fields.join(", a ")));
    }
    words.join(", ")
}

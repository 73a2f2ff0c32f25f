//! "Why is this task not running?" in plain words, for any task.

use super::Hub;
use super::loss::times;
use super::policy::{self, Fit, Room};
use crate::id::{GroupId, TaskId, WorkerId};
use crate::ledger::{Phase, Record};
use crate::presence::OfferKind;
use crate::task::{Demand, Needs, Profile, State, WorkKind};
use crate::view::Standing;

/// How many predecessors are named.
const NAMED: usize = 3;
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
            State::Waiting => {
                let preds = self.name_preds(id, false, sight);
                format!("it waits for {}", preds.unwrap_or_else(|| "others".into()))
            }
            State::Blocked => match self.name_preds(id, true, sight) {
                Some(preds) => format!(
                    "it is blocked: {preds} failed or was cancelled; a retry of that releases it"
                ),
                None => "it is blocked: what it comes after failed and is forgotten; \
                    cancel it, or submit it anew"
                    .into(),
            },
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
        let how = outcome.map_or_else(String::new, |outcome| format!(" ({outcome}{by})"));
        format!("it failed{how}; `retry` runs it again")
    }

    /// The first few predecessors that stand in the way. `None`: they are forgotten.
    fn name_preds(&self, id: TaskId, failed: bool, sight: Sight) -> Option<String> {
        let ledger = self.ledger();
        let in_the_way = |phase: Option<State>| match phase {
            Some(State::Failed | State::Cancelled) => failed,
            Some(phase) => !failed && !phase.is_finished(),
            None => true,
        };
        let group_of = |job| ledger.find_job(job).map(|handle| ledger.job(handle).group);
        let own_group = group_of(id.job);
        let is_hidden = |pred: TaskId| sight == Sight::OwnGroup && group_of(pred.job) != own_group;
        let mut names = Vec::new();
        let (mut more, mut hidden) = (0u32, 0u32);
        let gate = ledger.array(id).map(|(_, array)| array.gate);
        for handle in ledger.record_of(id).into_iter().chain(gate) {
            for pred in ledger.graph().preds_of(ledger.task(handle).preds) {
                let record = ledger.task(pred);
                let pred_id = ledger.id_of(pred);
                let stands = match record.state() {
                    Some(phase) => in_the_way(Some(phase)),
                    None => {
                        let (_, array) = ledger.array(pred_id).expect("a gate stands for an array");
                        if failed { array.bad > 0 } else { array.unfinished > 0 }
                    }
                };
                if stands && is_hidden(pred_id) {
                    hidden += 1;
                } else if stands && names.len() < NAMED {
                    names.push(ledger.shown_name(pred_id).to_string());
                } else if stands {
                    more += 1;
                }
            }
        }
        if let Some((_, array)) = ledger.array(id) {
            for &each in &array.each {
                let Some((_, other)) = ledger.array(each) else { continue };
                let pred = TaskId::new(each.job, other.first + (id.index - array.first));
                let job = ledger.job(ledger.find_job(each.job).expect("the array was found"));
                let stands = in_the_way(job.state_of(pred.index));
                if stands && is_hidden(pred) {
                    hidden += 1;
                } else if stands && names.len() < NAMED {
                    names.push(ledger.shown_name(pred).to_string());
                }
            }
        }
        match hidden {
            0 => {}
            1 => names.push("a task of another group".into()),
            hidden => names.push(format!("{hidden} tasks of other groups")),
        }
        match (names.is_empty(), more) {
            (true, _) => None,
            (false, 0) => Some(names.join(", ")),
            (false, more) => Some(format!("{} and {more} more", names.join(", "))),
        }
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

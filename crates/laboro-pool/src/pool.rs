//! One pool: its allocations, what is known of each, and what that means for the next one. Pure: what commands came to and
//! what time it is are arguments. A failure makes it wait and never stops it for good; every change has words.

use crate::demand::Shape;
use crate::scheduler::{Listed, ListedState};
use laboro_api::{PoolAllocation, PoolEvent, PoolKind, PoolSpec};
use laboro_core::{Backlog, counted};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pool {
    pub spec: PoolSpec,
    /// Defined in `hub.toml`; removed when its lines are deleted there.
    #[serde(default)]
    pub from_file: bool,
    pub standing: Standing,
    pub allocations: Vec<Allocation>,
    /// In a row. The next try waits the longer the more there were.
    pub failures: u32,
    pub failures_total: u64,
    pub submitted_total: u64,
    /// Nothing is started before.
    pub wait_until_ms: u64,
    /// What went wrong last, in the batch system's own words.
    pub trouble: Option<String>,
    /// Since when the batch system does not tell what there is, and what it says instead.
    #[serde(default)]
    pub unlisted: Option<(u64, String)>,
    pub events: VecDeque<PoolEvent>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Standing {
    Active,
    /// By a person. Nothing is started; what is there stays.
    Paused,
    /// Everything is cancelled, and the pool goes with the last allocation.
    Removing,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Allocation {
    /// Never used twice by a hub.
    pub number: u64,
    /// `None`: whether it was submitted is not known; its name will tell.
    pub id: Option<String>,
    pub stage: Stage,
    /// Its worker has connected.
    pub worked: bool,
    pub asked_ms: u64,
    pub since_ms: u64,
    /// How often in a row it was not among those that there are.
    #[serde(default)]
    pub missing: u32,
    #[serde(default)]
    pub note: Option<String>,
    /// The machine that it has, of a pool of machines.
    #[serde(default)]
    pub host: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stage {
    Submitting,
    Queued,
    Running,
    Cancelling,
}

impl Stage {
    pub fn word(self) -> &'static str {
        match self {
            Stage::Submitting => "submitting",
            Stage::Queued => "queued",
            Stage::Running => "running",
            Stage::Cancelling => "cancelling",
        }
    }
}

/// Pauses after failures: 5 s, then three times as long each time, up to a quarter of an hour.
const FIRST_WAIT_MS: u64 = 5_000;
const LONGEST_WAIT_MS: u64 = 900_000;

/// A batch system may take this long to show what was submitted.
const UNSEEN_MS: u64 = 15_000;
/// The same where nobody knows whether it was.
const UNSURE_MS: u64 = 120_000;

/// Not being listed once may be a slip of the batch system.
const MISSING_MAX: u32 = 2;

const EVENTS_MAX: usize = 50;

impl Pool {
    pub fn new(spec: PoolSpec, now_ms: u64) -> Pool {
        let mut pool = Pool {
            spec,
            from_file: false,
            standing: Standing::Active,
            allocations: Vec::new(),
            failures: 0,
            failures_total: 0,
            submitted_total: 0,
            wait_until_ms: 0,
            trouble: None,
            unlisted: None,
            events: VecDeque::new(),
        };
        pool.note(now_ms, "the pool was made".to_owned());
        pool
    }

    pub fn note(&mut self, at_ms: u64, text: String) {
        if self.events.len() == EVENTS_MAX {
            self.events.pop_front();
        }
        self.events.push_back(PoolEvent { at_ms, text });
    }

    fn count(&self, stage: Stage) -> u32 {
        self.allocations.iter().filter(|one| one.stage == stage).count() as u32
    }

    pub fn queued(&self) -> u32 {
        self.count(Stage::Queued) + self.count(Stage::Submitting)
    }

    pub fn running(&self) -> u32 {
        self.count(Stage::Running)
    }

    /// Those that will have a worker and have none yet.
    pub fn coming(&self) -> u32 {
        let is_coming = |one: &&Allocation| one.stage != Stage::Cancelling && !one.worked;
        self.allocations.iter().filter(is_coming).count() as u32
    }

    /// How many more may be submitted now, whatever there is to do.
    pub fn room(&self, now_ms: u64) -> u32 {
        let may = self.standing == Standing::Active
            && now_ms >= self.wait_until_ms
            && self.unlisted.is_none();
        if !may {
            return 0;
        }
        let all = self.most().saturating_sub(self.allocations.len() as u32);
        let room = all.min(self.spec.backlog.saturating_sub(self.queued()));
        // After a failure one shows whether it was the last.
        if self.failures > 0 { room.min(u32::from(self.coming() == 0)) } else { room }
    }

    /// A new allocation is about to be submitted. To be kept before it is.
    pub fn submitting(&mut self, number: u64, now_ms: u64) {
        self.submitted_total += 1;
        let host = self.free_host().map(str::to_owned);
        self.allocations.push(Allocation {
            number,
            id: None,
            stage: Stage::Submitting,
            worked: false,
            asked_ms: now_ms,
            since_ms: now_ms,
            missing: 0,
            note: None,
            host,
        });
    }

    /// Of a pool of machines the first without an allocation.
    fn free_host(&self) -> Option<&str> {
        let is_taken =
            |host: &&String| self.allocations.iter().any(|one| one.host.as_ref() == Some(*host));
        let hosts = self.spec.arguments.iter().filter(|_| self.spec.kind == PoolKind::Ssh);
        hosts.filter(|host| !is_taken(host)).map(String::as_str).next()
    }

    /// As many as it may have at once.
    pub fn most(&self) -> u32 {
        match self.spec.kind {
            PoolKind::Ssh => self.spec.max_allocations.min(self.spec.arguments.len() as u32),
            _ => self.spec.max_allocations,
        }
    }

    /// What came of it: its id, or why there is none.
    pub fn submitted(&mut self, number: u64, came_to: Result<String, String>, now_ms: u64) {
        let Some(at) = self.allocations.iter().position(|one| one.number == number) else { return };
        match came_to {
            Ok(id) => {
                self.note(now_ms, format!("allocation {id} was submitted"));
                let one = &mut self.allocations[at];
                (one.id, one.stage, one.since_ms) = (Some(id), Stage::Queued, now_ms);
            }
            Err(words) => {
                self.allocations.remove(at);
                self.failed(format!("an allocation could not be submitted: {words}"), now_ms);
            }
        }
    }

    /// The command that submits did not end in time: what it came to will be seen by the allocation's name.
    pub fn unsure(&mut self, number: u64, words: &str, now_ms: u64) {
        if let Some(one) = self.allocations.iter_mut().find(|one| one.number == number) {
            one.note = Some(words.to_owned());
        }
        self.failed(
            format!("it is not known whether an allocation was submitted: {words}"),
            now_ms,
        );
    }

    fn failed(&mut self, words: String, now_ms: u64) {
        let wait =
            FIRST_WAIT_MS.saturating_mul(3_u64.saturating_pow(self.failures)).min(LONGEST_WAIT_MS);
        self.failures += 1;
        self.failures_total += 1;
        self.wait_until_ms = now_ms + wait;
        self.note(now_ms, words.clone());
        self.trouble = Some(words);
    }

    /// The worker of an allocation has connected.
    pub fn worked(&mut self, number: u64, now_ms: u64) {
        let Some(one) = self.allocations.iter_mut().find(|one| one.number == number) else {
            return;
        };
        if one.worked {
            return;
        }
        one.worked = true;
        if one.stage != Stage::Running && one.stage != Stage::Cancelling {
            (one.stage, one.since_ms) = (Stage::Running, now_ms);
        }
        let id = one.id.clone().unwrap_or_else(|| format!("number {number}"));
        self.note(now_ms, format!("the worker of allocation {id} has connected"));
        self.failures = 0;
        self.wait_until_ms = 0;
        self.trouble = None;
    }

    /// The batch system does not tell what there is. Nothing is taken for lost, and nothing new is started.
    pub fn not_listed(&mut self, words: String, now_ms: u64) {
        if self.unlisted.is_none() {
            self.note(now_ms, format!("the batch system does not list allocations: {words}"));
        }
        let since = self.unlisted.as_ref().map_or(now_ms, |(since, _)| *since);
        self.unlisted = Some((since, words));
    }

    /// What the batch system has now. `named` is the name that an allocation was submitted under; `is_there` says whether
    /// its worker is connected. Gives those that are over.
    pub fn listed(
        &mut self,
        listed: &[Listed],
        named: impl Fn(u64) -> String,
        is_there: impl Fn(u64) -> bool,
        now_ms: u64,
    ) -> Vec<Allocation> {
        if self.unlisted.take().is_some() {
            self.note(now_ms, "the batch system lists allocations again".to_owned());
        }
        let mut over = Vec::new();
        for mut one in std::mem::take(&mut self.allocations) {
            let name = named(one.number);
            let is_it = |found: &&Listed| match &one.id {
                Some(id) => found.id == *id,
                None => found.name.as_deref() == Some(&name),
            };
            let found = listed.iter().find(is_it);
            match found.map(|found| found.state) {
                Some(ListedState::Over) | None => {
                    one.missing += 1;
                    let age = now_ms.saturating_sub(one.asked_ms);
                    let patience = if one.id.is_some() { UNSEEN_MS } else { UNSURE_MS };
                    let is_told = found.is_some();
                    let is_over = (is_told || one.missing >= MISSING_MAX)
                        && (is_told || one.worked || age >= patience)
                        && !is_there(one.number);
                    if is_over {
                        over.push(one);
                        continue;
                    }
                }
                Some(state) => {
                    one.missing = 0;
                    let found = found.expect("it has a state");
                    one.id.get_or_insert_with(|| found.id.clone());
                    one.note.clone_from(&found.note);
                    let stage = match state {
                        ListedState::Queued => Stage::Queued,
                        ListedState::Running => Stage::Running,
                        ListedState::Unknown | ListedState::Over => one.stage,
                    };
                    if one.stage != stage && one.stage != Stage::Cancelling {
                        (one.stage, one.since_ms) = (stage, now_ms);
                    }
                }
            }
            self.allocations.push(one);
        }
        over
    }

    /// An allocation is over. `log` is the end of what it printed.
    pub fn over(&mut self, one: &Allocation, log: Option<&str>, now_ms: u64) {
        let Some(id) = &one.id else {
            self.note(now_ms, format!("allocation number {} was never queued", one.number));
            return;
        };
        let took = words(now_ms.saturating_sub(one.asked_ms));
        if one.worked || one.stage == Stage::Cancelling {
            self.note(now_ms, format!("allocation {id} is over, {took} after it was submitted"));
            return;
        }
        let said = log.map_or(String::new(), |log| format!(": {log}"));
        self.failed(
            format!("allocation {id} ended after {took} and its worker never connected{said}"),
            now_ms,
        );
    }

    /// All are to be cancelled; gives the ids of those that have one.
    pub fn cancelling(&mut self, now_ms: u64) -> Vec<String> {
        for one in self.allocations.iter_mut().filter(|one| one.stage != Stage::Cancelling) {
            (one.stage, one.since_ms) = (Stage::Cancelling, now_ms);
        }
        self.allocations.iter().filter_map(|one| one.id.clone()).collect()
    }

    /// Why it starts nothing more now, or that it does.
    pub fn reason(&self, backlog: &[Backlog], now_ms: u64) -> String {
        match self.standing {
            Standing::Paused => {
                return "paused: nothing is started until `laboro pool resume`".into();
            }
            Standing::Removing => {
                return format!(
                    "being removed: {} still there",
                    counted(self.allocations.len(), "allocation")
                );
            }
            Standing::Active => {}
        }
        if let Some((since, words)) = &self.unlisted {
            let long = self::words(now_ms.saturating_sub(*since));
            return format!(
                "the batch system has not listed allocations for {long}, and nothing is started until it does: {words}"
            );
        }
        if now_ms < self.wait_until_ms {
            let left = words(self.wait_until_ms - now_ms);
            let trouble = self.trouble.as_deref().unwrap_or("a failure");
            return format!(
                "waits {left} after {}: {trouble}",
                counted(self.failures as usize, "failure")
            );
        }
        if self.allocations.len() >= self.most() as usize {
            return format!("has {}, the maximum", counted(self.allocations.len(), "allocation"));
        }
        let queued = self.queued();
        if queued > 0 {
            let waiting =
                |one: &&Allocation| matches!(one.stage, Stage::Queued | Stage::Submitting);
            let mut waiting: Vec<_> = self.allocations.iter().filter(waiting).collect();
            waiting.sort_by_key(|one| one.asked_ms);
            let since = words(now_ms.saturating_sub(waiting[0].asked_ms));
            let note = waiting[0].note.as_ref().map_or(String::new(), |note| format!(" ({note})"));
            let full = if queued >= self.spec.backlog { "; backlog full" } else { "" };
            return format!("{queued} queued since {since}{note}{full}");
        }
        let ready: u64 = backlog.iter().map(|tasks| tasks.tasks).sum();
        if ready == 0 {
            return "no ready task waits for a worker".into();
        }
        let shape = Shape::of(&self.spec);
        match backlog.iter().any(|tasks| tasks.tasks > 0 && shape.tasks_at_once(tasks) > 0) {
            true => "is about to start an allocation".into(),
            false => "no ready task fits a worker of this pool or its time limit".into(),
        }
    }

    /// As others see it.
    pub fn view(&self, reason: String) -> laboro_api::Pool {
        let allocation = |one: &Allocation| PoolAllocation {
            number: one.number,
            id: one.id.clone(),
            state: one.stage.word().to_owned(),
            worker: worker_name(&self.spec.name, one.number),
            worked: one.worked,
            submitted_ms: one.asked_ms,
            since_ms: one.since_ms,
            note: one.note.clone(),
        };
        let state = match self.standing {
            Standing::Active => "active",
            Standing::Paused => "paused",
            Standing::Removing => "removing",
        };
        laboro_api::Pool {
            spec: self.spec.clone(),
            state: state.to_owned(),
            reason,
            queued: self.queued(),
            running: self.running(),
            failures: self.failures,
            failures_total: self.failures_total,
            submitted_total: self.submitted_total,
            allocations: self.allocations.iter().map(allocation).collect(),
            events: self.events.iter().cloned().collect(),
        }
    }
}

/// What the worker of an allocation is called at the hub.
pub fn worker_name(pool: &str, number: u64) -> String {
    format!("{pool}-{number}")
}

/// A length of time.
fn words(ms: u64) -> String {
    let seconds = ms / 1000;
    match seconds {
        0..60 => format!("{seconds} s"),
        60..7200 => format!("{} min", seconds / 60),
        _ => format!("{} h", seconds / 3600),
    }
}

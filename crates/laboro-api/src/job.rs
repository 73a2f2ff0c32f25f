//! Jobs and groups as the hub shows them.

use super::task::Outcome;
use super::text::Text;
use laboro_core::{GroupView, JobView, State};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A set of tasks that were submitted together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Job {
    /// Its number.
    pub job: u32,
    /// The group that it is in.
    #[schema(value_type = String)]
    pub group: Text,
    /// Its name; need not be unique.
    #[serde(default)]
    #[schema(value_type = String)]
    pub name: Text,
    /// Who submitted it: the owner of the token, or `door:` and the dialect of a listener without tokens.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    pub owner: Option<Text>,
    /// Its state.
    pub state: JobState,
    /// How many tasks it has.
    pub tasks: u64,
    /// Tasks by state.
    #[serde(default)]
    pub counts: Counts,
    /// More tasks may be added.
    #[serde(default)]
    pub open: bool,
    /// Nothing of it is started.
    #[serde(default)]
    pub held: bool,
    /// Nothing of it starts before this moment; not given when it has come.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begin_ms: Option<u64>,
    /// More tasks failed than `max_fails` allows; a release or a retry resumes it.
    #[serde(default)]
    pub stopped: bool,
    /// At most this many of its tasks run at once.
    #[serde(default)]
    pub max_running: Option<u32>,
    /// It stops when more tasks than this have failed.
    #[serde(default)]
    pub max_fails: Option<u32>,
    /// Unix time in milliseconds, as all times here.
    pub submitted_ms: u64,
    /// It is closed and every task is done, failed or cancelled.
    #[serde(default)]
    pub ended_ms: Option<u64>,
    /// When it is forgotten with its output at the latest; sooner where the hub has more finished jobs than it keeps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forgotten_ms: Option<u64>,
    /// How many tasks failed, by outcome.
    #[serde(default)]
    pub failures: Vec<Failure>,
    /// What is called when it has ended; of a URL only the host.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub on_end: Vec<String>,
}

/// One word for a job. The first that fits, in this order: stopped, held, running, waiting while it is active; failed, cancelled, done when it has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum JobState {
    /// Nothing of it has started.
    Waiting,
    /// Some of it runs or has run.
    Running,
    /// It is held.
    Held,
    /// Too many tasks have failed.
    Stopped,
    /// All tasks are done.
    Done,
    /// Over, and some tasks failed.
    Failed,
    /// Over, and some tasks were cancelled.
    Cancelled,
    /// A word that this program does not know yet.
    #[serde(other)]
    Unknown,
}

impl JobState {
    /// All of them.
    pub const ALL: [JobState; 7] = [
        JobState::Waiting,
        JobState::Running,
        JobState::Held,
        JobState::Stopped,
        JobState::Done,
        JobState::Failed,
        JobState::Cancelled,
    ];

    /// As it is written.
    pub fn word(self) -> &'static str {
        match self {
            JobState::Waiting => "waiting",
            JobState::Running => "running",
            JobState::Held => "held",
            JobState::Stopped => "stopped",
            JobState::Done => "done",
            JobState::Failed => "failed",
            JobState::Cancelled => "cancelled",
            JobState::Unknown => "unknown",
        }
    }

    /// The state that is written so.
    pub fn from_word(word: &str) -> Option<JobState> {
        JobState::ALL.into_iter().find(|state| state.word() == word)
    }

    fn of(view: &JobView) -> JobState {
        let count = |state| view.counts.of(state);
        match view.ended {
            // What is blocked comes after a failure, if not in this job.
            Some(_) if count(State::Failed) + count(State::Blocked) > 0 => JobState::Failed,
            Some(_) if count(State::Cancelled) > 0 => JobState::Cancelled,
            Some(_) => JobState::Done,
            None if view.stopped => JobState::Stopped,
            None if view.held => JobState::Held,
            None if count(State::Leased) > 0 => JobState::Running,
            None => JobState::Waiting,
        }
    }
}

/// How many tasks are in each state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct Counts {
    /// They wait for other tasks.
    pub waiting: u64,
    /// A task before them failed.
    pub blocked: u64,
    /// They wait for a worker.
    pub ready: u64,
    /// They wait for their next attempt.
    pub delayed: u64,
    /// They are held.
    pub held: u64,
    /// A worker has them. Version 0.1 said `leased`.
    #[serde(alias = "leased")]
    pub running: u64,
    /// They are done.
    pub done: u64,
    /// They have failed.
    pub failed: u64,
    /// They were cancelled.
    pub cancelled: u64,
}

impl Counts {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.unfinished() + self.finished()
    }

    /// Those that are over.
    pub fn finished(&self) -> u64 {
        self.done + self.failed + self.cancelled
    }

    /// Those that are not.
    pub fn unfinished(&self) -> u64 {
        self.waiting + self.blocked + self.ready + self.delayed + self.held + self.running
    }
}

impl From<laboro_core::Counts> for Counts {
    fn from(counts: laboro_core::Counts) -> Counts {
        let of = |state| u64::from(counts.of(state));
        Counts {
            waiting: of(State::Waiting),
            blocked: of(State::Blocked),
            ready: of(State::Ready),
            delayed: of(State::Delayed),
            held: of(State::Held),
            running: of(State::Leased),
            done: of(State::Done),
            failed: of(State::Failed),
            cancelled: of(State::Cancelled),
        }
    }
}

/// How tasks failed, and how many of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Failure {
    /// How they ended.
    pub outcome: Outcome,
    /// How many.
    pub count: u64,
}

/// Where a hook leads, for people: what stands behind the host of a URL is often all that a stranger needs to use it.
pub fn shown_target(target: &str) -> String {
    let start = target.find("://").map(|at| at + 3).filter(|_| {
        let scheme = target.split("://").next().unwrap_or_default();
        // A condition may stand before it.
        let scheme = scheme.rsplit(':').next().unwrap_or_default();
        scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https")
    });
    let Some(start) = start else { return target.to_owned() };
    match target[start..].find(['/', '?', '#']) {
        Some(end) if start + end + 1 < target.len() => format!("{}/…", &target[..start + end]),
        _ => target.to_owned(),
    }
}

impl From<JobView> for Job {
    fn from(view: JobView) -> Job {
        let failures = view.failures.iter();
        Job {
            job: view.job.0,
            group: (&view.group).into(),
            name: (&view.name).into(),
            owner: view.owner.as_ref().map(Text::from),
            state: JobState::of(&view),
            tasks: view.counts.total(),
            counts: view.counts.into(),
            open: view.open,
            held: view.held,
            begin_ms: view.begin.map(|time| time.0),
            stopped: view.stopped,
            max_running: view.max_running,
            max_fails: view.max_fails,
            submitted_ms: view.submitted.0,
            ended_ms: view.ended.map(|time| time.0),
            forgotten_ms: view.forgotten.map(|time| time.0),
            failures: failures.map(|&(o, count)| Failure { outcome: o.into(), count }).collect(),
            on_end: view.on_end.iter().map(|target| shown_target(target)).collect(),
        }
    }
}

impl Job {
    /// Nothing of it goes on unless a person does something: it has ended, or is closed and what is left of
    /// it is held or stopped, or waits for such.
    pub fn is_idle(&self) -> bool {
        let (counts, is_halted) = (&self.counts, self.held || self.stopped);
        let moving = match is_halted {
            true => counts.running,
            false => counts.running + counts.ready + counts.delayed,
        };
        // Tasks that wait while none is held wait for another job's.
        let has_reason = is_halted || counts.waiting == 0 || counts.held > 0;
        self.ended_ms.is_some() || (!self.open && moving == 0 && has_reason)
    }
}

/// One page. `next` is the `from` of the next page, where there is one; a page may be shorter than asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Jobs {
    /// This page.
    pub jobs: Vec<Job>,
    /// `from` of the next page; `null` on the last.
    #[serde(default)]
    pub next: Option<u32>,
}

/// What a wait came to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Waited {
    /// Whether all of them have ended; otherwise the time limit was reached.
    pub finished: bool,
    /// The jobs as they are now.
    pub jobs: Vec<Job>,
}

/// A named queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Group {
    /// Its number.
    pub group: u32,
    /// Its name.
    #[schema(value_type = String)]
    pub name: Text,
    /// Its tasks by state.
    #[serde(default)]
    pub counts: Counts,
    /// Nothing of it is started.
    #[serde(default)]
    pub paused: bool,
}

impl From<GroupView> for Group {
    fn from(view: GroupView) -> Group {
        Group {
            group: view.group.0,
            name: (&view.name).into(),
            counts: view.counts.into(),
            paused: view.paused,
        }
    }
}

/// All groups that the token sees.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Groups {
    /// In the order of their numbers.
    pub groups: Vec<Group>,
}

//! Jobs and groups as the hub shows them.

use super::task::Outcome;
use super::text::Text;
use laboro_core::{GroupView, JobView, State};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Job {
    pub job: u32,
    #[schema(value_type = String)]
    pub group: Text,
    #[serde(default)]
    #[schema(value_type = String)]
    pub name: Text,
    pub state: JobState,
    pub tasks: u64,
    #[serde(default)]
    pub counts: Counts,
    #[serde(default)]
    pub open: bool,
    #[serde(default)]
    pub held: bool,
    /// More tasks failed than `max_fails` allows; a release or a retry lets it go on.
    #[serde(default)]
    pub stopped: bool,
    #[serde(default)]
    pub max_running: Option<u32>,
    #[serde(default)]
    pub max_fails: Option<u32>,
    /// Unix time in milliseconds, as all times here.
    pub submitted_ms: u64,
    /// It is closed and every task is done, failed or cancelled.
    #[serde(default)]
    pub ended_ms: Option<u64>,
    /// How many tasks failed which way.
    #[serde(default)]
    pub failures: Vec<Failure>,
}

/// One word for a job. The first that fits, in this order: stopped, held, running, waiting while it goes on;
/// failed, cancelled, done when it has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum JobState {
    Waiting,
    Running,
    Held,
    Stopped,
    Done,
    Failed,
    Cancelled,
    /// A word that this program does not know yet.
    #[serde(other)]
    Unknown,
}

impl JobState {
    pub const ALL: [JobState; 7] = [
        JobState::Waiting,
        JobState::Running,
        JobState::Held,
        JobState::Stopped,
        JobState::Done,
        JobState::Failed,
        JobState::Cancelled,
    ];

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
    pub waiting: u64,
    pub blocked: u64,
    pub ready: u64,
    pub delayed: u64,
    pub held: u64,
    pub leased: u64,
    pub done: u64,
    pub failed: u64,
    pub cancelled: u64,
}

impl Counts {
    pub fn total(&self) -> u64 {
        self.unfinished() + self.finished()
    }

    pub fn finished(&self) -> u64 {
        self.done + self.failed + self.cancelled
    }

    pub fn unfinished(&self) -> u64 {
        self.waiting + self.blocked + self.ready + self.delayed + self.held + self.leased
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
            leased: of(State::Leased),
            done: of(State::Done),
            failed: of(State::Failed),
            cancelled: of(State::Cancelled),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Failure {
    pub outcome: Outcome,
    pub count: u64,
}

impl From<JobView> for Job {
    fn from(view: JobView) -> Job {
        let failures = view.failures.iter();
        Job {
            job: view.job.0,
            group: (&view.group).into(),
            name: (&view.name).into(),
            state: JobState::of(&view),
            tasks: view.counts.total(),
            counts: view.counts.into(),
            open: view.open,
            held: view.held,
            stopped: view.stopped,
            max_running: view.max_running,
            max_fails: view.max_fails,
            submitted_ms: view.submitted.0,
            ended_ms: view.ended.map(|time| time.0),
            failures: failures.map(|&(o, count)| Failure { outcome: o.into(), count }).collect(),
        }
    }
}

impl Job {
    /// Nothing of it goes on unless a person does something: it has ended, or is closed and what is left of
    /// it is held or stopped, or waits for such.
    pub fn is_idle(&self) -> bool {
        let (counts, is_halted) = (&self.counts, self.held || self.stopped);
        let moving = match is_halted {
            true => counts.leased,
            false => counts.leased + counts.ready + counts.delayed,
        };
        // Tasks that wait while none is held wait for another job's.
        let has_reason = is_halted || counts.waiting == 0 || counts.held > 0;
        self.ended_ms.is_some() || (!self.open && moving == 0 && has_reason)
    }
}

/// One page. `next` is the `from` of the next page, where there is one; a page may be shorter than asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Jobs {
    pub jobs: Vec<Job>,
    #[serde(default)]
    pub next: Option<u32>,
}

/// What a wait came to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Waited {
    /// All of them are where they were waited for; otherwise the time was over.
    pub finished: bool,
    pub jobs: Vec<Job>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Group {
    pub group: u32,
    #[schema(value_type = String)]
    pub name: Text,
    #[serde(default)]
    pub counts: Counts,
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

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Groups {
    pub groups: Vec<Group>,
}

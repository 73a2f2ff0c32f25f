//! Tasks as the hub shows them.

mod shown;

use super::needs::{Missing, ResourceRequest, Variant};
use super::reference::{After, Line};
use super::runner::Runner;
use super::streams::Stdin;
use super::text::Text;
use laboro_core::State;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// One task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Task {
    /// The job.
    pub job: u32,
    /// Its number in the job.
    pub task: u32,
    /// Its name, if it has one.
    #[serde(default)]
    #[schema(value_type = String)]
    pub name: Text,
    /// How messages name it: its name, or its values.
    #[serde(default)]
    pub label: String,
    /// Who submitted its job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub owner: Option<Text>,
    /// Of an array's element: its place, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub element: Option<u32>,
    /// Of an array's element: its value. Several values are separated by the byte 0x1f.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub value: Option<Text>,
    /// Its state.
    pub state: TaskState,
    /// Higher runs first.
    #[serde(default)]
    pub priority: i32,
    /// Attempts that failed.
    #[serde(default)]
    pub failed_attempts: u16,
    /// Attempts that were lost with their worker.
    #[serde(default)]
    pub lost_attempts: u16,
    /// Those that are remembered, oldest first; the last may still run.
    #[serde(default)]
    pub attempts: Vec<Attempt>,
    /// Some output of its last attempt was not kept.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub output_lost: bool,
    /// The number of its lease.
    #[serde(default)]
    pub lease: Option<String>,
    /// Other workers that are kept for it while it runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<String>)]
    pub kept_workers: Vec<Text>,
    /// When it is tried again.
    #[serde(default)]
    pub delayed_until_ms: Option<u64>,
    /// The message of a failure.
    #[serde(default)]
    pub message: Option<String>,
    /// At most 100 of those it waits for.
    #[serde(default)]
    pub after: Vec<After>,
    /// At most 100 of those that wait for it.
    #[serde(default)]
    pub before: Vec<After>,
    /// Of a task that came by dwork: who created it, and what its creator and its worker reported. Only
    /// where one task is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub origin: Option<Text>,
    /// What happened to it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub log: Vec<LogEntry>,
    /// What it runs; only where one task is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<Box<TaskWork>>,
}

/// Where a task was when, by the clock of the program that reported it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct LogEntry {
    /// What it became.
    pub state: String,
    /// Microseconds since the epoch.
    pub time_us: i64,
}

/// What a task runs and needs. In an array placeholders are as they were written.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct TaskWork {
    /// `named`, `command`, `script`, `indexed` or `call`.
    pub kind: String,
    /// What it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<Line>,
    /// What interprets its script.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub script_kind: Option<String>,
    /// What a call takes to its runner.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call_bytes: Option<u64>,
    /// The program that takes its call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runner: Option<Runner>,
    /// At most 64 KiB of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub script: Option<Text>,
    /// Where it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub dir: Option<Text>,
    /// Its own variables.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(value_type = BTreeMap<String, String>)]
    pub env: BTreeMap<String, Text>,
    /// What it reads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stdin: Option<Stdin>,
    /// One file for both streams.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub output: Option<Text>,
    /// A file for one of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub stdout: Option<Text>,
    /// The file for standard error.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub stderr: Option<Text>,
    /// Its niceness.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nice: Option<i32>,
    /// Its umask, in octal digits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub umask: Option<String>,
    /// What reads its line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shell: Option<String>,
    /// A command before its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<String>)]
    pub wrap: Vec<Text>,
    /// A signal before its time is over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
    /// Of an array's element: its place, from 1, and its value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub element: Option<u32>,
    /// What the values are called, in their order; an empty text for one without a name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<String>)]
    pub value_names: Vec<Text>,
    /// The value of this element.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub value: Option<Text>,
    /// Slots that it takes.
    pub slots: u32,
    /// Memory that it needs.
    pub memory_bytes: u64,
    /// Countable things that it needs.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(value_type = BTreeMap<String, Value>)]
    pub resources: BTreeMap<String, ResourceRequest>,
    /// Other ways to run it, of which the first that fits is taken.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub variants: Vec<Variant>,
    /// How many whole workers it takes at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<u32>,
    /// How much time a worker must have left for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_request_ms: Option<u64>,
    /// Tags that its worker must have.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<String>)]
    pub tags: Vec<Text>,
    /// How often it may be tried.
    pub attempts: u16,
    /// How long an attempt may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// It runs also if a task before it failed.
    pub runs_anyway: bool,
}

/// The state of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum TaskState {
    /// It waits for other tasks.
    Waiting,
    /// A task before it failed.
    Blocked,
    /// It waits for a worker.
    Ready,
    /// It waits for its next attempt.
    Delayed,
    /// It is held.
    Held,
    /// A worker has it. Version 0.1 said `leased`.
    #[serde(alias = "leased")]
    Running,
    /// It is done.
    Done,
    /// It has failed.
    Failed,
    /// It was cancelled.
    Cancelled,
    /// A word that this program does not know yet.
    #[serde(other)]
    Unknown,
}

impl TaskState {
    /// As it is written.
    pub fn word(self) -> &'static str {
        self.to_core().map_or("unknown", State::word)
    }

    /// The state that is written so, today or by version 0.1.
    pub fn from_word(word: &str) -> Option<TaskState> {
        let word = if word == "leased" { State::Leased.word() } else { word };
        State::ALL.into_iter().find(|state| state.word() == word).map(TaskState::from)
    }

    /// As the core has it; `None` for a word that is not known.
    pub fn to_core(self) -> Option<State> {
        Some(match self {
            TaskState::Waiting => State::Waiting,
            TaskState::Blocked => State::Blocked,
            TaskState::Ready => State::Ready,
            TaskState::Delayed => State::Delayed,
            TaskState::Held => State::Held,
            TaskState::Running => State::Leased,
            TaskState::Done => State::Done,
            TaskState::Failed => State::Failed,
            TaskState::Cancelled => State::Cancelled,
            TaskState::Unknown => return None,
        })
    }
}

impl From<State> for TaskState {
    fn from(state: State) -> TaskState {
        match state {
            State::Waiting => TaskState::Waiting,
            State::Blocked => TaskState::Blocked,
            State::Ready => TaskState::Ready,
            State::Delayed => TaskState::Delayed,
            State::Held => TaskState::Held,
            State::Leased => TaskState::Running,
            State::Done => TaskState::Done,
            State::Failed => TaskState::Failed,
            State::Cancelled => TaskState::Cancelled,
        }
    }
}

/// One attempt to run a task.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Attempt {
    /// Counted from 1.
    #[serde(default)]
    pub attempt: u16,
    /// The number of the worker.
    pub worker: u32,
    /// Its name.
    #[serde(default)]
    #[schema(value_type = String)]
    pub worker_name: Text,
    /// When it started.
    pub started_ms: u64,
    /// When it ended.
    #[serde(default)]
    pub ended_ms: Option<u64>,
    /// How it ended.
    #[serde(default)]
    pub outcome: Option<Outcome>,
    /// What it used, if its worker has reported that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used: Option<Used>,
    /// Bytes that it printed and that were not kept, as on a full disk.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub output_lost_bytes: u64,
    /// Bytes that it printed beyond what is kept of a task.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub output_truncated_bytes: u64,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde hands over a reference
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// What an attempt used, including the processes that it waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct Used {
    /// Time from start to end.
    pub wall_us: u64,
    /// Processor time in the program.
    pub user_us: u64,
    /// Processor time in the kernel.
    pub system_us: u64,
    /// Of the largest of its processes; 0 if that was so little that it is not known (a few MiB).
    pub peak_memory_bytes: u64,
}

/// How an attempt ended. `code` is the exit code or the signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Outcome {
    /// How it ended.
    pub kind: OutcomeKind,
    /// Exit code, or number of the signal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<i32>,
}

/// How an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum OutcomeKind {
    /// It succeeded.
    Success,
    /// It ended with another code than 0.
    Exit,
    /// A signal ended it.
    Signal,
    /// It took too long.
    TimedOut,
    /// It took more memory than it asked for.
    Memory,
    /// It could not be started.
    Error,
    /// Its worker was lost.
    Lost,
    /// A word that this program does not know yet.
    #[serde(other)]
    Unknown,
}

impl From<laboro_core::Outcome> for Outcome {
    fn from(outcome: laboro_core::Outcome) -> Outcome {
        use laboro_core::Outcome as Core;
        let (kind, code) = match outcome {
            Core::Success => (OutcomeKind::Success, None),
            Core::Exit(code) => (OutcomeKind::Exit, Some(code)),
            Core::Signal(signal) => (OutcomeKind::Signal, Some(signal)),
            Core::TimedOut => (OutcomeKind::TimedOut, None),
            Core::Memory => (OutcomeKind::Memory, None),
            Core::Error => (OutcomeKind::Error, None),
            Core::Lost => (OutcomeKind::Lost, None),
        };
        Outcome { kind, code }
    }
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let code = self.code.unwrap_or_default();
        match self.kind {
            OutcomeKind::Success => f.write_str("success"),
            OutcomeKind::Exit => write!(f, "exit code {code}"),
            OutcomeKind::Signal => write!(f, "signal {code}"),
            OutcomeKind::TimedOut => f.write_str("timed out"),
            OutcomeKind::Memory => f.write_str("too much memory"),
            OutcomeKind::Error => f.write_str("error"),
            OutcomeKind::Lost => f.write_str("lost"),
            OutcomeKind::Unknown => f.write_str("unknown"),
        }
    }
}

/// One page. `next` is the `from` of the next page, where there is one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Tasks {
    /// This page.
    pub tasks: Vec<Task>,
    /// `from` of the next page; `null` on the last.
    #[serde(default)]
    pub next: Option<u32>,
}

/// Why a task is not running, in plain words.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Explained {
    /// The job.
    pub job: u32,
    /// The task.
    pub task: u32,
    /// Why it does not run, in words for people.
    pub explanation: String,
    /// What no worker has, where that is why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<Missing>,
    /// Of a task that waits for a worker: what each pool of its group does about it, in words for people.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pools: Vec<String>,
}

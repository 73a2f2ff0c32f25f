//! What a client sends to have something run: a job, its tasks and arrays.

use super::needs::{ResourceRequest, Variant};
use super::packed::{List, few, few_named};
use super::reference::{After, Line};
use super::runner::Runner;
use super::streams::{Output, Stdin};
use super::text::Text;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// A new job. In `POST jobs` with all its tasks; in `POST jobs/stream` the first line, which the tasks follow.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SubmitJob {
    /// `default`, or the token's own, when not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub group: Option<Text>,
    /// For people; need not be unique.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub name: Option<Text>,
    /// More tasks may be added until it is closed.
    #[serde(default, skip_serializing_if = "is_false")]
    pub open: bool,
    /// Nothing starts until it is released.
    #[serde(default, skip_serializing_if = "is_false")]
    pub held: bool,
    /// Nothing starts before this moment; one that is past is now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begin_ms: Option<u64>,
    /// At most this many of its tasks run at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_running: Option<u32>,
    /// The job stops when more tasks than this have failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_fails: Option<u32>,
    /// Idempotency key: a second submit with the same key in the same group returns the first job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub key: Option<Text>,
    /// What is done when it has ended: `https://…` is sent a POST, `mail:ADDRESS` a mail, anything else is a shell line for the
    /// hub's machine. The hub's settings say who may ask for which.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub on_end: Vec<String>,
    /// What to do when a name is taken.
    #[serde(default, skip_serializing_if = "is_default")]
    pub if_taken: IfTaken,
    /// What to do when a predecessor is not known.
    #[serde(default, skip_serializing_if = "is_default")]
    pub unknown_after: UnknownAfter,
    /// Settings for tasks that do not have them. Variables and resources are merged name by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub defaults: Option<Box<TaskSpec>>,
    /// Its tasks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<TaskSpec>,
}

/// More tasks for an open job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AddTasks {
    /// What to do when a name is taken.
    #[serde(default, skip_serializing_if = "is_default")]
    pub if_taken: IfTaken,
    /// What to do when a predecessor is not known.
    #[serde(default, skip_serializing_if = "is_default")]
    pub unknown_after: UnknownAfter,
    /// Settings for tasks that do not have them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub defaults: Option<Box<TaskSpec>>,
    /// The tasks.
    pub tasks: Vec<TaskSpec>,
}

/// What happens if a task of the same name exists: in the job, or, for a new job with `same` or `merge`, in the group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum IfTaken {
    /// Nothing is submitted.
    #[default]
    Refuse,
    /// The same task again is no news; a different one is refused.
    Same,
    /// Adds predecessors to a task that has not started, and runs a finished one again.
    Merge,
}

/// What happens if a task comes after one that does not exist.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum UnknownAfter {
    /// Nothing is submitted.
    #[default]
    Refuse,
    /// It counts as done.
    Ignore,
}

/// A task, or with one of `count`, `range` and `values` an array of them. Within one request arrays get the
/// first numbers, then come the single tasks, each in the order given.
///
/// With none of `command`, `script` and `call` it is for workers that know what its name means.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskSpec {
    /// Unique in its group; a task without one is known by its number only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub name: Option<Text>,
    /// What it runs: a shell line, or a program and its arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<Line>,
    /// What it runs: a script that travels with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<Script>,
    /// What its `runner` is given: any bytes, up to 1 MiB with its value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub call: Option<Text>,
    /// A program that stays and handles one call after the other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runner: Option<Box<Runner>>,
    /// How many elements, numbered from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
    /// An array over numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<Span>,
    /// An array over these values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<String>>)]
    pub values: Option<List<Text>>,
    /// What has to be done before.
    #[serde(default, skip_serializing_if = "List::is_empty")]
    #[schema(value_type = Vec<After>)]
    pub after: List<After>,
    /// Element i waits for element i of these arrays, which have as many.
    #[serde(default, skip_serializing_if = "List::is_empty")]
    #[schema(value_type = Vec<After>)]
    pub each: List<After>,
    /// The directory it runs in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub dir: Option<Text>,
    /// Variables beside those of the worker.
    #[serde(default, deserialize_with = "few_named", skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(value_type = BTreeMap<String, String>)]
    pub env: BTreeMap<String, Text>,
    /// What it reads on its standard input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdin: Option<Stdin>,
    /// Files at the worker instead of the hub's store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Output>,
    /// From -20 to 19; as its worker when not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nice: Option<i32>,
    /// Octal digits such as `027`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub umask: Option<String>,
    /// What reads its line, where it has one: `bash`, say. `/bin/sh` when not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shell: Option<String>,
    /// Which placeholders its texts may hold: 2 for `{%}`, `{..}` and similar ones. Default: the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placeholders: Option<u32>,
    /// A command before its own, which gets that as its arguments: `["numactl", "--localalloc"]`.
    #[serde(default, deserialize_with = "few", skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<String>)]
    pub wrap: Vec<Text>,
    /// What the values of an array are called, in their order, as in `["model", "seed"]`; an empty text for one without a name.
    #[serde(default, deserialize_with = "few", skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<String>)]
    pub value_names: Vec<Text>,
    /// A signal before its time is over: `USR1@60s`. Needs `timeout_ms`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
    /// Slots that it takes. Default: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slots: Option<u32>,
    /// Memory that must be free at the worker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Countable things such as `gpu`: a number, a fraction of one, or `all`.
    #[serde(default, deserialize_with = "few_named", skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(value_type = BTreeMap<String, Value>)]
    pub resources: BTreeMap<String, ResourceRequest>,
    /// Other ways to run it, each with its own needs: the first that fits is taken, starting with the task's own.
    #[serde(default, deserialize_with = "few", skip_serializing_if = "Vec::is_empty")]
    pub variants: Vec<Variant>,
    /// How many whole workers it takes at once, each of which has what it needs. It runs on the first of them, which knows
    /// the others by `LABORO_NODE_FILE`. Default: a part of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<u32>,
    /// How long a worker must still be available for it to start. Default: `timeout_ms`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_request_ms: Option<u64>,
    /// What a worker must be to get it.
    #[serde(default, deserialize_with = "few", skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<String>)]
    pub tags: Vec<Text>,
    /// Higher runs first. Default: 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<i32>,
    /// How many attempts may fail before the task has failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u16>,
    /// How many attempts may be lost with their worker before the task has failed.
    #[serde(default, alias = "lost_max", skip_serializing_if = "Option::is_none")]
    pub max_lost: Option<u16>,
    /// Exit codes worth another attempt; none given means all.
    #[serde(default, deserialize_with = "few", skip_serializing_if = "Vec::is_empty")]
    pub retry_on: Vec<i32>,
    /// Wait before the second attempt; twice as long before each further one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backoff_ms: Option<u64>,
    /// The longest such wait.
    #[serde(default, alias = "backoff_most_ms", skip_serializing_if = "Option::is_none")]
    pub max_backoff_ms: Option<u64>,
    /// How long an attempt may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Runs once its predecessors have ended, however they ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runs_anyway: Option<bool>,
}

/// A program text. `kind` says what runs it: a file ending such as `.sh` or `.m`, or an interpreter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// What interprets it, such as `sh` or `python3`.
    pub kind: String,
    /// Its text.
    #[schema(value_type = String)]
    pub body: Text,
}

/// `first`, `first + step`, ... up to `last`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Span {
    /// The first number.
    pub first: i64,
    /// The last number, if the step meets it.
    pub last: i64,
    /// How far apart they are. Default: 1.
    #[serde(default = "one")]
    pub step: i64,
}

/// The answer to a submit: the tasks got the numbers from `first` on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Submitted {
    /// The number of the job.
    pub job: u32,
    /// The number of the first task.
    pub first: u32,
    /// How many tasks were added.
    pub count: u32,
    /// The job already existed: the key was used before.
    #[serde(default)]
    pub again: bool,
}

fn one() -> i64 {
    1
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_false(value: &bool) -> bool {
    !value
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

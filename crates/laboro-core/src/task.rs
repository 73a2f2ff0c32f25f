//! What a task is made of: its work, what it needs, how often it may be tried, how it can end.
//! The core carries work around and never looks inside it, except for its kind.

use crate::argv::Argv;
use crate::fields::Fields;
use crate::id::{Name, TaskId};
use crate::value_list::ValueList;
use smallvec::SmallVec;
use std::sync::Arc;

pub use crate::profile::{Backoff, Needs, Profile};
pub use crate::runner::Runner;
pub use crate::setting::{Setting, Stdin, Variable, Warning};

/// Where a task is. `Held` waits for a person, `Delayed` for a time, `Waiting` for other tasks. `Blocked` comes after
/// tasks that are all over, and not all of them well.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
#[allow(missing_docs)]
pub enum State {
    Waiting,
    Blocked,
    Ready,
    Delayed,
    Held,
    Leased,
    Done,
    Failed,
    Cancelled,
}

impl State {
    /// How many there are.
    pub const COUNT: usize = 9;
    /// All of them, in the order in which they are shown.
    pub const ALL: [State; Self::COUNT] = [
        State::Waiting,
        State::Blocked,
        State::Ready,
        State::Delayed,
        State::Held,
        State::Leased,
        State::Done,
        State::Failed,
        State::Cancelled,
    ];

    /// What people call it: what a worker has under a lease runs, for them.
    pub fn word(self) -> &'static str {
        match self {
            State::Waiting => "waiting",
            State::Blocked => "blocked",
            State::Ready => "ready",
            State::Delayed => "delayed",
            State::Held => "held",
            State::Leased => "running",
            State::Done => "done",
            State::Failed => "failed",
            State::Cancelled => "cancelled",
        }
    }

    /// Is the task over?
    pub fn is_finished(self) -> bool {
        matches!(self, State::Done | State::Failed | State::Cancelled)
    }

    /// Nothing comes of it unless a person steps in. What runs whatever happened before it need not wait any longer.
    pub fn is_over(self) -> bool {
        self.is_finished() || self == State::Blocked
    }

    /// What its successors go by: whether it is over, and well.
    pub(crate) fn verdict(self) -> Option<bool> {
        self.is_over().then_some(self == State::Done)
    }
}

/// What a worker is asked to do. Which kinds a worker can take depends on its dialect.
#[derive(Clone, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Work {
    /// The worker knows what the task's name means.
    Named,
    Command(CommandWork),
    /// Boxed, as the next one: there may be millions of commands, and they need not be larger than they are.
    Script(Box<ScriptWork>),
    Indexed(Box<IndexedWork>),
    Call(CallWork),
}

/// A program and how it runs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub struct CommandWork {
    pub program: Program,
    pub setting: Arc<Setting>,
}

/// `kind` says what runs it: a file extension such as `.sh`, or an interpreter.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub struct ScriptWork {
    pub kind: Box<str>,
    pub body: Arc<[u8]>,
    pub setting: Arc<Setting>,
}

/// Bytes for the runner of the setting, which takes one call after the other. In an array the element's value goes
/// with them; nothing has placeholders.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub struct CallWork {
    pub payload: Arc<[u8]>,
    pub setting: Arc<Setting>,
}

/// One program for a whole array, called with the element's number.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub struct IndexedWork {
    pub program: Box<[u8]>,
    pub dir: Box<[u8]>,
    pub log_dir: Box<[u8]>,
}

/// In an array the words may hold placeholders, which whoever runs an element fills in.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Program {
    Argv(Argv),
    Shell(Box<[u8]>),
}

/// Where something is kept is nothing to tell.
impl std::fmt::Debug for Work {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Work::Named => f.write_str("Named"),
            Work::Command(command) => f.debug_tuple("Command").field(command).finish(),
            Work::Script(script) => {
                let ScriptWork { kind, body, setting } = &**script;
                let mut told = f.debug_struct("Script");
                told.field("kind", kind).field("body", body).field("setting", setting).finish()
            }
            Work::Indexed(indexed) => {
                let IndexedWork { program, dir, log_dir } = &**indexed;
                let mut told = f.debug_struct("Indexed");
                told.field("program", program).field("dir", dir).field("log_dir", log_dir).finish()
            }
            Work::Call(call) => f.debug_tuple("Call").field(call).finish(),
        }
    }
}

/// What a worker must be able to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
#[allow(missing_docs)]
pub enum WorkKind {
    Named,
    Command,
    Script,
    Indexed,
    Call,
}

impl Work {
    /// A script for this interpreter.
    pub fn script(kind: impl Into<Box<str>>, body: Arc<[u8]>, setting: Arc<Setting>) -> Work {
        Work::Script(Box::new(ScriptWork { kind: kind.into(), body, setting }))
    }

    /// One program for all elements of an array.
    pub fn indexed(program: Box<[u8]>, dir: Box<[u8]>, log_dir: Box<[u8]>) -> Work {
        Work::Indexed(Box::new(IndexedWork { program, dir, log_dir }))
    }

    /// Which kind it is.
    pub fn kind(&self) -> WorkKind {
        match self {
            Work::Named => WorkKind::Named,
            Work::Command(_) => WorkKind::Command,
            Work::Script(_) => WorkKind::Script,
            Work::Indexed(_) => WorkKind::Indexed,
            Work::Call(_) => WorkKind::Call,
        }
    }

    /// How its process runs, where it is one.
    pub fn setting(&self) -> Option<&Arc<Setting>> {
        match self {
            Work::Command(command) => Some(&command.setting),
            Work::Script(script) => Some(&script.setting),
            Work::Call(call) => Some(&call.setting),
            Work::Named | Work::Indexed(_) => None,
        }
    }

    /// What a worker must know to run it.
    pub fn demand(&self) -> Demand {
        let fields = self.setting().map_or(Fields::NONE, |setting| setting.must_understand());
        Demand { kind: self.kind(), fields }
    }
}

/// What a worker must know to run a task: its kind of work, and the fields of its setting that may not be ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)]
pub struct Demand {
    pub kind: WorkKind,
    pub fields: Fields,
}

impl Demand {
    /// A task known by its name alone.
    pub const NAMED: Demand = Demand::of(WorkKind::Named);

    /// Work of this kind whose setting every worker understands.
    pub const fn of(kind: WorkKind) -> Demand {
        Demand { kind, fields: Fields::NONE }
    }
}

/// The kinds of work a worker can carry, and the fields that it understands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Kinds {
    kinds: u8,
    fields: Fields,
}

impl Kinds {
    /// All kinds and all fields: of a worker in this same program.
    pub const ALL: Kinds = Kinds { kinds: 0b1_1111, fields: Fields::ALL };

    /// Without any field that must be understood.
    pub fn of(kinds: &[WorkKind]) -> Kinds {
        let kinds = kinds.iter().fold(0, |bits, &kind| bits | 1 << kind as u8);
        Kinds { kinds, fields: Fields::NONE }
    }

    /// The same kinds, and these fields.
    #[must_use]
    pub fn understanding(self, fields: Fields) -> Kinds {
        Kinds { fields, ..self }
    }

    /// Can a worker with these run what demands this?
    pub fn has(self, demand: Demand) -> bool {
        self.kinds & 1 << demand.kind as u8 != 0 && self.fields.has_all(demand.fields)
    }
}

/// How one attempt ended, as the worker tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)]
pub enum Outcome {
    Success,
    /// The process ended with this code.
    Exit(i32),
    Signal(i32),
    /// It ran longer than it may.
    TimedOut,
    /// It took more memory than it asked for.
    Memory,
    /// It could not be started, or failed in a way that has only words.
    Error,
    /// Its worker went away.
    Lost,
}

impl Outcome {
    /// Did it go well?
    pub fn is_success(self) -> bool {
        self == Outcome::Success
    }
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Outcome::Success => f.write_str("success"),
            Outcome::Exit(code) => write!(f, "exit code {code}"),
            Outcome::Signal(signal) => write!(f, "signal {signal}"),
            Outcome::TimedOut => f.write_str("timed out"),
            Outcome::Memory => f.write_str("too much memory"),
            Outcome::Error => f.write_str("error"),
            Outcome::Lost => f.write_str("lost"),
        }
    }
}

/// One task as it enters the ledger: everything is decided, names are ids.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct NewTask {
    /// Empty: the task is known by its id alone.
    pub name: Name,
    /// Which of the event's profiles.
    pub profile: u32,
    /// `None` is `Work::Named`, which is worth no pointer.
    pub work: Option<Arc<Work>>,
    pub preds: SmallVec<[TaskId; 2]>,
    /// Bytes that a dialect keeps with the task and gets back.
    pub memo: Option<Arc<[u8]>>,
}

/// One array as it enters the ledger. Its elements have no form of their own until something happens to them.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct NewArray {
    pub name: Name,
    pub count: u32,
    pub profile: u32,
    pub work: Arc<Work>,
    pub values: Values,
    /// Every element waits for these.
    pub preds: Vec<TaskId>,
    /// Element i waits for element i of these arrays, which have as many.
    pub each: Vec<TaskId>,
}

/// What makes one element of an array differ from the next.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Values {
    /// Element i (from 0) stands for the number first + i * step.
    Numbers { first: i64, step: i64 },
    /// Element i stands for the i-th of these, as the submitter wrote them.
    List(Arc<ValueList>),
}

impl<V: AsRef<[u8]>> FromIterator<V> for Values {
    fn from_iter<I: IntoIterator<Item = V>>(values: I) -> Values {
        Values::List(Arc::new(values.into_iter().collect()))
    }
}

impl Values {
    /// Is there a value for each of so many elements?
    pub(crate) fn suit(&self, count: u32) -> bool {
        match self {
            Values::Numbers { first, step } => {
                let span = step.checked_mul(i64::from(count.saturating_sub(1)));
                span.and_then(|span| first.checked_add(span)).is_some()
            }
            Values::List(values) => values.len() == count as usize,
        }
    }
}

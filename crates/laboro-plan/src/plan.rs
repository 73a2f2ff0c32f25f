//! The plan: all that a person asked to have run, in one shape whatever form it came in. An array stays a
//! range of elements, each made on demand. Nothing here knows a hub.

use std::ffi::OsString;
use std::sync::Arc;

use thiserror::Error;

use crate::mistake::{Mistakes, Position};
use crate::settings::Settings;
use crate::template::{Filling, Template};
use crate::values::{Items, Values};
use crate::work::Work;

/// What stops a plan from being made.
#[derive(Debug, Error)]
#[allow(missing_docs)]
pub enum PlanError {
    #[error("{path}: cannot be read: {source}")]
    Read { path: String, source: std::io::Error },
    #[error("{path}: larger than the {max} bytes such a file may have")]
    TooLarge { path: String, max: u64 },
    #[error("{path}: more than {max} links to directories: do they lead to each other?")]
    TooManyLinks { path: String, max: u32 },
    #[error(
        "{path} {why}; its lines were not run\n  to run it: {instead}\n  to run every line as a task of its own: --lines {path}"
    )]
    Foreign { path: String, why: String, instead: String },
    #[error(transparent)]
    Mistakes(#[from] Mistakes),
}

/// All that a person asked to have run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[allow(missing_docs)]
pub struct Plan {
    /// Where it came from, for messages: a file name, or "arguments".
    pub source: String,
    pub job: Job,
    pub parts: Vec<Part>,
}

/// What is said of the job as a whole.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[allow(missing_docs)]
pub struct Job {
    pub name: Option<String>,
    pub group: Option<String>,
    /// The job is stopped once more tasks than this have failed.
    pub fails_max: Option<u64>,
    /// Nothing starts before this time, as it was written.
    pub begin: Option<String>,
}

/// One thing of a plan: a task, or an array of them.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Part {
    Task(Task),
    /// Boxed, so that a list of tasks does not pay for it.
    Array(Box<Array>),
}

/// One task that stands alone.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Task {
    pub name: String,
    pub work: Work,
    pub after: Vec<After>,
    /// Shared, because a million tasks of one file mostly have the same.
    pub settings: Arc<Settings>,
    pub at: Position,
}

/// Tasks that run the same over values.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Array {
    /// May be empty if the array is the whole plan; its tasks are then `1`, `2`, `3` …
    pub name: String,
    pub values: Values,
    pub template: Work<Template>,
    pub after: Vec<After>,
    pub settings: Settings<Template>,
    pub at: Position,
}

/// One thing to wait for, and where that was said.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct After {
    pub on: On,
    pub at: Position,
}

/// What is waited for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum On {
    /// One task, which may be one element of an array (`sweep.3`).
    Task(String),
    /// Every element of an array.
    All(String),
    /// Element i of this array waits for element i of that one.
    Each(String),
}

impl On {
    /// The name that was said.
    pub fn name(&self) -> &str {
        match self {
            On::Task(name) | On::All(name) | On::Each(name) => name,
        }
    }
}

/// One task of an array, made on demand.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Element {
    pub name: String,
    pub work: Work,
    pub settings: Settings,
}

impl Plan {
    /// One with nothing in it.
    pub fn new(source: impl Into<String>) -> Plan {
        Plan { source: source.into(), job: Job::default(), parts: Vec::new() }
    }

    /// How many tasks would run.
    pub fn task_count(&self) -> u64 {
        self.parts.iter().fold(0, |sum: u64, part| sum.saturating_add(part.count()))
    }
}

impl Part {
    /// May be empty if the part is the whole plan.
    pub fn name(&self) -> &str {
        match self {
            Part::Task(task) => &task.name,
            Part::Array(array) => &array.name,
        }
    }

    /// What it waits for.
    pub fn after(&self) -> &[After] {
        match self {
            Part::Task(task) => &task.after,
            Part::Array(array) => &array.after,
        }
    }

    pub(crate) fn after_mut(&mut self) -> &mut Vec<After> {
        match self {
            Part::Task(task) => &mut task.after,
            Part::Array(array) => &mut array.after,
        }
    }

    /// Where it stands in its source.
    pub fn at(&self) -> Position {
        match self {
            Part::Task(task) => task.at,
            Part::Array(array) => array.at,
        }
    }

    /// How many tasks it is.
    pub fn count(&self) -> u64 {
        match self {
            Part::Task(_) => 1,
            Part::Array(array) => array.count(),
        }
    }
}

impl Array {
    /// How many elements it has.
    pub fn count(&self) -> u64 {
        self.values.count()
    }

    /// The name of element `i`, counted from 0: names count from 1.
    pub fn element_name(&self, i: u64) -> String {
        match self.name.as_str() {
            "" => (i + 1).to_string(),
            name => format!("{name}.{}", i + 1),
        }
    }

    /// Element `i`, counted from 0, or nothing past the end.
    pub fn element(&self, i: u64) -> Option<Element> {
        let row = self.values.row(i)?;
        let name = self.element_name(i);
        let columns = self.values.columns();
        let is_range = matches!(columns, [column] if matches!(column.items, Items::Numbers(_)));
        let filling = Filling { name: &name, index: i + 1, row, is_range, slot: None };
        let work = self.template.fill(&filling);
        let settings = self.settings.map(|text, _| -> OsString { text.fill(&filling) });
        drop(filling);
        Some(Element { name, work, settings })
    }

    /// All of them, each made when it is asked for.
    pub fn elements(&self) -> impl Iterator<Item = Element> {
        (0..self.count()).map_while(|i| self.element(i))
    }

    /// The 0-based number of the element of this name.
    pub fn find(&self, element: &str) -> Option<u64> {
        let digits = match self.name.as_str() {
            "" => element,
            name => element.strip_prefix(name)?.strip_prefix('.')?,
        };
        let plain = digits.starts_with(|c: char| matches!(c, '1'..='9'));
        let number: u64 = digits.parse().ok().filter(|_| plain)?;
        (number <= self.count()).then(|| number - 1)
    }
}

//! The parts of a job, as the nodes of its graph.

use super::job::Counts;
use super::reference::After;
use super::task::TaskState;
use super::text::Text;
use laboro_core::PartView;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// An array or a single task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Part {
    /// The number of its first task.
    pub first: u32,
    /// How many tasks it has.
    pub count: u32,
    /// Its name.
    #[serde(default)]
    #[schema(value_type = String)]
    pub name: Text,
    /// Of a single task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<TaskState>,
    /// Tasks that are not over.
    #[serde(default)]
    pub unfinished: u32,
    /// Failed or cancelled.
    #[serde(default)]
    pub bad: u32,
    /// Of an array, where its elements are.
    #[serde(default)]
    pub counts: Counts,
    /// At most 100 of those that come before it as a whole; tasks of other jobs too.
    #[serde(default)]
    pub after: Vec<After>,
    /// Arrays that it follows element by element.
    #[serde(default)]
    pub each: Vec<After>,
}

/// One page. `next` is the `from` of the next page, where there is one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Parts {
    /// This page.
    pub parts: Vec<Part>,
    /// `from` of the next page; `null` on the last.
    #[serde(default)]
    pub next: Option<u32>,
}

/// Tasks of a job in one state, by their numbers. `next` is the `from` of the next page, where there is one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Ranges {
    /// Ascending.
    pub ranges: Vec<Range>,
    /// `from` of the next page; `null` on the last.
    #[serde(default)]
    pub next: Option<u32>,
}

/// Tasks with neighbouring numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Range {
    /// The first.
    pub first: u32,
    /// The last, which is one of them.
    pub last: u32,
}

impl From<PartView> for Part {
    fn from(view: PartView) -> Part {
        let counts = Counts::from(view.counts);
        Part {
            first: view.first,
            count: view.count,
            name: (&view.name).into(),
            state: view.state.map(TaskState::from),
            unfinished: u32::try_from(counts.unfinished()).unwrap_or(u32::MAX),
            bad: u32::try_from(counts.failed + counts.cancelled).unwrap_or(u32::MAX),
            counts,
            after: After::all(view.preds),
            each: After::all(view.each),
        }
    }
}

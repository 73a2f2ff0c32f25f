//! The commands, one file each.

pub(crate) mod completions;
pub(crate) mod graph;
pub(crate) mod journal;
pub(crate) mod logs;
pub(crate) mod man;
pub(crate) mod run;

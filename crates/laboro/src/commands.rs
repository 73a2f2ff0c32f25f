//! The commands, one file each.

pub(crate) mod graph;
pub(crate) mod journal;
pub(crate) mod logs;
pub(crate) mod run;

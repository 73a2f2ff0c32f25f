//! The commands, one file each.

pub(crate) mod audit;
pub(crate) mod completions;
pub(crate) mod control;
pub(crate) mod dashboard;
pub(crate) mod doctor;
pub(crate) mod events;
pub(crate) mod explain;
pub(crate) mod graph;
pub(crate) mod groups;
pub(crate) mod hooks;
pub(crate) mod jobs;
pub(crate) mod journal;
pub(crate) mod logs;
pub(crate) mod man;
pub(crate) mod run;
pub(crate) mod schedule;
pub(crate) mod show;
pub(crate) mod status;
pub(crate) mod submit;
pub(crate) mod tasks;
pub(crate) mod wait;
pub(crate) mod workers;

//! What the conversations at one door have in common: their group, the rule for good results, and the roll of who is
//! there.

use super::DEFAULT_GROUP;
use super::manager::Manager;
use super::roll::Roll;
use super::words::NAME_BYTES_MAX;
use crate::session::SessionContext;
use bytes::Bytes;
use laboro_core::{Grant, Work};
use std::collections::HashSet;
use std::sync::Arc;

/// What makes a script's run good. Commands always go by their exit status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Success {
    /// As the runner says it: by the last line with `RES:` in it.
    #[default]
    ResLine,
    /// The exit status that the result's header tells.
    ExitCode,
}

/// Fills in the placeholders of one element of an array. `Err` says why that cannot be.
pub type Fill = fn(&Grant) -> Result<Filled, String>;

/// An element of an array with its values in it.
#[derive(Clone, Debug)]
pub struct Filled {
    /// What runs.
    pub work: Work,
    /// If it is a script, which is never rewritten.
    pub arguments: Vec<Box<[u8]>>,
}

/// Why a door cannot be what is asked of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum Unsayable {
    #[error("the group `{0}` has white space in it or is too long: runexp has no way to say it")]
    Group(String),
}

/// What the conversations of one manager share.
#[derive(Clone)]
pub struct ManagerDoor {
    pub(super) group: Bytes,
    pub(super) success: Success,
    pub(super) fill: Option<Fill>,
    pub(super) stays: bool,
    pub(super) is_watched: bool,
    pub(super) follows: Option<Former>,
    pub(super) limits: RunnerLimits,
    pub(super) roll: Arc<Roll>,
}

/// A manager that was here before. Nobody knows any more what it gave out.
#[derive(Clone, Debug)]
pub(super) struct Former {
    /// What was done in its time: a runner may not have heard that its result was received.
    pub(super) done: Arc<HashSet<Bytes>>,
}

#[derive(Clone, Debug)]
pub(super) struct RunnerLimits {
    /// From the connection to JES.
    pub(super) handshake_ms: u64,
    /// A peer that is due to say something and says nothing for so long is dropped.
    pub(super) exchange_ms: u64,
    pub(super) result_bytes: u64,
    /// Jobs at one runner.
    pub(super) lent: usize,
}

impl Default for RunnerLimits {
    fn default() -> RunnerLimits {
        RunnerLimits {
            handshake_ms: 10_000,
            exchange_ms: 60_000,
            result_bytes: 4 << 30,
            lent: 10_000,
        }
    }
}

impl ManagerDoor {
    /// Runners are told this group.
    pub fn new(group: &str) -> Result<ManagerDoor, Unsayable> {
        let group = if group.is_empty() { DEFAULT_GROUP } else { group };
        if group.contains(char::is_whitespace) || group.len() > NAME_BYTES_MAX {
            return Err(Unsayable::Group(group.to_owned()));
        }
        Ok(ManagerDoor {
            group: Bytes::copy_from_slice(group.as_bytes()),
            success: Success::default(),
            fill: None,
            stays: false,
            is_watched: false,
            follows: None,
            limits: RunnerLimits::default(),
            roll: Arc::default(),
        })
    }

    /// What makes a result a good one.
    pub fn with_success(mut self, success: Success) -> ManagerDoor {
        self.success = success;
        self
    }

    /// Without it elements of arrays fail with words that say so.
    pub fn with_fill(mut self, fill: Fill) -> ManagerDoor {
        self.fill = Some(fill);
        self
    }

    /// Runners are not sent home when nothing is left: more may come.
    pub fn staying(mut self) -> ManagerDoor {
        self.stays = true;
        self
    }

    /// That a runner has gone is told by its connection alone: whoever drives the conversations ends each of them, and
    /// may be slow to call `tick`.
    pub fn watched(mut self) -> ManagerDoor {
        self.is_watched = true;
        self
    }

    /// Jobs were given out here before, and nobody knows which: results of those that nobody has count, and those of
    /// what was done then are taken once more.
    pub fn following_another(mut self, done: HashSet<Bytes>) -> ManagerDoor {
        self.follows = Some(Former { done: Arc::new(done) });
        self
    }

    /// As runners are told it.
    pub fn group(&self) -> &[u8] {
        &self.group
    }

    /// For one connection.
    pub fn session(&self, context: SessionContext) -> Manager {
        Manager::new(self.clone(), context)
    }
}

impl std::fmt::Debug for ManagerDoor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ManagerDoor").field("group", &self.group).finish_non_exhaustive()
    }
}

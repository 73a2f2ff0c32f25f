//! Keeps tasks within the memory and the processors they asked for: by a cgroup each where this worker may
//! make some, else by looking at their memory. Processors are limited by cgroups only.

mod cgroup;
mod watch;

use laboro_dialects::worker::Assignment;

use crate::memory::size;
use crate::{Ending, Limits};
use cgroup::Cgroups;
use watch::Watch;

pub(super) use watch::Over;

/// What keeps tasks within their limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitBy {
    /// Cgroups where they are to be had, else as `Watch`.
    Best,
    Cgroup,
    /// The memory that their processes take is looked at, and what takes more is ended.
    Watch,
    /// They can reserve no more memory than they asked for, used or not.
    AddressSpace,
    Nothing,
}

#[derive(Debug)]
pub(super) enum Confinement {
    Cgroups(Cgroups),
    Watch(Watch),
    AddressSpace,
    Nothing,
}

/// A task was ended because it took too much memory.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Excess {
    pub(super) words: String,
    /// What it took, as far as that is known.
    pub(super) bytes: u64,
}

impl Excess {
    pub(super) fn new(bytes: u64, limit: u64) -> Excess {
        let words = format!("it used {} of memory and asked for {}", size(bytes), size(limit));
        Excess { words, bytes }
    }
}

impl Confinement {
    /// With words for people where it is not what they may expect. `Err` says why it cannot be what they want.
    pub(super) fn choose(by: LimitBy) -> Result<(Confinement, Option<String>), String> {
        Ok(match by {
            LimitBy::Nothing => (Confinement::Nothing, None),
            LimitBy::Watch => (Confinement::Watch(Watch::new()), None),
            LimitBy::AddressSpace => (Confinement::AddressSpace, None),
            LimitBy::Cgroup => (Confinement::Cgroups(Cgroups::open()?), None),
            LimitBy::Best => match Cgroups::open() {
                Ok(cgroups) => (Confinement::Cgroups(cgroups), None),
                Err(why) => {
                    let words = format!(
                        "no cgroups here ({why}): memory of tasks is watched, CPU is not limited"
                    );
                    (Confinement::Watch(Watch::new()), Some(words))
                }
            },
        })
    }

    pub(super) fn limits(&self, assignment: &Assignment) -> Limits {
        let is_limited = matches!(self, Confinement::AddressSpace) && assignment.memory > 0;
        Limits { address_space_bytes: is_limited.then_some(assignment.memory), ..Limits::default() }
    }

    /// Before the process is there.
    pub(super) fn prepare(&mut self, assignment: &Assignment, slots: u32) -> Result<(), String> {
        match self {
            Confinement::Cgroups(cgroups) => {
                cgroups.make(assignment.key.0, assignment.memory, slots)
            }
            Confinement::Watch(watch) => {
                watch.expect(assignment.key.0, assignment.memory);
                Ok(())
            }
            Confinement::AddressSpace | Confinement::Nothing => Ok(()),
        }
    }

    /// The process is there. What it has forked by now stays outside of its cgroup.
    pub(super) fn enter(&mut self, key: u64, pid: u32) {
        match self {
            Confinement::Cgroups(cgroups) => cgroups.enter(key, pid),
            Confinement::Watch(watch) => watch.enter(key, pid),
            Confinement::AddressSpace | Confinement::Nothing => {}
        }
    }

    /// The next task that takes too much, and has to be ended.
    pub(super) async fn over(&mut self) -> Over {
        match self {
            Confinement::Watch(watch) => watch.over().await,
            Confinement::Cgroups(_) | Confinement::AddressSpace | Confinement::Nothing => {
                std::future::pending().await
            }
        }
    }

    /// The task is over. Says so if its limit was what ended it.
    pub(super) fn leave(&mut self, key: u64, ending: &Ending) -> Option<Excess> {
        let excess = match self {
            Confinement::Cgroups(cgroups) => cgroups.leave(key),
            Confinement::Watch(watch) => watch.leave(key),
            Confinement::AddressSpace | Confinement::Nothing => None,
        };
        excess.filter(|_| !matches!(ending, Ending::Exited(_)))
    }
}

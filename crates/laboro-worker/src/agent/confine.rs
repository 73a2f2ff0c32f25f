//! Keeps tasks within the memory and the processors they asked for: by a cgroup each where this worker may
//! make some, else by resource limits, which know memory only.

mod cgroup;

use laboro_dialects::worker::Assignment;

use crate::{Ending, Limits};
use cgroup::Cgroups;

/// What keeps tasks within their limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitBy {
    /// Cgroups where they are to be had, else resource limits.
    Best,
    Cgroup,
    Rlimit,
    Nothing,
}

#[derive(Debug)]
pub(super) enum Confinement {
    Cgroups(Cgroups),
    Rlimit,
    Nothing,
}

impl Confinement {
    /// With words for people where it is not what they may expect. `Err` says why it cannot be what they want.
    pub(super) fn choose(by: LimitBy) -> Result<(Confinement, Option<String>), String> {
        Ok(match by {
            LimitBy::Nothing => (Confinement::Nothing, None),
            LimitBy::Rlimit => (Confinement::Rlimit, None),
            LimitBy::Cgroup => (Confinement::Cgroups(Cgroups::open()?), None),
            LimitBy::Best => match Cgroups::open() {
                Ok(cgroups) => (Confinement::Cgroups(cgroups), None),
                Err(why) => {
                    let words = format!(
                        "no cgroups for tasks ({why}): their memory is limited by address space, \
                         their processors not at all"
                    );
                    (Confinement::Rlimit, Some(words))
                }
            },
        })
    }

    pub(super) fn limits(&self, assignment: &Assignment) -> Limits {
        let is_limited = matches!(self, Confinement::Rlimit) && assignment.memory > 0;
        Limits { address_space_bytes: is_limited.then_some(assignment.memory), ..Limits::default() }
    }

    /// Before the process is there.
    pub(super) fn prepare(&mut self, assignment: &Assignment, slots: u32) -> Result<(), String> {
        match self {
            Confinement::Cgroups(cgroups) => {
                cgroups.make(assignment.key.0, assignment.memory, slots)
            }
            Confinement::Rlimit | Confinement::Nothing => Ok(()),
        }
    }

    /// The process is there. What it has forked by now stays outside.
    pub(super) fn enter(&mut self, key: u64, pid: u32) {
        if let Confinement::Cgroups(cgroups) = self {
            cgroups.enter(key, pid);
        }
    }

    /// The task is over. Says so if its limit was what ended it.
    pub(super) fn leave(&mut self, key: u64, ending: &Ending) -> Option<String> {
        match self {
            Confinement::Cgroups(cgroups) => {
                let was_killed = cgroups.leave(key);
                (was_killed && !ending.is_success())
                    .then(|| "it used more memory than it asked for, and was killed".into())
            }
            Confinement::Rlimit | Confinement::Nothing => None,
        }
    }
}

//! The record of one task: what is known of it while it is more than a number in a range. Also stands
//! for a whole array as its *gate*: the place that predecessors and successors of the array hang on.

use super::handle::{EdgeHandle, JobHandle, LaneHandle, LeaseHandle, ProfileHandle, TaskHandle};
use crate::id::{LeaseNo, Name, Time, WorkerId};
use crate::task::{Outcome, Profile, State, Work};
use std::sync::Arc;

/// Kept small on purpose: there may be millions. A test holds it to its size.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) name: Name,
    pub(crate) phase: Phase,
    pub(crate) work: Option<Arc<Work>>,
    /// Tasks that were submitted together often have the same, and then share it.
    pub(crate) extra: Option<Arc<Extra>>,
    /// Handle of its job.
    pub(crate) job: JobHandle,
    /// Number in its job; of a gate, its array's first.
    pub(crate) index: u32,
    pub(crate) profile: ProfileHandle,
    /// Predecessors that are not finished.
    pub(crate) waiting: u32,
    /// Predecessors that failed or were cancelled.
    pub(crate) failed: u32,
    /// Last edge of each ring; its next is the first.
    pub(crate) succs: EdgeHandle,
    pub(crate) preds: EdgeHandle,
    pub(crate) fails: u16,
    pub(crate) lost: u16,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    Vacant,
    Waiting,
    Blocked,
    Ready(Link),
    Delayed {
        until: Time,
    },
    Held,
    Leased {
        lease: LeaseHandle,
    },
    Finished {
        outcome: Outcome,
        worker: WorkerId,
        took_ms: u32,
        started: Time,
    },
    Cancelled,
    /// Of an array: in a lane while it has elements that wait there for a worker.
    Gate(Link),
}

/// A place in a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) lane: LaneHandle,
    pub(crate) prev: TaskHandle,
    pub(crate) next: TaskHandle,
}

impl Link {
    pub(crate) const OUT: Link =
        Link { lane: LaneHandle::NONE, prev: TaskHandle::NONE, next: TaskHandle::NONE };
}

/// What few tasks have.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Extra {
    pub(crate) memo: Option<Arc<[u8]>>,
    pub(crate) message: Option<Box<str>>,
    /// Attempts before the last, the oldest first, at most `PAST_MOST`.
    pub(crate) past: Vec<Past>,
    /// The lease that lapsed last, while nobody else has taken or finished the task.
    pub(crate) lapsed: Option<(LeaseNo, WorkerId)>,
}

impl Extra {
    /// Nothing but these notes.
    pub(crate) fn is_only(&self, memo: &Arc<[u8]>) -> bool {
        let same = |own: &Arc<[u8]>| Arc::ptr_eq(own, memo) || own == memo;
        self.memo.as_ref().is_some_and(same)
            && self.message.is_none()
            && self.past.is_empty()
            && self.lapsed.is_none()
    }
}

const PAST_MOST: usize = 100;

/// What the message of a task that the hub holds begins with.
pub(crate) const HELD_BECAUSE: &str = "held: ";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Past {
    pub(crate) outcome: Outcome,
    pub(crate) worker: WorkerId,
    pub(crate) started: Time,
    pub(crate) took_ms: u32,
}

impl Record {
    pub(crate) fn new(
        name: Name,
        job: JobHandle,
        index: u32,
        profile: ProfileHandle,
        phase: Phase,
    ) -> Record {
        Record {
            name,
            phase,
            work: None,
            extra: None,
            job,
            index,
            profile,
            waiting: 0,
            failed: 0,
            succs: EdgeHandle::NONE,
            preds: EdgeHandle::NONE,
            fails: 0,
            lost: 0,
        }
    }

    pub(crate) fn vacant() -> Record {
        Record::new(Name::default(), JobHandle::NONE, 0, ProfileHandle::NONE, Phase::Vacant)
    }

    pub(crate) fn is_gate(&self) -> bool {
        matches!(self.phase, Phase::Gate(_))
    }

    /// A gate has no state of its own.
    pub(crate) fn state(&self) -> Option<State> {
        match self.phase {
            Phase::Vacant | Phase::Gate(_) => None,
            Phase::Waiting => Some(State::Waiting),
            Phase::Blocked => Some(State::Blocked),
            Phase::Ready(_) => Some(State::Ready),
            Phase::Delayed { .. } => Some(State::Delayed),
            Phase::Held => Some(State::Held),
            Phase::Leased { .. } => Some(State::Leased),
            Phase::Finished { outcome: Outcome::Success, .. } => Some(State::Done),
            Phase::Finished { .. } => Some(State::Failed),
            Phase::Cancelled => Some(State::Cancelled),
        }
    }

    /// Nothing is known of it that a number in a range could not tell.
    pub(crate) fn is_untouched(&self) -> bool {
        let Record { waiting, failed, succs, preds, fails, lost, .. } = *self;
        (waiting, failed) == (0, 0)
            && (succs, preds) == (EdgeHandle::NONE, EdgeHandle::NONE)
            && (fails, lost) == (0, 0)
            && self.extra.as_ref().is_none_or(|extra| **extra == Extra::default())
    }

    pub(crate) fn extra_mut(&mut self) -> &mut Extra {
        Arc::make_mut(self.extra.get_or_insert_default())
    }

    /// Somebody has taken or finished the task.
    pub(crate) fn forget_lapsed(&mut self) {
        if self.extra.as_ref().is_some_and(|extra| extra.lapsed.is_some()) {
            self.extra_mut().lapsed = None;
        }
    }

    /// A task that is run again and again remembers its last attempts, not all of them.
    pub(crate) fn remember(&mut self, attempt: Past) {
        let past = &mut self.extra_mut().past;
        if past.len() == PAST_MOST {
            past.remove(0);
        }
        past.push(attempt);
    }

    /// The number of the attempt that runs or comes next. It is counted on when a person has the task tried
    /// again, although `fails` and `lost` begin anew: what an attempt printed is found by its number.
    pub(crate) fn attempt(&self) -> u16 {
        let past = self.extra.as_ref().map_or(0, |extra| extra.past.len());
        let past = u16::try_from(past).unwrap_or(u16::MAX);
        self.fails.saturating_add(self.lost).max(past).saturating_add(1)
    }

    /// It was lost with its worker so often that it runs alone, to see whether it is the cause.
    pub(crate) fn is_suspect(&self, profile: &Profile) -> bool {
        self.lost > 0 && self.lost >= profile.lost_max
    }

    /// Why the hub holds it, where it was the hub that did.
    pub(crate) fn held_because(&self) -> Option<&str> {
        self.extra.as_ref()?.message.as_deref()?.strip_prefix(HELD_BECAUSE)
    }

    pub(crate) fn memo(&self) -> Option<&Arc<[u8]>> {
        self.extra.as_ref().and_then(|extra| extra.memo.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_fits_in_96_bytes() {
        assert!(size_of::<Phase>() <= 24, "a phase takes {} bytes", size_of::<Phase>());
        assert!(size_of::<Record>() <= 96, "a record takes {} bytes", size_of::<Record>());
    }

    #[test]
    fn the_same_notes_are_kept_once_until_one_task_has_more() {
        let mut state = super::super::Ledger::default();
        let notes = |text: &str| Arc::from(text.as_bytes());
        let mut records = [Record::vacant(), Record::vacant()];
        for record in &mut records {
            record.extra = Some(state.extra_of(&notes("host")));
        }
        let [one, other] = records.each_mut().map(|record| record.extra.clone().unwrap());
        assert!(Arc::ptr_eq(&one, &other));
        records[0].extra_mut().message = Some("why".into());
        assert_eq!(records[1].extra.as_ref().unwrap().message, None);
        assert_eq!(*records[0].memo().unwrap(), notes("host"));
        assert!(!Arc::ptr_eq(&one, &state.extra_of(&notes("elsewhere"))));
    }
}

//! Leases and results: the bulk of a journal. Each is a byte of flags and only what is not as expected,
//! so that a run of neighbours takes two bytes an event.

use super::deltas::Line;
use super::{Decoder, Encoder};
use crate::record::RecordError;
use laboro_core::{
    Amount, Event, LeaseNo, Outcome, Portion, ReturnReason, Share, TaskId, Then, Time, Words,
    WorkerId,
};
use std::sync::Arc;

const TASK_GIVEN: u8 = 1;
const LEASE_GIVEN: u8 = 2;
const WORKER_GIVEN: u8 = 4;
const UNTIL_GIVEN: u8 = 8;
const SHARE_GIVEN: u8 = 16;
/// The share has more than whole items.
const FULL_SHARE: u8 = 32;
/// The share names other workers.
const NODES_GIVEN: u8 = 64;
const KNOWN_OF_LEASES: u8 =
    TASK_GIVEN | LEASE_GIVEN | WORKER_GIVEN | UNTIL_GIVEN | SHARE_GIVEN | FULL_SHARE | NODES_GIVEN;

/// Of a result; task and worker as above.
const OUTCOME_GIVEN: u8 = 2;
const WORDS_GIVEN: u8 = 8;

/// Is there more than whole items in it?
pub(super) fn is_full(share: &Share) -> bool {
    let is_whole = |portion: &Portion| *portion == Portion::of_items(portion.items);
    share.variant > 0 || !share.portions.iter().all(|(_, portion)| is_whole(portion))
}

impl Encoder {
    pub(super) fn leased(
        &mut self,
        task: TaskId,
        lease: LeaseNo,
        worker: WorkerId,
        until: Option<Time>,
        share: Option<&Share>,
    ) {
        let mut flags = 0;
        let mut mark = |flag, given: bool| flags |= if given { flag } else { 0 };
        mark(TASK_GIVEN, task != self.last.next_task(Line::Leased));
        mark(LEASE_GIVEN, lease != self.last.next_lease());
        mark(WORKER_GIVEN, worker != self.last.worker);
        mark(UNTIL_GIVEN, until != self.last.until);
        mark(SHARE_GIVEN, share.is_some());
        mark(FULL_SHARE, share.is_some_and(is_full));
        mark(NODES_GIVEN, share.is_some_and(|share| !share.nodes.is_empty()));
        self.out.u8(flags);
        if flags & TASK_GIVEN != 0 {
            self.task(Line::Leased, task);
        }
        if flags & LEASE_GIVEN != 0 {
            self.lease(lease);
        }
        if flags & WORKER_GIVEN != 0 {
            self.worker(worker);
        }
        if flags & UNTIL_GIVEN != 0 {
            self.option(until, Encoder::time);
        }
        match share {
            Some(share) if is_full(share) => self.full_share(share),
            Some(share) => self.share(share),
            None => {}
        }
        if let Some(share) = share.filter(|share| !share.nodes.is_empty()) {
            self.nodes(share);
        }
        self.last.set_task(Line::Leased, task);
        (self.last.lease, self.last.until) = (lease, until);
    }

    pub(super) fn finished(
        &mut self,
        task: TaskId,
        worker: WorkerId,
        outcome: Outcome,
        then: Then,
        words: Option<&Words>,
    ) {
        let mut flags = 0;
        let mut mark = |flag, given: bool| flags |= if given { flag } else { 0 };
        mark(TASK_GIVEN, task != self.last.next_task(Line::Finished));
        mark(OUTCOME_GIVEN, (outcome, then) != (Outcome::Success, Then::Done));
        mark(WORKER_GIVEN, worker != self.last.worker);
        mark(WORDS_GIVEN, words.is_some());
        self.out.u8(flags);
        if flags & TASK_GIVEN != 0 {
            self.task(Line::Finished, task);
        }
        if flags & WORKER_GIVEN != 0 {
            self.worker(worker);
        }
        if flags & OUTCOME_GIVEN != 0 {
            self.outcome(outcome);
            self.then(then);
        }
        if let Some(Words { message, memo }) = words {
            self.option(message.as_deref(), |to, message| to.out.string(message.as_bytes()));
            self.option(memo.as_deref(), |to, memo| to.out.string(memo));
        }
        self.last.set_task(Line::Finished, task);
    }

    /// Whole items only.
    pub(super) fn share(&mut self, share: &Share) {
        self.list(&share.portions, |to, (name, portion)| {
            to.out.string(name.bytes());
            to.out.u128(portion.items);
        });
    }

    /// The other workers of its task.
    pub(super) fn nodes(&mut self, share: &Share) {
        self.list(&share.nodes, |to, worker| to.out.u32(worker.0));
    }

    /// With whatever else it has.
    pub(super) fn full_share(&mut self, share: &Share) {
        self.out.u8(share.variant);
        self.list(&share.portions, |to, (name, portion)| {
            to.out.string(name.bytes());
            to.out.u128(portion.items);
            to.out.u64(portion.amount.parts());
            to.option(portion.shared, |to, (item, parts)| {
                to.out.u8(item);
                to.out.u64(parts.into());
            });
        });
    }

    pub(super) fn outcome(&mut self, outcome: Outcome) {
        let (code, detail) = match outcome {
            Outcome::Success => (0, None),
            Outcome::Exit(code) => (1, Some(code)),
            Outcome::Signal(signal) => (2, Some(signal)),
            Outcome::TimedOut => (3, None),
            Outcome::Error => (4, None),
            Outcome::Lost => (5, None),
            Outcome::Memory => (6, None),
        };
        self.out.u8(code);
        if let Some(detail) = detail {
            self.out.i64(i64::from(detail));
        }
    }

    fn then(&mut self, then: Then) {
        match then {
            Then::Done => self.out.u8(0),
            Then::Failed => self.out.u8(1),
            Then::Again(time) => {
                self.out.u8(2);
                self.time(time);
            }
        }
    }

    pub(super) fn back(&mut self, back: ReturnReason) {
        self.out.u8(match back {
            ReturnReason::Lapsed => 0,
            ReturnReason::Left => 1,
            ReturnReason::Handed => 2,
            ReturnReason::Revoked => 3,
        });
    }
}

impl Decoder<'_> {
    pub(super) fn leased(&mut self) -> Result<Event, RecordError> {
        let flags = self.flags(KNOWN_OF_LEASES)?;
        let task = match flags & TASK_GIVEN {
            0 => self.last.next_task(Line::Leased),
            _ => self.task(Line::Leased)?,
        };
        let lease = match flags & LEASE_GIVEN {
            0 => self.last.next_lease(),
            _ => self.lease()?,
        };
        let worker = match flags & WORKER_GIVEN {
            0 => self.last.worker,
            _ => self.worker()?,
        };
        let until = match flags & UNTIL_GIVEN {
            0 => self.last.until,
            _ => self.option(Decoder::time)?,
        };
        let mut share = match flags & SHARE_GIVEN {
            0 => None,
            _ if flags & FULL_SHARE != 0 => Some(self.full_share()?),
            _ => Some(self.share()?),
        };
        if flags & NODES_GIVEN != 0 {
            share.get_or_insert_default().nodes = self.nodes()?;
        }
        let share = share.map(Arc::new);
        self.last.set_task(Line::Leased, task);
        (self.last.lease, self.last.until) = (lease, until);
        Ok(Event::Leased { task, lease, worker, until, share })
    }

    pub(super) fn finished(&mut self) -> Result<Event, RecordError> {
        let flags = self.flags(TASK_GIVEN | OUTCOME_GIVEN | WORKER_GIVEN | WORDS_GIVEN)?;
        let task = match flags & TASK_GIVEN {
            0 => self.last.next_task(Line::Finished),
            _ => self.task(Line::Finished)?,
        };
        let worker = match flags & WORKER_GIVEN {
            0 => self.last.worker,
            _ => self.worker()?,
        };
        let (outcome, then) = match flags & OUTCOME_GIVEN {
            0 => (Outcome::Success, Then::Done),
            _ => (self.outcome()?, self.then()?),
        };
        let words = match flags & WORDS_GIVEN {
            0 => None,
            _ => Some(Box::new(Words {
                message: self.option(|from| Ok(from.from.text()?.into()))?,
                memo: self.option(|from| Ok(from.from.string()?.into()))?,
            })),
        };
        self.last.set_task(Line::Finished, task);
        Ok(Event::Finished { task, worker, outcome, then, words })
    }

    /// A flag that this version does not know would change what follows.
    pub(super) fn flags(&mut self, known: u8) -> Result<u8, RecordError> {
        match self.from.u8()? {
            flags if flags & !known == 0 => Ok(flags),
            _ => self.from.malformed("a flag that means nothing"),
        }
    }

    pub(super) fn share(&mut self) -> Result<Share, RecordError> {
        Ok(Share::of_items(self.list(|from| Ok((from.plain_name()?, from.from.u128()?)))?))
    }

    pub(super) fn nodes(&mut self) -> Result<Vec<WorkerId>, RecordError> {
        self.list(|from| Ok(WorkerId(from.from.u32()?)))
    }

    pub(super) fn full_share(&mut self) -> Result<Share, RecordError> {
        let variant = self.from.u8()?;
        let portions = self.list(|from| {
            let name = from.plain_name()?;
            let items = from.from.u128()?;
            let amount = Amount::of_parts(from.from.u64()?);
            let shared = from.option(|from| {
                let item = from.from.u8()?;
                match u16::try_from(from.from.u64()?) {
                    Ok(parts) if item < 128 && u64::from(parts) <= Amount::PARTS => {
                        Ok((item, parts))
                    }
                    _ => from.from.malformed("more of an item than there is"),
                }
            })?;
            Ok((name, Portion { items, shared, amount }))
        })?;
        Ok(Share { portions, variant, nodes: Vec::new() })
    }

    pub(super) fn outcome(&mut self) -> Result<Outcome, RecordError> {
        Ok(match self.from.u8()? {
            0 => Outcome::Success,
            1 => Outcome::Exit(self.from.i32()?),
            2 => Outcome::Signal(self.from.i32()?),
            3 => Outcome::TimedOut,
            4 => Outcome::Error,
            5 => Outcome::Lost,
            6 => Outcome::Memory,
            _ => return self.from.malformed("no such outcome"),
        })
    }

    fn then(&mut self) -> Result<Then, RecordError> {
        Ok(match self.from.u8()? {
            0 => Then::Done,
            1 => Then::Failed,
            2 => Then::Again(self.time()?),
            _ => return self.from.malformed("no such way to go on"),
        })
    }

    pub(super) fn back(&mut self) -> Result<ReturnReason, RecordError> {
        Ok(match self.from.u8()? {
            0 => ReturnReason::Lapsed,
            1 => ReturnReason::Left,
            2 => ReturnReason::Handed,
            3 => ReturnReason::Revoked,
            _ => return self.from.malformed("no such way back"),
        })
    }
}

//! One worker: its slots, where it is, and what it owes us when.

use super::{BrokerConfig, BrokerDue, PeerId, Rate};
use crate::id::{Name, Time};
use std::collections::VecDeque;

#[derive(Debug)]
pub(super) struct BrokerWorker {
    pub identity: Name,
    slots: u32,
    free: u32,
    whereabouts: Whereabouts,
    /// When the slots that are taken are free again by themselves, where they are.
    lapses: VecDeque<Time>,
    passed: Rate,
    /// In the ring.
    pub place: usize,
    /// As it stands among the table's timers.
    pub timer: Option<Time>,
}

#[derive(Debug)]
enum Whereabouts {
    /// Heard last at a time; if it was probed since, it must answer by another.
    Here {
        peer: PeerId,
        heard: Time,
        answer_by: Option<Time>,
    },
    Away {
        until: Time,
    },
}

/// A worker as the table shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct WorkerRow<'a> {
    pub identity: &'a Name,
    pub free: u32,
    pub slots: u32,
    pub is_away: bool,
    /// Requests that it was given.
    pub passed: Rate,
}

impl BrokerWorker {
    pub fn new(identity: Name, peer: PeerId, slots: u32, now: Time) -> BrokerWorker {
        BrokerWorker {
            identity,
            slots,
            free: slots,
            whereabouts: Whereabouts::Here { peer, heard: now, answer_by: None },
            lapses: VecDeque::new(),
            passed: Rate::begin(now),
            place: 0,
            timer: None,
        }
    }

    pub fn row(&self) -> WorkerRow<'_> {
        let is_away = self.peer().is_none();
        WorkerRow {
            identity: &self.identity,
            free: self.free,
            slots: self.slots,
            is_away,
            passed: self.passed,
        }
    }

    /// Whether it can take a request now.
    pub fn is_open(&self) -> bool {
        self.free > 0 && self.peer().is_some()
    }

    pub fn peer(&self) -> Option<PeerId> {
        match self.whereabouts {
            Whereabouts::Here { peer, .. } => Some(peer),
            Whereabouts::Away { .. } => None,
        }
    }

    pub fn take(&mut self, now: Time, until: Option<Time>) -> PeerId {
        self.free -= 1;
        self.passed.count(now);
        self.lapses.extend(until);
        self.peer().expect("only workers that are here are open")
    }

    pub fn give_back(&mut self) -> bool {
        self.lapses.pop_front();
        let has_taken = self.free < self.slots;
        self.free += u32::from(has_taken);
        has_taken
    }

    /// It said anew how many slots it has, all of them free.
    pub fn overwrite(&mut self, slots: u32, now: Time) {
        self.slots = slots;
        self.free = slots;
        self.lapses.clear();
        self.hear(now);
    }

    pub fn hear(&mut self, now: Time) {
        if let Whereabouts::Here { heard, answer_by, .. } = &mut self.whereabouts {
            *heard = now;
            *answer_by = None;
        }
    }

    pub fn come_back(&mut self, peer: PeerId, now: Time) {
        self.whereabouts = Whereabouts::Here { peer, heard: now, answer_by: None };
    }

    pub fn go_away(&mut self, until: Time) {
        self.whereabouts = Whereabouts::Away { until };
    }

    pub fn next_due(&self, config: &BrokerConfig) -> Option<Time> {
        let whereabouts = match self.whereabouts {
            Whereabouts::Away { until } => Some(until),
            Whereabouts::Here { answer_by: Some(by), .. } => Some(by),
            Whereabouts::Here { heard, .. } => {
                (config.probe_ms > 0).then(|| heard.after_ms(config.probe_ms))
            }
        };
        [whereabouts, self.lapses.front().copied()].into_iter().flatten().min()
    }

    /// What is due by now, one thing at a time.
    pub fn due(&mut self, now: Time, config: &BrokerConfig) -> Option<BrokerDue> {
        if self.lapses.front().is_some_and(|&until| now >= until) {
            self.give_back();
            return Some(BrokerDue::SlotBack);
        }
        match &mut self.whereabouts {
            Whereabouts::Away { until } => (now >= *until).then_some(BrokerDue::Lost),
            Whereabouts::Here { peer, answer_by: Some(by), .. } => {
                (now >= *by).then_some(BrokerDue::Silent(*peer))
            }
            Whereabouts::Here { peer, heard, answer_by } => {
                let is_due = config.probe_ms > 0 && now >= heard.after_ms(config.probe_ms);
                is_due.then(|| {
                    *answer_by = Some(now.after_ms(config.answer_ms));
                    BrokerDue::Probe(*peer)
                })
            }
        }
    }
}

//! A node that came back silently. An original continues to count its messages over a new connection and sends HELLO
//! only when it is told to. It may run something or nothing. Or it waits for the answer to an UPDATE that was lost with
//! the connection before; then it never speaks again by itself. Here it is found out which, and the third is woken.
//!
//! While such a node waits, it answers requests with lower numbers, keeps one message with a higher number for later,
//! and dies of a second one; it may have one from the connection before. So the few numbers that it can wait for are
//! answered one by one, from the lowest, as long as it says nothing. Where they are not known, because nothing was
//! noted, a CANCEL of nothing that is not answered tells what the number is below, and makes the node count on from
//! there: an OK for every number in question can then be taken for nothing else.

use super::super::header::{MessageHeader, MessageKind, SAY_HELLO, counts};
use super::super::payload::{self, TaskPair};
use super::asked::Asked;
use super::plain::connection_period_ms;
use super::{Foreman, ForemanPhase, Mode};
use crate::session::{HangUp, Output};
use laboro_core::{Command, Query, Reply, Time, WorkerId, WorkerRef};

#[derive(Debug, Default)]
pub(super) enum Waking {
    /// It has said HELLO, or is not known yet.
    #[default]
    Done,
    /// It has said nothing yet, or was told to say HELLO.
    Quiet { worker: WorkerId, until: Time },
    /// What it can wait for is answered one by one.
    Guess { worker: WorkerId, next: u32, until: Time },
    /// A CANCEL of nothing is under way.
    Search { worker: WorkerId, search: NumberSearch },
    /// Whatever it waits for has been answered: a HELLO should come.
    Answered { worker: WorkerId, until: Time },
    /// A JOB without tasks is under way; its answer says how many run there.
    Count { worker: WorkerId },
    /// So many run there. The hub is asked how many it has given.
    Compare { worker: WorkerId, runs: u32 },
    /// Something else runs there than the hub thinks.
    Unsure { worker: WorkerId, until: Time },
}

#[derive(Clone, Copy, Debug)]
pub(super) struct NumberSearch {
    /// The node does not wait for the answer to a lower number.
    low: u32,
    /// Of the CANCEL.
    seq: u32,
    step: u32,
    /// When it is taken for not answered.
    by: Time,
    /// The node has spoken by itself meanwhile.
    spoke: bool,
}

/// How long a node that reconnected may be silent before it is woken. A new one says HELLO at once.
pub(super) const QUIET_MS: u64 = 3_000;
/// A request that reaches the node is answered far sooner. One that is late is not harmed by what follows.
const ANSWER_MS: u64 = 1_000;
/// How often a node that runs something else than it should is asked again how many that is.
const UNSURE_MS: u64 = 10_000;
/// How long a node that was woken may take to speak.
const GUESS_MS: u64 = 250;
/// How far the numbers go on before it is noted where they are.
const NOTE_STEP: u32 = 8;
/// One request of each side may be under way: so far from the last number is what a node can wait for.
const NEAR: u32 = 4;
/// The numbers that one CANCEL is to tell about, near those that were noted.
const STEP: u32 = 512;
/// So far beyond what was noted is searched, should the last notes be lost.
const BEYOND: u32 = 1 << 17;
/// Numbers that are answered at once at most.
const ANSWERED_MAX: u32 = 1 << 18;

impl Foreman {
    pub(super) fn waking_deadline(&self) -> Option<Time> {
        if !matches!(self.phase, ForemanPhase::Again { .. }) {
            return None;
        }
        match &self.waking {
            Waking::Quiet { until, .. }
            | Waking::Answered { until, .. }
            | Waking::Unsure { until, .. } => Some(*until),
            Waking::Guess { until, .. } => Some(*until),
            Waking::Search { search, .. } => Some(search.by),
            Waking::Done | Waking::Count { .. } | Waking::Compare { .. } => None,
        }
    }

    pub(super) fn look_at_waking(&mut self, now: Time, out: &mut Output) {
        if self.waking_deadline().is_none_or(|at| at > now) {
            return;
        }
        let later = now.after_ms(QUIET_MS);
        self.waking = match std::mem::take(&mut self.waking) {
            // It has asked something, or is still asked something.
            Waking::Quiet { worker, .. } if !self.talk.may_ask() => {
                Waking::Quiet { worker, until: later }
            }
            Waking::Quiet { worker, .. } => {
                let next = self.numbers_reached().saturating_sub(NEAR) & !1;
                self.guess(now, worker, next, out)
            }
            Waking::Guess { worker, next, .. } => self.guess(now, worker, next, out),
            Waking::Search { worker, search } => {
                self.answer_all(search, out);
                Waking::Answered { worker, until: later }
            }
            Waking::Answered { worker, .. } if self.talk.may_ask() => self.count(now, worker, out),
            Waking::Answered { worker, .. } => Waking::Answered { worker, until: later },
            Waking::Unsure { worker, .. } if self.talk.may_ask() => self.count(now, worker, out),
            Waking::Unsure { worker, .. } => Waking::Unsure { worker, until: later },
            waking @ (Waking::Done | Waking::Count { .. } | Waking::Compare { .. }) => waking,
        };
    }

    fn guess(&mut self, now: Time, worker: WorkerId, next: u32, out: &mut Output) -> Waking {
        let reached = self.numbers_reached();
        if next > reached.saturating_add(NOTE_STEP + NEAR) {
            let search =
                NumberSearch { low: 0, seq: next.max(STEP) - 1, step: STEP, by: now, spoke: false };
            return self.search(now, worker, search, out);
        }
        self.answer_unheard(next, out);
        Waking::Guess { worker, next: next.saturating_add(2), until: now.after_ms(GUESS_MS) }
    }

    /// Number 0 is the HELLO of a node that has just been started.
    fn answer_unheard(&mut self, seq: u32, out: &mut Output) {
        let arg0 = if seq == 0 { counts(self.slots, 0) } else { SAY_HELLO };
        self.talk.answer_unheard(&mut out.say, seq, arg0);
        out.end_message();
    }

    /// One step of the search. A node that knows no CANCEL gets a JOB without tasks: it means as little.
    fn search(
        &mut self,
        now: Time,
        worker: WorkerId,
        search: NumberSearch,
        out: &mut Output,
    ) -> Waking {
        self.talk.skip_to(search.seq);
        if self.talk.numbering().has_cancel() {
            let nothing = [TaskPair { job: 0, task: 0, lease: None }];
            self.talk.ask_with(&mut out.say, MessageKind::Cancel, |to| {
                payload::write_pairs(to, &nothing);
            });
        } else {
            self.talk.ask_with(&mut out.say, MessageKind::Job, |to| payload::write_tasks(to, &[]));
        }
        out.end_message();
        self.asked_at = now;
        Waking::Search { worker, search: NumberSearch { by: now.after_ms(ANSWER_MS), ..search } }
    }

    /// In rising order: what is below the number that the node waits for is nothing to it.
    fn answer_all(&mut self, search: NumberSearch, out: &mut Output) {
        if search.seq - search.low > ANSWERED_MAX {
            return;
        }
        for seq in (search.low..search.seq).step_by(2) {
            self.answer_unheard(seq, out);
        }
    }

    fn count(&mut self, now: Time, worker: WorkerId, out: &mut Output) -> Waking {
        self.talk.ask_with(&mut out.say, MessageKind::Job, |to| payload::write_tasks(to, &[]));
        out.end_message();
        self.asked_at = now;
        Waking::Count { worker }
    }

    /// What was asked here has its answer.
    pub(super) fn waking_answered(&mut self, now: Time, header: MessageHeader, out: &mut Output) {
        let later = now.after_ms(QUIET_MS);
        let reached = self.numbers_reached();
        self.waking = match std::mem::take(&mut self.waking) {
            Waking::Search { worker, search } if search.spoke => {
                Waking::Quiet { worker, until: later }
            }
            Waking::Search { worker, search } => {
                let is_near = search.seq < reached.saturating_add(NOTE_STEP + STEP);
                let step = if is_near { STEP } else { search.step.saturating_mul(2) };
                let (low, seq) = (search.seq + 1, search.seq.saturating_add(step) | 1);
                match seq < reached.saturating_add(BEYOND) {
                    true => {
                        self.search(now, worker, NumberSearch { low, seq, step, ..search }, out)
                    }
                    // It waits for nothing.
                    false => self.count(now, worker, out),
                }
            }
            Waking::Count { worker } => {
                if let ForemanPhase::Again { who } = &self.phase {
                    let query = Query::Worker(who.clone());
                    out.ask(Asked::Compare.tag(), Command::Query(query));
                }
                Waking::Compare { worker, runs: header.arg0 & 0xFFFF }
            }
            waking => waking,
        };
    }

    /// How many tasks the hub thinks are there. What was given in a JOB that was lost is not.
    pub(super) fn waking_compared(&mut self, now: Time, reply: &Reply, out: &mut Output) {
        let Waking::Compare { worker, runs } = self.waking else { return };
        let ForemanPhase::Again { who } = &self.phase else { return };
        let leases = match reply {
            Reply::Workers(views) => views.first().map_or(0, |view| view.lease_count),
            _ => 0,
        };
        match (who.clone(), runs) {
            (who, _) if runs == leases => self.start_work(worker, who, 0, out),
            (WorkerRef::Name { group, name }, 0) => {
                let join = self.plain_as(now, group, name, Some(Vec::new()));
                out.ask(Asked::Empty.tag(), join);
            }
            _ => self.waking = Waking::Unsure { worker, until: now.after_ms(UNSURE_MS) },
        }
    }

    /// The hub has taken back what is not there.
    pub(super) fn waking_emptied(&mut self, worker: WorkerId, out: &mut Output) {
        if let (Waking::Compare { .. }, ForemanPhase::Again { who }) = (&self.waking, &self.phase) {
            let who = who.clone();
            self.start_work(worker, who, 0, out);
        }
    }

    /// The node has said an UPDATE and is now to say HELLO, unless something is under way: a node that is asked
    /// something while it says HELLO may lock itself up.
    pub(super) fn may_say_hello(&mut self, now: Time) -> bool {
        let may = !self.talk.has_asked();
        match &mut self.waking {
            Waking::Search { search, .. } => search.spoke = true,
            Waking::Quiet { until, .. } | Waking::Unsure { until, .. } => {
                *until = now.after_ms(QUIET_MS);
            }
            Waking::Guess { worker, .. } => {
                self.waking = Waking::Quiet { worker: *worker, until: now.after_ms(QUIET_MS) };
            }
            Waking::Answered { .. }
            | Waking::Done
            | Waking::Count { .. }
            | Waking::Compare { .. } => {}
        }
        may
    }

    /// When an original is taken for lost that does not answer.
    pub(super) fn lost_at(&self) -> Option<Time> {
        let is_asked = !self.is_native() && self.talk.has_asked();
        let since = self.heard_at.max(self.asked_at);
        is_asked.then(|| since.after_ms(connection_period_ms(self.context.grace_ms)))
    }

    pub(super) fn look_at_lost(&mut self, now: Time, out: &mut Output) {
        if self.lost_at().is_some_and(|at| at <= now) {
            self.is_lost = true;
            out.hang_up(HangUp::Silent);
        }
    }

    fn numbers_reached(&self) -> u32 {
        match &self.mode {
            Mode::Plain(plain) => plain.numbers.reached,
            Mode::Native => 0,
        }
    }

    /// So that the next hub knows where to look.
    pub(super) fn note_numbers(&mut self) {
        let Mode::Plain(plain) = &mut self.mode else { return };
        let (Some(note), Some(highest)) = (&plain.numbers.note, self.talk.highest()) else {
            return;
        };
        // A number that the node has not heard of is not where it is.
        if !matches!(self.phase, ForemanPhase::Working { .. }) {
            return;
        }
        let reached = plain.numbers.reached;
        if highest >= reached.saturating_add(NOTE_STEP) || highest < reached {
            note(highest);
            plain.numbers.reached = highest;
        }
    }
}

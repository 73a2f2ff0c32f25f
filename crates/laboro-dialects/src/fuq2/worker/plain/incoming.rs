//! What the foreman says, and what the worker does about it.

use super::{OVERFLOW_MS, PlainPhase, PlainTask, PlainWorker};
use crate::fuq2::frame::Frame;
use crate::fuq2::header::{AT_ONCE, LABORO, MessageKind, SAY_HELLO, Trouble, counts};
use crate::fuq2::naming::assignment;
use crate::fuq2::pack::PackError;
use crate::fuq2::payload::{self, Task};
use crate::fuq2::talk::Talk;
use crate::fuq2::worker::incoming::{Incoming, parting};
use crate::worker::{Key, Order, Orders, Parting};
use laboro_core::{Outcome, Time};

impl Incoming for PlainWorker {
    const PEER: &'static str = "foreman";

    fn talk(&mut self) -> &mut Talk {
        &mut self.talk
    }

    /// All of it or nothing.
    fn take_job(&mut self, request: &Frame, out: &mut Orders) -> Result<(), PackError> {
        let seq = request.header.seq;
        let tasks = payload::read_tasks(&request.body)?;
        if (self.room().0 as usize) < tasks.len() {
            self.talk.refuse(&mut out.say, seq, Trouble::NoProcs, self.counts());
            return Ok(());
        }
        for task in tasks {
            self.begin(task, out);
        }
        self.talk.answer(&mut out.say, seq, self.counts());
        Ok(())
    }

    /// What is ended still runs until it has ended; then its UPDATE is sent, as the originals do it.
    fn take_cancel(&mut self, request: &Frame, out: &mut Orders) -> Result<(), PackError> {
        let seq = request.header.seq;
        let pairs = payload::read_pairs(&request.body)?;
        let mut cancelled = 0;
        for (key, live) in self.tasks.iter_mut().filter(|(_, live)| !live.ended) {
            let is_meant = |pair: &payload::TaskPair| {
                pair.job == live.task.job.id && (pair.task < 0 || pair.task == live.task.task)
            };
            if pairs.iter().any(is_meant) {
                live.cancelled = true;
                out.order(Order::Cancel(*key));
                cancelled += 1;
            }
        }
        if cancelled == 0 && self.talk.knows_laboro() {
            self.talk.refuse(&mut out.say, seq, Trouble::NoSuchJob, 0);
        } else {
            self.talk.answer(&mut out.say, seq, counts(cancelled, 0));
        }
        Ok(())
    }

    fn take_stop(&mut self, seq: u32, slots: u32, out: &mut Orders) {
        if slots == AT_ONCE {
            self.talk.answer(&mut out.say, seq, 0);
            self.tasks.clear();
            self.results.clear();
            self.phase = PlainPhase::Gone;
            out.order(Order::StopNow);
            out.hang_up(Parting::Finished);
            return;
        }
        if slots == 0 || slots >= self.slots {
            self.slots = 0;
            out.order(Order::Drain);
        } else {
            self.slots -= slots;
            out.order(Order::GiveUpSlots(slots));
        }
        self.talk.answer(&mut out.say, seq, self.counts());
    }

    fn take_response(&mut self, now: Time, response: &Frame, out: &mut Orders) {
        let header = response.header;
        let is_hello = self.phase == PlainPhase::Greeting;
        match (header.kind, Trouble::of(header.subtype)) {
            (MessageKind::Ok, _) if is_hello => {
                self.talk.meet_laboro(header.padding == LABORO);
                self.phase = PlainPhase::Working;
                out.order(Order::Welcome { name: self.settings.name.clone() });
            }
            // Who hands in its last results has them taken all the same, and a HELLO would bring more work.
            (MessageKind::Ok, _) if header.arg0 == SAY_HELLO && !self.hands_in() => {
                self.under_way = false;
                self.say_hello(now, out);
            }
            (MessageKind::Ok, _) => {
                self.under_way = false;
                if let Some((key, _)) = self.results.pop_front() {
                    self.tasks.remove(&key);
                }
            }
            (_, Trouble::Overflow) if !is_hello => {
                self.under_way = false;
                self.held_until = Some(now.after_ms(OVERFLOW_MS));
            }
            (_, trouble) => out.hang_up(parting(trouble, response, Self::PEER)),
        }
    }

    fn start_anew(&mut self, now: Time, out: &mut Orders) {
        (self.under_way, self.held_until) = (false, None);
        if self.settings.awaits_greeting {
            (self.phase, self.asked_at) = (PlainPhase::Waiting, now);
        } else {
            self.say_hello(now, out);
        }
    }

    fn greeted(&mut self, now: Time, out: &mut Orders) {
        if self.phase == PlainPhase::Waiting {
            self.say_hello(now, out);
        }
    }

    fn explains_numbers(&self) -> bool {
        self.talk.knows_laboro()
    }
}

impl PlainWorker {
    /// Sent while the connection was being closed. The foreman has it as running here, and hears of it later.
    pub(super) fn take_last(&mut self, request: &Frame, out: &mut Orders) {
        if request.header.kind != MessageKind::Job {
            return;
        }
        let tasks = payload::read_tasks(&request.body).unwrap_or_default();
        let room = self.slots.saturating_sub(self.room().1) as usize;
        tasks.into_iter().take(room).for_each(|task| self.begin(task, out));
    }

    pub(super) fn begin(&mut self, task: Task, out: &mut Orders) {
        let key = Key(self.next_key);
        self.next_key += 1;
        let assignment = assignment(key, &task);
        self.tasks.insert(key, PlainTask { task, ended: false, cancelled: false });
        match assignment {
            Some(assignment) => out.order(Order::Start(Box::new(assignment))),
            None => self.end(key, Outcome::Error, Some("tasks are numbered from 1")),
        }
    }
}

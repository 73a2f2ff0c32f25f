//! What the foreman says, and what the worker does about it.

use super::{OVERFLOW_MS, PlainPhase, PlainTask, PlainWorker};
use crate::fuq2::frame::Message;
use crate::fuq2::header::{AT_ONCE, LABORO, MessageKind, SAY_HELLO, Trouble, counts};
use crate::fuq2::naming::assignment;
use crate::fuq2::pack::PackError;
use crate::fuq2::payload::{self, Task};
use crate::fuq2::talk::Meaning;
use crate::worker::{Key, Order, Orders, Parting};
use laboro_core::{Outcome, Time};

impl PlainWorker {
    pub(super) fn hear(&mut self, now: Time, message: Message, out: &mut Orders) {
        if self.is_closing && message.header.kind == MessageKind::Job {
            return self.take_last(&message, out);
        }
        match self.talk.hear(message) {
            Meaning::Request(request) => self.take_request(request, out),
            Meaning::Response(response) => self.take_response(now, &response, out),
            Meaning::Greeting if self.phase == PlainPhase::Waiting => self.say_hello(now, out),
            Meaning::Nothing | Meaning::Greeting => {}
            Meaning::Overflow(seq) => {
                self.talk.refuse(&mut out.say, seq, Trouble::Overflow, 0);
                out.end_message();
            }
            Meaning::BadSeq { seq, why } => {
                if self.talk.knows_laboro() {
                    self.talk.refuse(&mut out.say, seq, Trouble::BadSeq, 0);
                    out.end_message();
                }
                out.hang_up(Parting::Malformed(format!("message number {seq} {why}")));
            }
            Meaning::Anew => self.start_anew(now, out),
        }
        while out.hang_up.is_none()
            && let Some(request) = self.talk.next_queued()
        {
            self.take_request(request, out);
        }
    }

    fn take_request(&mut self, request: Message, out: &mut Orders) {
        let seq = request.header.seq;
        let result = match request.header.kind {
            MessageKind::Job => self.take_job(&request, out),
            MessageKind::Cancel => self.take_cancel(&request, out),
            MessageKind::Stop => {
                self.take_stop(seq, request.header.arg0, out);
                Ok(())
            }
            kind => {
                out.hang_up(Parting::Malformed(format!("{kind:?} from a foreman")));
                return;
            }
        };
        match result {
            Ok(()) => out.end_message(),
            Err(error) => {
                let kind = request.header.kind;
                out.hang_up(Parting::Malformed(format!("{kind:?} number {seq}: {error}")));
            }
        }
    }

    /// All of it or nothing.
    fn take_job(&mut self, request: &Message, out: &mut Orders) -> Result<(), PackError> {
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

    /// Sent while the connection was being closed. The foreman has it as running here, and hears of it later.
    pub(super) fn take_last(&mut self, request: &Message, out: &mut Orders) {
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

    /// What is ended still runs until it has ended; then its UPDATE is sent, as the originals do it.
    fn take_cancel(&mut self, request: &Message, out: &mut Orders) -> Result<(), PackError> {
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

    fn take_response(&mut self, now: Time, response: &Message, out: &mut Orders) {
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
            (_, Trouble::Refused) => {
                let why = String::from_utf8_lossy(&response.body).into_owned();
                out.hang_up(Parting::Refused(why));
            }
            (_, Trouble::NotNow) => {
                let why = String::from_utf8_lossy(&response.body).into_owned();
                out.hang_up(Parting::NotNow(why));
            }
            (_, Trouble::Overflow) if !is_hello => {
                self.under_way = false;
                self.held_until = Some(now.after_ms(OVERFLOW_MS));
            }
            (_, trouble) => {
                let why = format!("the foreman answered with {trouble:?}");
                out.hang_up(Parting::Again(why));
            }
        }
    }
}

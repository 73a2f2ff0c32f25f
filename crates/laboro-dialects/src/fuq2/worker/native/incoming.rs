//! What the hub says, and what the worker does about it.

use super::{NativePhase, NativeTask, NativeWorker, OVERFLOW_MS};
use crate::fuq2::frame::Frame;
use crate::fuq2::header::{AT_ONCE, MessageKind, SAY_HELLO, Trouble, counts};
use crate::fuq2::native::{Batch, Given, Item};
use crate::fuq2::pack::PackError;
use crate::fuq2::payload::{self, TASKS_MAX};
use crate::fuq2::talk::Talk;
use crate::fuq2::worker::incoming::{Incoming, parting};
use crate::worker::{Assignment, ElementValue, Key, Order, Orders, Parting};
use bytes::Bytes;
use laboro_core::{LeaseNo, Time, Work, counted};
use std::collections::hash_map;
use std::sync::Arc;

impl Incoming for NativeWorker {
    const PEER: &'static str = "hub";

    fn talk(&mut self) -> &mut Talk {
        &mut self.talk
    }

    /// All of it or nothing; but what cannot be read of one task is that task's trouble alone.
    fn take_job(&mut self, request: &Frame, out: &mut Orders) -> Result<(), PackError> {
        let seq = request.header.seq;
        let batches = Batch::read_all(&request.body)?;
        let count: usize = batches.iter().map(|batch| batch.tasks.len()).sum();
        // No more than a HELLO can name.
        if self.drains || self.tasks.len() + count > TASKS_MAX {
            self.talk.refuse(&mut out.say, seq, Trouble::NoProcs, self.counts());
            return Ok(());
        }
        self.tasks.reserve(count);
        out.orders.reserve(count);
        for mut batch in batches {
            let tasks = std::mem::take(&mut batch.tasks);
            if let (Some(why), Some(first)) = (&batch.unreadable, tasks.first()) {
                let name = shown_name(&batch, first.index, batch.position(first));
                let count = counted(tasks.len(), "task");
                out.order(Order::Say(format!(
                    "cannot run {name}: {why}; {count} given back to the hub"
                )));
            }
            for given in tasks {
                self.take_task(&batch, given, out);
            }
        }
        let counts = self.counts();
        self.talk.answer(&mut out.say, seq, counts);
        Ok(())
    }

    fn take_cancel(&mut self, request: &Frame, out: &mut Orders) -> Result<(), PackError> {
        let seq = request.header.seq;
        let mut cancelled = 0;
        for pair in payload::read_pairs(&request.body)? {
            if let Some(key) = self.forget(LeaseNo(pair.lease.unwrap_or(0))) {
                out.order(Order::Cancel(key));
                cancelled += 1;
            }
        }
        if cancelled == 0 {
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
            self.leases.clear();
            self.phase = NativePhase::Gone;
            out.order(Order::StopNow);
            out.hang_up(Parting::Finished);
            return;
        }
        if slots == 0 || slots >= self.slots {
            self.slots = 0;
            self.drains = true;
            out.order(Order::Drain);
        } else {
            self.slots -= slots;
            out.order(Order::GiveUpSlots(slots));
        }
        let counts = self.counts();
        self.talk.answer(&mut out.say, seq, counts);
    }

    fn take_response(&mut self, now: Time, response: &Frame, out: &mut Orders) {
        let header = response.header;
        let is_hello = self.phase == NativePhase::Greeting;
        match (header.kind, Trouble::of(header.subtype)) {
            (MessageKind::Ok, _) if is_hello => {
                self.phase = NativePhase::Working;
                out.order(Order::Welcome { name: self.settings.name.clone() });
            }
            (MessageKind::Ok, _) if header.arg0 == SAY_HELLO => self.start_anew(now, out),
            (MessageKind::Ok, _) => self.update_answered(out),
            (_, Trouble::Overflow) if !is_hello => {
                self.unsaid.say_again();
                self.held_until = Some(now.after_ms(OVERFLOW_MS));
            }
            (_, trouble) => out.hang_up(parting(trouble, response, Self::PEER)),
        }
    }

    /// A connection or its numbers begin anew.
    fn start_anew(&mut self, now: Time, out: &mut Orders) {
        self.unsaid.say_again();
        self.held_until = None;
        self.say_hello(now, out);
    }
}

impl NativeWorker {
    fn take_task(&mut self, batch: &Batch, given: Given, out: &mut Orders) {
        let (lease, attempt) = (given.lease, given.attempt);
        let task = batch.task(&given);
        let hash_map::Entry::Vacant(entry) = self.tasks.entry(lease) else {
            // The same lease twice is the same task: it runs already, or has run.
            return;
        };
        let key = Key(self.next_key);
        self.next_key += 1;
        entry.insert(NativeTask { key, task, attempt, written: [0; 3] });
        self.leases.insert(key, lease);
        match batch.unreadable.as_ref().or(given.unreadable.as_ref()) {
            None => {
                let assignment = assignment(key, batch, given, batch.work.clone());
                out.order(Order::Start(Box::new(assignment)));
            }
            Some(why) => {
                self.end(key);
                let reason = Some(why.as_str().into());
                self.unsaid.push(Item::Back { task, lease, reason });
            }
        }
    }

    fn update_answered(&mut self, out: &mut Orders) {
        let NativeWorker { unsaid, tasks, .. } = self;
        let (items, wishes) = unsaid.answered();
        for item in items {
            match item {
                Item::Chunk(_) => {}
                Item::Ended { lease, .. } | Item::Back { lease, .. } => {
                    tasks.remove(&lease);
                }
            }
        }
        if wishes.leaves {
            self.phase = NativePhase::Gone;
            out.hang_up(Parting::Finished);
        }
    }
}

fn assignment(key: Key, batch: &Batch, given: Given, work: Arc<Work>) -> Assignment {
    let position = batch.position(&given);
    let value = position.map(|position| ElementValue {
        position,
        bytes: match (given.value, batch.numbers) {
            (Some(value), _) => value,
            (None, Some((first, step))) => {
                let number = first.wrapping_add(step.wrapping_mul(i64::from(position)));
                Bytes::from(number.to_string())
            }
            (None, None) => Bytes::new(),
        },
    });
    Assignment {
        key,
        name: shown_name(batch, given.index, position),
        job: batch.job.0.into(),
        index: given.index,
        attempt: given.attempt,
        work,
        value,
        slots: batch.slots,
        memory: batch.memory,
        time_limit_ms: batch.time_limit_ms,
        resources: given.share,
        role: given.role,
        access: batch.access.as_deref().map(|secret| String::from_utf8_lossy(secret).into()),
    }
}

/// As the hub shows it: the task's name, the array's with a number, or the job's number and the task's.
fn shown_name(batch: &Batch, index: u32, position: Option<u32>) -> String {
    let name = String::from_utf8_lossy(&batch.name);
    match position {
        _ if name.is_empty() => format!("{}/{index}", batch.job),
        Some(position) => format!("{name}.{}", u64::from(position) + 1),
        None => name.into_owned(),
    }
}

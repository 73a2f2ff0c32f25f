//! The worker's side of version 1. While it waits for the OK to an UPDATE, what the server says is kept until
//! the OK; only STOP at once is not.

use super::codec::{CANNOT_RUN_JOB, Message};
use crate::fuq2::{AT_ONCE, JobStatusUpdate, Task, assignment, status_of};
use crate::worker::{Key, News, Order, Orders, Parting, WorkerSide};
use bytes::BytesMut;
use laboro_core::{Outcome, Time};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// What a worker of a fuq 1 server says of itself, and its limits.
#[derive(Clone, Debug)]
pub struct ClientSettings {
    /// Only for people: the dialect has no names.
    pub name: String,
    /// How many tasks it runs at once.
    pub slots: u32,
    /// The largest message taken, in bytes.
    pub message_max: usize,
}

impl ClientSettings {
    /// A worker with so many slots; everything else is a default.
    pub fn new(name: impl Into<String>, slots: u32) -> ClientSettings {
        ClientSettings { name: name.into(), slots, message_max: 16 << 20 }
    }
}

/// A worker of a fuq 1 server, ours or an original.
#[derive(Debug)]
pub struct Client {
    settings: ClientSettings,
    phase: ClientPhase,
    /// Processors that are not given up.
    slots: u32,
    next_key: u64,
    running: BTreeMap<Key, Task>,
    /// Those of them that were given on an earlier connection: the server of this one does not count them.
    older: BTreeSet<Key>,
    /// Results without an answer, in order. The first is under way while `ClientPhase::Updating`.
    results: VecDeque<JobStatusUpdate>,
    /// Said by the server while an OK was waited for.
    kept: VecDeque<Message>,
    drains: bool,
    asked_at: Time,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ClientPhase {
    Away,
    /// Waits for the server's first OK.
    Init0,
    /// Waits for the OK to its own.
    Init1,
    Loop,
    /// Waits for the OK to an UPDATE.
    Updating,
    Gone,
}

/// A server that does not answer for so long is left.
const ANSWER_MS: u64 = 60_000;
/// Messages kept while an OK is waited for. A server has no reason to say more than there are slots.
const KEPT_MAX: usize = 65_536;

impl Client {
    /// Not connected yet.
    pub fn new(settings: ClientSettings) -> Client {
        Client {
            phase: ClientPhase::Away,
            slots: settings.slots,
            next_key: 1,
            running: BTreeMap::new(),
            older: BTreeSet::new(),
            results: VecDeque::new(),
            kept: VecDeque::new(),
            drains: false,
            asked_at: Time::default(),
            settings,
        }
    }

    /// As the server counts it. What it sends while older tasks run waits here for their slots: an ERROR would not
    /// say which JOB it means.
    fn free(&self) -> u32 {
        let given = self.running.len() - self.older.len();
        if self.drains { 0 } else { self.slots.saturating_sub(given as u32) }
    }

    fn say(message: &Message, out: &mut Orders) {
        message.write(&mut out.say);
        out.end_message();
    }

    fn hear(&mut self, now: Time, message: Message, out: &mut Orders) {
        match (message, self.phase) {
            (Message::Stop(AT_ONCE), _) => {
                self.running.clear();
                self.older.clear();
                self.results.clear();
                out.order(Order::StopNow);
                self.leave(out);
            }
            // The number stands for as long as the connection does, so it is that of all slots, whatever runs.
            (Message::Ok(_), ClientPhase::Init0) => {
                let slots = if self.drains { 0 } else { self.slots };
                Client::say(&Message::Ok(slots), out);
                (self.phase, self.asked_at) = (ClientPhase::Init1, now);
            }
            (Message::Ok(_), ClientPhase::Init1) => {
                self.phase = ClientPhase::Loop;
                out.order(Order::Welcome { name: self.settings.name.clone() });
            }
            (Message::Ok(room), ClientPhase::Updating) => self.updated(room, out),
            // An OK that answers nothing, or an error that could only be about an UPDATE.
            (Message::Ok(_) | Message::Error(_), _) => {}
            (message @ (Message::Job(_) | Message::Stop(_)), ClientPhase::Updating) => {
                if self.kept.len() >= KEPT_MAX {
                    return out.hang_up(Parting::Malformed("a server that does not wait".into()));
                }
                self.kept.push_back(message);
            }
            (Message::Job(task), ClientPhase::Loop) => self.take_job(task, out),
            (Message::Stop(slots), ClientPhase::Loop) => self.take_stop(slots, out),
            (Message::Job(_) | Message::Stop(_), _) => {
                out.hang_up(Parting::Malformed("work before the greeting is over".into()));
            }
            (Message::Update(_), _) => {
                out.hang_up(Parting::Malformed("an UPDATE from a server".into()));
            }
        }
    }

    fn take_job(&mut self, task: Task, out: &mut Orders) {
        if self.free() == 0 {
            return Client::say(&Message::Error(CANNOT_RUN_JOB), out);
        }
        self.begin(task, out);
    }

    fn begin(&mut self, task: Task, out: &mut Orders) {
        let key = Key(self.next_key);
        self.next_key += 1;
        let assignment = assignment(key, &task);
        self.running.insert(key, task);
        match assignment {
            Some(assignment) => out.order(Order::Start(Box::new(assignment))),
            None => self.end(key, Outcome::Error, Some("tasks are numbered from 1")),
        }
    }

    fn take_stop(&mut self, slots: u32, out: &mut Orders) {
        if slots == 0 || slots >= self.slots {
            self.slots = 0;
            out.order(Order::Drain);
        } else {
            self.slots -= slots;
            out.order(Order::GiveUpSlots(slots));
        }
    }

    /// No room according to the server means: leave. What still runs is finished first.
    fn updated(&mut self, room: u32, out: &mut Orders) {
        self.results.pop_front();
        self.phase = ClientPhase::Loop;
        if room == 0 && !self.drains {
            self.drains = true;
            out.order(Order::Drain);
        }
        while self.phase == ClientPhase::Loop
            && let Some(message) = self.kept.pop_front()
        {
            match message {
                Message::Job(task) => self.take_job(task, out),
                Message::Stop(slots) => self.take_stop(slots, out),
                Message::Ok(_) | Message::Update(_) | Message::Error(_) => {}
            }
        }
    }

    fn remove(&mut self, key: Key) -> Option<Task> {
        self.older.remove(&key);
        self.running.remove(&key)
    }

    fn end(&mut self, key: Key, outcome: Outcome, message: Option<&str>) {
        let Some(task) = self.remove(key) else { return };
        self.results.push_back(JobStatusUpdate {
            job: task.job.id,
            task: task.task,
            success: outcome.is_success(),
            status: status_of(outcome, message).into(),
            new_job: None,
        });
    }

    fn leave(&mut self, out: &mut Orders) {
        self.phase = ClientPhase::Gone;
        out.hang_up(Parting::Finished);
    }

    fn flush(&mut self, now: Time, out: &mut Orders) {
        if self.phase != ClientPhase::Loop || out.hang_up.is_some() {
            return;
        }
        if let Some(update) = self.results.front() {
            Client::say(&Message::Update(update.clone()), out);
            (self.phase, self.asked_at) = (ClientPhase::Updating, now);
        } else if self.free() == 0 && self.running.is_empty() {
            self.leave(out);
        }
    }
}

impl WorkerSide for Client {
    fn open(&mut self, now: Time, out: &mut Orders) {
        if self.phase == ClientPhase::Gone {
            return out.hang_up(Parting::Finished);
        }
        self.kept.clear();
        self.older = self.running.keys().copied().collect();
        (self.phase, self.asked_at) = (ClientPhase::Init0, now);
    }

    fn receive(&mut self, now: Time, input: &mut BytesMut, out: &mut Orders) {
        while out.hang_up.is_none() {
            match Message::take(input, self.settings.message_max) {
                Ok(Some(message)) => self.hear(now, message, out),
                Ok(None) => break,
                Err(error) => out.hang_up(Parting::Malformed(error.to_string())),
            }
        }
        self.flush(now, out);
    }

    fn tell(&mut self, now: Time, news: News, out: &mut Orders) {
        match news {
            News::Started(_) | News::Wrote { .. } | News::Ahead(_) => {}
            News::Ended { key, how } => self.end(key, how.outcome, how.message.as_deref()),
            // There is no word for it: the server gives to others what a connection that ended leaves behind. Until
            // this one leaves, it is its own to run.
            News::Returned(key) => {
                if let Some(task) = self.remove(key).filter(|_| !self.drains) {
                    self.begin(task, out);
                }
            }
            News::Draining | News::Leaving => self.drains = true,
        }
        self.flush(now, out);
    }

    fn deadline(&self) -> Option<Time> {
        match self.phase {
            ClientPhase::Init0 | ClientPhase::Init1 | ClientPhase::Updating => {
                Some(self.asked_at.after_ms(ANSWER_MS))
            }
            ClientPhase::Away | ClientPhase::Loop | ClientPhase::Gone => None,
        }
    }

    fn tick(&mut self, now: Time, out: &mut Orders) {
        if self.deadline().is_some_and(|deadline| now >= deadline) {
            let waited_ms = now.since_ms(self.asked_at);
            let why = format!("the server has not answered for {waited_ms} ms");
            out.hang_up(Parting::Again(why));
        }
        self.flush(now, out);
    }

    fn lost(&mut self, _: Time) {
        if self.phase != ClientPhase::Gone {
            self.phase = ClientPhase::Away;
        }
    }

    fn unsaid(&self) -> usize {
        0
    }

    fn takes_back(&self) -> bool {
        false
    }

    fn is_settled(&self) -> bool {
        self.results.is_empty()
    }
}

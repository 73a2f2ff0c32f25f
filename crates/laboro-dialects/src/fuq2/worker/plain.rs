//! A worker at an original foreman, or at anything that speaks like one: one program with a number, counted processors,
//! one result an UPDATE. Output is not carried by this dialect; the runner of the task writes it where the work says.
//!
//! An original foreman gives work to every node that has said HELLO, has no ear for one that wants no more, and never
//! gives to another what one of them has. So who leaves such a foreman closes the connection, takes what comes until it
//! is closed, and tells its results on a new one without a HELLO.

mod incoming;

use super::incoming::Incoming;
use crate::fuq2::frame;
use crate::fuq2::header::{MessageKind, Numbering, counts};
use crate::fuq2::payload::{JobStatusUpdate, PlainHello, Task};
use crate::fuq2::status::status_of;
use crate::fuq2::talk::{Side, Talk, Wear};
use crate::worker::{Key, News, Orders, Parting, TaskEnd, WorkerSide};
use bytes::BytesMut;
use laboro_core::{Outcome, Time};
use std::collections::{BTreeMap, VecDeque};

/// What a node of an original foreman says of itself, and its limits.
#[derive(Clone, Debug)]
pub struct PlainSettings {
    /// Only for people: the dialect has no names.
    pub name: String,
    /// How many tasks it runs at once.
    pub slots: u32,
    /// Waits for the foreman's OK before its HELLO: on a byte stream, not on a websocket.
    pub awaits_greeting: bool,
    /// What is not finished here stays with this worker for ever, unless the foreman is Laboro.
    pub must_finish: bool,
    /// Which numbers the foreman knows messages by.
    pub numbering: Numbering,
    /// The largest message taken, in bytes.
    pub message_max: usize,
}

impl PlainSettings {
    /// On a byte stream, as the text has it.
    pub fn tcp(name: impl Into<String>, slots: u32) -> PlainSettings {
        PlainSettings {
            name: name.into(),
            slots,
            awaits_greeting: true,
            must_finish: false,
            numbering: Numbering::Current,
            message_max: 16 << 20,
        }
    }

    /// On a websocket, as the originals have it.
    pub fn websocket(name: impl Into<String>, slots: u32) -> PlainSettings {
        let settings = PlainSettings::tcp(name, slots);
        PlainSettings { awaits_greeting: false, must_finish: true, ..settings }
    }
}

/// A node of a fuq 2 foreman, ours or an original.
#[derive(Debug)]
pub struct PlainWorker {
    settings: PlainSettings,
    talk: Talk,
    phase: PlainPhase,
    next_key: u64,
    tasks: BTreeMap<Key, PlainTask>,
    /// Processors that are not given up.
    slots: u32,
    /// Results without an answer, in order. The first may be under way.
    results: VecDeque<(Key, JobStatusUpdate)>,
    under_way: bool,
    /// Wants no more work.
    drains: bool,
    /// It has hung up in order to tell the rest elsewhere, and is not answered any more.
    is_closing: bool,
    asked_at: Time,
    held_until: Option<Time>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PlainPhase {
    Away,
    /// Waits for the foreman to speak.
    Waiting,
    /// Waits for the answer to its HELLO.
    Greeting,
    Working,
    Gone,
}

#[derive(Clone, Debug)]
struct PlainTask {
    task: Task,
    ended: bool,
    /// The foreman wanted it ended. Its UPDATE says so in the original's words.
    cancelled: bool,
}

/// SIGKILL, by which the originals end what is cancelled.
const KILLED: i32 = 9;
/// A foreman that does not greet is greeted after this time.
const GREETING_MS: u64 = 5_000;
/// A foreman that does not answer for so long is left.
const ANSWER_MS: u64 = 60_000;
/// After ERROR(Overflow), when no other answer comes.
const OVERFLOW_MS: u64 = 50;

impl PlainWorker {
    /// Not connected yet.
    pub fn new(settings: PlainSettings) -> PlainWorker {
        PlainWorker {
            talk: Talk::new(Side::Worker, settings.numbering),
            phase: PlainPhase::Away,
            next_key: 1,
            tasks: BTreeMap::new(),
            slots: settings.slots,
            results: VecDeque::new(),
            under_way: false,
            drains: false,
            is_closing: false,
            asked_at: Time::default(),
            held_until: None,
            settings,
        }
    }

    #[cfg(test)]
    pub(in super::super) fn talk(&mut self) -> &mut Talk {
        &mut self.talk
    }

    /// Free processors and running tasks. Slots are free before their result is told.
    fn room(&self) -> (u32, u32) {
        let running = self.tasks.values().filter(|live| !live.ended).count() as u32;
        let free = if self.drains { 0 } else { self.slots.saturating_sub(running) };
        (free, running)
    }

    fn counts(&self) -> u32 {
        let (free, running) = self.room();
        counts(free, running)
    }

    /// What ended and was not answered counts as running: else the foreman would run it again. So its slot is
    /// not free either, or the foreman would count it twice.
    fn say_hello(&mut self, now: Time, out: &mut Orders) {
        let running: Vec<Task> = self.tasks.values().map(|live| live.task.clone()).collect();
        let slots = if self.drains { 0 } else { self.slots };
        let free = i64::from(slots).saturating_sub(running.len() as i64).max(0);
        self.talk.ask_with(&mut out.say, MessageKind::Hello, |to| {
            PlainHello { free, running }.write(to);
        });
        out.end_message();
        (self.phase, self.asked_at) = (PlainPhase::Greeting, now);
    }

    /// It goes, and the foreman would neither understand that nor do without it. One that said STOP knows.
    fn hands_in(&self) -> bool {
        self.drains && self.slots > 0 && self.must_finish()
    }

    fn drain(&mut self, out: &mut Orders) {
        let is_news = !std::mem::replace(&mut self.drains, true);
        let is_met = matches!(self.phase, PlainPhase::Greeting | PlainPhase::Working);
        if is_news && is_met && self.hands_in() {
            self.is_closing = true;
            let why = "from now on this worker only tells results";
            out.hang_up(Parting::Again(why.into()));
            for request in self.talk.take_queued() {
                self.take_last(&request, out);
            }
        }
    }

    fn flush(&mut self, now: Time, out: &mut Orders) {
        if out.hang_up.is_some() || self.is_closing {
            return;
        }
        if self.talk.answer_reset(&mut out.say) {
            out.end_message();
            self.start_anew(now, out);
        }
        if self.phase != PlainPhase::Working || !self.talk.may_ask() {
            return;
        }
        if self.room() == (0, 0) && self.results.is_empty() {
            // Nothing runs and nothing ever will.
            self.phase = PlainPhase::Gone;
            return out.hang_up(Parting::Finished);
        }
        let is_held = self.held_until.is_some_and(|until| until > now);
        let Some((_, update)) = self.results.front().filter(|_| !is_held) else { return };
        self.held_until = None;
        match self.talk.wear() {
            Wear::Fine => {}
            Wear::Reset => {
                self.talk.ask_reset(&mut out.say);
                self.asked_at = now;
                return out.end_message();
            }
            Wear::Reconnect => {
                return out.hang_up(Parting::Again("the numbers of messages ran out".into()));
            }
        }
        self.talk.ask_with(&mut out.say, MessageKind::Update, |to| update.write(to));
        out.end_message();
        (self.under_way, self.asked_at) = (true, now);
    }

    fn end(&mut self, key: Key, outcome: Outcome, message: Option<&str>) {
        let Some(live) = self.tasks.get_mut(&key).filter(|live| !live.ended) else { return };
        live.ended = true;
        let outcome = match live.cancelled && !outcome.is_success() {
            true => Outcome::Signal(KILLED),
            false => outcome,
        };
        let update = JobStatusUpdate {
            job: live.task.job.id,
            task: live.task.task,
            success: outcome.is_success(),
            status: status_of(outcome, message).into(),
            new_job: None,
        };
        self.results.push_back((key, update));
    }

    /// There is no word for it. Who leaves says nothing of what it has not finished: a foreman gives to others what a
    /// connection that ended leaves behind, or else it has failed. Until then it is ours to run.
    fn give_back(&mut self, key: Key, out: &mut Orders) {
        let Some(live) = self.tasks.get(&key).filter(|live| !live.ended) else { return };
        if live.cancelled {
            return self.end(key, Outcome::Signal(KILLED), None);
        }
        if self.drains && self.must_finish() {
            return self.end(key, Outcome::Error, Some("the worker had to leave"));
        }
        let Some(live) = self.tasks.remove(&key).filter(|_| !self.drains) else { return };
        self.begin(live.task, out);
    }
}

impl WorkerSide for PlainWorker {
    fn open(&mut self, now: Time, out: &mut Orders) {
        if self.phase == PlainPhase::Gone {
            return out.hang_up(Parting::Finished);
        }
        self.talk.restart();
        if self.hands_in() {
            self.phase = PlainPhase::Working;
            self.flush(now, out);
        } else {
            self.start_anew(now, out);
        }
    }

    fn receive(&mut self, now: Time, input: &mut BytesMut, out: &mut Orders) {
        while out.hang_up.is_none() {
            match frame::take(input, self.settings.numbering, self.settings.message_max) {
                Ok(Some(message)) if self.is_closing && message.header.kind == MessageKind::Job => {
                    self.take_last(&message, out);
                }
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
            News::Ended { key, how: TaskEnd { outcome, message, .. } } => {
                self.end(key, outcome, message.as_deref());
            }
            News::Returned(key) => self.give_back(key, out),
            News::Draining | News::Leaving => self.drain(out),
        }
        self.flush(now, out);
    }

    fn deadline(&self) -> Option<Time> {
        match self.phase {
            PlainPhase::Away | PlainPhase::Gone => None,
            PlainPhase::Waiting => Some(self.asked_at.after_ms(GREETING_MS)),
            PlainPhase::Greeting => Some(self.asked_at.after_ms(ANSWER_MS)),
            PlainPhase::Working if self.under_way => Some(self.asked_at.after_ms(ANSWER_MS)),
            PlainPhase::Working => self.held_until,
        }
    }

    fn tick(&mut self, now: Time, out: &mut Orders) {
        let waited_ms = now.since_ms(self.asked_at);
        match self.phase {
            PlainPhase::Waiting if waited_ms >= GREETING_MS => self.say_hello(now, out),
            PlainPhase::Greeting | PlainPhase::Working
                if waited_ms >= ANSWER_MS
                    && (self.phase == PlainPhase::Greeting || self.under_way) =>
            {
                let why = format!("the foreman has not answered for {waited_ms} ms");
                out.hang_up(Parting::Again(why));
            }
            _ => {}
        }
        self.flush(now, out);
    }

    fn lost(&mut self, _: Time) {
        if self.phase != PlainPhase::Gone {
            self.phase = PlainPhase::Away;
        }
        (self.under_way, self.is_closing) = (false, false);
    }

    fn unsaid(&self) -> usize {
        0
    }

    fn takes_back(&self) -> bool {
        false
    }

    fn must_finish(&self) -> bool {
        self.settings.must_finish && !self.talk.knows_laboro()
    }

    fn is_settled(&self) -> bool {
        self.results.is_empty() && !self.is_closing
    }
}

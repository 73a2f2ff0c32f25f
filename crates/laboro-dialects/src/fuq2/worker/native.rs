//! A worker at a Laboro hub. Tasks have keys of our own and leases are looked up, because a hub gone wrong may use a
//! lease number twice. Running tasks and reconnecting are done elsewhere.

mod incoming;
mod unsaid;

use super::WorkerSettings;
use super::incoming::Incoming;
use crate::fuq2::frame;
use crate::fuq2::header::{MessageKind, Numbering, counts};
use crate::fuq2::native::{self as wire, Wishes};
use crate::fuq2::talk::{Side, Talk, Wear};
use crate::session::Chunk;
use crate::worker::{Key, News, Orders, Parting, WorkerSide};
use bytes::BytesMut;
use laboro_core::{LeaseNo, Name, TaskId, Time};
use std::collections::HashMap;
use unsaid::Unsaid;

/// A Laboro worker's side of the native protocol.
#[derive(Debug)]
pub struct NativeWorker {
    settings: WorkerSettings,
    talk: Talk,
    phase: NativePhase,
    /// What was given to this worker and is not settled: it runs, or its result has no answer yet.
    tasks: HashMap<LeaseNo, NativeTask>,
    /// Those that have not ended, by the key under which they run. A hub gone wrong may use a lease twice; keys are ours.
    leases: HashMap<Key, LeaseNo>,
    next_key: u64,
    slots: u32,
    unsaid: Unsaid,
    /// Wants no more work.
    drains: bool,
    /// When something was last said: the hub waits for signs of life.
    said_at: Time,
    heard_at: Time,
    /// The hub's queue was full: nothing is asked until then.
    held_until: Option<Time>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NativePhase {
    Away,
    /// Waits for the answer to its HELLO.
    Greeting,
    Working,
    /// Everything is over.
    Gone,
}

#[derive(Clone, Copy, Debug)]
struct NativeTask {
    key: Key,
    task: TaskId,
    attempt: u16,
    /// How much was written to each stream.
    written: [u64; 3],
}

/// After ERROR(Overflow), when no other answer comes.
const OVERFLOW_MS: u64 = 50;

impl NativeWorker {
    /// Not connected yet.
    pub fn new(settings: WorkerSettings) -> NativeWorker {
        let slots = settings.slots;
        let mut talk = Talk::new(Side::Worker, Numbering::Current);
        talk.meet_laboro(true);
        NativeWorker {
            settings,
            talk,
            phase: NativePhase::Away,
            tasks: HashMap::new(),
            leases: HashMap::new(),
            next_key: 1,
            slots,
            unsaid: Unsaid::default(),
            drains: false,
            said_at: Time::default(),
            heard_at: Time::default(),
            held_until: None,
        }
    }

    #[cfg(test)]
    pub(in super::super) fn talk(&mut self) -> &mut Talk {
        &mut self.talk
    }

    fn say_hello(&mut self, now: Time, out: &mut Orders) {
        let settings = &self.settings;
        let mut running: Vec<(TaskId, LeaseNo)> =
            self.tasks.iter().map(|(&lease, live)| (live.task, lease)).collect();
        running.sort_unstable();
        let hello = wire::NativeHello {
            token: settings.token.clone(),
            name: Name::from(settings.name.as_str()),
            group: settings.group.as_deref().map(Name::from).unwrap_or_default(),
            tags: settings.tags.iter().map(|tag| Name::from(tag.as_str())).collect(),
            slots: self.slots,
            memory: settings.memory,
            resources: (settings.resources.iter())
                .map(|(name, supply)| (Name::from(name.as_str()), supply.clone()))
                .collect(),
            ahead: if self.drains { 0 } else { settings.ahead },
            period_ms: settings.period_ms,
            pid: settings.pid,
            host: settings.host.clone(),
            program: settings.program.clone(),
            takes_names: settings.takes_names,
            running,
            life: settings.life,
            fields: settings.fields,
            left_ms: settings.until.map_or(0, |until| until.since_ms(now).max(1)),
        };
        self.talk.ask_with(&mut out.say, MessageKind::Hello, |to| hello.write(to));
        out.end_message();
        (self.phase, self.said_at) = (NativePhase::Greeting, now);
    }

    /// Says what there is to say, if it is time for it.
    fn flush(&mut self, now: Time, out: &mut Orders) {
        if out.hang_up.is_some() {
            return;
        }
        if self.talk.answer_reset(&mut out.say) {
            out.end_message();
            self.start_anew(now, out);
        }
        let is_due = self.unsaid.is_due() || now >= self.sign_due();
        let may_ask = self.phase == NativePhase::Working && self.talk.may_ask();
        if !may_ask || !is_due || self.held_until.is_some_and(|until| until > now) {
            return;
        }
        self.held_until = None;
        match self.talk.wear() {
            Wear::Fine => {}
            Wear::Reset => {
                self.talk.ask_reset(&mut out.say);
                out.end_message();
                self.said_at = now;
                return;
            }
            Wear::Reconnect => {
                return out.hang_up(Parting::Again("the numbers of messages ran out".into()));
            }
        }
        let NativeWorker { unsaid, talk, tasks, .. } = self;
        let (items, wishes) = unsaid.take(|item| tasks.contains_key(&item.lease()));
        talk.ask_with(&mut out.say, MessageKind::Update, |to| {
            wire::write_update(to, now, items, wishes);
        });
        out.end_message();
        self.said_at = now;
    }

    fn counts(&self) -> u32 {
        let running = u32::try_from(self.leases.len()).unwrap_or(u32::MAX);
        counts(self.slots.saturating_sub(running), running)
    }

    /// When a sign of life is due.
    fn sign_due(&self) -> Time {
        self.said_at.after_ms(self.settings.period_ms / 3)
    }

    /// A task that runs is not this worker's any more; under which key it runs.
    fn forget(&mut self, lease: LeaseNo) -> Option<Key> {
        let key = self.tasks.get(&lease)?.key;
        self.leases.remove(&key)?;
        self.tasks.remove(&lease);
        Some(key)
    }

    /// Marks the end of a task that runs, if there is one of this key.
    fn end(&mut self, key: Key) -> Option<(LeaseNo, NativeTask)> {
        let lease = self.leases.remove(&key)?;
        Some((lease, *self.tasks.get(&lease)?))
    }
}

impl WorkerSide for NativeWorker {
    fn open(&mut self, now: Time, out: &mut Orders) {
        if self.phase == NativePhase::Gone {
            return out.hang_up(Parting::Finished);
        }
        self.talk.restart();
        self.heard_at = now;
        self.start_anew(now, out);
    }

    fn receive(&mut self, now: Time, input: &mut BytesMut, out: &mut Orders) {
        while out.hang_up.is_none() {
            match frame::take(input, self.talk.numbering(), self.settings.message_max) {
                Ok(Some(message)) => {
                    self.heard_at = now;
                    self.hear(now, message, out);
                }
                Ok(None) => break,
                Err(error) => out.hang_up(Parting::Malformed(error.to_string())),
            }
        }
        self.flush(now, out);
    }

    fn tell(&mut self, now: Time, news: News, out: &mut Orders) {
        match news {
            News::Started(_) => {}
            News::Wrote { key, stream, bytes } => {
                if let Some(&lease) = self.leases.get(&key)
                    && let Some(live) = self.tasks.get_mut(&lease)
                    && !bytes.is_empty()
                {
                    let (task, attempt) = (live.task, live.attempt);
                    let written = &mut live.written[stream as usize];
                    let offset = Some(*written);
                    *written += bytes.len() as u64;
                    let chunk = Chunk { task, lease, attempt, stream, offset, bytes };
                    self.unsaid.push(wire::Item::Chunk(chunk));
                }
            }
            News::Ended { key, how } => {
                if let Some((lease, NativeTask { task, attempt, .. })) = self.end(key) {
                    let at = now;
                    self.unsaid.push(wire::Item::Ended { task, lease, attempt, at, how });
                }
            }
            News::Returned(key) => {
                if let Some((lease, NativeTask { task, .. })) = self.end(key) {
                    self.unsaid.push(wire::Item::Back { task, lease, reason: None });
                }
            }
            News::Ahead(ahead) => {
                self.settings.ahead = ahead;
                self.unsaid.wish(Wishes { ahead: Some(ahead), ..Wishes::default() });
            }
            News::Draining => {
                self.drains = true;
                self.unsaid.wish(Wishes { drains: true, ..Wishes::default() });
            }
            News::Leaving => {
                self.drains = true;
                self.unsaid.wish(Wishes { leaves: true, ..Wishes::default() });
            }
        }
        self.flush(now, out);
    }

    fn deadline(&self) -> Option<Time> {
        let silence = self.said_at.max(self.heard_at).after_ms(self.settings.period_ms);
        match self.phase {
            NativePhase::Away | NativePhase::Gone => None,
            NativePhase::Greeting => Some(silence),
            NativePhase::Working if !self.talk.may_ask() => Some(silence),
            NativePhase::Working => {
                Some(self.held_until.unwrap_or(Time::NEVER).min(self.sign_due()))
            }
        }
    }

    fn tick(&mut self, now: Time, out: &mut Orders) {
        let waits = match self.phase {
            NativePhase::Greeting => true,
            NativePhase::Working => !self.talk.may_ask(),
            NativePhase::Away | NativePhase::Gone => false,
        };
        let silent_ms = now.since_ms(self.said_at.max(self.heard_at));
        if waits && silent_ms >= self.settings.period_ms {
            let why = format!("the hub was silent for {silent_ms} ms");
            return out.hang_up(Parting::Again(why));
        }
        self.flush(now, out);
    }

    fn lost(&mut self, _: Time) {
        if self.phase != NativePhase::Gone {
            self.phase = NativePhase::Away;
        }
        self.unsaid.say_again();
    }

    fn unsaid(&self) -> usize {
        self.unsaid.bytes()
    }

    fn is_settled(&self) -> bool {
        self.unsaid.is_settled()
    }
}

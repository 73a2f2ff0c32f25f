//! The hub of a manager, which is asked directly: the thread that asks takes the lock and has the answer, with no loop
//! and no queue between. That is possible because nothing is written before it counts: the result files remember. An
//! answer that comes later goes to the mailbox of the conversation that waits for it.

use super::mailbox::Mailbox;
use laboro_core::{Ask, Command, Counts, Effect, Hub, JobId, Query, Reply, Time, Token};
use laboro_dialects::session::Delivery;
use laboro_hub::history::History;
use laboro_net::Clock;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

#[derive(Clone)]
pub(super) struct DirectHub {
    inside: Arc<Mutex<Inside>>,
    clock: Clock,
}

struct Inside {
    hub: Hub,
    /// Of the conversations that are owed an answer, by their numbers.
    mailboxes: HashMap<u64, Arc<Mailbox>>,
    /// Where somebody looks on.
    gallery: Option<Gallery>,
}

/// What those who look on are told.
struct Gallery {
    history: History,
    effects: Vec<Effect>,
}

/// What may wait for the gallery. It takes all of it ten times a second, unless it is gone.
const EFFECTS_MAX: usize = 1 << 20;

/// In the tokens of those who ask directly, with the number of the conversation above the tag. The others count
/// from 1.
const DIRECT: u64 = 1 << 63;

/// Of a token.
const TAG_BITS: u32 = 8;

/// The conversation of those who have none. Others count from 1.
const NOBODY: u64 = 0;

impl DirectHub {
    pub(super) fn new(hub: Hub, clock: Clock) -> DirectHub {
        let inside = Inside { hub, mailboxes: HashMap::new(), gallery: None };
        DirectHub { inside: Arc::new(Mutex::new(inside)), clock }
    }

    pub(super) fn now(&self) -> Time {
        self.clock.now()
    }

    pub(super) fn clock(&self) -> Clock {
        self.clock
    }

    pub(super) fn ask(&self, command: Command) -> Option<Reply> {
        let (mut asks, mut answers) = (vec![(0, command)], Vec::new());
        self.ask_all(NOBODY, self.now(), &mut asks, &mut answers);
        answers.into_iter().find_map(|answer| match answer {
            Delivery::Reply { reply, .. } => Some(reply),
            _ => None,
        })
    }

    /// All that one turn of a conversation asks. A mailbox is given where an answer comes later, which only a request
    /// for work may have.
    pub(super) fn ask_all(
        &self,
        conversation: u64,
        now: Time,
        asks: &mut Vec<(u64, Command)>,
        answers: &mut Vec<Delivery>,
    ) -> Option<Arc<Mailbox>> {
        let token = |tag: u64| Token(DIRECT | conversation << TAG_BITS | tag);
        let mut owed = asks.len();
        let asks = asks.drain(..).map(|(tag, command)| Ask { token: token(tag), command });
        let asks = asks.collect();
        let mut inside = self.lock();
        for effect in inside.step(now, asks) {
            match effect {
                Effect::Reply { token, reply } if addressee(token) == Some(conversation) => {
                    owed = owed.saturating_sub(1);
                    answers.push(delivery(token, reply));
                }
                other => inside.pass_on(other),
            }
        }
        if owed == 0 || conversation == NOBODY {
            return None;
        }
        let mailbox = inside.mailboxes.entry(conversation).or_default();
        Some(Arc::clone(mailbox))
    }

    /// Nothing is owed to this conversation any more.
    pub(super) fn close_mailbox(&self, conversation: u64) {
        self.lock().mailboxes.remove(&conversation);
    }

    /// Does what is due.
    pub(super) fn tick(&self) {
        let now = self.now();
        let mut inside = self.lock();
        if inside.hub.next_deadline().is_some_and(|at| at <= now) {
            for effect in inside.step(now, Vec::new()) {
                inside.pass_on(effect);
            }
        }
    }

    pub(super) fn counts(&self, job: JobId) -> Option<Counts> {
        match self.ask(Command::Query(Query::Job(job))) {
            Some(Reply::Jobs(jobs)) => jobs.first().map(|job| job.counts),
            _ => None,
        }
    }

    /// From now on somebody looks on, through `step`.
    pub(super) fn open_gallery(&self, history: History) {
        self.lock().gallery = Some(Gallery { history, effects: Vec::new() });
    }

    /// For those who look on: what they ask, after all that others did since they last came.
    pub(super) fn step(&self, now: Time, asks: Vec<Ask>) -> Vec<Effect> {
        let mut inside = self.lock();
        let mut answers = inside.step(now, asks);
        for late in answers.extract_if(.., |effect| is_direct(effect)) {
            inside.pass_on(late);
        }
        let mut effects = match &mut inside.gallery {
            Some(gallery) => std::mem::take(&mut gallery.effects),
            None => Vec::new(),
        };
        effects.extend(answers);
        effects
    }

    fn lock(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inside {
    fn step(&mut self, now: Time, asks: Vec<Ask>) -> Vec<Effect> {
        let batch = self.hub.step(now, asks);
        if let Some(gallery) = &self.gallery {
            gallery.history.note(&batch);
        }
        batch.release()
    }

    fn pass_on(&mut self, effect: Effect) {
        match effect {
            Effect::Reply { token, reply } if addressee(token).is_some() => {
                // Without a mailbox it has gone.
                let mailbox = addressee(token).and_then(|number| self.mailboxes.get(&number));
                if let Some(mailbox) = mailbox {
                    mailbox.put(delivery(token, reply));
                }
            }
            effect => {
                if let Some(gallery) = &mut self.gallery
                    && gallery.effects.len() < EFFECTS_MAX
                {
                    gallery.effects.push(effect);
                }
            }
        }
    }
}

fn is_direct(effect: &Effect) -> bool {
    matches!(effect, Effect::Reply { token, .. } if addressee(*token).is_some())
}

/// The conversation that asked directly.
fn addressee(Token(token): Token) -> Option<u64> {
    (token & DIRECT != 0).then_some((token & !DIRECT) >> TAG_BITS)
}

fn delivery(Token(token): Token, reply: Reply) -> Delivery {
    Delivery::Reply { tag: token & ((1 << TAG_BITS) - 1), reply }
}

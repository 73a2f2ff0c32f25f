//! The hub of a manager, which is asked directly: whoever asks takes the lock and has the answer, with no loop and no
//! queue between. That is possible because nothing is written before it counts: the result files remember.

use laboro_core::{Ask, Command, Counts, Effect, Hub, JobId, Query, Reply, Time, Token};
use laboro_dialects::session::Delivery;
use laboro_hub::Clock;
use laboro_hub::history::History;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

#[derive(Clone)]
pub(super) struct DirectHub {
    inside: Arc<Mutex<Inside>>,
    clock: Clock,
}

struct Inside {
    hub: Hub,
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

/// In the tokens of those who ask directly. The others count from 1.
const DIRECT: u64 = 1 << 63;

impl DirectHub {
    pub(super) fn new(hub: Hub, clock: Clock) -> DirectHub {
        let inside = Inside { hub, gallery: None };
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
        self.ask_all(self.now(), &mut asks, &mut answers);
        answers.into_iter().find_map(|answer| match answer {
            Delivery::Reply { reply, .. } => Some(reply),
            _ => None,
        })
    }

    /// All that one turn of a conversation asks. None of it is answered later: runners are not promised work.
    pub(super) fn ask_all(
        &self,
        now: Time,
        asks: &mut Vec<(u64, Command)>,
        answers: &mut Vec<Delivery>,
    ) {
        let asks = asks.drain(..).map(|(tag, command)| Ask { token: Token(DIRECT | tag), command });
        let asks = asks.collect();
        let mut inside = self.lock();
        for effect in inside.step(now, asks) {
            match effect {
                Effect::Reply { token: Token(token), reply } if token & DIRECT != 0 => {
                    answers.push(Delivery::Reply { tag: token & !DIRECT, reply });
                }
                other => inside.pass_on(other),
            }
        }
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
        let answers = inside.step(now, asks);
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
        if let Some(gallery) = &mut self.gallery
            && gallery.effects.len() < EFFECTS_MAX
        {
            gallery.effects.push(effect);
        }
    }
}

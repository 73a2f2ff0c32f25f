//! What is seen at the hub's own borders, in order: what was asked of it, what its journal kept, what it let
//! out. The oracle judges by this, not by what the hub says about itself.

use laboro_core::{Ask, Effect, Event, Time};
use std::sync::{Arc, Mutex, PoisonError};

#[derive(Debug)]
pub(crate) enum Seen {
    Asked(Vec<Ask>),
    Kept { at: Time, events: Vec<Event> },
    LetOut(Vec<Effect>),
}

/// Cheap to clone; everybody writes to the same list.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tap(Arc<Mutex<Vec<Seen>>>);

impl Tap {
    pub fn note(&self, seen: Seen) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(seen);
    }

    pub fn take(&self) -> Vec<Seen> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

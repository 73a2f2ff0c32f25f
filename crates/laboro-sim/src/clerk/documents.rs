//! Documents of somebody who keeps what it knows in the journal: each holds what was acknowledged last, or something that
//! was asked for since, and never anything else.

use crate::dice::Dice;
use crate::oracle::Oracle;
use crate::promise::{Broken, Kept, Promise};
use laboro_core::{Command, DocumentChange, DocumentId, DocumentLimits, Reply};
use std::collections::BTreeMap;
use std::sync::Arc;

pub(super) struct Documents {
    dice: Dice,
    /// The number of the last wish.
    last: u64,
    known: BTreeMap<DocumentId, Vec<Candidate>>,
}

/// What a document may hold, by the wish that asked for it. The first one was acknowledged.
struct Candidate {
    wish: u64,
    body: Option<Arc<[u8]>>,
}

const KINDS: [&str; 2] = ["hook", "pool"];
const NAMES: u64 = 4;

impl Documents {
    pub fn new(dice: Dice) -> Documents {
        Documents { dice, last: 0, known: BTreeMap::new() }
    }

    /// Now and then some of them are changed together.
    pub fn draw(&mut self) -> Option<(u64, Command)> {
        if !self.dice.one_in(4) {
            return None;
        }
        self.last += 1;
        let count = 1 + self.dice.below(3);
        let changes: Vec<DocumentChange> = (0..count).map(|_| self.change()).collect();
        for change in &changes {
            let known = self
                .known
                .entry(change.id.clone())
                .or_insert_with(|| vec![Candidate { wish: 0, body: None }]);
            // Of two changes of one document the later one holds.
            known.retain(|asked| asked.wish != self.last);
            known.push(Candidate { wish: self.last, body: change.body.clone() });
        }
        Some((self.last, Command::ChangeDocuments(changes)))
    }

    fn change(&mut self) -> DocumentChange {
        let kind = KINDS[self.dice.index(KINDS.len())];
        let name = format!("d{}", self.dice.below(NAMES));
        if self.dice.one_in(4) {
            return DocumentChange::remove(kind, &name);
        }
        let body = format!("{} of wish {}", name, self.last).into_bytes();
        let too_large = DocumentLimits::default().bytes + 1;
        let size = if self.dice.one_in(12) { too_large } else { self.dice.index(2000) };
        let body: Vec<u8> = body.into_iter().cycle().take(size).collect();
        DocumentChange::set(kind, &name, &body)
    }

    pub fn answered(&mut self, wish: u64, reply: &Reply, oracle: &Oracle) -> Kept {
        let is_refused = matches!(reply, Reply::Refused(_));
        let most = DocumentLimits::default().bytes;
        for known in self.known.values_mut() {
            let Some(at) = known.iter().position(|asked| asked.wish == wish) else { continue };
            if is_refused {
                known.remove(at);
            } else {
                if known[at].body.as_ref().is_some_and(|body| body.len() > most) {
                    return Err(Broken::new(Promise::Limits, "a document is too large".to_owned()));
                }
                known.drain(..at);
            }
        }
        self.check(oracle)
    }

    pub fn check(&self, oracle: &Oracle) -> Kept {
        for (id, known) in &self.known {
            let there = oracle.document(id);
            if known.iter().any(|asked| asked.body.as_ref() == there) {
                continue;
            }
            let what = format!("document {id:?} is not what it was set to");
            return Err(Broken::new(Promise::NothingLost, what));
        }
        match oracle.documents().find(|id| !self.known.contains_key(id)) {
            None => Ok(()),
            Some(id) => {
                Err(Broken::new(Promise::Sound, format!("nobody asked for document {id:?}")))
            }
        }
    }
}

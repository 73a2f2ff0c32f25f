//! The documents of a ledger, and how much they are together.

use super::reading::Ledger;
use crate::document::{DocumentChange, DocumentId};
use crate::id::Name;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Documents by kind and name.
#[derive(Debug, Default)]
pub(crate) struct Documents {
    all: BTreeMap<DocumentId, Arc<[u8]>>,
    bytes: u64,
}

impl Documents {
    pub(crate) fn count(&self) -> usize {
        self.all.len()
    }

    /// Of their bodies.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn get(&self, id: &DocumentId) -> Option<&Arc<[u8]>> {
        self.all.get(id)
    }

    pub(in crate::ledger) fn change(&mut self, change: &DocumentChange) {
        let before = match &change.body {
            Some(body) => {
                self.bytes += body.len() as u64;
                self.all.insert(change.id.clone(), body.clone())
            }
            None => self.all.remove(&change.id),
        };
        self.bytes -= before.map_or(0, |body| body.len() as u64);
    }

    pub(in crate::ledger) fn all(&self) -> impl Iterator<Item = DocumentChange> {
        self.all
            .iter()
            .map(|(id, body)| DocumentChange { id: id.clone(), body: Some(body.clone()) })
    }

    pub(in crate::ledger) fn check(&self) -> Result<(), String> {
        let bytes: u64 = self.all.values().map(|body| body.len() as u64).sum();
        match bytes == self.bytes {
            true => Ok(()),
            false => Err(format!("documents have {bytes} bytes, and {} are counted", self.bytes)),
        }
    }
}

impl Ledger {
    pub(crate) fn documents(&self) -> &Documents {
        &self.documents
    }

    /// Name and content of all documents of a kind, by name.
    pub fn documents_of(&self, kind: &Name) -> impl Iterator<Item = (&Name, &Arc<[u8]>)> {
        let first = DocumentId { kind: kind.clone(), name: Name::default() };
        let of_kind = self.documents.all.range(first..).take_while(move |(id, _)| id.kind == *kind);
        of_kind.map(|(id, body)| (&id.name, body))
    }
}

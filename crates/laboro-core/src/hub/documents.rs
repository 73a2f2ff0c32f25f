//! Documents are changed: several at once, all of them or none.

use super::Hub;
use crate::document::{DocumentChange, DocumentId};
use crate::event::Event;
use crate::refusal::Refusal;
use crate::reply::Reply;
use std::collections::BTreeMap;

impl Hub {
    /// What would change nothing is not an event.
    pub(super) fn change_documents(
        &mut self,
        changes: Vec<DocumentChange>,
    ) -> Result<Reply, Refusal> {
        let limits = self.config.documents;
        let documents = self.ledger().documents();
        let (mut count, mut bytes) = (documents.count(), documents.bytes());
        // Of two changes of one document the later one holds.
        let changes: BTreeMap<DocumentId, _> =
            changes.into_iter().map(|change| (change.id, change.body)).collect();
        for (id, body) in &changes {
            for name in [&id.kind, &id.name] {
                if name.is_empty() || name.len() > self.config.limits.name_bytes {
                    let why = "of a document is empty or too long";
                    return Err(Refusal::BadName { name: name.clone(), why });
                }
            }
            let before = documents.get(id).map(|body| body.len());
            count -= usize::from(before.is_some());
            bytes -= before.unwrap_or(0) as u64;
            let Some(body) = body else { continue };
            if body.len() > limits.bytes {
                let most = limits.bytes as u64;
                return Err(Refusal::Limit { what: "bytes in a document", most });
            }
            count += 1;
            bytes += body.len() as u64;
        }
        if count > documents.count().max(limits.count) {
            return Err(Refusal::Limit { what: "documents", most: limits.count as u64 });
        }
        if bytes > documents.bytes().max(limits.bytes_in_all) {
            let most = limits.bytes_in_all;
            return Err(Refusal::Limit { what: "bytes in documents", most });
        }
        for (id, body) in changes {
            if self.ledger().documents().get(&id) != body.as_ref() {
                self.ledger.post(Event::DocumentChanged(Box::new(DocumentChange { id, body })));
            }
        }
        Ok(Reply::Ok)
    }
}

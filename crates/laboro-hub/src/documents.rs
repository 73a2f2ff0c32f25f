//! What pools, hooks and schedules keep in the hub's journal: documents, which are JSON texts with a kind and a name. What an
//! earlier version kept in a file of the hub's directory is taken over at the first start. No decisions about any of it.

use crate::inbox::{Handle, Lost};
use laboro_core::{
    Ask, Command, DocumentChange, Effect, Hub, Ledger, Name, Refusal, Reply, Time, Token,
};
use laboro_journal::JournalError;
use laboro_net::SecurityError;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::path::{Path, PathBuf};

/// Why something cannot be read or kept.
#[derive(Debug, thiserror::Error)]
pub enum DocumentError {
    #[error(transparent)]
    Lost(#[from] Lost),
    #[error("this does not fit into the journal: {0}")]
    Refused(Refusal),
    #[error("document {kind}/{name} of the journal cannot be read: {why}")]
    Malformed { kind: String, name: String, why: String },
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error(transparent)]
    Pools(#[from] laboro_pool::StoreError),
    #[error(transparent)]
    File(#[from] SecurityError),
    #[error("{} cannot be renamed to {}: {source}", .from.display(), .to.display())]
    Rename { from: PathBuf, to: PathBuf, source: std::io::Error },
}

pub(crate) fn set(kind: &str, name: &str, value: &impl Serialize) -> DocumentChange {
    let text = serde_json::to_string(value).expect("strings and numbers have a JSON form");
    DocumentChange::set(kind, name, text.as_bytes())
}

/// Writes documents while the hub runs, in the order in which it is asked to.
#[derive(Debug)]
pub(crate) struct Documents {
    handle: Handle,
}

impl Documents {
    pub fn new(handle: Handle) -> Documents {
        Documents { handle }
    }

    /// All of them are on the disk when this returns, or none.
    pub async fn write(&self, changes: Vec<DocumentChange>) -> Result<(), DocumentError> {
        if changes.is_empty() {
            return Ok(());
        }
        match self.handle.ask(Command::ChangeDocuments(changes)).await? {
            Reply::Refused(refusal) => Err(DocumentError::Refused(refusal)),
            _ => Ok(()),
        }
    }
}

/// What the journal holds as the hub starts, and what is to be written before anything else happens.
#[derive(Debug)]
pub(crate) struct Opening<'a> {
    ledger: &'a Ledger,
    writing: Writing,
}

/// Documents to be written at once, and files that are of no use from then on.
#[derive(Debug, Default)]
pub(crate) struct Writing {
    changes: Vec<DocumentChange>,
    files: Vec<PathBuf>,
}

/// So many in a batch, whose size has bounds in some journals.
const CHANGES_A_STEP: usize = 50;

impl<'a> Opening<'a> {
    pub fn of(ledger: &'a Ledger) -> Opening<'a> {
        Opening { ledger, writing: Writing::default() }
    }

    /// Of one kind, by name.
    pub fn read<T: DeserializeOwned>(&self, kind: &str) -> Result<Vec<(String, T)>, DocumentError> {
        let read = |(name, body): (&Name, &std::sync::Arc<[u8]>)| {
            let value = serde_json::from_slice(body).map_err(|error| DocumentError::Malformed {
                kind: kind.to_owned(),
                name: name.to_string(),
                why: error.to_string(),
            })?;
            Ok((name.to_string(), value))
        };
        self.ledger.documents_of(&kind.into()).map(read).collect()
    }

    pub fn write(&mut self, changes: impl IntoIterator<Item = DocumentChange>) {
        self.writing.changes.extend(changes);
    }

    /// What was in this file of an earlier version is written with the rest.
    pub fn replaces(&mut self, file: &Path) {
        if file.exists() {
            self.writing.files.push(file.to_owned());
        }
    }

    pub fn into_writing(self) -> Writing {
        self.writing
    }
}

impl Writing {
    pub fn into_changes(self) -> Vec<DocumentChange> {
        self.changes
    }

    /// Before anybody can ask anything of the hub. Killed in between, the same is done at the next start: what is there
    /// already is not written again.
    pub fn finish(
        self,
        hub: &mut Hub,
        now: Time,
        mut commit: impl FnMut(laboro_core::Batch) -> Result<Vec<Effect>, JournalError>,
    ) -> Result<(), DocumentError> {
        for changes in self.changes.chunks(CHANGES_A_STEP) {
            let command = Command::ChangeDocuments(changes.to_vec());
            let batch = hub.step(now, vec![Ask { token: Token(0), command }]);
            for effect in commit(batch)? {
                if let Effect::Reply { reply: Reply::Refused(refusal), .. } = effect {
                    return Err(DocumentError::Refused(refusal));
                }
            }
        }
        for from in self.files {
            let mut to = from.clone().into_os_string();
            to.push(".old");
            let to = PathBuf::from(to);
            tracing::info!(
                "{} is in the journal now; the file is kept as {}",
                from.display(),
                to.display()
            );
            std::fs::rename(&from, &to).map_err(|source| DocumentError::Rename {
                from,
                to,
                source,
            })?;
        }
        Ok(())
    }
}

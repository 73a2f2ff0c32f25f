//! Documents: small named texts that parts of the hub beside the core keep in its journal, such as what is known of pools.
//! The core bounds them and never looks inside.

use crate::id::Name;
use std::fmt;
use std::sync::Arc;

/// Names a document.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DocumentId {
    /// Which part of the hub it belongs to.
    pub kind: Name,
    /// Its name among those of its kind.
    pub name: Name,
}

/// What one document becomes.
#[derive(Clone, PartialEq, Eq)]
pub struct DocumentChange {
    /// Which one.
    pub id: DocumentId,
    /// `None`: it is removed.
    pub body: Option<Arc<[u8]>>,
}

impl DocumentChange {
    /// It holds this from now on.
    pub fn set(kind: &str, name: &str, body: &[u8]) -> DocumentChange {
        let id = DocumentId { kind: kind.into(), name: name.into() };
        DocumentChange { id, body: Some(body.into()) }
    }

    /// It is gone from now on.
    pub fn remove(kind: &str, name: &str) -> DocumentChange {
        DocumentChange { id: DocumentId { kind: kind.into(), name: name.into() }, body: None }
    }
}

/// As text, which most are.
impl fmt::Debug for DocumentChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DocumentId { kind, name } = &self.id;
        match &self.body {
            Some(body) => write!(f, "Document {kind}/{name} = {}", body.escape_ascii()),
            None => write!(f, "Document {kind}/{name} removed"),
        }
    }
}

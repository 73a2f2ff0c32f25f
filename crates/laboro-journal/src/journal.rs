//! What every journal promises, and how it can fail to.

use crate::log::LogError;
use laboro_core::{Batch, Effect};
use std::io;
use std::sync::Arc;

/// Remembers batches, in order.
pub trait Journal {
    /// Gives the effects back only when the events are as safe as promised. After an error the hub must
    /// stop: its memory is ahead of the journal, and every later commit fails the same way.
    fn commit(
        &mut self,
        batch: Batch,
    ) -> impl Future<Output = Result<Vec<Effect>, JournalError>> + Send;
}

/// Why a batch was not kept. Final: what the hub knows is ahead of its journal.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)]
pub enum JournalError {
    #[error(transparent)]
    Log(#[from] LogError),

    #[error("cannot start the journal's thread: {source}")]
    NoThread { source: Arc<io::Error> },

    #[error("the journal's thread ended early; start the hub again")]
    Died,

    /// Of a journal that is kept by another crate.
    #[error(transparent)]
    Elsewhere(Arc<dyn std::error::Error + Send + Sync>),
}

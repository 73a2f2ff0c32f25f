//! Where bodies are read: small ones at once, others on threads of their own and a few at a time, so that nobody
//! else waits for them. A large one never stands in the way of one that is not.

use super::answer::Refused;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Takes about as long as the rest of a request.
const SMALL_BYTES: usize = 32 << 10;
/// More than most requests have, and read in some milliseconds.
const MEDIUM_BYTES: usize = 1 << 20;

pub(super) struct Readers {
    medium: Arc<Semaphore>,
    large: Arc<Semaphore>,
}

/// Held for as long as what was read takes memory.
pub(super) struct Turn(
    #[allow(dead_code, reason = "it is there to be dropped")] Option<OwnedSemaphorePermit>,
);

impl Default for Readers {
    fn default() -> Readers {
        // One of each leaves a core for the rest where there are two.
        Readers { medium: Arc::new(Semaphore::new(1)), large: Arc::new(Semaphore::new(1)) }
    }
}

impl Readers {
    /// Does what takes as long as so many bytes do.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        bytes: usize,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<(T, Turn), Refused> {
        if bytes <= SMALL_BYTES {
            return Ok((work(), Turn(None)));
        }
        let readers = if bytes <= MEDIUM_BYTES { &self.medium } else { &self.large };
        let turn = readers.clone().acquire_owned().await.expect("it is never closed");
        // When nobody waits for it any more it is still the only one of its kind.
        let read = tokio::task::spawn_blocking(move || (work(), Turn(Some(turn))));
        read.await.map_err(|error| super::operation::internal(&error))
    }
}

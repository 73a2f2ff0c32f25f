//! Where the scribe works: here, or in a thread of its own when it spends its time waiting for the disk.

use super::Scribe;
use crate::journal::JournalError;
use futures_channel::oneshot;
use std::fmt;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

pub(super) enum Desk {
    Here(Box<Scribe>),
    Thread(Elsewhere),
}

/// Orders are as many as callers wait for: there is no other bound, and no need for one.
type Order = Box<dyn FnOnce(&mut Scribe) + Send>;

/// `None` once it was closed.
pub(super) struct Elsewhere(Option<(Sender<Order>, JoinHandle<Scribe>)>);

impl Desk {
    pub fn here(scribe: Scribe) -> Desk {
        Desk::Here(Box::new(scribe))
    }

    pub fn in_thread(scribe: Scribe) -> Result<Desk, JournalError> {
        let (orders, inbox) = channel();
        let thread = std::thread::Builder::new()
            .name("journal".to_owned())
            .spawn(move || serve(scribe, inbox))
            .map_err(|source| JournalError::NoThread { source: Arc::new(source) })?;
        Ok(Desk::Thread(Elsewhere(Some((orders, thread)))))
    }

    /// Has the scribe do something, after all it was told before. It is done also if nobody waits.
    pub async fn run<T: Send + 'static>(
        &mut self,
        work: impl FnOnce(&mut Scribe) -> T + Send + 'static,
    ) -> Result<T, JournalError> {
        match self {
            Desk::Here(scribe) => Ok(work(scribe)),
            Desk::Thread(Elsewhere(None)) => Err(JournalError::Died),
            Desk::Thread(Elsewhere(Some((orders, _)))) => {
                let (answer, answered) = oneshot::channel();
                let order: Order = Box::new(move |scribe| {
                    // Whoever asked may be gone; then nobody minds.
                    let _ = answer.send(work(scribe));
                });
                orders.send(order).map_err(|_| JournalError::Died)?;
                answered.await.map_err(|_| JournalError::Died)
            }
        }
    }

    pub fn close(self) -> Result<(), JournalError> {
        match self {
            Desk::Here(scribe) => scribe.close(),
            Desk::Thread(mut elsewhere) => elsewhere.end().ok_or(JournalError::Died)?.close(),
        }
    }
}

/// Until there are no more orders and never will be.
fn serve(mut scribe: Scribe, inbox: Receiver<Order>) -> Scribe {
    inbox.into_iter().for_each(|order| order(&mut scribe));
    scribe
}

impl Elsewhere {
    fn end(&mut self) -> Option<Scribe> {
        let (orders, thread) = self.0.take()?;
        drop(orders);
        thread.join().ok()
    }
}

/// Waits, so that the directory is free when the journal is gone.
impl Drop for Elsewhere {
    fn drop(&mut self) {
        self.end();
    }
}

impl fmt::Debug for Desk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Desk::Here(scribe) => f.debug_tuple("Here").field(scribe).finish(),
            Desk::Thread(_) => f.write_str("Thread"),
        }
    }
}

//! Where the scribe works: here, or in a thread of its own when it spends its time waiting for the disk. A
//! little work for a quick disk is done here all the same: handing it over and back takes longer.

use super::Scribe;
use crate::journal::JournalError;
use futures_channel::oneshot;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

pub(super) enum Desk {
    Here(Box<Scribe>),
    Thread(Elsewhere),
}

/// Orders are as many as callers wait for: there is no other bound, and no need for one.
type Order = Box<dyn FnOnce(&mut Scribe) + Send>;

/// `None` once it was closed.
pub(super) struct Elsewhere(Option<Staff>);

/// A thread, and the seat that both sides may take.
struct Staff {
    seat: Arc<Mutex<Seat>>,
    /// What was ordered and is not done: whoever works here must not overtake it.
    ordered: Arc<AtomicUsize>,
    orders: Sender<Order>,
    thread: JoinHandle<()>,
}

struct Seat {
    scribe: Scribe,
    /// How long the last piece of work took, on either side.
    took: Duration,
}

/// A disk that was slower than this the last time is not waited for here: others can be served meanwhile.
const QUICK: Duration = Duration::from_millis(1);

impl Desk {
    pub fn here(scribe: Scribe) -> Desk {
        Desk::Here(Box::new(scribe))
    }

    pub fn in_thread(scribe: Scribe) -> Result<Desk, JournalError> {
        let (orders, inbox) = channel();
        let seat = Arc::new(Mutex::new(Seat { scribe, took: Duration::ZERO }));
        let ordered = Arc::new(AtomicUsize::new(0));
        let (own_seat, done) = (Arc::clone(&seat), Arc::clone(&ordered));
        let thread = std::thread::Builder::new()
            .name("journal".to_owned())
            .spawn(move || serve(&own_seat, &done, inbox))
            .map_err(|source| JournalError::NoThread { source: Arc::new(source) })?;
        Ok(Desk::Thread(Elsewhere(Some(Staff { seat, ordered, orders, thread }))))
    }

    /// Has the scribe do something, after all it was told before. It is done also if nobody waits. What
    /// `is_little` may be done before this returns.
    pub async fn run<T: Send + 'static>(
        &mut self,
        is_little: bool,
        work: impl FnOnce(&mut Scribe) -> T + Send + 'static,
    ) -> Result<T, JournalError> {
        match self {
            Desk::Here(scribe) => Ok(work(scribe)),
            Desk::Thread(Elsewhere(None)) => Err(JournalError::Died),
            Desk::Thread(Elsewhere(Some(staff))) => staff.run(is_little, work).await,
        }
    }

    pub fn close(self) -> Result<(), JournalError> {
        match self {
            Desk::Here(scribe) => scribe.close(),
            Desk::Thread(mut elsewhere) => elsewhere.end().ok_or(JournalError::Died)?.close(),
        }
    }
}

impl Staff {
    async fn run<T: Send + 'static>(
        &self,
        is_little: bool,
        work: impl FnOnce(&mut Scribe) -> T + Send + 'static,
    ) -> Result<T, JournalError> {
        if is_little && self.ordered.load(Ordering::Acquire) == 0 {
            let mut seat = self.seat.lock().map_err(|_| JournalError::Died)?;
            if seat.took < QUICK {
                return Ok(seat.work(work));
            }
        }
        let (answer, answered) = oneshot::channel();
        let order: Order = Box::new(move |scribe| {
            // Whoever asked may be gone; then nobody minds.
            let _ = answer.send(work(scribe));
        });
        self.ordered.fetch_add(1, Ordering::Relaxed);
        self.orders.send(order).map_err(|_| JournalError::Died)?;
        answered.await.map_err(|_| JournalError::Died)
    }
}

impl Elsewhere {
    fn end(&mut self) -> Option<Scribe> {
        let Staff { seat, orders, thread, .. } = self.0.take()?;
        drop(orders);
        thread.join().ok()?;
        Some(Arc::into_inner(seat)?.into_inner().ok()?.scribe)
    }
}

impl Seat {
    fn work<T>(&mut self, work: impl FnOnce(&mut Scribe) -> T) -> T {
        let began = Instant::now();
        let done = work(&mut self.scribe);
        self.took = began.elapsed();
        done
    }
}

/// Until there are no more orders and never will be.
fn serve(seat: &Mutex<Seat>, ordered: &AtomicUsize, inbox: Receiver<Order>) {
    for order in inbox {
        // Poisoned: the other side died over its work, and nobody may go on with it.
        let Ok(mut seat) = seat.lock() else { return };
        seat.work(order);
        drop(seat);
        ordered.fetch_sub(1, Ordering::Release);
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

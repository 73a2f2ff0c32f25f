//! One stream at a time writes into a job. A client that lost its connection may be back before the hub has
//! noticed; the newcomer takes the seat and the old stream leaves.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{OwnedMutexGuard, watch};

#[derive(Default)]
pub(super) struct Seats {
    seats: Arc<Mutex<HashMap<u32, Arc<Seat>>>>,
}

struct Seat {
    /// Whose turn it is: the last who came.
    turn: watch::Sender<u64>,
    taken: Arc<tokio::sync::Mutex<()>>,
}

/// Held while a stream writes.
pub(super) struct Taken {
    job: u32,
    turn: u64,
    turns: watch::Receiver<u64>,
    seats: Arc<Mutex<HashMap<u32, Arc<Seat>>>>,
    _guard: OwnedMutexGuard<()>,
}

impl Seats {
    /// Waits until whoever sits there has left, which they do at once.
    pub(super) async fn take(&self, job: u32) -> Taken {
        let (seat, turn) = {
            let mut seats = self.seats.lock().unwrap_or_else(PoisonError::into_inner);
            let seat = seats.entry(job).or_insert_with(|| {
                Arc::new(Seat { turn: watch::Sender::new(0), taken: Arc::default() })
            });
            seat.turn.send_modify(|turn| *turn += 1);
            (seat.clone(), *seat.turn.borrow())
        };
        let turns = seat.turn.subscribe();
        let guard = seat.taken.clone().lock_owned().await;
        Taken { job, turn, turns, seats: self.seats.clone(), _guard: guard }
    }
}

impl Taken {
    /// Comes back when somebody else wants the seat.
    pub(super) async fn wanted(&mut self) {
        let turn = self.turn;
        // An error means that the seat itself is gone, which our guard forbids.
        let _ = self.turns.wait_for(|now| *now != turn).await;
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        let mut seats = self.seats.lock().unwrap_or_else(PoisonError::into_inner);
        // The last one takes the seat away; whoever came later needs it.
        if *self.turns.borrow() == self.turn {
            seats.remove(&self.job);
        }
    }
}

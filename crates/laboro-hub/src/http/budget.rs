//! The memory that bodies may take from their first byte until they are answered, all together. When there is no
//! room for more, the token that has most of it gives way: the youngest of its bodies that is still on its way is
//! refused. So a token that sends little is served whatever others send.

use super::answer::Refused;
use axum::http::StatusCode;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

pub(super) struct Budget {
    bytes_max: usize,
    books: Mutex<Books>,
    freed: Notify,
}

#[derive(Default)]
struct Books {
    used: usize,
    /// Of that, what those have that were told to go.
    leaving: usize,
    next: u64,
    shares: HashMap<Arc<str>, TokenShare>,
}

/// What one token has.
#[derive(Default)]
struct TokenShare {
    bytes: usize,
    /// In the order in which they began.
    bodies: BTreeMap<u64, BodyShare>,
}

struct BodyShare {
    bytes: usize,
    state: BodyState,
    go: Arc<Notify>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum BodyState {
    Arriving,
    /// All of it is here.
    Complete,
    /// It was told to go.
    Leaving,
}

/// What one body has of it, until this is dropped.
pub(super) struct Room {
    budget: Arc<Budget>,
    token: Arc<str>,
    number: u64,
    go: Arc<Notify>,
}

impl Budget {
    pub(super) fn new(bytes_max: usize) -> Arc<Budget> {
        Arc::new(Budget { bytes_max, books: Mutex::default(), freed: Notify::new() })
    }

    /// For a body of which nothing is here yet.
    pub(super) fn room(self: &Arc<Budget>, token: &str) -> Room {
        let (token, go) = (Arc::<str>::from(token), Arc::new(Notify::new()));
        let mut books = self.books();
        books.next += 1;
        let number = books.next;
        let body = BodyShare { bytes: 0, state: BodyState::Arriving, go: go.clone() };
        books.shares.entry(token.clone()).or_default().bodies.insert(number, body);
        drop(books);
        Room { budget: self.clone(), token, number, go }
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn refusal(&self) -> Refused {
        let most = self.bytes_max;
        let detail = format!("request bodies already use {most} bytes, the maximum");
        Refused::new(StatusCode::SERVICE_UNAVAILABLE, "busy", detail)
            .hint("send it again, or send fewer requests at once")
            .retry_after(1)
    }
}

impl Room {
    /// Waits until there is room for so many bytes more.
    pub(super) async fn grow(&self, more: usize) -> Result<(), Refused> {
        loop {
            let mut freed = std::pin::pin!(self.budget.freed.notified());
            // From now on, so that nothing is missed between the look and the wait.
            freed.as_mut().enable();
            if self.try_grow(more)? {
                return Ok(());
            }
            tokio::select! {
                () = freed => {}
                refused = self.must_go() => return Err(refused),
            }
        }
    }

    fn try_grow(&self, more: usize) -> Result<bool, Refused> {
        let mut books = self.budget.books();
        if books.state(self) == BodyState::Leaving {
            return Err(self.budget.refusal());
        }
        let has_room = books.used + more <= self.budget.bytes_max;
        if has_room {
            books.add(self, more);
        } else {
            books.make_room(more, self.budget.bytes_max, self.number);
        }
        Ok(has_room)
    }

    /// Comes when this body has to go.
    pub(super) async fn must_go(&self) -> Refused {
        self.go.notified().await;
        self.budget.refusal()
    }

    /// All of it is here: it is worked on now, and no longer told to go.
    pub(super) fn complete(&self) -> Result<(), Refused> {
        let mut books = self.budget.books();
        let body = books.body(self);
        if body.state == BodyState::Leaving {
            return Err(self.budget.refusal());
        }
        body.state = BodyState::Complete;
        Ok(())
    }

    /// All but so many bytes are done with.
    pub(super) fn shrink_to(&self, bytes: usize) {
        self.budget.books().shrink(self, bytes);
        self.budget.freed.notify_waiters();
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        let mut books = self.budget.books();
        books.shrink(self, 0);
        if let Some(share) = books.shares.get_mut(&self.token) {
            share.bodies.remove(&self.number);
            if share.bodies.is_empty() {
                books.shares.remove(&self.token);
            }
        }
        drop(books);
        self.budget.freed.notify_waiters();
    }
}

impl Books {
    fn share(&mut self, room: &Room) -> &mut TokenShare {
        self.shares.get_mut(&room.token).expect("a token with a body has a share")
    }

    fn body(&mut self, room: &Room) -> &mut BodyShare {
        self.share(room).bodies.get_mut(&room.number).expect("a body is there until it is dropped")
    }

    fn state(&mut self, room: &Room) -> BodyState {
        self.body(room).state
    }

    fn add(&mut self, room: &Room, more: usize) {
        self.used += more;
        self.share(room).bytes += more;
        self.body(room).bytes += more;
    }

    fn shrink(&mut self, room: &Room, bytes: usize) {
        let body = self.body(room);
        let less = body.bytes.saturating_sub(bytes);
        body.bytes -= less;
        if body.state == BodyState::Leaving {
            self.leaving -= less;
        }
        self.used -= less;
        self.share(room).bytes -= less;
    }

    /// Tells as many to go as it takes. Those of one token go youngest first, so that its oldest one comes through;
    /// a body that would have to go for itself waits.
    fn make_room(&mut self, more: usize, bytes_max: usize, asking: u64) {
        while self.used + more > bytes_max + self.leaving {
            let largest = self.shares.values_mut().max_by_key(|share| share.bytes);
            let Some(share) = largest else { return };
            let mut youngest = share.bodies.iter_mut().rev();
            let arriving = youngest.find(|(_, body)| body.state == BodyState::Arriving);
            match arriving {
                Some((&number, body)) if number != asking => {
                    body.state = BodyState::Leaving;
                    self.leaving += body.bytes;
                    body.go.notify_one();
                }
                _ => return,
            }
        }
    }
}

#[cfg(test)]
mod tests;

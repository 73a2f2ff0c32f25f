//! The worker's side of a run: the conversation between its hub and its worker, by value instead of bytes. What is
//! said is decided by the desk, which outlives the worker.

use super::desk::Desk;
use bytes::BytesMut;
use laboro_core::Time;
use laboro_dialects::worker::{Key, News, Orders, WorkerSide};
use laboro_hub::{Delivery, Subscription};
use laboro_worker::agent::Inbox;
use std::ffi::OsString;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

/// Shared by the worker's side, by whoever says something to people, and by whoever sums up in the end.
#[derive(Clone)]
pub(crate) struct SharedDesk(Arc<Mutex<Desk>>);

impl SharedDesk {
    pub(crate) fn new(desk: Desk) -> SharedDesk {
        SharedDesk(Arc::new(Mutex::new(desk)))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Desk> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Brings what the hub delivers.
pub(crate) struct Mail {
    pub(crate) subscription: Subscription,
    pub(crate) desk: SharedDesk,
    pub(crate) deliveries: Vec<Delivery>,
}

/// Taken at once; there are never as many.
const DELIVERIES: usize = 1024;

impl Inbox for Mail {
    fn poll_heard(&mut self, context: &mut Context<'_>) -> Poll<bool> {
        let polled = self.subscription.poll_next(context, &mut self.deliveries, DELIVERIES);
        polled.map(|count| {
            self.desk.lock().inbox.append(&mut self.deliveries);
            count > 0
        })
    }
}

pub(crate) struct Side(pub(crate) SharedDesk);

impl WorkerSide for Side {
    fn open(&mut self, now: Time, _: &mut Orders) {
        self.0.lock().join(now);
    }

    fn receive(&mut self, now: Time, _: &mut BytesMut, out: &mut Orders) {
        self.0.lock().hear(now, out);
    }

    fn tell(&mut self, now: Time, news: News, out: &mut Orders) {
        self.0.lock().note(now, news, out);
    }

    fn launching(&mut self, key: Key, words: &[OsString]) {
        self.0.lock().launching(key, words);
    }

    fn deadline(&self) -> Option<Time> {
        Some(self.0.lock().deadline())
    }

    fn tick(&mut self, now: Time, out: &mut Orders) {
        self.0.lock().tick(now, out);
    }

    fn lost(&mut self, _: Time) {}

    /// What tasks print is in the store when it was told.
    fn unsaid(&self) -> usize {
        0
    }

    fn is_settled(&self) -> bool {
        self.0.lock().is_settled()
    }
}

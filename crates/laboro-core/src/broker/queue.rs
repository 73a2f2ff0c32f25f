//! The requests that wait for a worker, oldest first, within limits of number, bytes and time.

use super::{BrokerConfig, Dropped};
use crate::id::Time;
use std::collections::VecDeque;

#[derive(Debug)]
pub(super) struct RequestQueue<M> {
    waiting: VecDeque<Waiting<M>>,
    bytes: usize,
    messages_max: usize,
    bytes_max: usize,
    wait_ms: u64,
}

#[derive(Debug)]
struct Waiting<M> {
    message: M,
    bytes: usize,
    until: Time,
}

impl<M> RequestQueue<M> {
    pub fn new(config: &BrokerConfig) -> RequestQueue<M> {
        RequestQueue {
            waiting: VecDeque::new(),
            bytes: 0,
            messages_max: config.queue_messages_max,
            bytes_max: config.queue_bytes_max,
            wait_ms: config.queue_ms,
        }
    }

    /// Whether there is room for a message of so many bytes.
    pub fn check(&self, bytes: usize) -> Result<(), Dropped> {
        if self.waiting.len() >= self.messages_max {
            return Err(Dropped::QueueFull);
        }
        if self.bytes.saturating_add(bytes) > self.bytes_max {
            return Err(Dropped::QueueBytes);
        }
        Ok(())
    }

    pub fn push(&mut self, now: Time, message: M, bytes: usize) {
        self.bytes += bytes;
        self.waiting.push_back(Waiting { message, bytes, until: now.after_ms(self.wait_ms) });
    }

    pub fn pop(&mut self) -> Option<M> {
        let first = self.waiting.pop_front()?;
        self.bytes -= first.bytes;
        Some(first.message)
    }

    /// Drops what has waited too long; says how many. All wait equally long, so the oldest go first.
    pub fn expire(&mut self, now: Time) -> u64 {
        let mut expired = 0;
        while self.deadline().is_some_and(|until| now >= until) {
            self.pop();
            expired += 1;
        }
        expired
    }

    pub fn deadline(&self) -> Option<Time> {
        self.waiting.front().map(|first| first.until)
    }

    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

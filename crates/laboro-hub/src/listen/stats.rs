//! What happens at one door, in numbers. Counted by the door, read by metrics and the dashboard.

use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Debug, Default)]
pub struct DoorStats {
    pub(crate) connections: AtomicU64,
    pub(crate) connections_total: AtomicU64,
    pub(crate) bytes_in: AtomicU64,
    pub(crate) bytes_out: AtomicU64,
    pub(crate) messages_in: AtomicU64,
    pub(crate) messages_out: AtomicU64,
    pub(crate) commands: AtomicU64,
    pub(crate) tunnels: AtomicU64,
    pub(crate) refused: AtomicU64,
    pub(crate) dropped: AtomicU64,
    pub(crate) malformed: AtomicU64,
    pub(crate) denied: AtomicU64,
    pub(crate) silent: AtomicU64,
    pub(crate) slow: AtomicU64,
}

/// The numbers at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DoorCounts {
    /// Open now.
    pub connections: u64,
    pub connections_total: u64,
    pub bytes_in: u64,
    pub bytes_out: u64,
    pub messages_in: u64,
    pub messages_out: u64,
    /// What sessions asked of the hub.
    pub commands: u64,
    /// Connections that were forwarded to another door.
    pub tunnels: u64,
    /// Connections refused before any data: over a limit, or not on the allow list.
    pub refused: u64,
    /// Messages that could be neither understood nor answered.
    pub dropped: u64,
    pub malformed: u64,
    pub denied: u64,
    /// Said nothing when they had to, or do not answer any more at all.
    pub silent: u64,
    /// Cut off because they did not read what they were sent.
    pub slow: u64,
}

impl DoorStats {
    pub fn counts(&self) -> DoorCounts {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        DoorCounts {
            connections: of(&self.connections),
            connections_total: of(&self.connections_total),
            bytes_in: of(&self.bytes_in),
            bytes_out: of(&self.bytes_out),
            messages_in: of(&self.messages_in),
            messages_out: of(&self.messages_out),
            commands: of(&self.commands),
            tunnels: of(&self.tunnels),
            refused: of(&self.refused),
            dropped: of(&self.dropped),
            malformed: of(&self.malformed),
            denied: of(&self.denied),
            silent: of(&self.silent),
            slow: of(&self.slow),
        }
    }
}

pub(crate) fn count(counter: &AtomicU64, more: usize) {
    counter.fetch_add(more as u64, Ordering::Relaxed);
}

//! What the broker did and what it did not do: every message that goes nowhere is counted with its reason.

/// Why something went nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dropped {
    /// Too many requests wait.
    QueueFull,
    /// The requests that wait are too large together.
    QueueBytes,
    /// It waited too long for a worker.
    Expired,
    /// Nobody of that name is connected.
    NoRoute,
    /// A worker's word from a peer that is none.
    NotRegistered,
    /// INCREMENT without a request before it.
    NoSlotTaken,
    /// REGISTER without a number of slots that makes sense.
    BadSlots,
    /// There are too many workers already.
    TableFull,
    /// From a connection that was never opened, or is closed.
    UnknownPeer,
    /// Not a message of the dialect.
    Malformed,
    /// An answer that is addressed to nobody.
    Unasked,
}

impl Dropped {
    /// All of them, in the order in which they are shown.
    pub const ALL: [Dropped; 11] = [
        Dropped::QueueFull,
        Dropped::QueueBytes,
        Dropped::Expired,
        Dropped::NoRoute,
        Dropped::NotRegistered,
        Dropped::NoSlotTaken,
        Dropped::BadSlots,
        Dropped::TableFull,
        Dropped::UnknownPeer,
        Dropped::Malformed,
        Dropped::Unasked,
    ];

    /// For logs and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Dropped::QueueFull => "queue_full",
            Dropped::QueueBytes => "queue_bytes",
            Dropped::Expired => "expired",
            Dropped::NoRoute => "no_route",
            Dropped::NotRegistered => "not_registered",
            Dropped::NoSlotTaken => "no_slot_taken",
            Dropped::BadSlots => "bad_slots",
            Dropped::TableFull => "table_full",
            Dropped::UnknownPeer => "unknown_peer",
            Dropped::Malformed => "malformed",
            Dropped::Unasked => "unasked",
        }
    }
}

/// What the broker has done so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Counters {
    /// For any worker.
    pub requests: u64,
    /// Of these, sent to one.
    pub dispatched: u64,
    /// Of these, put aside first.
    pub queued: u64,
    /// Addressed to somebody and sent on.
    pub passed: u64,
    pub registered: u64,
    pub deregistered: u64,
    /// Connections whose name came again on a new one.
    pub taken_over: u64,
    /// Workers that did not answer a probe.
    pub silent: u64,
    /// Workers that stayed away for too long.
    pub lost: u64,
    /// Slots that were free again without a word.
    pub slots_lapsed: u64,
    dropped: [u64; Dropped::ALL.len()],
}

impl Counters {
    /// How many messages were dropped for this reason.
    pub fn dropped(&self, why: Dropped) -> u64 {
        self.dropped[why as usize]
    }

    pub(super) fn count(&mut self, why: Dropped, times: u64) {
        self.dropped[why as usize] += times;
    }
}

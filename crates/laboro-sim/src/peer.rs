//! Whoever is at the other end of a connection: workers of every dialect, and visitors who create and steal.

use bytes::BytesMut;

/// What a peer wants after a turn.
#[derive(Debug, Default)]
pub(crate) struct Turned {
    pub say: BytesMut,
    /// It closes the connection.
    pub hangs_up: bool,
}

pub(crate) trait Peer {
    fn name(&self) -> &str;

    /// Whether it would connect now.
    fn wants_connection(&self, now: u64) -> bool;

    /// A connection stands.
    fn connected(&mut self, now: u64);

    /// Everything that can be done now, with all that was heard.
    fn turn(&mut self, now: u64, heard: &mut BytesMut) -> Turned;

    /// The connection is gone, from whichever side.
    fn lost(&mut self, now: u64);

    /// When a turn is due at the latest.
    fn due(&self, now: u64) -> Option<u64>;

    /// It stands still until then: it neither hears nor says anything.
    fn stalled_until(&self) -> u64;
}

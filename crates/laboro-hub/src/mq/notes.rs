//! Says in the log who comes and goes as a worker, and what comes where that much is wanted. What is dropped is in
//! `report`.

use super::peer::{Acquaintance, BrokerPeer};
use crate::listen::Complaints;
use laboro_core::Counters;
use laboro_dialects::rrmq::{Command, Envelope};
use laboro_dialects::zmtp::Message;

/// Who has registered and who has left: what was counted while a peer was heard is its doing.
#[derive(Debug, Default)]
pub(super) struct Registrations {
    registered: u64,
    deregistered: u64,
}

impl Registrations {
    pub fn tell(&mut self, counters: &Counters, peer: &BrokerPeer, notes: &Complaints) {
        if std::mem::replace(&mut self.registered, counters.registered) < counters.registered {
            notes.info(format_args!("{} has registered", peer.shown()));
        }
        if std::mem::replace(&mut self.deregistered, counters.deregistered) < counters.deregistered
        {
            notes.info(format_args!("{} has deregistered", peer.shown()));
        }
    }
}

#[inline]
pub(super) fn note(
    peer: &mut BrokerPeer,
    message: &Message,
    notes: &Complaints,
    is_worker: impl FnOnce() -> bool,
) {
    if tracing::enabled!(tracing::Level::DEBUG) {
        let (frames, bytes) = (message.len(), message.bytes());
        tracing::debug!("from {}: {frames} frames, {bytes} bytes", peer.shown());
    }
    if peer.acquaintance != Acquaintance::Known {
        note_first(peer, message, notes, is_worker);
    }
}

/// After a restart an original worker goes on as if it were known, and is given nothing: it says PING and nothing
/// else. A client says PING too, but then it asks something.
#[cold]
fn note_first(
    peer: &mut BrokerPeer,
    message: &Message,
    notes: &Complaints,
    is_worker: impl FnOnce() -> bool,
) {
    let is_ping = Envelope::parse(message).is_ok_and(|said| said.command == Command::Ping);
    peer.acquaintance = match peer.acquaintance {
        _ if !is_ping || is_worker() => Acquaintance::Known,
        Acquaintance::New => Acquaintance::Pinged,
        Acquaintance::Pinged | Acquaintance::Known => {
            notes.info(format_args!(
                "{} sends nothing but PING: if it is a worker, it has to register again",
                peer.shown()
            ));
            Acquaintance::Known
        }
    };
}

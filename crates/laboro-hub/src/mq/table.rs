//! The table of workers and the counts beside it, as they are shown: in a console, or to whoever asks over
//! the wire. They are asked for by a message addressed to a name that is no peer's: a server that does not
//! know the name drops it and no worker is troubled.

use bytes::Bytes;
use laboro_api::{BrokerTable, BrokerWorker};
use laboro_core::{Broker, Dropped, Time};
use laboro_dialects::rrmq::{Command, Envelope};
use laboro_dialects::zmtp::Message;

/// Where a TRACKEXEC is answered with the table, as JSON in one frame.
pub const TABLE_ADDRESS: &[u8] = b"laboro:workers";

/// What the door knows of its peers.
#[derive(Clone, Copy)]
pub(super) struct Crowd {
    pub connections: usize,
    pub unread_bytes: usize,
    pub slow: u64,
}

pub(super) fn table_of<M>(broker: &Broker<M>, now: Time, crowd: Crowd) -> BrokerTable {
    let counters = broker.counters();
    let (waiting, waiting_bytes) = broker.waiting();
    let dropped = Dropped::ALL.into_iter().map(|why| (why.name(), counters.dropped(why)));
    let workers = broker.workers().map(|row| BrokerWorker {
        address: row.identity.to_string(),
        free: row.free,
        slots: row.slots,
        away: row.is_away,
        messages: row.passed.total,
        per_s: row.passed.per_s(now),
    });
    BrokerTable {
        workers: workers.collect(),
        connections: crowd.connections as u64,
        waiting: waiting as u64,
        waiting_bytes: waiting_bytes as u64,
        requests: counters.requests,
        dispatched: counters.dispatched,
        passed: counters.passed,
        unread_bytes: crowd.unread_bytes as u64,
        slow: crowd.slow,
        dropped: dropped
            .filter(|&(_, count)| count > 0)
            .map(|(why, count)| (why.to_owned(), count))
            .collect(),
    }
}

/// Whether this asks for the table.
#[inline]
pub(super) fn is_asked_for(message: &Message) -> bool {
    message.get(0).is_some_and(|first| first == TABLE_ADDRESS)
}

/// The answer; `None` when the question makes no sense.
pub(super) fn answer(message: &Message, table: &BrokerTable) -> Option<Message> {
    let asked = Envelope::parse(message).ok()?;
    let json = serde_json::to_vec(table).expect("a table is plain values");
    let is_tracked = asked.command == Command::TrackExec;
    is_tracked.then(|| asked.answer(Command::Response, [Bytes::from(json)]).to_message())
}

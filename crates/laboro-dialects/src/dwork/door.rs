//! What the conversations at one dwork door have in common: its settings, and whether a worker has
//! left. Nothing here knows a connection.

use super::codec::put_notes;
use crate::zmtp::Mechanism;
use bytes::{Bytes, BytesMut};
use laboro_core::{Kinds, WorkKind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How a door treats its clients and workers.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How long a steal that finds nothing may wait for something to become ready.
    pub patience_ms: u64,
    /// Whether a steal is answered with Exit once everything is done. A hub that goes on for months says
    /// NotFound instead, and its workers stay.
    pub exit_when_finished: bool,
    /// A stolen task goes back by itself after so long. `None`: only its worker gives it back.
    pub lease_ms: Option<u64>,
    /// Whether a task that is assigned to another location, or was done by one, is not found by a Complete.
    pub only_holder: bool,
    /// What may be stolen here. A thief gets a name and nothing else.
    pub kinds: Kinds,
    /// The origin of tasks that came in by another door.
    pub host: String,
    /// How the hub's socket calls itself. Nobody has to know it.
    pub identity: Bytes,
    /// How peers prove who they are.
    pub mechanism: Mechanism,
    /// How many tasks one request may name.
    pub tasks_a_message: usize,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            patience_ms: 1000,
            exit_when_finished: true,
            lease_ms: None,
            only_holder: false,
            kinds: Kinds::of(&[WorkKind::Named]),
            host: "laboro".to_owned(),
            identity: Bytes::new(),
            mechanism: Mechanism::Null,
            tasks_a_message: 1_000_000,
        }
    }
}

/// What the conversations at one door share.
#[derive(Debug)]
pub struct HubDoor {
    pub(super) settings: Settings,
    /// What a steal tells beside the name of a task that has no notes of its own.
    pub(super) host_notes: Bytes,
    workers_left: AtomicU64,
}

impl HubDoor {
    /// For a door that nobody has come to yet.
    pub fn new(settings: Settings) -> Arc<HubDoor> {
        let mut host_notes = BytesMut::new();
        put_notes(settings.host.as_bytes(), std::iter::empty(), &mut host_notes);
        Arc::new(HubDoor {
            settings,
            host_notes: host_notes.freeze(),
            workers_left: AtomicU64::new(0),
        })
    }

    /// A worker was told to be gone, so what sessions remember about workers may be wrong.
    pub(super) fn worker_left(&self) {
        self.workers_left.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn workers_left(&self) -> u64 {
        self.workers_left.load(Ordering::Relaxed)
    }
}

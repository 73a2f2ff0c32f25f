//! What the conversations at one dwork door have in common: its settings, the open job that its tasks go
//! into, and whether it is being closed. Nothing here knows a connection.

use super::codec::put_notes;
use crate::zmtp::Mechanism;
use bytes::{Bytes, BytesMut};
use laboro_core::{JobId, Kinds, WorkKind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

#[derive(Clone, Debug)]
pub struct Settings {
    /// How long a steal that finds nothing may wait for something to become ready.
    pub patience_ms: u64,
    /// Whether a steal is answered with Exit once everything is done. A hub that goes on for months says
    /// NotFound instead, and its workers stay.
    pub exit_when_finished: bool,
    /// A stolen task goes back by itself after so long. `None`: only its worker gives it back.
    pub lease_ms: Option<u64>,
    /// What may be stolen here. A thief gets a name and nothing else.
    pub kinds: Kinds,
    /// The origin of tasks that came in by another door.
    pub host: String,
    pub mechanism: Mechanism,
    /// How many tasks one message may carry, either way.
    pub tasks_a_message: usize,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            patience_ms: 1000,
            exit_when_finished: true,
            lease_ms: None,
            kinds: Kinds::of(&[WorkKind::Named]),
            host: "laboro".to_owned(),
            mechanism: Mechanism::Null,
            tasks_a_message: 100_000,
        }
    }
}

#[derive(Debug)]
pub struct Door {
    pub(super) settings: Settings,
    /// What a steal tells beside the name of a task that has no notes of its own.
    pub(super) host_notes: Bytes,
    /// The open job, 0 while none is known: jobs are counted from 1.
    job: AtomicU32,
    /// How many such jobs are known to be closed.
    jobs_closed: AtomicU32,
    workers_left: AtomicU64,
    stopping: AtomicBool,
    dropped: AtomicU64,
}

impl Door {
    pub fn new(settings: Settings) -> Arc<Door> {
        let mut host_notes = BytesMut::new();
        put_notes(settings.host.as_bytes(), std::iter::empty(), &mut host_notes);
        Arc::new(Door {
            settings,
            host_notes: host_notes.freeze(),
            job: AtomicU32::new(0),
            jobs_closed: AtomicU32::new(0),
            workers_left: AtomicU64::new(0),
            stopping: AtomicBool::new(false),
            dropped: AtomicU64::new(0),
        })
    }

    /// From now on every request is answered with Exit and nothing is done. Steals that wait are answered
    /// at the next `tick` of their sessions.
    pub fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }

    /// Messages without a delimiter, which cannot be answered.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    pub(super) fn count_dropped(&self) {
        self.dropped.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn job(&self) -> Option<JobId> {
        match self.job.load(Ordering::Relaxed) {
            0 => None,
            job => Some(JobId(job)),
        }
    }

    /// The name under which the open job is found again, also after a restart.
    pub(super) fn job_key(&self) -> Box<[u8]> {
        format!("dwork/{}", self.jobs_closed.load(Ordering::Relaxed)).into_bytes().into()
    }

    pub(super) fn found_job(&self, job: JobId) {
        self.job.store(job.0, Ordering::Relaxed);
    }

    /// Somebody closed the job. The next one has another key.
    pub(super) fn lost_job(&self, job: JobId) {
        if self.job.compare_exchange(job.0, 0, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            self.jobs_closed.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A worker was told to be gone, so what sessions remember about workers may be wrong.
    pub(super) fn worker_left(&self) {
        self.workers_left.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn workers_left(&self) -> u64 {
        self.workers_left.load(Ordering::Relaxed)
    }
}

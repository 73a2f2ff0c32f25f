//! Tells the operator's log before jobs and their output are forgotten: by their age a day before, and by their number when nearly
//! as many have finished as are kept.

use crate::inbox::Handle;
use laboro_core::{Command, Query, Reply, Retention, counted};
use std::time::{Duration, Instant};

const DAY: Duration = Duration::from_secs(86_400);

/// What was told already.
#[derive(Debug, Default)]
pub(super) struct Notice {
    of_age: Option<Instant>,
    of_number: bool,
}

impl Notice {
    pub async fn look(&mut self, handle: &Handle) {
        let within_ms = DAY.as_millis() as u64;
        let query = Command::Query(Query::Retention { within_ms });
        let Ok(Reply::Retention(kept)) = handle.ask(query).await else { return };
        for words in self.words(&kept, Instant::now()) {
            tracing::warn!(event = "jobs_forgotten_soon", "{words}");
        }
    }

    pub(super) fn words(&mut self, kept: &Retention, now: Instant) -> Vec<String> {
        let mut words = Vec::new();
        let is_told = self.of_age.is_some_and(|at| now.duration_since(at) < DAY);
        if let Some(job) = kept.first.filter(|_| kept.soon > 0 && !is_told) {
            self.of_age = Some(now);
            let jobs = counted(kept.soon, "finished job");
            words.push(format!(
                "{jobs} will be forgotten within a day because of keep.age_ms, with their output: job {job} first"
            ));
        }
        let is_near = kept.finished.saturating_mul(10) >= kept.most.saturating_mul(9);
        if is_near && !self.of_number {
            words.push(format!(
                "{} of {} finished jobs are kept: beyond that, each job that ends makes the hub forget the oldest one with its output (keep.jobs)",
                kept.finished, kept.most
            ));
        }
        self.of_number = is_near;
        words
    }
}

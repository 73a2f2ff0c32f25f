//! What a report is made of, asked of the hub once. Bounded: a report of a million tasks is as long as one of a
//! thousand.

use super::remembered::remembered;
use crate::hub_client::{Hub, Printed, TaskPages};
use laboro_api::{Job, JobHistory, Outcome, Task, Tasks, Worker};
use std::collections::BTreeMap;

pub(super) struct ReportFacts {
    pub job: Job,
    pub past: JobHistory,
    pub failed: Vec<Failed>,
    /// Names by number, of those that are still known.
    pub workers: BTreeMap<u32, String>,
    pub made_ms: u64,
}

/// A failed task and its last words.
pub(super) struct Failed {
    pub task: Task,
    pub words: String,
}

/// Failed tasks that are told of one by one, and of those the ones whose last words are read.
const FAILED_MAX: u32 = 100;
const WORDS_MAX: usize = 20;
const WORDS_BYTES: i64 = 2000;
/// Tasks looked at where the hub has no history of the job.
const TASKS_MAX: usize = 10_000;

impl ReportFacts {
    pub(super) async fn gather(hub: &Hub, number: u32) -> anyhow::Result<ReportFacts> {
        let job = hub.job(number).await?;
        // A run keeps no history.
        let mut past: JobHistory = match hub.run() {
            Some(_) => JobHistory::default(),
            None => hub.get(&format!("jobs/{number}/history")).await?,
        };
        if past.durations.count == 0 {
            // Since a restart nothing of it has run; what is remembered of tasks tells how they went.
            let mut tasks = Vec::new();
            let mut pages = TaskPages::new(hub, number, None, 1, Some(1000));
            while let Some(task) = pages.next().await?.filter(|_| tasks.len() < TASKS_MAX) {
                tasks.push(task);
            }
            past = remembered(number, &tasks);
        }
        let path = format!("jobs/{number}/tasks?state=failed&limit={FAILED_MAX}");
        let tasks: Tasks = hub.get(&path).await?;
        let mut failed = Vec::new();
        for (at, task) in tasks.tasks.into_iter().enumerate() {
            let words = match at < WORDS_MAX {
                true => last_words(hub, number, task.task).await,
                false => String::new(),
            };
            failed.push(Failed { task, words });
        }
        let mut workers = BTreeMap::new();
        for share in past.workers.iter().take(WORKERS_NAMED_MAX) {
            let Some(number) = share.worker else { continue };
            if let Ok(worker) = hub.get::<Worker>(&format!("workers/{number}")).await {
                workers.insert(number, worker.name.to_string());
            }
        }
        Ok(ReportFacts { job, past, failed, workers, made_ms: crate::view::now_ms() })
    }

    pub(super) fn worker(&self, number: u32) -> String {
        self.workers.get(&number).cloned().unwrap_or_else(|| format!("#{number}"))
    }

    /// How a task ended, as far as anybody remembers.
    pub(super) fn outcome(&self, task: &Task) -> Option<Outcome> {
        let own = task.attempts.last().and_then(|attempt| attempt.outcome);
        let known = self.past.failures.iter().find(|one| one.task == task.task);
        own.or_else(|| known.map(|one| one.outcome))
    }
}

const WORKERS_NAMED_MAX: usize = 200;

/// Whatever cannot be read is not worth a report that is not there.
async fn last_words(hub: &Hub, job: u32, task: u32) -> String {
    let stream = Printed::Stderr;
    let Ok(mut output) = hub.output(job, task, None, stream, Some(-WORDS_BYTES)).await else {
        return String::new();
    };
    let mut words = Vec::new();
    while let Ok(Some(piece)) = output.next().await {
        words.extend_from_slice(&piece);
        if words.len() > WORDS_BYTES.unsigned_abs() as usize {
            break;
        }
    }
    String::from_utf8_lossy(&words).into_owned()
}

//! Adds to tasks what the store remembers of their attempts: what each used, and of elements of arrays, whose
//! records are gone when they end, the attempts themselves.

use super::Api;
use laboro_api::{Attempt, Outcome, Task, TaskState, Text, Used};
use laboro_core::{JobId, TaskId};
use laboro_journal::outputs::EndedAttempt;
use std::collections::HashMap;

impl Api {
    /// The tasks are of one job, ascending. What the store cannot tell is left out: it is not worth failing for.
    pub(super) async fn add_ends(&self, tasks: &mut [Task]) {
        let Some(outputs) = &self.services.outputs else { return };
        let ids: Vec<TaskId> = tasks.iter().filter(|task| has_ended_once(task)).map(id).collect();
        if ids.is_empty() {
            return;
        }
        let ends = match outputs.ends(ids).await {
            Ok(ends) => ends,
            Err(error) => {
                tracing::warn!("what attempts used cannot be read: {error}");
                return;
            }
        };
        let mut of_task: HashMap<u32, Vec<EndedAttempt>> = HashMap::new();
        for ended in ends {
            of_task.entry(ended.key.index).or_default().push(ended);
        }
        for task in tasks {
            let ends = of_task.remove(&id(task).index).unwrap_or_default();
            task.output_lost = ends.last().is_some_and(|ended| ended.end.lost() > 0);
            ends.into_iter().for_each(|ended| add(&mut task.attempts, ended));
        }
    }
}

fn id(task: &Task) -> TaskId {
    TaskId::new(JobId(task.job), task.task)
}

/// Others have nothing in the store that would be shown.
fn has_ended_once(task: &Task) -> bool {
    matches!(task.state, TaskState::Done | TaskState::Failed | TaskState::Cancelled)
        || task.failed_attempts > 0
        || task.attempts.iter().any(|attempt| attempt.ended_ms.is_some())
}

fn add(attempts: &mut Vec<Attempt>, ended: EndedAttempt) {
    // The end of one that was lost, or of a dialect that tells nothing: the hub knows more.
    let Some(worker) = ended.worker else { return };
    let ending = ended.end.ending;
    let number = ended.key.attempt;
    let known = attempts.iter_mut().rfind(|attempt| attempt.attempt == number);
    // No process runs without any time: this worker's dialect has no words for what was used.
    let is_told = ending.user_us + ending.sys_us + ending.max_rss_kib > 0;
    let used = is_told.then(|| Used {
        wall_us: ending.wall_us,
        user_us: ending.user_us,
        system_us: ending.sys_us,
        peak_memory_bytes: ending.max_rss_kib.saturating_mul(1024),
    });
    let output_lost_bytes = ended.end.lost();
    let output_truncated_bytes = ended.end.stdout.dropped + ended.end.stderr.dropped;
    let ended_ms = ending.started_ms.saturating_add(ending.wall_us / 1000);
    match known {
        // Numbers begin anew when a person has an element tried again: this is about an earlier one.
        Some(attempt) if attempt.ended_ms.is_none() || attempt.worker != worker.number => {}
        Some(attempt) => {
            (attempt.started_ms, attempt.ended_ms) = (ending.started_ms, Some(ended_ms));
            attempt.used = used;
            attempt.output_lost_bytes = output_lost_bytes;
            attempt.output_truncated_bytes = output_truncated_bytes;
        }
        None => {
            let at = attempts.partition_point(|attempt| attempt.attempt < number);
            let attempt = Attempt {
                attempt: number,
                worker: worker.number,
                worker_name: Text::from(worker.name.as_slice()),
                started_ms: ending.started_ms,
                ended_ms: Some(ended_ms),
                outcome: Some(Outcome::from(ending.outcome())),
                used,
                output_lost_bytes,
                output_truncated_bytes,
            };
            attempts.insert(at, attempt);
        }
    }
}

//! A history made from the attempts that tasks remember, for jobs from before the hub's last start. Pure; the
//! hub's own history is better where there is one.

use laboro_api::{
    Attempt, Bucket, Durations, EndedAttempt, JobHistory, OutcomeKind, Rate, Share, Task, TaskState,
};
use std::collections::BTreeMap;

/// Attempts in the timeline; of more every so many-th is taken.
const SPANS_MAX: usize = 1000;
const SLOWEST_MAX: usize = 20;
/// Steps of the throughput.
const STEPS: u64 = 100;

pub(super) fn remembered(job: u32, tasks: &[Task]) -> JobHistory {
    let mut ended: Vec<EndedAttempt> = tasks
        .iter()
        .filter(|task| task.state != TaskState::Running)
        .flat_map(|task| task.attempts.iter().filter_map(|one| end(job, task.task, one)))
        .collect();
    ended.sort_by_key(|one| one.started_ms);
    let every = ended.len().div_ceil(SPANS_MAX).max(1);
    let mut slowest = ended.clone();
    slowest.sort_by_key(|one| std::cmp::Reverse(one.took_ms));
    slowest.truncate(SLOWEST_MAX);
    JobHistory {
        job,
        rate: rate(&ended),
        durations: durations(&ended),
        every: every as u64,
        spans: ended.iter().step_by(every).copied().collect(),
        slowest,
        workers: shares(&ended),
        ..JobHistory::default()
    }
}

fn end(job: u32, task: u32, attempt: &Attempt) -> Option<EndedAttempt> {
    let (end, outcome) = (attempt.ended_ms?, attempt.outcome?);
    let (started_ms, worker) = (attempt.started_ms, attempt.worker);
    let took_ms = end.saturating_sub(started_ms);
    Some(EndedAttempt { job, task, worker, started_ms, took_ms, outcome })
}

fn is_good(one: &EndedAttempt) -> bool {
    one.outcome.kind == OutcomeKind::Success
}

fn shares(ended: &[EndedAttempt]) -> Vec<Share> {
    let mut workers: BTreeMap<u32, Share> = BTreeMap::new();
    for one in ended {
        let share = workers.entry(one.worker).or_default();
        share.worker = Some(one.worker);
        let count = if is_good(one) { &mut share.done } else { &mut share.failed };
        *count += 1;
        share.busy_ms = share.busy_ms.saturating_add(one.took_ms);
    }
    workers.into_values().collect()
}

fn rate(ended: &[EndedAttempt]) -> Rate {
    let at = |one: &EndedAttempt| one.started_ms.saturating_add(one.took_ms);
    let Some(start_ms) = ended.iter().map(|one| one.started_ms).min() else {
        return Rate::default();
    };
    let last = ended.iter().map(at).max().unwrap_or(start_ms);
    let width_ms = (last - start_ms).div_ceil(STEPS).max(1000);
    let steps = usize::try_from((last - start_ms) / width_ms + 1).unwrap_or(1);
    let (mut done, mut failed) = (vec![0; steps], vec![0; steps]);
    for one in ended {
        let step = usize::try_from((at(one) - start_ms) / width_ms).unwrap_or(0);
        let counts: &mut Vec<u32> = if is_good(one) { &mut done } else { &mut failed };
        counts[step] += 1;
    }
    Rate { start_ms, width_ms, done, failed }
}

/// Exact, since all of them are here; in buckets each twice as long as the one before.
fn durations(ended: &[EndedAttempt]) -> Durations {
    let mut took: Vec<u64> = ended.iter().map(|one| one.took_ms).collect();
    took.sort_unstable();
    let (Some(&min_ms), Some(&max_ms)) = (took.first(), took.last()) else {
        return Durations::default();
    };
    let quantile = |percent: usize| took[(took.len() * percent).div_ceil(100).max(1) - 1];
    let mut counts: BTreeMap<u32, u64> = BTreeMap::new();
    for &ms in &took {
        *counts.entry(ms.checked_ilog2().map_or(0, |power| power + 1)).or_default() += 1;
    }
    let lower = |at: u32| if at == 0 { 0 } else { 1u64 << (at - 1) };
    let first = *counts.keys().next().unwrap_or(&0);
    let last = *counts.keys().next_back().unwrap_or(&0);
    let buckets = (first..=last).map(|at| Bucket {
        from_ms: lower(at),
        to_ms: lower(at.min(63) + 1),
        count: counts.get(&at).copied().unwrap_or(0),
    });
    Durations {
        count: took.len() as u64,
        sum_ms: took.iter().fold(0, |sum, &ms| sum.saturating_add(ms)),
        min_ms,
        max_ms,
        p50_ms: quantile(50),
        p90_ms: quantile(90),
        p99_ms: quantile(99),
        buckets: buckets.collect(),
    }
}

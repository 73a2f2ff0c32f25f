//! Workers: a row of a list.

use super::{ago, between};
use crate::output::table::{Column, Mood};
use crate::output::{bytes, safe};
use laboro_api::{Resource, Standing, Worker};

pub(crate) const WORKER_COLUMNS: &[Column] = &[
    Column::Right("worker"),
    Column::Left("name"),
    Column::Left("group"),
    Column::Left("dialect"),
    Column::Left("state"),
    Column::Right("slots"),
    Column::Right("tasks"),
    Column::Right("done"),
    Column::Right("failed"),
    Column::Right("seen"),
];

pub(crate) fn worker_row(worker: &Worker, now_ms: u64) -> [(String, Mood); 10] {
    let plain = |text: String| (text, Mood::Plain);
    let failed = if worker.failed > 0 { Mood::Bad } else { Mood::Faint };
    [
        plain(worker.worker.to_string()),
        plain(worker.name.to_string()),
        plain(worker.group.to_string()),
        plain(worker.dialect.to_string()),
        state(worker),
        plain(format!("{}/{}", worker.slots_used, worker.slots)),
        plain(worker.lease_count.to_string()),
        plain(worker.succeeded.to_string()),
        (worker.failed.to_string(), failed),
        plain(ago(worker.seen_ms, now_ms)),
    ]
}

/// All that is known of it, a line each.
pub(crate) fn worker_text(worker: &Worker, now_ms: u64) -> String {
    let (word, mood) = state(worker);
    let name = safe(&worker.name.to_string());
    let mut text = format!("worker {} {name} {}", worker.worker, mood.paint(&word));
    let mut add = |what: &str, value: String| {
        if !value.is_empty() {
            text.push_str(&format!("\n  {what:<10} {value}"));
        }
    };
    add("group", worker.group.to_string());
    add("dialect", worker.dialect.to_string());
    add("host", worker.host.as_ref().map(ToString::to_string).unwrap_or_default());
    add("slots", format!("{} of {} in use", worker.slots_used, worker.slots));
    if worker.memory_bytes > 0 {
        let (used, all) = (bytes(worker.memory_used_bytes), bytes(worker.memory_bytes));
        add("memory", format!("{used} of {all} promised"));
    }
    for Resource { name, count, used, items } in &worker.resources {
        let items: Vec<String> = items.iter().map(ToString::to_string).collect();
        let called =
            if items.is_empty() { String::new() } else { format!(": {}", items.join(", ")) };
        add(&safe(&name.to_string()), format!("{used} of {count} in use{called}"));
    }
    let tags: Vec<String> = worker.tags.iter().map(ToString::to_string).collect();
    add("tags", tags.join(", "));
    if let Some(leaves_ms) = worker.leaves_ms {
        add("leaves", format!("in {}", between(now_ms, leaves_ms)));
    }
    let tasks: Vec<String> = worker
        .leases
        .iter()
        .take(TASKS_SHOWN)
        .map(|held| format!("{}/{}", held.job, held.task))
        .collect();
    let more = worker.leases.len().saturating_sub(TASKS_SHOWN);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    add("tasks", tasks.join(" ") + &more);
    add("results", format!("{} done, {} failed", worker.succeeded, worker.failed));
    add("seen", format!("{} ago", ago(worker.seen_ms, now_ms)));
    text
}

const TASKS_SHOWN: usize = 20;

/// The word that matters most.
fn state(worker: &Worker) -> (String, Mood) {
    let (word, mood) = match (worker.conduct.standing, worker.connected) {
        (Standing::Ejected, _) => ("ejected", Mood::Bad),
        (_, false) => ("away", Mood::Faint),
        (Standing::OnHold, true) => ("on hold", Mood::Stuck),
        (Standing::OnProbation, true) => ("on probation", Mood::Stuck),
        (_, true) if worker.draining => ("draining", Mood::Stuck),
        (_, true) if worker.reserved => ("reserved", Mood::Stuck),
        (_, true) if worker.kept => ("kept", Mood::Busy),
        (_, true) if worker.lease_count > 0 => ("busy", Mood::Busy),
        (_, true) => ("idle", Mood::Good),
    };
    // Who is barred wants to know why.
    let reason = worker.conduct.reason.as_deref().filter(|_| mood != Mood::Faint);
    match reason.filter(|reason| !reason.is_empty()) {
        Some(reason) => (format!("{word}: {}", safe(reason)), mood),
        None => (word.to_owned(), mood),
    }
}

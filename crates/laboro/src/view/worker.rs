//! Workers: a row of a list.

use super::ago;
use crate::output::safe;
use crate::output::table::{Column, Mood};
use laboro_api::{Standing, Worker};

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

/// The word that matters most.
fn state(worker: &Worker) -> (String, Mood) {
    let (word, mood) = match (worker.conduct.standing, worker.connected) {
        (Standing::Ejected, _) => ("ejected", Mood::Bad),
        (_, false) => ("away", Mood::Faint),
        (Standing::OnHold, true) => ("on hold", Mood::Stuck),
        (Standing::OnProbation, true) => ("on probation", Mood::Stuck),
        (_, true) if worker.draining => ("draining", Mood::Stuck),
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

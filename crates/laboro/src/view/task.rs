//! Tasks: a row of a list, a command as a person would type it.

use super::{ago, between, span};
use crate::output::table::{Column, Mood};
use crate::output::{safe, shell_word};
use laboro_api::{Attempt, Line, Task, TaskState, Text};

pub(crate) const TASK_COLUMNS: &[Column] = &[
    Column::Right("task"),
    Column::Left("name"),
    Column::Left("state"),
    Column::Right("attempts"),
    Column::Left("worker"),
    Column::Right("started"),
    Column::Right("took"),
    Column::Left("outcome"),
];

pub(crate) fn task_row(task: &Task, now_ms: u64) -> [(String, Mood); 8] {
    let plain = |text: String| (text, Mood::Plain);
    let last = task.attempts.last();
    let tried = task.failed_attempts.saturating_add(task.lost_attempts);
    let tried = usize::from(tried).max(task.attempts.len());
    let outcome = match (last.and_then(|last| last.outcome), &task.message) {
        (Some(outcome), Some(message)) => format!("{outcome}: {}", safe(message)),
        (Some(outcome), None) => outcome.to_string(),
        (None, Some(message)) => safe(message),
        (None, None) => String::new(),
    };
    let outcome = match task.output_lost {
        true if outcome.is_empty() => OUTPUT_LOST.to_owned(),
        true => format!("{outcome}, {OUTPUT_LOST}"),
        false => outcome,
    };
    [
        plain(format!("{}/{}", task.job, task.task)),
        plain(safe(&called(task))),
        (task.state.word().to_owned(), state_of_task(task.state)),
        plain(if tried > 0 { tried.to_string() } else { String::new() }),
        plain(last.map_or(String::new(), worker_of)),
        plain(last.map_or(String::new(), |last| ago(last.started_ms, now_ms))),
        plain(last.map_or(String::new(), |last| took(last, now_ms))),
        plain(outcome),
    ]
}

/// A hub of an earlier version tells only names.
pub(crate) fn called(task: &Task) -> String {
    match task.label.as_str() {
        "" => task.name.to_string(),
        label => label.to_owned(),
    }
}

/// Something that it printed was not kept.
const OUTPUT_LOST: &str = "output lost";

/// By name, or by number at a hub that does not tell names.
pub(crate) fn worker_of(attempt: &Attempt) -> String {
    match attempt.worker_name.bytes() {
        [] => attempt.worker.to_string(),
        _ => attempt.worker_name.to_string(),
    }
}

/// As long as it ran by its worker's account, or as the hub saw it.
pub(crate) fn took(attempt: &Attempt, now_ms: u64) -> String {
    match attempt.used {
        Some(used) => span(used.wall_us),
        None => between(attempt.started_ms, attempt.ended_ms.unwrap_or(now_ms)),
    }
}

pub(crate) fn state_of_task(state: TaskState) -> Mood {
    match state {
        TaskState::Done => Mood::Good,
        TaskState::Failed | TaskState::Blocked => Mood::Bad,
        TaskState::Running => Mood::Busy,
        TaskState::Held | TaskState::Delayed => Mood::Stuck,
        TaskState::Cancelled => Mood::Faint,
        TaskState::Waiting | TaskState::Ready | TaskState::Unknown => Mood::Plain,
    }
}

/// As it would be typed.
pub(crate) fn line_of(line: &Line) -> String {
    let text = |text: &Text| String::from_utf8_lossy(text.bytes()).into_owned();
    match line {
        Line::Shell(line) => safe(&text(line)),
        Line::Argv(words) => {
            let words: Vec<String> =
                words.iter().map(|word| safe(&shell_word(&text(&word)))).collect();
            words.join(" ")
        }
    }
}

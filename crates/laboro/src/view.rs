//! How jobs, tasks and workers look to people: words, colours, times. Which of them are shown, and what programs
//! get instead, is each command's affair.

mod job;
mod task;
mod worker;

pub(crate) use job::{JOB_COLUMNS, bar_of, job_row, state_of_job, time_of_job};
pub(crate) use task::{TASK_COLUMNS, called, line_of, state_of_task, task_row, took, worker_of};
pub(crate) use worker::{WORKER_COLUMNS, worker_row, worker_text};

use crate::output::duration;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Milliseconds of Unix time.
pub(crate) fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

/// How long from one moment to another; nothing less than none.
pub(crate) fn between(from_ms: u64, to_ms: u64) -> String {
    days(Duration::from_millis(to_ms.saturating_sub(from_ms)))
}

/// As short as it can be said: 12s, 5m, 3h, 9d.
pub(crate) fn ago(then_ms: u64, now_ms: u64) -> String {
    let seconds = now_ms.saturating_sub(then_ms) / 1000;
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m", seconds / 60),
        3600..86_400 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// How long so many microseconds are.
pub(crate) fn span(micros: u64) -> String {
    days(Duration::from_micros(micros))
}

fn days(time: Duration) -> String {
    if time.as_secs() < 86_400 {
        return duration(time);
    }
    format!("{}d{:02}h", time.as_secs() / 86_400, time.as_secs() % 86_400 / 3600)
}

/// The moment as clocks here show it.
pub(crate) fn clock(ms: u64) -> String {
    let time = i64::try_from(ms).ok().and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
    let zone = jiff::tz::TimeZone::system();
    match time {
        Some(time) => time.to_zoned(zone).strftime("%Y-%m-%d %H:%M:%S").to_string(),
        None => "?".to_owned(),
    }
}

/// The same, without what is plain: the day where it is within a day, the seconds.
pub(crate) fn short_clock(ms: u64, now_ms: u64) -> String {
    let full = clock(ms);
    let (day, time) = full.split_once(' ').unwrap_or(("", &full));
    let time = time.get(..5).unwrap_or(time);
    match ms.saturating_sub(now_ms) < 24 * 3_600_000 {
        true => time.to_owned(),
        false => format!("{day} {time}"),
    }
}

#[cfg(test)]
mod tests;

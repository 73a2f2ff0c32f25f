//! How a person says which job or tasks are meant: `12`, `last`, `night`, `12/5`, `12/1-100,200`, `12/failed`,
//! `fit.3`. Only reads the words; which numbers are behind names is asked of the hub elsewhere.

use laboro_api::TaskState;
use laboro_core::State;
use std::fmt;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Selector {
    Job(JobRef),
    /// First and last number of each range, ascending, apart from each other.
    Ranges(JobRef, Vec<(u32, u32)>),
    InState(JobRef, State),
    /// `12/fit.3`: a task of this name, which is expected to be in this job.
    NamedIn(JobRef, String),
    /// A job or a task of this name.
    Name(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum JobRef {
    Number(u32),
    /// The one that was submitted last.
    Last,
    /// The newest of this name.
    Name(String),
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SelectorError {
    #[error("an empty word is not a job or a task")]
    Empty,
    #[error("{0}: a job's number is between 1 and 4294967295")]
    JobNumber(String),
    #[error("{0}: the numbers of tasks are between 1 and 2147483647")]
    TaskNumber(String),
    #[error("{0}: the last number is below the first")]
    Backwards(String),
    #[error("{0}: more than {RANGES_MAX} ranges")]
    TooMany(String),
}

/// More than anybody types, and little enough for one request.
const RANGES_MAX: usize = 10_000;

/// The largest number of a task.
const TASK_MAX: u32 = laboro_core::TaskId::INDEX_MAX;

impl Selector {
    pub(crate) fn parse(text: &str) -> Result<Selector, SelectorError> {
        let Some((job, tasks)) = text.rsplit_once('/') else {
            return Ok(match JobRef::parse(text)? {
                JobRef::Name(name) => Selector::Name(name),
                job => Selector::Job(job),
            });
        };
        // A name may have slashes in it, so what cannot be meant otherwise is a name.
        if job.is_empty() || tasks.is_empty() {
            return Ok(Selector::Name(text.to_owned()));
        }
        if let Some(state) = state(tasks) {
            return Ok(Selector::InState(JobRef::parse(job)?, state));
        }
        if is_ranges(tasks) {
            return Ok(Selector::Ranges(JobRef::parse(job)?, ranges(tasks)?));
        }
        // `12/deep/first` is the task `deep/first` of job 12.
        let (job, task) = text.split_once('/').expect("it was split at its last slash");
        Ok(match JobRef::parse(job) {
            Ok(job @ (JobRef::Number(_) | JobRef::Last)) => Selector::NamedIn(job, task.to_owned()),
            _ => Selector::Name(text.to_owned()),
        })
    }
}

impl JobRef {
    pub(crate) fn parse(text: &str) -> Result<JobRef, SelectorError> {
        if text.is_empty() {
            return Err(SelectorError::Empty);
        }
        if text == "last" {
            return Ok(JobRef::Last);
        }
        if !text.bytes().all(|byte| byte.is_ascii_digit()) {
            return Ok(JobRef::Name(text.to_owned()));
        }
        let number = text.parse().ok().filter(|&number| number > 0);
        number.map(JobRef::Number).ok_or_else(|| SelectorError::JobNumber(text.to_owned()))
    }
}

impl fmt::Display for JobRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JobRef::Number(number) => write!(f, "{number}"),
            JobRef::Last => f.write_str("last"),
            JobRef::Name(name) => f.write_str(&crate::output::safe(name)),
        }
    }
}

pub(crate) fn state(word: &str) -> Option<State> {
    TaskState::from_word(word).and_then(TaskState::to_core)
}

/// What stands for tasks behind the slash of a job.
pub(crate) fn is_tasks(text: &str) -> bool {
    is_ranges(text) || state(text).is_some()
}

/// Digits, dashes and commas, and nothing that would have to be guessed at.
pub(crate) fn is_ranges(text: &str) -> bool {
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    text.split(',').all(|range| match range.split_once('-') {
        Some((first, last)) => is_number(first) && is_number(last),
        None => is_number(range),
    })
}

/// Sorted, and joined where they meet: the hub takes fewer for the same tasks.
fn ranges(text: &str) -> Result<Vec<(u32, u32)>, SelectorError> {
    let mut found = Vec::new();
    for range in text.split(',') {
        let number = |part: &str| {
            let number = part.parse().ok().filter(|number| (1..=TASK_MAX).contains(number));
            number.ok_or_else(|| SelectorError::TaskNumber(range.to_owned()))
        };
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last) = (number(first)?, number(last)?);
        if last < first {
            return Err(SelectorError::Backwards(range.to_owned()));
        }
        if found.len() == RANGES_MAX {
            return Err(SelectorError::TooMany(format!("{first}…")));
        }
        found.push((first, last));
    }
    found.sort_unstable();
    let mut joined: Vec<(u32, u32)> = Vec::with_capacity(found.len());
    for (first, last) in found {
        match joined.last_mut() {
            Some(before) if first <= before.1.saturating_add(1) => before.1 = before.1.max(last),
            _ => joined.push((first, last)),
        }
    }
    Ok(joined)
}

#[cfg(test)]
mod tests;

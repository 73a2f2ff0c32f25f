//! One request about many jobs: the words by which they are chosen, the same as on the command line, and what became of
//! each. Which jobs are behind the words is the hub's to say.

use super::job::JobState;
use super::selection::Selection;
use super::task::TaskState;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What to do to which jobs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Bulk {
    /// What is done to each.
    pub action: BulkAction,
    /// Which jobs, each once: `12`, `4-8,12`, `last`, `all`, `mine`, a state such as `failed`, a name, a name with `*` or `?`; or
    /// tasks of a job: `12/1-100,200`, `12/failed`.
    pub select: Vec<String>,
    /// Only jobs of this group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Words that may mean many mean jobs of everybody, not only those of the token's owner.
    #[serde(default)]
    pub everybody: bool,
    /// Change nothing, and tell what would be changed.
    #[serde(default)]
    pub dry_run: bool,
}

/// What is done to jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum BulkAction {
    /// Of jobs that are not over.
    Cancel,
    /// Of jobs that are not over.
    Hold,
    /// Of jobs that are not over.
    Release,
    /// Of jobs with failed tasks.
    Retry,
    /// Of jobs that take more tasks.
    Close,
    /// Of jobs that are over.
    Forget,
}

/// What became of each job, in the order of their numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BulkChanged {
    /// The jobs that were meant.
    pub jobs: Vec<BulkJob>,
    /// Tasks that were changed, of all of them.
    pub tasks: u64,
}

/// What became of one job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BulkJob {
    /// Its number.
    pub job: u32,
    /// Tasks that were changed.
    pub tasks: u64,
    /// Why nothing was changed, as in a problem.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The same for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// What a word of `select` means.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum JobWord {
    All,
    Mine,
    Last,
    /// First and last number of each range; one that is named by itself must be there.
    Numbers(Vec<(u32, u32)>),
    InState(JobState),
    /// With `*` or `?`.
    Like(String),
    /// The newest of this name.
    Named(String),
    Tasks(u32, Selection),
}

impl JobWord {
    /// `None`: it means nothing.
    pub fn parse(word: &str) -> Option<JobWord> {
        match word {
            "" => return None,
            "all" => return Some(JobWord::All),
            "mine" => return Some(JobWord::Mine),
            "last" => return Some(JobWord::Last),
            _ => {}
        }
        if let Some((job, tasks)) = word.split_once('/') {
            let job = number(job)?;
            let selection = match TaskState::from_word(tasks) {
                Some(state) => Selection { tasks: None, state: Some(state) },
                None => Selection { tasks: Some(tasks.to_owned()), state: None },
            };
            return Some(JobWord::Tasks(job, selection));
        }
        let is_numbers = word.bytes().all(|byte| byte.is_ascii_digit() || b",-".contains(&byte));
        if is_numbers {
            let range = |part: &str| {
                let (first, last) = part.split_once('-').unwrap_or((part, part));
                let (first, last) = (number(first)?, number(last)?);
                (first <= last).then_some((first, last))
            };
            return word.split(',').map(range).collect::<Option<Vec<_>>>().map(JobWord::Numbers);
        }
        Some(match JobState::from_word(word) {
            Some(state) => JobWord::InState(state),
            None if word.contains(['*', '?']) => JobWord::Like(word.to_owned()),
            None => JobWord::Named(word.to_owned()),
        })
    }
}

fn number(text: &str) -> Option<u32> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten().filter(|&number| number > 0)
}

/// Does a text fit a pattern, in which `*` is any text and `?` any letter?
pub fn fits(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), text.chars().collect());
    let (mut p, mut t, mut star) = (0, 0, None);
    while t < text.len() {
        if p < pattern.len() && pattern[p] == '*' {
            star = Some((p, t));
            p += 1;
        } else if p < pattern.len() && (pattern[p] == '?' || pattern[p] == text[t]) {
            (p, t) = (p + 1, t + 1);
        } else if let Some((at, from)) = star {
            // The last star takes one letter more.
            (p, t, star) = (at + 1, from + 1, Some((at, from + 1)));
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|&rest| rest == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_is_any_text_and_a_question_mark_a_letter() {
        for (pattern, text) in [
            ("*", ""),
            ("*", "x"),
            ("fit*", "fit"),
            ("fit*", "fit.3"),
            ("*.csv", "a.b.csv"),
            ("n?ght", "night"),
            ("a*b*c", "a-b-b-c"),
        ] {
            assert!(fits(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [("fit*", "prefit"), ("n?ght", "nght"), ("a*b", "ab!"), ("?", "")] {
            assert!(!fits(pattern, text), "{pattern} {text}");
        }
    }

    #[test]
    fn words_mean_jobs() {
        let tasks = |text: &str| Selection { tasks: Some(text.into()), state: None };
        for (word, meant) in [
            ("all", JobWord::All),
            ("last", JobWord::Last),
            ("12", JobWord::Numbers(vec![(12, 12)])),
            ("4-8,12", JobWord::Numbers(vec![(4, 8), (12, 12)])),
            ("failed", JobWord::InState(JobState::Failed)),
            ("night*", JobWord::Like("night*".into())),
            ("night", JobWord::Named("night".into())),
            ("12/1-5", JobWord::Tasks(12, tasks("1-5"))),
        ] {
            assert_eq!(JobWord::parse(word), Some(meant), "{word}");
        }
        for word in ["", "8-4", "0", "1,,2", "night/3", "-"] {
            assert_eq!(JobWord::parse(word), None, "{word}");
        }
    }
}

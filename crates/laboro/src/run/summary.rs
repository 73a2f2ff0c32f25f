//! What a run came to: counts, time, the slowest, the failed and how to run them again.

use super::JOB;
use super::desk::RunEnd;
use super::show::{EndView, last_lines, per_second};
use crate::exit::Exit;
use crate::output::{bytes, duration, safe, shell_word};
use laboro_api as api;
use laboro_core::{JobView, State};
use serde_json::json;
use std::path::Path;
use std::time::Duration;

/// Adds up attempts as they end. What it keeps of single tasks is bounded.
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) done: u64,
    pub(crate) failed: u64,
    /// Attempts that printed more than is kept.
    truncated: u64,
    cpu: Duration,
    max_rss_kib: u64,
    slowest: Vec<(Duration, String)>,
    failures: Vec<Failure>,
}

/// A task that has failed, and its last words where they are known.
pub(crate) struct Failure {
    pub(crate) index: u32,
    pub(crate) name: String,
    pub(crate) label: String,
    pub(crate) outcome: String,
    /// Why it could not be started, or what else is known of its end.
    pub(crate) message: Option<String>,
    pub(crate) words: Vec<String>,
}

const SLOWEST: usize = 3;
pub(crate) const FAILURES: usize = 10;
/// Lines of each of them.
const WORDS: usize = 2;

impl Tally {
    /// How a task failed in this run.
    pub(crate) fn failure(&self, index: u32) -> Option<&Failure> {
        self.failures.iter().find(|failed| failed.index == index)
    }

    pub(crate) fn add(&mut self, end: &EndView) {
        self.cpu += Duration::from_micros(end.used.user_us.saturating_add(end.used.system_us));
        self.max_rss_kib = self.max_rss_kib.max(end.used.peak_kib);
        self.truncated += u64::from(end.truncated);
        if end.outcome.is_success() {
            self.done += 1;
        } else if !end.again {
            self.failed += 1;
            if self.failures.len() < FAILURES {
                self.failures.push(Failure {
                    index: end.index,
                    name: end.name.clone(),
                    label: end.label.clone(),
                    outcome: end.outcome.to_string(),
                    message: end.message.clone(),
                    words: last_lines(&end.stderr_tail, WORDS),
                });
            }
        }
        let wall = Duration::from_micros(end.used.wall_us);
        if self.slowest.len() < SLOWEST
            || self.slowest.last().is_some_and(|(least, _)| wall > *least)
        {
            self.slowest.push((wall, end.label.clone()));
            self.slowest.sort_by_key(|(took, _)| std::cmp::Reverse(*took));
            self.slowest.truncate(SLOWEST);
        }
    }
}

pub(crate) struct Summary<'a> {
    pub(crate) how: RunEnd,
    pub(crate) before: &'a JobView,
    pub(crate) after: &'a JobView,
    pub(crate) tally: &'a Tally,
    /// The first few that have failed, whenever that was, and how.
    pub(crate) failed: Vec<Failure>,
    pub(crate) path: &'a Path,
    pub(crate) exit: Exit,
}

impl Summary<'_> {
    pub(crate) fn text(&self, wall: Duration) -> String {
        let counts = &self.after.counts;
        let total = counts.total();
        let done = counts.of(State::Done);
        let failed = counts.of(State::Failed);
        let mut text = String::new();
        if self.before.counts.unfinished() == 0 && self.tally.done + self.tally.failed == 0 {
            text.push_str(&format!("nothing to do: {done} of {total} tasks are done"));
            if failed > 0 {
                text.push_str(&format!(", {failed} failed (--retry-failed runs them again)"));
            }
            text.push_str("; --fresh runs everything again\n");
            self.say_failures(&mut text, failed);
            return text;
        }
        text.push_str(&format!("{done} of {total} tasks done"));
        let others: Vec<String> = [State::Failed, State::Blocked, State::Cancelled]
            .into_iter()
            .filter(|&state| counts.of(state) > 0)
            .map(|state| format!("{} {}", counts.of(state), state.word()))
            .collect();
        if !others.is_empty() {
            text.push_str(&format!(", {}", others.join(", ")));
        }
        let left = counts.unfinished() - u64::from(counts.of(State::Blocked));
        if left > 0 {
            text.push_str(&format!(", {left} not run"));
        }
        let ended = self.tally.done + self.tally.failed;
        let rate = match ended {
            0 => String::new(),
            _ => {
                format!(", {}", per_second(ended as f64 / wall.as_secs_f64().max(0.001), " tasks"))
            }
        };
        let largest = match self.tally.max_rss_kib {
            0 => String::new(),
            kib => format!(", largest {}", bytes(kib * 1024)),
        };
        let cpu = duration(self.tally.cpu);
        text.push_str(&format!(" in {} ({cpu} of CPU{rate}{largest})\n", duration(wall)));
        if let Some((longest, _)) = self.tally.slowest.first()
            && *longest >= Duration::from_millis(100)
            && ended > 1
        {
            let slowest = self.tally.slowest.iter();
            let names: Vec<String> =
                slowest.map(|(took, name)| format!("{} {}", safe(name), duration(*took))).collect();
            text.push_str(&format!("slowest: {}\n", names.join(", ")));
        }
        if self.tally.truncated > 0 {
            let cut = self.tally.truncated;
            text.push_str(&format!("cut off: {cut} printed more than --output-limit keeps\n"));
        }
        self.say_failures(&mut text, failed);
        if self.after.stopped {
            text.push_str(
                "stopped after too many failures; type the same command again to resume\n",
            );
        } else if matches!(self.how, RunEnd::Halted(_)) {
            text.push_str("stopped by --halt; type the same command again to resume\n");
        } else if self.how == RunEnd::Interrupted {
            text.push_str("interrupted; type the same command again to resume\n");
        }
        text
    }

    fn say_failures(&self, text: &mut String, failed: u32) {
        if failed == 0 {
            return;
        }
        if !self.failed.is_empty() {
            text.push_str("failed:\n");
        }
        for Failure { label, outcome, message, words, .. } in &self.failed {
            let why = message.as_ref().map_or(String::new(), |why| format!(": {}", safe(why)));
            text.push_str(&format!("  {}  {outcome}{why}\n", safe(label)));
            words.iter().for_each(|line| text.push_str(&format!("      {line}\n")));
        }
        let shown = self.failed.len() as u64;
        if u64::from(failed) > shown {
            text.push_str(&format!("  and {} more\n", u64::from(failed) - shown));
        }
        let name = self.failed.first().map_or("TASK", |failed| failed.name.as_str());
        text.push_str(&format!(
            "see one: {} {}   run them again: the same command with --retry-failed\n",
            self.logs_command(),
            safe(&shell_word(name))
        ));
    }

    /// With the directory of the state, if `laboro logs` would not find it from here.
    fn logs_command(&self) -> String {
        let root = self.path.parent().unwrap_or(self.path);
        let here = std::env::current_dir().map(|dir| dir.join(".laboro"));
        match here.is_ok_and(|here| here == root || root == Path::new(".laboro")) {
            true => "laboro logs".to_owned(),
            false => {
                format!("laboro logs --state {}", safe(&shell_word(&root.to_string_lossy())))
            }
        }
    }

    /// In the words and units of the API.
    pub(crate) fn json(&self, wall: Duration) -> serde_json::Value {
        json!({
            "event": "summary",
            "job": JOB.0,
            "tasks": self.after.counts.total(),
            "counts": api::Counts::from(self.after.counts),
            "ran_done": self.tally.done,
            "ran_failed": self.tally.failed,
            "used": {
                "wall_us": micros(wall),
                "cpu_us": micros(self.tally.cpu),
                "peak_memory_bytes": self.tally.max_rss_kib * 1024,
            },
            "truncated": self.tally.truncated,
            "stopped": self.after.stopped,
            "interrupted": self.how == RunEnd::Interrupted,
            "ok": self.exit == Exit::Done,
            "dir": self.path.display().to_string(),
        })
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

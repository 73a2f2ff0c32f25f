//! What a person sees while it runs: a bar on a terminal, a line now and then elsewhere, JSON events for
//! programs, failures at once with the end of what they said.

use super::attempt::Attempt;
use super::summary::Summary;
use super::tee::Tee;
use super::{JOB, ShowOptions};
use crate::output::{data, duration, safe, say};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use laboro_api as api;
use laboro_core::{JobView, Outcome, State};
use laboro_dialects::worker::Used;
use serde_json::json;
use std::cell::Cell;
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

pub(crate) struct Display {
    show: ShowOptions,
    bar: Option<ProgressBar>,
    tee: Tee,
    /// All tasks of the job, and those that were done before this run.
    total: u64,
    done_before: u64,
    /// Tasks that have an end and get no other in this run.
    ended_before: u64,
    started: Instant,
    next_line: Instant,
    line_every: Duration,
    /// The first that went wrong on standard output.
    trouble: Cell<Option<std::io::Error>>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct ProgressCounts {
    pub(crate) done: u64,
    pub(crate) failed: u64,
    pub(crate) running: u64,
}

/// An attempt that has ended.
pub(crate) struct EndView {
    pub(crate) name: String,
    pub(crate) label: String,
    pub(crate) index: u32,
    pub(crate) attempt: u16,
    pub(crate) outcome: Outcome,
    pub(crate) message: Option<String>,
    pub(crate) again: bool,
    /// It printed more than is kept.
    pub(crate) truncated: bool,
    pub(crate) used: Used,
    pub(crate) stderr_tail: Vec<u8>,
    pub(crate) started_ms: u64,
    /// Bytes on standard output.
    pub(crate) printed: u64,
}

impl EndView {
    /// In the words of the API, so that whoever reads one can read the other.
    fn json(&self) -> serde_json::Value {
        json!({
            "event": "end",
            "job": JOB.0,
            "task": self.index,
            "name": self.name,
            "label": self.label,
            "attempt": self.attempt,
            "outcome": api::Outcome::from(self.outcome),
            "message": self.message,
            "will_retry": self.again,
            "truncated": self.truncated,
            "used": used(&self.used),
        })
    }
}

/// What was used, in the words of the API.
pub(crate) fn used(used: &Used) -> api::Used {
    api::Used {
        wall_us: used.wall_us,
        user_us: used.user_us,
        system_us: used.system_us,
        peak_memory_bytes: used.peak_kib.saturating_mul(1024),
    }
}

/// How many lines of stderr are shown with a failure.
const TAIL_LINES: usize = 5;

impl Display {
    /// Of a job that was changed: how many of its tasks no run has tried, and how many failed and run again.
    pub(crate) fn new(
        show: ShowOptions,
        before: &JobView,
        new: Option<(u64, u64)>,
        started: Instant,
    ) -> Display {
        let total = before.counts.total();
        let done = u64::from(before.counts.of(State::Done));
        let failed = u64::from(before.counts.of(State::Failed));
        let is_terminal = std::io::stderr().is_terminal();
        let wants_bar = is_terminal && !show.quiet && !show.json;
        let bar = wants_bar.then(|| {
            let style = "{bar:30.green/dim} {pos}/{len}  {msg}  {elapsed}{prefix}";
            let bar =
                ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr_with_hz(10));
            bar.set_style(ProgressStyle::with_template(style).expect("the template is ours"));
            bar.set_position(done + failed);
            bar
        });
        let line_every = Duration::from_secs(2);
        let next_line = started + line_every;
        let display = Display {
            show,
            bar,
            tee: Tee::default(),
            total,
            done_before: done,
            ended_before: done + failed,
            started,
            next_line,
            line_every,
            trouble: Cell::new(None),
        };
        if show.json {
            let counts = api::Counts::from(before.counts);
            display
                .json(&json!({ "event": "begin", "job": JOB.0, "tasks": total, "counts": counts }));
        } else if !show.quiet && (before.counts.unfinished() < total || new.is_some()) {
            let failed = if failed > 0 { format!(", {failed} failed") } else { String::new() };
            let new = new.map_or(String::new(), |(new, again)| match again {
                0 => format!(", {new} new"),
                _ => format!(", {new} new, {again} failed before and run again"),
            });
            display.note(&format!("resuming: {done} of {total} tasks already done{new}{failed}"));
        }
        display
    }

    fn json(&self, event: &serde_json::Value) {
        self.note_trouble(writeln!(data(), "{event}"));
    }

    /// A reader that has gone away is no reason to stop the work. Neither is a full disk, but that is told.
    fn note_trouble(&self, written: std::io::Result<()>) {
        if let Err(error) = written
            && error.kind() != std::io::ErrorKind::BrokenPipe
        {
            let first = self.trouble.take().unwrap_or(error);
            self.trouble.set(Some(first));
        }
    }

    /// Why not all that should stand on standard output does.
    pub(crate) fn take_trouble(&self) -> Option<std::io::Error> {
        self.trouble.take()
    }

    /// Lets something be printed where the bar is not.
    pub(crate) fn above<T>(&self, print: impl FnOnce() -> T) -> T {
        match &self.bar {
            Some(bar) => bar.suspend(print),
            None => print(),
        }
    }

    /// What went wrong.
    fn say(&self, words: &str) {
        self.above(|| say(words));
    }

    /// What a person who wants it quiet need not know.
    pub(crate) fn note(&self, words: &str) {
        if !self.show.quiet {
            self.say(words);
        }
    }

    pub(crate) fn started(&mut self, attempt: &Attempt) {
        if self.show.json {
            self.json(&json!({
                "event": "start",
                "job": JOB.0,
                "task": attempt.task.index,
                "name": attempt.name,
                "label": attempt.label,
                "attempt": attempt.number,
            }));
        }
    }

    pub(crate) fn ended(&mut self, end: &EndView, progress: &ProgressCounts) {
        if self.show.json {
            self.json_end(end);
        } else if !end.outcome.is_success() && !self.show.quiet {
            self.failure(end);
        }
        if end.truncated && !self.show.json {
            self.note(&format!("{} printed more than --output-limit keeps", safe(&end.label)));
        }
        if let Some(bar) = &self.bar {
            bar.set_position(self.ended_before + progress.done + progress.failed);
        }
    }

    fn json_end(&self, end: &EndView) {
        self.json(&end.json());
    }

    fn failure(&self, end: &EndView) {
        let tried = if end.again { ", will be tried again" } else { "" };
        let why =
            end.message.as_ref().map_or(String::new(), |message| format!(": {}", safe(message)));
        let took = duration(Duration::from_micros(end.used.wall_us));
        let mut words =
            format!("{} failed ({}) after {took}{tried}{why}", safe(&end.label), end.outcome);
        for line in last_lines(&end.stderr_tail, TAIL_LINES) {
            words.push_str(&format!("\n    {line}"));
        }
        self.say(&words);
    }

    pub(crate) fn tee(&mut self, id: u64, name: &str, is_stderr: bool, bytes: &[u8]) {
        let lines = self.tee.take(id, is_stderr, bytes);
        self.print_lines(name, lines.into_iter().map(|line| (is_stderr, line)));
    }

    pub(crate) fn tee_end(&mut self, id: u64, name: &str) {
        if self.show.tee {
            let left = self.tee.end(id);
            self.print_lines(name, left.into_iter());
        }
    }

    fn print_lines(&self, name: &str, lines: impl Iterator<Item = (bool, String)>) {
        let name = safe(name);
        self.above(|| {
            for (is_stderr, line) in lines {
                let text = match self.show.has_labels {
                    true => format!("{name}: {line}\n"),
                    false => format!("{line}\n"),
                };
                if is_stderr {
                    let _ = std::io::stderr().lock().write_all(text.as_bytes());
                } else {
                    self.note_trouble(data().write_all(text.as_bytes()));
                }
            }
        });
    }

    /// Now and then.
    pub(crate) fn tick(&mut self, progress: &ProgressCounts) {
        let now = Instant::now();
        let passed = now.duration_since(self.started).as_secs_f64();
        let ended = progress.done + progress.failed;
        let rate = ended as f64 / passed.max(0.001);
        let left = self.total.saturating_sub(self.ended_before + ended);
        // As long as nothing has ended nobody knows how fast it goes.
        let left = (ended > 0).then(|| duration(Duration::from_secs_f64(left as f64 / rate)));
        let speed = left.as_ref().map_or(String::new(), |_| format!(", {}", per_second(rate, "")));
        if let Some(bar) = &self.bar {
            let failed = if progress.failed > 0 {
                format!(", {} failed", progress.failed)
            } else {
                String::new()
            };
            bar.set_prefix(left.map_or(String::new(), |left| format!("  left {left}")));
            bar.set_message(format!("{} running{failed}{speed}", progress.running));
        } else if now >= self.next_line && !self.show.quiet && !self.show.json {
            let left = left.map_or(String::new(), |left| format!(", {left} left"));
            say(format_args!(
                "{} of {} done, {} failed, {} running{speed}{left}",
                self.done_before + progress.done,
                self.total,
                progress.failed,
                progress.running
            ));
            // Less and less often: a day's log stays readable.
            self.line_every = (self.line_every * 2).min(Duration::from_secs(60));
            self.next_line = now + self.line_every;
        }
    }

    pub(crate) fn finish(&mut self, summary: &Summary<'_>) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
        if self.show.json {
            self.json(&summary.json(self.started.elapsed()));
        } else if !self.show.quiet {
            say(summary.text(self.started.elapsed()).trim_end());
        }
    }
}

impl Drop for Display {
    /// Whatever ends the run, the words that follow stand on a line of their own.
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// Of what was written to standard error.
pub(super) fn last_lines(tail: &[u8], most: usize) -> Vec<String> {
    let tail = String::from_utf8_lossy(tail);
    let lines: Vec<&str> = tail.lines().collect();
    lines.iter().skip(lines.len().saturating_sub(most)).map(|line| safe(line)).collect()
}

/// So many of something a second, or a minute where that is easier to read.
pub(super) fn per_second(rate: f64, what: &str) -> String {
    if rate >= 10.0 {
        format!("{rate:.0}{what}/s")
    } else if rate >= 0.1 {
        format!("{rate:.1}{what}/s")
    } else {
        format!("{:.1}{what}/min", rate * 60.0)
    }
}

#[cfg(test)]
mod tests;

//! What the worker tells of attempts: that they began, what they print, how they ended.

use super::{Desk, OUTPUTS_TROUBLE, ValueTable};
use crate::run::show::EndView;
use anyhow::Context;
use laboro_core::{Outcome, TaskResult, Time};
use laboro_dialects::session::Stream;
use laboro_dialects::worker::{Key, News, Orders, Parting, TaskEnd, Used};
use laboro_journal::outputs::{Ending, Stream as StoredStream};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

impl Desk {
    pub(in crate::run) fn note(&mut self, now: Time, news: News, out: &mut Orders) {
        let noted = match news {
            News::Started(key) => {
                self.started(key);
                Ok(())
            }
            News::Wrote { key, stream, bytes } => self.printed(key, stream, &bytes),
            News::Ended { key, how } => self.ended(now, key, how),
            News::Returned(key) => self.returned(now, key),
            News::Ahead(ahead) => {
                self.offer(ahead);
                Ok(())
            }
            News::Draining => {
                self.stop();
                Ok(())
            }
            News::Leaving => {
                out.hang_up(Parting::Finished);
                Ok(())
            }
        };
        if let Err(error) = noted {
            self.fail(error);
        }
    }

    fn started(&mut self, key: Key) {
        if let Some(attempt) = self.given.get_mut(&key)
            && !attempt.has_begun
        {
            attempt.has_begun = true;
            self.begun += 1;
            self.underway.begun(attempt.task);
            self.display.started(attempt);
        }
    }

    fn printed(&mut self, key: Key, stream: Stream, bytes: &[u8]) -> anyhow::Result<()> {
        let Some(attempt) = self.given.get_mut(&key) else { return Ok(()) };
        let (is_stderr, stored) = match stream {
            Stream::Out => (false, StoredStream::Stdout),
            Stream::Err => (true, StoredStream::Stderr),
            Stream::Result => (false, StoredStream::Result),
        };
        self.outputs.append(attempt.key(), stored, bytes).context(OUTPUTS_TROUBLE)?;
        if stream == Stream::Result {
            return Ok(());
        }
        attempt.printed(is_stderr, bytes).context("a file of --output-dir cannot be written")?;
        if self.options.show.tee {
            self.display.tee(key.0, &attempt.label, is_stderr, bytes);
        }
        Ok(())
    }

    /// It was not begun, or is to be run again as if it had not been.
    fn returned(&mut self, now: Time, key: Key) -> anyhow::Result<()> {
        let Some(attempt) = self.given.remove(&key) else { return Ok(()) };
        match attempt.has_begun {
            false => self.attempts.take_back(attempt.task.index, attempt.number),
            true => {
                self.begun -= 1;
                self.underway.ended(attempt.task);
                let ending = Ending { kind: Ending::STOPPED, ..stored(now, &Used::default()) };
                self.outputs.end(attempt.key(), ending).context(OUTPUTS_TROUBLE)?;
                self.display.tee_end(key.0, &attempt.label);
            }
        }
        if !attempt.is_revoked {
            self.returned.push(attempt.given_back());
            self.unreported_since.get_or_insert(now);
        }
        Ok(())
    }

    fn ended(&mut self, now: Time, key: Key, how: TaskEnd) -> anyhow::Result<()> {
        let TaskEnd { outcome, mut message, used } = how;
        // Nobody but the hub and the end of this program stop a task.
        if outcome == Outcome::Lost {
            return self.returned(now, key);
        }
        // Also what could not be started was tried.
        self.started(key);
        let Some(attempt) = self.given.remove(&key) else { return Ok(()) };
        self.begun -= 1;
        self.underway.ended(attempt.task);
        let times = stored(now, &used);
        let ending = Ending {
            started_ms: times.started_ms,
            wall_us: times.wall_us,
            user_us: times.user_us,
            sys_us: times.sys_us,
            max_rss_kib: times.max_rss_kib,
            ..Ending::of(outcome)
        };
        let worker = (self.worker_id.0, super::WORKER.as_bytes());
        let kept = self.outputs.end_by(attempt.key(), ending, worker).context(OUTPUTS_TROUBLE)?;
        self.display.tee_end(key.0, &attempt.label);
        if attempt.is_revoked {
            return Ok(());
        }
        let verdict = attempt.verdict(outcome);
        let again = attempt.is_tried_again(verdict);
        if let Some(results) = self.results.as_mut().filter(|_| !again) {
            // Before it is recorded, so that what is recorded has its file.
            self.outputs.flush().context(OUTPUTS_TROUBLE)?;
            let times = (began(times.started_ms), Duration::from_micros(used.wall_us));
            results.write(&attempt, verdict.is_success(), outcome, times)?;
        }
        if outcome == Outcome::Success && !verdict.is_success() {
            message = Some(NO_GOOD_WORD.to_owned());
        }
        let result = TaskResult {
            lease: attempt.lease(),
            outcome: verdict,
            message: message.as_deref().map(Into::into),
            memo: None,
        };
        let view = EndView {
            index: attempt.task.index,
            attempt: attempt.number,
            outcome: verdict,
            message,
            again,
            truncated: kept.truncated(),
            used,
            stderr_tail: attempt.stderr_tail().to_vec(),
            started_ms: times.started_ms,
            printed: attempt.printed,
            name: attempt.name,
            label: attempt.label,
        };
        self.ended.push((result, view));
        self.unreported_since.get_or_insert(now);
        Ok(())
    }

    /// The hub has answered the oldest report: from now on these ends are what happened.
    pub(super) fn recorded(&mut self) -> anyhow::Result<()> {
        let ends = self.unrecorded.pop_front().expect("every report is answered once, in order");
        for end in ends {
            self.tally.add(&end);
            if let Some(log) = &mut self.joblog {
                log.add(&end, &self.layout.command(end.index))?;
            }
            if let Some(table) = self.table.as_mut().filter(|_| !end.again) {
                table.add(&self.layout, end.index)?;
            }
            self.display.ended(&end, &self.progress());
            if !end.again {
                self.attempts.ended_for_good(end.index);
                if let Some(order) = &mut self.order {
                    self.display.above(|| order.ended(end.index, end.attempt))?;
                }
            }
        }
        self.table.as_mut().map_or(Ok(()), ValueTable::flush)
    }
}

/// Times and usage, as the store has them.
fn stored(now: Time, used: &Used) -> Ending {
    Ending {
        started_ms: now.0.saturating_sub(used.wall_us / 1000),
        wall_us: used.wall_us,
        user_us: used.user_us,
        sys_us: used.system_us,
        max_rss_kib: used.peak_kib,
        ..Ending::default()
    }
}

fn began(started_ms: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(started_ms)
}

/// Of a script whose words decide, not its status.
const NO_GOOD_WORD: &str =
    "it did not say RES: with a good word; with --success exit-code its exit code decides";

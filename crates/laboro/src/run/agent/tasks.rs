//! The life of a task in the agent: its start, what it prints, its end.

use super::{Agent, OUTPUTS_TROUBLE, Stopping};
use crate::output::bytes;
use crate::run::running::{Running, stored_ending};
use crate::run::show::EndView;
use anyhow::Context;
use laboro_core::{Grant, TaskResult};
use laboro_dialects::worker::Key;
use laboro_journal::outputs::Stream as StoredStream;
use laboro_worker::{Ending, Refusal, RunnerEvent, Stream, Usage, is_shortage, no_room_words};
use std::time::{Duration, Instant, SystemTime};

impl Agent {
    pub(super) fn start_more(&mut self) -> anyhow::Result<()> {
        if self.held_until.is_some_and(|until| until > Instant::now()) {
            return Ok(());
        }
        self.held_until = None;
        while let Some(grant) = self.queue.front() {
            let room = self.options.slots.saturating_add(self.launch_ahead);
            if self.slots_used + grant.profile.needs.slots > room {
                return Ok(());
            }
            if let Some(shortage) = self.memory.shortage() {
                if shortage.is_news {
                    let (available, wanted) = (bytes(shortage.available), bytes(shortage.wanted));
                    self.display.note(&format!(
                        "nothing more starts: {available} of memory available, --memory wants {wanted}"
                    ));
                }
                return Ok(());
            }
            let grant = self.queue.pop_front().expect("looked at just now");
            if let Err(error) = self.begin(&grant) {
                if !is_passing(&error) {
                    return Err(error);
                }
                self.queue.push_front(grant);
                self.held_until = Some(Instant::now() + AGAIN);
                self.no_room(&format!("{error:#}"), None);
                return Ok(());
            }
        }
        Ok(())
    }

    /// Said once of what passes by itself, and again when nothing can be started at all.
    fn no_room(&mut self, why: &str, nothing_for: Option<Duration>) {
        self.is_starved = true;
        if !std::mem::replace(&mut self.has_told_no_room, true) || nothing_for.is_some() {
            self.display.note(&no_room_words(why, nothing_for));
        }
    }

    fn begin(&mut self, grant: &Grant) -> anyhow::Result<()> {
        let id = self.next_id;
        self.next_id += 1;
        let index = grant.task.index;
        self.say_once_if_settings_differ(grant);
        let number = self.attempts.begin(index, grant.attempt)?;
        let assignment = self.layout.assignment(Key(id), number, grant);
        let made = self.maker.make(&assignment, &self.scripts, None);
        let made = made.map_err(anyhow::Error::new).and_then(|mut made| {
            let running = Running::new(grant, assignment.name, number, &mut made, &self.options)?;
            Ok((made, running))
        });
        // It was not tried, so the next attempt is the same one.
        let (made, running) = made.inspect_err(|_| self.attempts.take_back(index, number))?;
        self.slots_used += assignment.slots;
        self.running.insert(id, running);
        self.runner.launch(made.launch);
        Ok(())
    }

    /// A job keeps what it was submitted with; who types other settings later should know.
    fn say_once_if_settings_differ(&mut self, grant: &Grant) {
        if !self.has_said_settings_differ && self.layout.differs(grant) {
            self.has_said_settings_differ = true;
            self.display.note(
                "attempts, needs and priorities stay what they were when this job was first run; \
                 --fresh takes the new ones and runs everything again",
            );
        }
    }

    pub(super) fn happened(&mut self, events: Vec<RunnerEvent>) -> anyhow::Result<()> {
        for event in events {
            match event {
                RunnerEvent::Started { id, .. } => self.started(id),
                RunnerEvent::Output { id, stream, bytes } => self.printed(id, stream, &bytes)?,
                RunnerEvent::Ended { id, ending, usage, started } => {
                    self.end(id, &ending, usage, started)?;
                }
                RunnerEvent::NoRoom { why, nothing_for, .. } => self.no_room(&why, nothing_for),
                RunnerEvent::Room => self.is_starved = false,
            }
        }
        Ok(())
    }

    fn started(&mut self, id: u64) {
        if let Some(running) = self.running.get_mut(&id)
            && !running.has_begun
        {
            running.has_begun = true;
            self.begun += 1;
            self.display.started(&running.name, running.task.index, running.attempt);
        }
    }

    fn printed(&mut self, id: u64, stream: Stream, bytes: &[u8]) -> anyhow::Result<()> {
        let Some(running) = self.running.get_mut(&id) else { return Ok(()) };
        let is_stderr = stream == Stream::Stderr;
        let stored = if is_stderr { StoredStream::Stderr } else { StoredStream::Stdout };
        self.outputs.append(running.key(), stored, bytes).context(OUTPUTS_TROUBLE)?;
        running.printed(is_stderr, bytes).context("a file of --output-dir cannot be written")?;
        if self.options.show.tee {
            self.display.tee(id, &running.name, is_stderr, bytes);
        }
        Ok(())
    }

    fn end(
        &mut self,
        id: u64,
        ending: &Ending,
        usage: Usage,
        started: SystemTime,
    ) -> anyhow::Result<()> {
        let stopped_by_us =
            self.stopping != Stopping::No && matches!(ending, Ending::Stopped { .. });
        if !stopped_by_us {
            // Also what could not be started was tried.
            self.started(id);
        }
        let Some(running) = self.running.remove(&id) else { return Ok(()) };
        self.slots_used -= running.slots();
        if !running.has_begun {
            self.returned.push(running.given_back());
            return Ok(());
        }
        self.begun -= 1;
        let stored = stored_ending(ending, &usage, started);
        let kept = self.outputs.end(running.key(), stored).context(OUTPUTS_TROUBLE)?;
        self.display.tee_end(id, &running.name);
        if stopped_by_us || *ending == Ending::GuardianLost {
            self.returned.push(running.given_back());
            return Ok(());
        }
        let outcome = running.outcome(ending);
        let again = running.is_tried_again(outcome);
        if let Some(results) = self.results.as_mut().filter(|_| !again) {
            // Before it is recorded, so that what is recorded has its file.
            self.outputs.flush().context(OUTPUTS_TROUBLE)?;
            results.write(&running, outcome.is_success(), ending, started, &usage)?;
        }
        let message = match ending {
            Ending::NotStarted { message, .. } => Some(message.clone()),
            Ending::Exited(0) if !outcome.is_success() => Some(NO_GOOD_WORD.to_owned()),
            _ => None,
        };
        let result = TaskResult {
            lease: running.lease(),
            outcome,
            message: message.as_deref().map(Into::into),
            memo: None,
        };
        let view = EndView {
            name: running.name.clone(),
            index: running.task.index,
            attempt: running.attempt,
            outcome,
            message,
            again,
            truncated: kept.truncated(),
            usage,
            stderr_tail: running.stderr_tail().to_vec(),
        };
        self.ended.push((result, view));
        Ok(())
    }
}

/// When what could not be prepared for want of files or memory is tried again.
const AGAIN: Duration = Duration::from_millis(200);

fn is_passing(error: &anyhow::Error) -> bool {
    let mut causes = error.chain();
    causes.any(|cause| match cause.downcast_ref::<Refusal>() {
        Some(refusal) => refusal.is_shortage,
        None => cause.downcast_ref().is_some_and(is_shortage),
    })
}

/// Of a script whose words decide, not its status.
const NO_GOOD_WORD: &str =
    "it did not say RES: with a good word; with --success exit-code its exit code decides";

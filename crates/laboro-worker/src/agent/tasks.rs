//! The life of a task at the agent: its start, what it prints, its end.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use bytes::Bytes;
use laboro_core::{Outcome, Role, Work};
use laboro_dialects::session::Stream as Said;
use laboro_dialects::worker::{Assignment, Key, News};

use super::Agent;
use super::confine::{Excess, Over};
use super::doubt::Doubt;
use super::node_file::NodeFile;
use super::result::{RESULT_VAR, take_result};
use super::running::Running;
use super::stages::Stage;
use crate::cpus::shown;
use crate::memory::{processes_running, size};
use crate::surroundings::set;
use crate::{Ending, Refusal, RunnerEvent, Stream, Usage, no_room_words};

/// What was sent ahead goes back when nothing has moved here for so long.
const STUCK: Duration = Duration::from_millis(500);

/// What this machine has no room to start goes back then. The hub may send it again, so not too often.
const STARVED: Duration = Duration::from_secs(5);

/// When what could not be prepared for want of files or memory is tried again.
const AGAIN: Duration = Duration::from_millis(200);

impl Agent {
    pub(super) fn start_more(&mut self) {
        self.is_short_of_memory = false;
        if self.held_until.is_some_and(|until| until > Instant::now()) {
            return;
        }
        self.held_until = None;
        while let Some(next) = self.waiting.front() {
            let (slots, has_room) = (next.slots.max(1), self.has_room(next));
            if !has_room || self.is_short() {
                return;
            }
            let assignment = self.waiting.pop_front().expect("looked at just now");
            match *assignment.work {
                Work::Call(_) => self.begin_call(assignment, slots),
                _ => self.begin(assignment, slots),
            }
            if let Some(delay) = self.options.delay {
                self.held_until = Some(Instant::now() + delay);
                return;
            }
        }
    }

    /// Said once of what passes by itself, and again when nothing can be started at all.
    fn no_room(&mut self, why: &str, nothing_for: Option<Duration>) {
        self.is_starved = true;
        if !std::mem::replace(&mut self.has_told_no_room, true) || nothing_for.is_some() {
            self.note(&no_room_words(why, nothing_for));
        }
    }

    fn has_room(&self, next: &Assignment) -> bool {
        let slots = next.slots.max(1);
        // Whatever the hub thinks fits an empty worker is tried.
        if self.running.is_empty() {
            return true;
        }
        // The guardian counts tasks, not slots: only tasks of one slot may wait there for their turn.
        // Runners have places of their own, so those tasks are all calls or none is.
        let is_call = matches!(*next.work, Work::Call(_));
        let calls = if is_call { self.running.len() } else { 0 };
        let is_simple = self.odd == 0
            && !says_slot(next)
            && slots == 1
            && !self.memory.is_set()
            && self.cpus.is_none()
            && self.running_calls as usize == calls;
        let ahead = match is_simple && self.slots == self.options.slots {
            true => self.slots.clamp(8, 64).min(self.options.launch_ahead),
            false => 0,
        };
        self.slots_used.saturating_add(slots) <= self.slots.saturating_add(ahead)
    }

    fn is_short(&mut self) -> bool {
        let is_loaded = self.options.load_max.is_some_and(|most| {
            // This process is one of them.
            processes_running().is_some_and(|running| running.saturating_sub(1) >= most)
        });
        let shortage = self.memory.shortage();
        self.is_short_of_memory = shortage.is_some() || is_loaded;
        if let Some(shortage) = shortage.filter(|shortage| shortage.is_news) {
            let [available, wanted] = [shortage.available, shortage.wanted].map(size);
            self.note(&format!(
                "nothing more starts: {available} of memory available, {wanted} wanted"
            ));
        }
        self.is_short_of_memory
    }

    fn begin(&mut self, assignment: Box<Assignment>, slots: u32) {
        let key = assignment.key;
        match self.prepare(&assignment, slots) {
            Ok((launch, running)) => {
                self.count_in(key, running);
                self.side.launching(key, &launch.argv);
                let crew = self.crew.as_ref().expect("without a crew nothing waits");
                crew.runner.launch(launch);
            }
            Err(Refusal { message, is_shortage: true }) => {
                self.remove_dir(key);
                self.waiting.push_front(assignment);
                self.held_until = Some(Instant::now() + AGAIN);
                self.no_room(&message, None);
            }
            Err(Refusal { message, .. }) => {
                self.remove_dir(key);
                self.side.not_started(self.clock.now(), key, message, &mut self.orders);
            }
        }
    }

    fn prepare(
        &mut self,
        assignment: &Assignment,
        slots: u32,
    ) -> Result<(crate::Launch, Running), Refusal> {
        let scratch = self.options.task_dirs.then(|| self.scratch.of(assignment.key.0));
        let made = self.maker.make(
            assignment,
            &self.scratch.scripts,
            scratch.as_deref(),
            self.places.next(),
        )?;
        if self.options.task_dirs {
            let scratch = self.scratch.make(assignment.key.0);
            scratch.map_err(|error| Refusal::of("its scratch directory cannot be made", &error))?;
        }
        let mut launch = made.launch;
        if let (Some(scratch), Some(secret)) = (&scratch, &assignment.access) {
            let text =
                self.options.access.as_ref().map(|(head, tail)| [head, &**secret, tail].concat());
            if let Some(text) = text {
                let file = write_access(scratch, &text)
                    .map_err(|error| Refusal::of("its access file cannot be written", &error))?;
                set(&mut launch.env, "LABORO_ACCESS", file);
            }
        }
        let result = self.scratch.result_of(assignment.key.0);
        launch.env.push((RESULT_VAR.into(), result.into()));
        launch.limits = self.confinement.limits(assignment);
        self.confinement.prepare(assignment, slots)?;
        let limit = self.options.output_limit;
        let mut running = Running::new(slots, limit, made.log, made.script)?;
        if let Role::First(nodes) = &assignment.role {
            let file = NodeFile::write(self.scratch.nodes_of(assignment.key.0), nodes).map_err(
                |error| Refusal::of("the file of its workers cannot be written", &error),
            )?;
            set(&mut launch.env, "LABORO_NODE_FILE", file.path());
            running.node_file = Some(file);
        }
        if let Some(cpus) = self.cpus.as_mut().and_then(|cpus| cpus.take(slots)) {
            set(&mut launch.env, "LABORO_CPUS", shown(&cpus));
            // Programs with threads of their own would start one for each processor of the machine.
            if !launch.env.iter().any(|(name, _)| name == "OMP_NUM_THREADS") {
                set(&mut launch.env, "OMP_NUM_THREADS", cpus.len().to_string());
            }
            launch.cpus.clone_from(&cpus);
            running.cpus = cpus;
        }
        Ok((launch, running))
    }

    pub(super) fn happened(&mut self, events: Vec<RunnerEvent>) {
        for event in events {
            match event {
                RunnerEvent::Started { id, pid } => self.started(Key(id), pid),
                RunnerEvent::Output { id, stream, bytes } => self.wrote(Key(id), stream, bytes),
                RunnerEvent::Ended { id, ending, usage, .. } => {
                    self.ended(Key(id), &ending, &usage);
                }
                RunnerEvent::NoRoom { why, nothing_for, .. } => self.no_room(&why, nothing_for),
                RunnerEvent::Room => self.is_starved = false,
            }
        }
        self.tell_pace();
    }

    pub(super) fn tell_pace(&mut self) {
        if self.stage == Stage::Working
            && let Some(ahead) = self.pace.news(self.slots)
        {
            self.tell(News::Ahead(ahead));
        }
    }

    fn started(&mut self, key: Key, pid: u32) {
        self.confinement.enter(key.0, pid);
        self.begun(key);
    }

    pub(super) fn begun(&mut self, key: Key) {
        let Some(running) = self.running.get_mut(&key) else { return };
        if !std::mem::replace(&mut running.has_begun, true) {
            self.unbegun -= 1;
        }
        self.last_moved = Instant::now();
        self.tell(News::Started(key));
    }

    /// It takes its slots from now on.
    pub(super) fn count_in(&mut self, key: Key, mut running: Running) {
        running.place = Some(self.places.take());
        self.slots_used += running.slots;
        self.odd += u32::from(running.slots != 1);
        self.unbegun += 1;
        self.running.insert(key, running);
    }

    /// Its slots are free.
    pub(super) fn count_out(&mut self, key: Key) -> Option<Running> {
        let running = self.running.remove(&key)?;
        running.place.into_iter().for_each(|place| self.places.give_back(place));
        if let Some(cpus) = &mut self.cpus {
            cpus.give_back(&running.cpus);
        }
        let now = Instant::now();
        self.slots_used -= running.slots;
        self.odd -= u32::from(running.slots != 1);
        self.unbegun -= u32::from(!running.has_begun);
        (self.last_moved, self.idle_since) = (now, now);
        Some(running)
    }

    pub(super) fn wrote(&mut self, key: Key, stream: Stream, bytes: Vec<u8>) {
        let Some(running) = self.running.get_mut(&key) else { return };
        let mut bytes = Bytes::from(bytes);
        bytes.truncate(running.wrote(stream, &bytes));
        if bytes.is_empty() {
            return;
        }
        let stream = match stream {
            Stream::Stdout => Said::Out,
            Stream::Stderr => Said::Err,
        };
        self.tell(News::Wrote { key, stream, bytes });
    }

    fn ended(&mut self, key: Key, ending: &Ending, usage: &Usage) {
        let Some(running) = self.count_out(key) else { return };
        self.remove_dir(key);
        let excess = self.confinement.leave(key.0, ending);
        match self.doubt(ending, &running) {
            Doubt::None => self.tell_end(key, running, ending, usage, excess),
            Doubt::Returned => self.tell(News::Returned(key)),
            Doubt::Later(until) => {
                let end = (key, running, ending.clone(), *usage, excess);
                self.doubtful.push((until, Box::new(end)));
            }
        }
    }

    pub(super) fn tell_end(
        &mut self,
        key: Key,
        running: Running,
        ending: &Ending,
        usage: &Usage,
        excess: Option<Excess>,
    ) {
        // We stop tasks for the hub, or because we go: then another worker may have them.
        let is_stopped = matches!(ending, Ending::Stopped { .. }) && excess.is_none();
        if is_stopped && !running.is_cancelled {
            self.tell(News::Returned(key));
            return;
        }
        if matches!(ending, Ending::Exited(_)) {
            self.pace.took(usage.wall);
        }
        if let Ending::NotStarted { message, .. } = ending {
            let now = self.clock.now();
            self.side.not_started(now, key, message.clone(), &mut self.orders);
            return;
        }
        let mut how = running.ended(ending, usage, excess);
        match take_result(&self.scratch.result_of(key.0)) {
            Ok(None) => {}
            Ok(Some(bytes)) => self.tell(News::Wrote { key, stream: Said::Result, bytes }),
            Err(words) if how.outcome.is_success() => {
                (how.outcome, how.message) = (Outcome::Error, Some(words));
            }
            Err(_) => {}
        }
        self.tell(News::Ended { key, how });
    }

    /// It is killed: what takes too much memory harms others while it is asked to end.
    pub(super) fn end_over(&mut self, over: Over) {
        let key = Key(over.key);
        if self.running.contains_key(&key)
            && let Some(crew) = &self.crew
        {
            crew.runner.stop(over.key, Duration::ZERO);
        } else {
            self.calls.end_over(over.key, over.excess().words);
        }
    }

    fn remove_dir(&mut self, key: Key) {
        if self.options.task_dirs {
            self.scratch.remove(key.0);
        }
    }

    /// When what waits here for a slot has waited too long.
    pub(super) fn stuck_at(&self) -> Option<Instant> {
        let is_full = self.slots_used >= self.slots;
        let waits_here = is_full && !self.waiting.is_empty() && !self.is_short_of_memory;
        // What has a slot and has not begun is only slow to start: it is nobody's turn but its own.
        let waits_there = self.unbegun > 0 && (self.slots_used > self.slots || self.is_starved);
        let is_stuck = (waits_here || waits_there) && self.side.takes_back();
        is_stuck.then(|| self.last_moved + if self.is_starved { STARVED } else { STUCK })
    }

    /// Short tasks that were sent ahead wait behind long ones: somebody else may have room for them.
    pub(super) fn give_back_the_stuck(&mut self) {
        if self.stuck_at().is_none_or(|at| at > Instant::now()) {
            return;
        }
        self.last_moved = Instant::now();
        self.pace.stop();
        self.tell(News::Ahead(0));
        self.give_back_waiting();
    }

    /// What has not begun goes back.
    pub(super) fn give_back_waiting(&mut self) {
        for assignment in std::mem::take(&mut self.waiting) {
            self.tell(News::Returned(assignment.key));
        }
        if let Some(crew) = self.crew.as_ref().filter(|_| self.unbegun > 0) {
            crew.runner.recall();
            self.calls.recall();
            self.tell_of_calls();
        }
    }
}

/// A task that may be told its slot does not wait for one at the guardian: there would be more numbers than slots.
fn says_slot(assignment: &Assignment) -> bool {
    assignment.work.setting().is_some_and(|setting| setting.placeholders.is_some())
}

/// For the task's eyes only; it goes with the task's directory.
fn write_access(scratch: &Path, text: &str) -> io::Result<PathBuf> {
    let path = scratch.join(".laboro-access.toml");
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600).open(&path)?.write_all(text.as_bytes())?;
    Ok(path)
}

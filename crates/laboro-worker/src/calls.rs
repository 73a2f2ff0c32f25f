//! Runners that stay: a process takes one call after the other, so that none pays for its start. Which process gets
//! which call, when a process has to go, and what becomes of its calls then: the one under way is charged, the others go
//! to another process. What a call is told about and what it prints is passed on by the agent.

mod frame;
mod lifetime;
mod process;

use std::collections::{BTreeMap, VecDeque};
use std::future::poll_fn;
use std::path::PathBuf;
use std::task::Poll;
use std::time::{Duration, Instant};

use bytes::Bytes;
use laboro_core::{CALL_BYTES_MAX, Outcome};
use laboro_dialects::worker::{Assignment, Key, TaskEnd, Used};

use crate::agent::Crew;
use crate::{Ending, Launch, Refusal, RunnerError, RunnerEvent, Stream};
use frame::Answer;
use process::{ANSWERS, CALLS, CallPipes, EndReason, Need, RunnerProcess};

/// Ids of processes, which share events with those of tasks, begin here.
const IDS_FROM: u64 = 1 << 63;

#[derive(Debug)]
pub(crate) struct Calls {
    /// Started with the first call.
    crew: Option<Crew>,
    processes: BTreeMap<u64, RunnerProcess>,
    waiting: VecDeque<Box<Assignment>>,
    next_id: u64,
    dir: PathBuf,
    grace: Duration,
    news: Vec<CallNews>,
    /// Processes of which it is known since a moment that they run.
    started: Vec<u64>,
}

/// What became of calls, and of the processes that take them.
#[derive(Debug)]
pub(crate) enum CallNews {
    ProcessStarted {
        id: u64,
        pid: u32,
    },
    ProcessEnded {
        id: u64,
        ending: Ending,
    },
    Began(Key),
    Wrote {
        key: Key,
        stream: Stream,
        bytes: Vec<u8>,
    },
    Ended {
        key: Key,
        how: TaskEnd,
        result: Bytes,
    },
    /// It did not run, or had to be ended for the worker's sake.
    Back(Key),
}

/// Something for `Calls::take_in`.
#[derive(Debug)]
pub(crate) enum CallTurn {
    Processes(Vec<RunnerEvent>),
    Answers(Vec<u64>),
}

impl Calls {
    pub(crate) fn new(dir: PathBuf, grace: Duration) -> Calls {
        Calls {
            crew: None,
            processes: BTreeMap::new(),
            waiting: VecDeque::new(),
            next_id: IDS_FROM,
            dir,
            grace,
            news: Vec::new(),
            started: Vec::new(),
        }
    }

    pub(crate) fn has_crew(&self) -> bool {
        self.crew.is_some()
    }

    pub(crate) fn set_crew(&mut self, crew: Crew) {
        self.crew = Some(crew);
    }

    pub(crate) fn push(&mut self, assignment: Box<Assignment>) {
        self.waiting.push_back(assignment);
    }

    pub(crate) fn take_news(&mut self) -> Vec<CallNews> {
        std::mem::take(&mut self.news)
    }

    /// Waits for something to happen. May be dropped and called again.
    pub(crate) async fn turn(&mut self) -> Result<CallTurn, RunnerError> {
        let Calls { crew, processes, .. } = self;
        let answers = poll_fn(|cx| {
            let ready = |(id, process): (&u64, &mut RunnerProcess)| {
                process.poll(cx).is_ready().then_some(*id)
            };
            let ids: Vec<u64> = processes.iter_mut().filter_map(ready).collect();
            if ids.is_empty() { Poll::Pending } else { Poll::Ready(ids) }
        });
        match crew {
            None => std::future::pending().await,
            Some(crew) => tokio::select! {
                // A runner prints nothing before its last answer is taken: see spec/runner.md.
                biased;
                ids = answers => Ok(CallTurn::Answers(ids)),
                events = crew.events() => events.map(CallTurn::Processes),
            },
        }
    }

    pub(crate) fn take_in(&mut self, turn: CallTurn) {
        match turn {
            CallTurn::Processes(events) => {
                events.into_iter().for_each(|event| self.happened(event));
            }
            CallTurn::Answers(ids) => {
                self.read_output(&ids);
                ids.into_iter().for_each(|id| self.answered(id));
            }
        }
        // What they answered before is taken now, after what they have printed.
        for id in std::mem::take(&mut self.started) {
            self.read_output(&[id]);
            self.answered(id);
        }
    }

    /// What a call printed is there before its answer. Of runners that are sent one call at a time nothing else can be
    /// there, and they need not care.
    fn read_output(&mut self, ids: &[u64]) {
        let is_simple =
            |id: &u64| self.processes.get(id).is_some_and(|p| p.ahead.unwrap_or(0) == 0);
        let Some(crew) = self.crew.as_mut().filter(|_| ids.iter().any(is_simple)) else { return };
        let mut events = Vec::new();
        // An error is told to whoever waits for events.
        while let Ok(more) = crew.events_now()
            && !more.is_empty()
        {
            events.extend(more);
        }
        events.into_iter().for_each(|event| self.happened(event));
    }

    /// Gives calls to processes, of which at most `slots` have some at a time. `launch` makes what starts one.
    pub(crate) fn give(
        &mut self,
        slots: u32,
        mut launch: impl FnMut(&Assignment, u64) -> Result<Launch, Refusal>,
    ) {
        while let Some(next) = self.waiting.front() {
            let (mut free, mut behind, mut busy) = (None, None, 0);
            for (&id, process) in &self.processes {
                busy += u32::from(!process.calls.is_empty());
                if !process.takes(next) {
                    continue;
                }
                let length = process.calls.len();
                if length == 0 {
                    free = free.or(Some(id));
                } else if process.has_room_behind()
                    && behind.is_none_or(|(shortest, _)| length < shortest)
                {
                    behind = Some((length, id));
                }
            }
            let id = match (free, behind) {
                (Some(id), _) => id,
                (None, _) if busy < slots => {
                    let next = self.waiting.front().expect("looked at just now");
                    match self.start(next.key, slots, launch(next, self.next_id), Need::of(next)) {
                        Some(id) => id,
                        None => {
                            self.waiting.pop_front();
                            continue;
                        }
                    }
                }
                (None, Some((_, id))) => id,
                (None, None) => return,
            };
            let assignment = self.waiting.pop_front().expect("looked at just now");
            let process = self.processes.get_mut(&id).expect("found just now");
            process.send(assignment);
            self.begin_front(id);
        }
    }

    /// `None`: it cannot be started, which is told of the call.
    fn start(
        &mut self,
        key: Key,
        slots: u32,
        launch: Result<Launch, Refusal>,
        need: Need,
    ) -> Option<u64> {
        self.make_room(slots);
        let id = self.next_id;
        let dir = self.dir.join(id.to_string());
        let started = launch.and_then(|mut launch| {
            let pipes = std::fs::create_dir_all(&self.dir).and_then(|()| CallPipes::make(&dir));
            let pipes = pipes.map_err(|error| Refusal::of("pipes for its runner", &error))?;
            launch.env.push(("LABORO_CALLS".into(), dir.join(CALLS).into()));
            launch.env.push(("LABORO_ANSWERS".into(), dir.join(ANSWERS).into()));
            Ok((launch, pipes))
        });
        match started {
            Ok((launch, pipes)) => {
                self.next_id += 1;
                self.processes.insert(id, RunnerProcess::new(need, pipes));
                let crew = self.crew.as_ref().expect("started with the first call");
                crew.launch(launch);
                Some(id)
            }
            Err(Refusal { is_shortage: true, .. }) => {
                self.news.push(CallNews::Back(key));
                None
            }
            Err(Refusal { message, .. }) => {
                self.fail(key, Outcome::Error, message, Used::default());
                None
            }
        }
    }

    /// The first of its calls is under way.
    fn begin_front(&mut self, id: u64) {
        let Some(process) = self.processes.get_mut(&id) else { return };
        let is_ready = process.ahead.is_some();
        if let Some(front) = process.calls.front_mut().filter(|front| front.begun.is_none())
            && is_ready
        {
            front.begun = Some(Instant::now());
            self.news.push(CallNews::Began(front.assignment.key));
        }
    }

    fn answered(&mut self, id: u64) {
        loop {
            let Some(process) = self.processes.get_mut(&id) else { return };
            // One that has said nonsense is not believed any more. One that answers before its start is told has
            // printed what cannot be read yet.
            if matches!(process.ending, Some(EndReason::Broken(_))) || process.pid.is_none() {
                return;
            }
            let answer = match process.next_answer() {
                Ok(Some(answer)) => answer,
                Ok(None) => break,
                Err(error) => return self.end(id, EndReason::Broken(error.to_string())),
            };
            if let Err(why) = self.take_answer(id, answer) {
                return self.end(id, EndReason::Broken(why.to_owned()));
            }
        }
        self.look_after(id);
    }

    fn take_answer(&mut self, id: u64, answer: Answer) -> Result<(), &'static str> {
        let Some(process) = self.processes.get_mut(&id) else { return Ok(()) };
        let (call, outcome, message, result) = match answer {
            Answer::Ready { ahead, .. } => {
                process.ahead = Some(ahead);
                self.begin_front(id);
                return Ok(());
            }
            Answer::Done { id, result } => (id, Outcome::Success, None, result),
            Answer::Failed { id, code, message, result } => {
                (id, Outcome::Exit(code), Some(message), result)
            }
            Answer::Skipped { id: call } => {
                if process.key() != Some(Key(call)) {
                    return Err("the runner skipped a call that was not its next");
                }
                process.calls.pop_front();
                self.news.push(CallNews::Back(Key(call)));
                self.begin_front(id);
                return Ok(());
            }
        };
        if process.key() != Some(Key(call)) {
            return Err("the runner answered a call that is not under way");
        }
        let Some(sent) = process.calls.pop_front() else { return Ok(()) };
        let now = Instant::now();
        let wall = sent.begun.map_or(Duration::ZERO, |begun| now.duration_since(begun));
        process.took(wall);
        process.since = now;
        process.memory.look(process.pid, now);
        let used = used(process, wall);
        let key = Key(call);
        if result.len() > CALL_BYTES_MAX {
            let why = format!(
                "its result has {} bytes; at most {CALL_BYTES_MAX} are kept: \
                 write it to a file and return the path",
                result.len()
            );
            self.fail(key, Outcome::Error, why, used);
        } else {
            // A code of 0 would be a success.
            let outcome = if outcome == Outcome::Exit(0) { Outcome::Error } else { outcome };
            let how = TaskEnd { outcome, message, used };
            self.news.push(CallNews::Ended { key, how, result });
        }
        self.begin_front(id);
        Ok(())
    }

    fn happened(&mut self, event: RunnerEvent) {
        match event {
            RunnerEvent::Started { id, pid } => {
                if let Some(process) = self.processes.get_mut(&id) {
                    process.pid = Some(pid);
                }
                self.news.push(CallNews::ProcessStarted { id, pid });
                self.started.push(id);
            }
            RunnerEvent::Output { id, stream, bytes } => {
                // What is printed without a call belongs to none.
                let key = self.processes.get(&id).and_then(RunnerProcess::key);
                self.news.extend(key.map(|key| CallNews::Wrote { key, stream, bytes }));
            }
            RunnerEvent::Ended { id, ending, .. } => {
                self.ended(id, &ending);
                self.news.push(CallNews::ProcessEnded { id, ending });
            }
            RunnerEvent::NoRoom { .. } | RunnerEvent::Room => {}
        }
    }

    /// Its process is gone: what it said before counts, the call under way is charged, the others go elsewhere.
    fn ended(&mut self, id: u64, ending: &Ending) {
        if let Some(process) = self.processes.get_mut(&id) {
            process.drain();
        }
        let is_sane =
            |process: &RunnerProcess| !matches!(process.ending, Some(EndReason::Broken(_)));
        while let Some(process) = self.processes.get_mut(&id).filter(|process| is_sane(process))
            && let Ok(Some(answer)) = process.next_answer()
            && self.take_answer(id, answer).is_ok()
        {}
        let Some(mut process) = self.processes.remove(&id) else { return };
        if let Some(front) = process.calls.pop_front() {
            let key = front.assignment.key;
            let wall = front.begun.map_or(Duration::ZERO, |begun| begun.elapsed());
            let used = used(&process, wall);
            match &process.ending {
                Some(EndReason::Stopped) => self.news.push(CallNews::Back(key)),
                Some(EndReason::Retired) => self.waiting.push_front(front.assignment),
                Some(EndReason::TimedOut) => {
                    self.fail(key, Outcome::TimedOut, "it took too long".into(), used);
                }
                Some(EndReason::Cancelled) => {
                    let how = TaskEnd { outcome: Outcome::Lost, message: None, used };
                    self.news.push(CallNews::Ended { key, how, result: Bytes::new() });
                }
                Some(EndReason::TookTooMuch(why)) => {
                    self.fail(key, Outcome::Memory, why.clone(), used);
                }
                Some(EndReason::Broken(why)) => self.fail(key, Outcome::Error, why.clone(), used),
                None => {
                    let (outcome, words) = told(ending, process.ahead.is_some());
                    self.fail(key, outcome, words, used);
                }
            }
        }
        for sent in process.calls.into_iter().rev() {
            let key = sent.assignment.key;
            match sent.is_cancelled || process.ending == Some(EndReason::Stopped) {
                true => self.news.push(CallNews::Back(key)),
                false => self.waiting.push_front(sent.assignment),
            }
        }
    }

    /// A failure that is not the runner's own word. In its standard error too: of elements of arrays nothing else stays.
    fn fail(&mut self, key: Key, outcome: Outcome, message: String, used: Used) {
        let bytes = format!("laboro: {message}\n").into_bytes();
        self.news.push(CallNews::Wrote { key, stream: Stream::Stderr, bytes });
        let how = TaskEnd { outcome, message: Some(message), used };
        self.news.push(CallNews::Ended { key, how, result: Bytes::new() });
    }

    /// It is not wanted any more.
    pub(crate) fn cancel(&mut self, key: Key) {
        if let Some(at) = self.waiting.iter().position(|waiting| waiting.key == key) {
            self.waiting.remove(at);
            self.news.push(CallNews::Back(key));
            return;
        }
        let mut front = None;
        for (&id, process) in &mut self.processes {
            if process.key() == Some(key) {
                front = Some(id);
            } else if let Some(sent) =
                process.calls.iter_mut().find(|sent| sent.assignment.key == key)
            {
                sent.is_cancelled = true;
                process.skip(key);
            }
        }
        if let Some(id) = front {
            self.end(id, EndReason::Cancelled);
        }
    }

    /// A process takes too much memory: the call under way is charged with that.
    pub(crate) fn end_over(&mut self, id: u64, why: String) {
        self.end(id, EndReason::TookTooMuch(why));
        if let Some(crew) = self.crew.as_ref().filter(|_| self.processes.contains_key(&id)) {
            crew.stop(id, Duration::ZERO);
        }
    }

    /// What has not begun goes back, as far as it can still be had.
    pub(crate) fn recall(&mut self) {
        let waiting = std::mem::take(&mut self.waiting);
        self.news.extend(waiting.iter().map(|waiting| CallNews::Back(waiting.key)));
        for process in self.processes.values_mut() {
            let keys: Vec<Key> =
                process.calls.iter().skip(1).map(|sent| sent.assignment.key).collect();
            keys.into_iter().for_each(|key| process.skip(key));
        }
    }

    /// Everything ends; what runs goes back.
    pub(crate) fn stop_all(&mut self, grace: Duration) {
        self.grace = grace;
        let ids: Vec<u64> = self.processes.keys().copied().collect();
        for id in ids {
            self.end(id, EndReason::Stopped);
            if let Some(process) = self.processes.get_mut(&id) {
                process.ending = Some(EndReason::Stopped);
            }
        }
    }

    pub(crate) fn nonce(&self) -> Option<&str> {
        self.crew.as_ref().map(Crew::nonce)
    }
}

fn used(process: &RunnerProcess, wall: Duration) -> Used {
    let wall_us = u64::try_from(wall.as_micros()).unwrap_or(u64::MAX);
    let peak_kib = process.memory.resident_bytes / 1024;
    Used { wall_us, user_us: 0, system_us: 0, peak_kib }
}

/// How a process ended that was not told to.
fn told(ending: &Ending, was_ready: bool) -> (Outcome, String) {
    let when = if was_ready { "during this call" } else { "before it was ready" };
    match ending {
        Ending::Exited(0) => (Outcome::Error, format!("the runner ended {when}")),
        Ending::Exited(code) => {
            (Outcome::Exit(*code), format!("the runner ended {when} with exit code {code}"))
        }
        Ending::Signalled(signal) => {
            (Outcome::Signal(*signal), format!("the runner ended {when} by signal {signal}"))
        }
        Ending::NotStarted { message, .. } => {
            (Outcome::Error, format!("the runner cannot be started: {message}"))
        }
        Ending::GuardianLost | Ending::Stopped { .. } => {
            (Outcome::Lost, "the process that watches over runners was killed".into())
        }
        Ending::TimedOut { .. } => (Outcome::TimedOut, "it took too long".into()),
    }
}

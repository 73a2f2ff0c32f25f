//! What the runner knows of each task: its pipes, and whether it has ended.
//! Changed under one lock, by the launching threads and by the loop.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant, SystemTime};

use rustix::event::epoll::{self, EventData, EventFlags};

use super::link::GuardianLink;
use super::prepare::{Prepared, Unsent};
use super::shortage::{Shortage, Telling};
use super::{RunnerEvent, Stream};
use crate::ending::{Ending, Reason, Usage};

#[derive(Debug)]
pub(super) struct RunnerState {
    pub link: GuardianLink,
    /// Packets about tasks that were sent.
    pub orders: VecDeque<Vec<u8>>,
    pub unsent: VecDeque<Unsent>,
    /// There is no room to start more, or there was none a moment ago.
    pub shortage: Option<Shortage>,
    pub telling: Telling,
    pub nonce: String,
    /// How many tasks the guardian may have, running and waiting.
    pub ahead_max: usize,
    /// Every task that has not ended, sent or not.
    pub by_id: HashMap<u64, u64>,
    /// Those that were sent.
    pub tasks: HashMap<u64, LaunchedTask>,
    /// Ended, with a pipe still held by somebody.
    pub lingering: BTreeSet<(Instant, u64)>,
    /// Endings that no descriptor will tell of.
    undelivered: Vec<RunnerEvent>,
    closing: bool,
}

#[derive(Debug)]
pub(super) struct LaunchedTask {
    pub id: u64,
    pub launched: Instant,
    pub started: Option<SystemTime>,
    pub pipes: [Option<OwnedFd>; 2],
    pub is_watched: bool,
    /// What was sent, until it has started: it may have to be sent again.
    pub launch: Option<Box<Prepared>>,
    /// It was told to end before it had started.
    pub is_stopped: bool,
    /// Its process has ended, and what that left behind may go on as long as it has the output.
    pub has_left: bool,
    pub ended: Option<(Ending, Usage)>,
}

impl LaunchedTask {
    pub fn new(
        launch: Box<Prepared>,
        pipes: [Option<OwnedFd>; 2],
        launched: Instant,
    ) -> LaunchedTask {
        LaunchedTask {
            id: launch.id,
            launched,
            started: None,
            pipes,
            is_watched: false,
            launch: Some(launch),
            is_stopped: false,
            has_left: false,
            ended: None,
        }
    }
}

/// What a readiness is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token {
    Guardian,
    Wake,
    Timer,
    Pipe(u64, Stream),
}

impl Token {
    /// Sequence numbers start at one, which leaves the first few for the others.
    pub fn data(self) -> EventData {
        EventData::new_u64(match self {
            Token::Guardian => 0,
            Token::Wake => 1,
            Token::Timer => 2,
            Token::Pipe(seq, stream) => (seq << 2) | stream as u64,
        })
    }

    pub fn of(data: EventData) -> Token {
        match data.u64() {
            0 => Token::Guardian,
            1 => Token::Wake,
            2 => Token::Timer,
            pipe if pipe & 1 == 0 => Token::Pipe(pipe >> 2, Stream::Stdout),
            pipe => Token::Pipe(pipe >> 2, Stream::Stderr),
        }
    }
}

impl RunnerState {
    pub fn new(link: GuardianLink, ahead_max: usize, nonce: String) -> RunnerState {
        RunnerState {
            link,
            orders: VecDeque::new(),
            unsent: VecDeque::new(),
            shortage: None,
            telling: Telling::default(),
            nonce,
            ahead_max,
            by_id: HashMap::new(),
            tasks: HashMap::new(),
            lingering: BTreeSet::new(),
            undelivered: Vec::new(),
            closing: false,
        }
    }

    /// Takes an id for a task, unless one that has not ended has it.
    pub fn claim(&mut self, id: u64, seq: u64) -> bool {
        let entry = self.by_id.entry(id);
        let is_free = matches!(entry, Entry::Vacant(_));
        entry.or_insert(seq);
        is_free
    }

    /// Has the pipes of a task read as something comes. Not before its start is told, so that
    /// its output comes after that; a task that ends at once is read at its end and never watched.
    pub fn watch_pipes(&mut self, seq: u64, epoll: &OwnedFd) {
        let Some(task) = self.tasks.get_mut(&seq).filter(|task| !task.is_watched) else { return };
        task.is_watched = true;
        for (pipe, stream) in task.pipes.iter().zip([Stream::Stdout, Stream::Stderr]) {
            if let Some(pipe) = pipe {
                // Without memory for it the output is read at the end of the task.
                let _ = epoll::add(epoll, pipe, Token::Pipe(seq, stream).data(), EventFlags::IN);
            }
        }
    }

    /// A task that was taken and ends before it was sent.
    pub fn refuse_unsent(&mut self, id: u64, reason: Reason, message: String) {
        self.end_unsent(id, Ending::NotStarted { reason, message });
    }

    pub fn end_unsent(&mut self, id: u64, ending: Ending) {
        self.by_id.remove(&id);
        self.deliver(id, ending);
    }

    /// A task that was not taken; another may have its id.
    pub fn refuse(&mut self, id: u64, reason: Reason, message: String) {
        self.deliver(id, Ending::NotStarted { reason, message });
    }

    pub fn tell(&mut self, event: RunnerEvent) {
        self.undelivered.push(event);
    }

    fn deliver(&mut self, id: u64, ending: Ending) {
        let usage = Usage::default();
        let started = SystemTime::now();
        self.undelivered.push(RunnerEvent::Ended { id, ending, usage, started });
    }

    pub fn has_undelivered(&self) -> bool {
        !self.undelivered.is_empty()
    }

    pub fn take_undelivered(&mut self, into: &mut Vec<RunnerEvent>) {
        into.append(&mut self.undelivered);
    }

    /// Takes the task out and tells of its end. Whatever its pipes still held is given up.
    pub fn finish(&mut self, seq: u64, into: &mut Vec<RunnerEvent>) {
        let Some(task) = self.tasks.remove(&seq) else { return };
        self.by_id.remove(&task.id);
        let (ending, usage) = task.ended.expect("only the ended are finished");
        let started = task.started.unwrap_or_else(|| SystemTime::now() - usage.wall);
        into.push(RunnerEvent::Ended { id: task.id, ending, usage, started });
    }

    pub fn is_closing(&self) -> bool {
        self.closing
    }

    pub fn close(&mut self) {
        self.closing = true;
        self.link.close();
    }

    /// How long until the first lingering task is given up, or until more is tried to be started.
    pub fn next_timer(&self, now: Instant) -> Option<Duration> {
        let linger = self.lingering.first().map(|&(at, _)| at);
        let probe = self.shortage.as_ref().map(|shortage| shortage.probe_at);
        let next = linger.into_iter().chain(probe).min();
        next.map(|at| at.saturating_duration_since(now))
    }
}

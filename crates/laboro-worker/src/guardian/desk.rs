//! What the guardian knows and has to do, under one lock: the loop and the threads that spawn both
//! work at it. Whoever reaps or signals a task holds the lock, so that no signal goes to a number
//! that has become another's. Nothing here waits.

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::time::{Instant, SystemTime};

use libc::pid_t;

use super::outbox::Outbox;
use super::request::Waiting;
use super::strays::Strays;
use super::tasks::{Tasks, Why, remember};
use crate::ending::{Reason, Usage};
use crate::sys;
use crate::wire::{Exit, LaunchHead, Report, Request};

pub(super) struct Desk {
    pub tasks: Tasks,
    pub strays: Strays,
    pub outbox: Outbox,
    pub at_once: usize,
    /// Launches for which there is no room yet. The runner sends few ahead.
    waiting: VecDeque<Waiting>,
    /// Launches that have their room and that no thread has begun.
    ready: VecDeque<Waiting>,
    /// Launches a thread has begun and not told of.
    begun: usize,
    pub is_closed: bool,
}

/// How many launches may wait for a thread before requests stay in the socket: a launch holds
/// descriptors here, and none there.
const BACKLOG_MAX: usize = 16;

/// What came of a launch.
pub(super) struct Spawned {
    pub head: LaunchHead,
    /// Just before the spawn.
    pub began: Instant,
    pub began_at: SystemTime,
    /// The process is not reaped before the desk has this.
    pub result: Result<pid_t, (Reason, String)>,
}

impl Desk {
    pub fn new(nonce: &[u8], at_once: usize) -> Desk {
        Desk {
            tasks: Tasks::default(),
            strays: Strays::new(nonce),
            outbox: Outbox::default(),
            at_once,
            waiting: VecDeque::new(),
            ready: VecDeque::new(),
            begun: 0,
            is_closed: false,
        }
    }

    /// How many launches may be begun now.
    pub fn ready(&self) -> usize {
        self.ready.len()
    }

    /// Whether nothing but a request can bring something to begin.
    pub fn is_empty(&self) -> bool {
        self.ready.is_empty() && self.waiting.is_empty()
    }

    /// Whether the threads have so much to do that requests must wait.
    pub fn is_behind(&self) -> bool {
        self.ready.len() >= BACKLOG_MAX
    }

    pub fn is_quiet(&self) -> bool {
        self.begun == 0
    }

    /// The next launch, of which the desk is to be told when it is spawned.
    pub fn begin(&mut self) -> Option<Waiting> {
        let launch = self.ready.pop_front()?;
        self.begun += 1;
        Some(launch)
    }

    /// Gives room to those that wait for it. From here on a task can be signalled.
    fn hand_out(&mut self) {
        while self.tasks.len() < self.at_once
            && let Some(launch) = self.waiting.pop_front()
        {
            self.tasks.starting(launch.head.seq);
            // What it was sent while it waited it hears when it has a process.
            for &signal in &launch.signals {
                self.tasks.signal(launch.head.seq, signal);
            }
            self.strays.starting(launch.head.seq);
            self.ready.push_back(launch);
        }
    }

    pub fn spawned(&mut self, spawned: Spawned, now: Instant) {
        let Spawned { head, began, began_at, result } = spawned;
        let seq = head.seq;
        self.begun -= 1;
        match result {
            Ok(pid) => {
                self.tasks.started(&head, pid, began, now);
                let at = began_at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
                let report = Report::Started { seq, pid: pid.cast_unsigned(), at };
                self.outbox.push_start(seq, report, now);
            }
            Err((reason, message)) => {
                self.tasks.not_started(seq);
                let report = Report::NotStarted { seq, reason, message };
                self.outbox.push_end(seq, &report, now);
                self.hand_out();
            }
        }
    }

    /// Reaps a child that has ended: a task's process, whose group goes too, or a stray. False if
    /// it is no child any more.
    pub fn reap(&mut self, pid: pid_t, now: Instant) -> bool {
        // Before the reaping, while the group's id cannot have become another's.
        self.tasks.end_group_of(pid);
        let Ok(Some(reaped)) = sys::reap(pid) else { return false };
        self.strays.forget(pid);
        self.strays.look_soon();
        if let Some((seq, report)) = self.tasks.reaped(pid, &reaped, now) {
            self.outbox.push_end(seq, &report, now);
            self.hand_out();
        }
        true
    }

    /// Reports the tasks whose process ended in its grace and whose group is gone by now.
    pub fn report_gone_groups(&mut self, now: Instant) {
        while let Some((seq, report)) = self.tasks.next_gone_group(now) {
            self.group_over(seq, &report, now);
        }
    }

    fn group_over(&mut self, seq: u64, report: &Report, now: Instant) {
        self.outbox.push_end(seq, report, now);
        self.strays.look_soon();
        self.hand_out();
    }

    pub fn sweep(&mut self) {
        self.strays.sweep(&self.tasks);
    }

    pub fn answer(&mut self, request: Request, fds: Vec<OwnedFd>, now: Instant) {
        match request {
            Request::Launch(head, body) => {
                self.waiting.push_back(Waiting::new(head, &body, fds));
                self.hand_out();
            }
            Request::Stop { seq, grace } => {
                self.stop_waiting(|head| head.seq == seq, now);
                self.tasks.end(seq, Why::Stopped, grace, now);
            }
            Request::Recall => self.stop_waiting(|_| true, now),
            Request::StopAll { grace } => {
                self.stop_waiting(|_| true, now);
                for seq in self.tasks.all() {
                    self.tasks.end(seq, Why::Stopped, grace, now);
                }
            }
            Request::Release { seq } => {
                if let Some((seq, report)) = self.tasks.released(seq, now) {
                    self.group_over(seq, &report, now);
                }
            }
            Request::Signal { seq, signal } => {
                let waiting = self.waiting.iter_mut().find(|launch| launch.head.seq == seq);
                match waiting {
                    Some(launch) => remember(&mut launch.signals, signal),
                    None => self.tasks.signal(seq, signal),
                }
            }
        }
    }

    /// Those that have not begun never do.
    fn stop_waiting(&mut self, which: impl Fn(&LaunchHead) -> bool, now: Instant) {
        for queue in [&mut self.ready, &mut self.waiting] {
            let (stopped, kept): (VecDeque<_>, _) =
                std::mem::take(queue).into_iter().partition(|launch| which(&launch.head));
            *queue = kept;
            for LaunchHead { seq, .. } in stopped.into_iter().map(Waiting::into_head) {
                self.tasks.not_started(seq);
                let (exit, usage) = (Exit::Stopped { killed: false }, Usage::default());
                self.outbox.push_end(seq, &Report::Ended { seq, exit, usage }, now);
            }
        }
        self.hand_out();
    }

    /// When the loop should look in, if nothing else happens.
    pub fn due(&self) -> Option<Instant> {
        let due = [self.tasks.next_deadline(), self.strays.due(), self.outbox.due()];
        due.into_iter().flatten().min()
    }

    /// Sends the news that may not be held any longer.
    pub fn flush(&mut self, socket: &OwnedFd, now: Instant) -> io::Result<()> {
        if self.waiting.len() <= self.at_once / 2 {
            // The runner may have more, and has to send it before these are begun.
            self.outbox.hurry(now);
        }
        self.outbox.flush(socket, now)
    }

    /// Nothing more begins, and nobody reaps but who ends everything.
    pub fn close(&mut self) {
        self.is_closed = true;
        self.waiting.clear();
        self.ready.clear();
    }
}

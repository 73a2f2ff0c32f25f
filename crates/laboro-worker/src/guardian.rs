//! The guardian: a small process of its own that spawns tasks, ends them in time, reaps them, and
//! kills all that is left of them when its runner is gone, also by kill -9.
//!
//! It is the same program started again with a hidden argument, in its own session, and a child
//! subreaper: whatever a task leaves behind becomes its child. One thread, one loop, no async.
//! It never blocks on its runner. It does block while an exec is under way, so a program on a
//! file system that hangs holds up the tasks behind it.

mod outbox;
mod program;
mod request;
mod spawn;
mod strays;
mod tasks;

use std::collections::VecDeque;
use std::convert::Infallible;
use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::process::exit;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use rustix::net::{SocketType, sockopt};

use crate::ending::Usage;
use crate::proc::Children;
use crate::sys;
use crate::wire::{Exit, LaunchHead, PACKET_BYTES_MAX, Report, Request};
use outbox::Outbox;
use request::Waiting;
use spawn::Spawner;
use strays::Strays;
use tasks::{Tasks, Why};

/// The hidden argument; the nonce of the runner and how many tasks may run at once follow.
pub(crate) const ARGUMENT: &str = "__guardian";

/// Becomes a guardian, and never returns, if this process was started as one. To be called first
/// thing in `main` by every program that has a [`crate::Runner`].
pub fn main_if_asked() {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|first| first == ARGUMENT) {
        let nonce = arguments.next().unwrap_or_default();
        let at_once = arguments.next().and_then(|word| word.to_str()?.parse().ok());
        let at_once = at_once.unwrap_or(usize::MAX);
        let Err(error) = Guardian::new(&nonce, at_once).and_then(|mut guardian| guardian.run());
        if error.kind() != io::ErrorKind::BrokenPipe {
            eprintln!("laboro: guardian: {error}");
            exit(1);
        }
        exit(0);
    }
}

struct Guardian {
    socket: OwnedFd,
    /// Readable when a child has ended.
    signals: OwnedFd,
    null: OwnedFd,
    spawner: Spawner,
    tasks: Tasks,
    strays: Strays,
    outbox: Outbox,
    at_once: usize,
    /// Launches for which there is no room yet. The runner sends few ahead.
    waiting: VecDeque<Waiting>,
}

impl Guardian {
    /// The socket to the runner comes as stdin.
    fn new(nonce: &OsStr, at_once: usize) -> io::Result<Guardian> {
        sys::close_inherited();
        let socket = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
        if sockopt::socket_type(&socket) != Ok(SocketType::SEQPACKET) {
            return Err(io::Error::other(format!("{ARGUMENT} is not for people to use")));
        }
        let null = open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
        rustix::stdio::dup2_stdin(&null)?;
        rustix::stdio::dup2_stdout(&null)?;
        // It fails only for the leader of a group, whose session is then its own anyway.
        let _ = rustix::process::setsid();
        rustix::thread::set_name(c"task-guardian")?;
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
        for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGPIPE] {
            sys::ignore(signal);
        }
        Ok(Guardian {
            socket,
            signals: sys::child_signals()?,
            null,
            spawner: Spawner::new()?,
            tasks: Tasks::default(),
            strays: Strays::new(nonce.as_bytes()),
            outbox: Outbox::default(),
            at_once,
            waiting: VecDeque::new(),
        })
    }

    /// Ends only with the runner: `BrokenPipe` when it is gone, or another error that makes going
    /// on senseless. Either way nothing is left running.
    fn run(&mut self) -> io::Result<Infallible> {
        self.outbox.push(&Report::Ready);
        let mut packet = vec![0; PACKET_BYTES_MAX];
        let ended = loop {
            if let Err(error) = self.turn(&mut packet) {
                break error;
            }
        };
        self.kill_everything();
        Err(ended)
    }

    /// Waits for something and does it: the ended first, since their room is wanted, then what is
    /// due, then at most one launch, since a launch takes long.
    fn turn(&mut self, packet: &mut [u8]) -> io::Result<()> {
        let (requested, ended) = self.wait()?;
        let now = Instant::now();
        if ended {
            self.reap(now);
        }
        self.tasks.expire(now);
        self.settle(now);
        if self.strays.is_due(now) {
            self.strays.sweep(&self.tasks);
        }
        if self.has_room()
            && let Some(waiting) = self.waiting.pop_front()
        {
            // Before the news of what ended: that would have the runner compete for the core.
            self.launch(&waiting);
        }
        self.outbox.flush(&self.socket, now)?;
        if requested {
            self.answer(packet)?;
        }
        Ok(())
    }

    fn has_room(&self) -> bool {
        self.tasks.len() < self.at_once
    }

    fn wait(&self) -> io::Result<(bool, bool)> {
        let next = (self.has_room() && !self.waiting.is_empty()).then(Instant::now);
        let due = [self.tasks.next_deadline(), self.strays.due(), self.outbox.due(), next];
        let timeout = due.into_iter().flatten().min().map(|at| {
            let left = at.saturating_duration_since(Instant::now());
            Timespec::try_from(left).unwrap_or(Timespec { tv_sec: i64::MAX, tv_nsec: 0 })
        });
        let write = if self.outbox.is_blocked() { PollFlags::OUT } else { PollFlags::empty() };
        let mut fds = [
            PollFd::new(&self.socket, PollFlags::IN | PollFlags::RDHUP | write),
            PollFd::new(&self.signals, PollFlags::IN),
        ];
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) => {}
            Err(Errno::INTR) => return Ok((false, false)),
            Err(error) => return Err(error.into()),
        }
        let socket = fds[0].revents();
        // Requests may still lie in the socket, and nobody waits for them any more.
        if socket.intersects(PollFlags::HUP | PollFlags::RDHUP | PollFlags::ERR) {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        Ok((socket.contains(PollFlags::IN), !fds[1].revents().is_empty()))
    }

    fn reap(&mut self, now: Instant) {
        // Signals do not queue, so there is one at most, which may stand for many children.
        let _ = rustix::io::read(&self.signals, &mut [0_u8; 128]);
        self.strays.look_soon();
        loop {
            match sys::next_ended_child() {
                Ok(Some(pid)) => {
                    // Before the reaping, while the group's id cannot have become another's.
                    self.tasks.end_group_of(pid);
                    let Ok(Some(reaped)) = sys::reap(pid) else { return };
                    self.strays.forget(pid);
                    if let Some(report) = self.tasks.reaped(pid, &reaped, now) {
                        self.outbox.push(&report);
                    }
                }
                Ok(None) => return,
                Err(_) => return self.strays.none_left(),
            }
        }
    }

    /// Reports the tasks whose process ended in its grace and whose group is gone by now.
    fn settle(&mut self, now: Instant) {
        while let Some(report) = self.tasks.settled(now) {
            self.outbox.push(&report);
            self.strays.look_soon();
        }
    }

    fn answer(&mut self, packet: &mut [u8]) -> io::Result<()> {
        let Some((packet, fds)) = request::receive(&self.socket, packet)? else { return Ok(()) };
        let request = crate::wire::read_request(packet)
            .ok_or_else(|| io::Error::other("the runner sent a packet that makes no sense"))?;
        let now = Instant::now();
        match request {
            Request::Launch(head, body) => {
                let waiting = Waiting::new(head, &body, fds);
                if self.has_room() && self.waiting.is_empty() {
                    self.launch(&waiting);
                } else {
                    self.waiting.push_back(waiting);
                }
            }
            Request::Stop { seq, grace } => {
                self.stop_waiting(|head| head.seq == seq);
                self.tasks.end(seq, Why::Stopped, grace, now);
            }
            Request::StopAll { grace } => {
                self.stop_waiting(|_| true);
                for seq in self.tasks.all() {
                    self.tasks.end(seq, Why::Stopped, grace, now);
                }
            }
            Request::Signal { seq, signal } => self.tasks.signal(seq, signal),
            Request::SignalAll { signal } => {
                for seq in self.tasks.all() {
                    self.tasks.signal(seq, signal);
                }
            }
        }
        Ok(())
    }

    fn launch(&mut self, waiting: &Waiting) {
        let now = Instant::now();
        let seq = waiting.head.seq;
        let report = match self.spawn(waiting) {
            Ok(pid) => {
                self.strays.started(seq);
                let at = self.tasks.add(&waiting.head, pid, now);
                Report::Started { seq, pid: pid.cast_unsigned(), at }
            }
            Err((reason, message)) => Report::NotStarted { seq, reason, message },
        };
        self.outbox.push(&report);
    }

    /// Those that have not begun never do.
    fn stop_waiting(&mut self, which: impl Fn(&LaunchHead) -> bool) {
        self.waiting.retain(|waiting| {
            let is_stopped = which(&waiting.head);
            if is_stopped {
                let (seq, exit) = (waiting.head.seq, Exit::Stopped { killed: false });
                self.outbox.push(&Report::Ended { seq, exit, usage: Usage::default() });
            }
            !is_stopped
        });
    }

    /// Killing the children is enough: theirs become ours as they die, until there are none.
    fn kill_everything(&mut self) {
        self.tasks.kill_all();
        let mut children = Children::new();
        let mut pids = Vec::new();
        loop {
            children.read(&mut pids);
            let killed = pids.iter().filter(|&&pid| sys::kill(pid, libc::SIGKILL)).count();
            if killed == 0 && !pids.is_empty() {
                // All that is left runs as another user; waiting for it would help nobody.
                return;
            }
            match sys::reap_any_blocking() {
                Ok(_) => {
                    while let Ok(Some(pid)) = sys::next_ended_child() {
                        let _ = sys::reap(pid);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return,
            }
        }
    }
}

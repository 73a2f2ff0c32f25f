//! The guardian: a small process of its own that spawns tasks, ends them in time, reaps them, and
//! kills all that is left of them when its runner is gone, also by kill -9.
//!
//! It is the same program started again with a hidden argument, in its own session, and a child
//! subreaper: whatever a task leaves behind becomes its child. One loop, no async, and a few
//! threads that only spawn. It never blocks on its runner, nor on an exec; but programs on a file
//! system that hangs, one for each of those threads, hold up the tasks behind them.

mod outbox;
mod pool;
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
use std::time::{Duration, Instant, SystemTime};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use rustix::net::{SocketType, sockopt};

use crate::ending::Usage;
use crate::proc::Children;
use crate::sys;
use crate::wire::{Exit, LaunchHead, PACKET_BYTES_MAX, Report, Request};
use outbox::{Outbox, START_HELD};
use pool::{Main, Pool, Spawned};
use request::Waiting;
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
    pool: Pool,
    tasks: Tasks,
    strays: Strays,
    outbox: Outbox,
    at_once: usize,
    /// Launches for which there is no room yet. The runner sends few ahead.
    waiting: VecDeque<Waiting>,
    /// When the last launch was handed to a spawner.
    handed: Instant,
    /// A child has ended of which its spawner has not told yet.
    reaps_again: bool,
}

/// What the loop woke up for.
#[derive(Default)]
struct News {
    requested: bool,
    ended: bool,
}

/// How many launches may wait for a spawner before requests stay in the socket: a launch holds
/// descriptors here, and none there.
const BACKLOG_MAX: usize = 16;

/// How many requests are answered before the ended get their turn.
const REQUESTS_MAX: usize = 16;

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
            // Before the pool, whose threads are to have SIGCHLD blocked too.
            signals: sys::child_signals()?,
            pool: Pool::start(at_once, null)?,
            tasks: Tasks::default(),
            strays: Strays::new(nonce.as_bytes()),
            outbox: Outbox::default(),
            at_once,
            waiting: VecDeque::new(),
            handed: Instant::now(),
            reaps_again: false,
        })
    }

    /// Ends only with the runner: `BrokenPipe` when it is gone, or another error that makes going
    /// on senseless. Either way nothing is left running.
    fn run(&mut self) -> io::Result<Infallible> {
        self.outbox.push_end(0, &Report::Ready, Instant::now());
        let mut packet = vec![0; PACKET_BYTES_MAX];
        let ended = loop {
            if let Err(error) = self.turn(&mut packet) {
                break error;
            }
        };
        self.kill_everything();
        Err(ended)
    }

    /// Waits for something and does it: the ended first, since their room is wanted, and the next
    /// are begun before the news of the last, which would have the runner compete for the core.
    fn turn(&mut self, packet: &mut [u8]) -> io::Result<()> {
        let news = self.wait()?;
        let now = Instant::now();
        self.take_spawned(now);
        if news.ended || self.reaps_again {
            self.reap(now);
        }
        self.tasks.expire(now);
        self.settle(now);
        self.hand_out(now);
        if news.requested {
            for _ in 0..REQUESTS_MAX {
                if self.is_behind() || !self.answer(packet, now)? {
                    break;
                }
            }
        }
        if self.strays.is_due(now) {
            self.strays.sweep(&self.tasks);
        }
        if self.waiting.len() <= self.at_once / 2 {
            // The runner may have more, and has to send it before these are begun.
            self.outbox.hurry(now);
        }
        self.outbox.flush(&self.socket, now)
    }

    fn has_room(&self) -> bool {
        self.tasks.len() < self.at_once
    }

    /// Whether the spawners have so much to do that requests must wait.
    fn is_behind(&self) -> bool {
        self.tasks.any_starting() && self.pool.backlog() >= BACKLOG_MAX
    }

    fn wait(&self) -> io::Result<News> {
        let is_behind = self.is_behind();
        let now = Instant::now();
        // What starts is mostly done in this time, and this wakes us less often than being told.
        let spawned = self.tasks.any_starting().then_some(self.handed + START_HELD);
        let spawned = spawned.filter(|&at| at > now);
        let again = self.reaps_again.then(|| now + START_HELD);
        let due = [self.tasks.next_deadline(), self.strays.due(), self.outbox.due()];
        let mut due = due.into_iter().chain([spawned, again]).flatten().min();
        let main = match due {
            Some(at) if !is_behind && !self.reaps_again => Main::LooksInAt(at),
            _ => Main::Asleep,
        };
        if !self.pool.may_sleep(main) {
            due = Some(now);
        }
        let timeout = due.map(|at| {
            let left = at.saturating_duration_since(now);
            Timespec::try_from(left).unwrap_or(Timespec { tv_sec: i64::MAX, tv_nsec: 0 })
        });
        let read = if is_behind { PollFlags::empty() } else { PollFlags::IN };
        let write = if self.outbox.is_blocked() { PollFlags::OUT } else { PollFlags::empty() };
        let mut fds = [
            PollFd::new(&self.socket, PollFlags::RDHUP | read | write),
            PollFd::new(&self.signals, PollFlags::IN),
            PollFd::from_borrowed_fd(self.pool.waker(), PollFlags::IN),
        ];
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) => {}
            Err(Errno::INTR) => return Ok(News::default()),
            Err(error) => return Err(error.into()),
        }
        let socket = fds[0].revents();
        // Requests may still lie in the socket, and nobody waits for them any more.
        if socket.intersects(PollFlags::HUP | PollFlags::RDHUP | PollFlags::ERR) {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        if !fds[2].revents().is_empty() {
            self.pool.clear_waker();
        }
        let requested = socket.contains(PollFlags::IN);
        Ok(News { requested, ended: !fds[1].revents().is_empty() })
    }

    /// Hears from the spawners what came of launches, and says whether they had anything to say.
    fn take_spawned(&mut self, now: Instant) -> bool {
        let spawned = self.pool.take_done();
        let any = !spawned.is_empty();
        for Spawned { head, began, began_at, result } in spawned {
            let seq = head.seq;
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
                }
            }
        }
        any
    }

    fn reap(&mut self, now: Instant) {
        // Signals do not queue, so there is one at most, which may stand for many children.
        let _ = rustix::io::read(&self.signals, &mut [0_u8; 128]);
        self.strays.look_soon();
        self.reaps_again = false;
        loop {
            match sys::next_ended_child() {
                Ok(Some(pid)) => {
                    if !self.tasks.is_task(pid) && !sys::is_child_of_this_thread(pid) {
                        // Its spawner is about to tell whose it is; until then it stays a zombie,
                        // and its number its own. Or its exec failed, and the spawner reaps it.
                        if self.take_spawned(now) {
                            continue;
                        }
                        self.reaps_again = true;
                        return;
                    }
                    // Before the reaping, while the group's id cannot have become another's.
                    self.tasks.end_group_of(pid);
                    let Ok(Some(reaped)) = sys::reap(pid) else { return };
                    self.strays.forget(pid);
                    if let Some((seq, report)) = self.tasks.reaped(pid, &reaped, now) {
                        self.outbox.push_end(seq, &report, now);
                    }
                }
                Ok(None) => return,
                Err(_) => return self.strays.none_left(),
            }
        }
    }

    /// Reports the tasks whose process ended in its grace and whose group is gone by now.
    fn settle(&mut self, now: Instant) {
        while let Some((seq, report)) = self.tasks.settled(now) {
            self.outbox.push_end(seq, &report, now);
            self.strays.look_soon();
        }
    }

    /// Begins what there is room for.
    fn hand_out(&mut self, now: Instant) {
        while self.has_room()
            && let Some(launch) = self.waiting.pop_front()
        {
            let seq = launch.head.seq;
            self.tasks.starting(seq);
            self.strays.starting(seq);
            self.handed = now;
            self.pool.give(launch);
        }
    }

    /// Says whether there was a request.
    fn answer(&mut self, packet: &mut [u8], now: Instant) -> io::Result<bool> {
        let Some((packet, fds)) = request::receive(&self.socket, packet)? else {
            return Ok(false);
        };
        let request = crate::wire::read_request(packet)
            .ok_or_else(|| io::Error::other("the runner sent a packet that makes no sense"))?;
        match request {
            Request::Launch(head, body) => {
                self.waiting.push_back(Waiting::new(head, &body, fds));
                self.hand_out(now);
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
            Request::Signal { seq, signal } => self.tasks.signal(seq, signal),
            Request::SignalAll { signal } => {
                for seq in self.tasks.all() {
                    self.tasks.signal(seq, signal);
                }
            }
        }
        Ok(true)
    }

    /// Those that have not begun never do.
    fn stop_waiting(&mut self, which: impl Fn(&LaunchHead) -> bool, now: Instant) {
        let begun = self.pool.take_back(&which);
        for launch in &begun {
            self.tasks.not_started(launch.head.seq);
        }
        let waiting = std::mem::take(&mut self.waiting).into_iter();
        let (stopped, waiting): (VecDeque<_>, _) = waiting.partition(|launch| which(&launch.head));
        self.waiting = waiting;
        for LaunchHead { seq, .. } in begun.into_iter().chain(stopped).map(Waiting::into_head) {
            let (exit, usage) = (Exit::Stopped { killed: false }, Usage::default());
            self.outbox.push_end(seq, &Report::Ended { seq, exit, usage }, now);
        }
    }

    /// Killing the children is enough: theirs become ours as they die, until there are none.
    fn kill_everything(&mut self) {
        self.pool.close();
        self.tasks.kill_all();
        // A spawn under way may come to be after we have looked, and one that hangs has to be
        // killed before it ends.
        let mut children = Children::of_all_threads();
        let mut pids = Vec::new();
        while !self.pool.wait_quiet(Duration::from_millis(1)) {
            children.read(&mut pids);
            pids.iter().for_each(|&pid| sys::kill_child(pid));
        }
        self.take_spawned(Instant::now());
        self.tasks.kill_all();
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

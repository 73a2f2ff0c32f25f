//! The guardian: a small process of its own that spawns tasks, ends them in time, reaps them, and
//! kills all that is left of them when its runner is gone, also by kill -9.
//!
//! It is the same program started again with a hidden argument, in its own session, and a child
//! subreaper: whatever a task leaves behind becomes its child. Its parent is the `keeper`, which
//! does the same for it. One loop, no async, and some
//! threads that spawn. It never blocks on its runner, nor on an exec; but programs on a file
//! system that hangs, one for each of those threads, hold up the tasks behind them.

mod desk;
mod ear;
mod keeper;
mod outbox;
mod peak;
mod pool;
mod program;
mod request;
mod spawn;
mod strays;
mod tasks;

use std::convert::Infallible;
use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::process::exit;
use std::time::{Duration, Instant};

use rustix::event::epoll::EventFlags;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use rustix::net::{SocketType, sockopt};

use crate::proc::Children;
use crate::sys::{self, Whose};
use crate::wire::{PACKET_BYTES_MAX, Report};
use desk::Desk;
use ear::Ear;
use outbox::START_HELD;
use pool::{Main, Pool, PoolState};

/// The hidden argument; the nonce of the runner and how many tasks may run at once follow.
pub(crate) const ARGUMENT: &str = "__guardian";

/// Its status if the machine has no room for it.
pub(crate) const NO_ROOM: i32 = 75;

/// Becomes a guardian, and never returns, if this process was started as one. To be called first
/// thing in `main` by every program that has a [`crate::Runner`].
pub fn main_if_asked() {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|first| first == ARGUMENT) {
        let nonce = arguments.next().unwrap_or_default();
        let at_once = arguments.next().and_then(|word| word.to_str()?.parse().ok());
        let at_once = at_once.unwrap_or(usize::MAX);
        sys::close_inherited();
        sys::stay_small();
        let guardian = keeper::stay_behind().and_then(|()| Guardian::new(&nonce, at_once));
        let Err(error) = guardian.and_then(|mut guardian| guardian.run());
        if error.kind() != io::ErrorKind::BrokenPipe {
            if sys::is_shortage(&error) {
                exit(NO_ROOM);
            }
            eprintln!("laboro: guardian: {error}");
            exit(1);
        }
        exit(0);
    }
}

struct Guardian {
    pool: Pool,
    /// Readable when a child has ended.
    signals: OwnedFd,
    /// When that was last looked at.
    looked: Instant,
    /// A child has ended of which its spawner has not told yet.
    reaps_again: bool,
}

/// What the loop woke up for.
#[derive(Default)]
struct WakeUp {
    requested: bool,
    ended: bool,
}

const SENSELESS: &str = "the runner sent a malformed packet";

/// How many requests are answered before the ended get their turn.
const REQUESTS_MAX: usize = 16;

/// Where the threads wait for their tasks, only strays end for the loop, and the signal of any
/// child's end would wake it; so it looks no more often than this.
const LOOK_EVERY: Duration = Duration::from_millis(5);

impl Guardian {
    /// The socket to the runner comes as stdin.
    fn new(nonce: &OsStr, at_once: usize) -> io::Result<Guardian> {
        let socket = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
        if sockopt::socket_type(&socket) != Ok(SocketType::SEQPACKET) {
            return Err(io::Error::other(format!("{ARGUMENT} is for internal use")));
        }
        let null = open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
        rustix::stdio::dup2_stdin(&null)?;
        rustix::stdio::dup2_stdout(&null)?;
        rustix::thread::set_name(c"task-guardian")?;
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
        Ok(Guardian {
            // Before the pool, whose threads are to have SIGCHLD blocked too.
            signals: sys::child_signals()?,
            pool: Pool::start(Desk::new(nonce.as_bytes(), at_once), socket, null)?,
            looked: Instant::now(),
            reaps_again: false,
        })
    }

    /// Ends only with the runner: `BrokenPipe` when it is gone, or another error that makes going
    /// on senseless. Either way nothing is left running.
    fn run(&mut self) -> io::Result<Infallible> {
        self.pool.lock().desk.outbox.push_end(0, &Report::Ready, Instant::now());
        sys::shrink();
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
        let mut state = self.pool.lock();
        state.wakes();
        if state.is_senseless {
            return Err(io::Error::other(SENSELESS));
        }
        if news.ended || self.reaps_again {
            // Signals do not queue, so there is one at most, which may stand for many children.
            let _ = rustix::io::read(&self.signals, &mut [0_u8; 128]);
            self.looked = now;
            self.reaps_again = reap(&mut state, now);
        }
        state.desk.tasks.expire(now);
        state.desk.report_gone_groups(now);
        if news.requested {
            for _ in 0..REQUESTS_MAX {
                // Under the lock, so that no thread begins to listen meanwhile.
                if state.desk.is_behind() || state.ear.is_lent() {
                    break;
                }
                let received = request::receive(self.pool.socket(), packet)?;
                let Some((packet, fds)) = received else { break };
                let request = crate::wire::read_request(packet);
                let request = request.ok_or_else(|| io::Error::other(SENSELESS))?;
                state.desk.answer(request, fds, now);
            }
        }
        self.pool.rouse(&state);
        if state.desk.strays.is_due(now) {
            state.desk.sweep();
        }
        state.desk.flush(self.pool.socket(), now)
    }

    fn wait(&self) -> io::Result<WakeUp> {
        let mut state = self.pool.lock();
        let now = Instant::now();
        let is_behind = state.desk.is_behind();
        let looks_at = self.looked + LOOK_EVERY;
        let looks = !state.is_thread_each || looks_at <= now;
        let again = self.reaps_again.then(|| now + START_HELD);
        let look = (!looks).then_some(looks_at);
        let due = state.desk.due().into_iter().chain(again).chain(look).min();
        let wants_starts = is_behind || self.reaps_again;
        state.sleeps(if wants_starts { Main::Waiting } else { Main::Asleep(due) });
        let is_blocked = state.desk.outbox.is_blocked();
        state.ear.wait_for(self.pool.socket(), !is_behind, is_blocked);
        drop(state);
        let timeout = due.map(|at| {
            let left = at.saturating_duration_since(now);
            Timespec::try_from(left).unwrap_or(Timespec { tv_sec: i64::MAX, tv_nsec: 0 })
        });
        let mut fds = [
            PollFd::from_borrowed_fd(self.pool.ear(), PollFlags::IN),
            PollFd::from_borrowed_fd(self.pool.waker(), PollFlags::IN),
            PollFd::new(&self.signals, PollFlags::IN),
        ];
        let watched = if looks { &mut fds[..] } else { &mut fds[..2] };
        match poll(watched, timeout.as_ref()) {
            Ok(_) => {}
            Err(Errno::INTR) => return Ok(WakeUp::default()),
            Err(error) => return Err(error.into()),
        }
        let socket = match fds[0].revents().is_empty() {
            true => EventFlags::empty(),
            false => Ear::heard(self.pool.ear()),
        };
        // Requests may still lie in the socket, and nobody waits for them any more.
        if socket.intersects(EventFlags::HUP | EventFlags::RDHUP | EventFlags::ERR) {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        if !fds[1].revents().is_empty() {
            self.pool.clear_waker();
        }
        let requested = socket.contains(EventFlags::IN);
        Ok(WakeUp { requested, ended: !fds[2].revents().is_empty() })
    }

    /// Killing the children is enough: theirs become ours as they die, until there are none.
    fn kill_everything(&mut self) {
        let mut state = self.pool.lock();
        state.desk.close();
        state.desk.tasks.kill_all();
        drop(state);
        // A spawn under way may come to be after we have looked, and one that hangs has to be
        // killed before it ends.
        let mut children = Children::of_all_threads();
        let mut pids = Vec::new();
        while !self.pool.wait_quiet(Duration::from_millis(1)) {
            children.read(&mut pids);
            pids.iter().for_each(|&pid| sys::kill_child(pid));
        }
        self.pool.lock().desk.tasks.kill_all();
        end_children(&mut children);
    }
}

/// Whatever a person or a system that goes down may send.
fn ignore_requests_to_end() {
    for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGPIPE] {
        sys::ignore(signal);
    }
}

/// Kills and reaps until there is no child left.
fn end_children(children: &mut Children) {
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
                while let Ok(Some(pid)) = sys::next_ended_child(Whose::AnyThread) {
                    let _ = sys::reap(pid);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}

/// Reaps what has ended, but for what the threads wait for themselves. True if there is one that
/// its spawner is about to tell of: until then it stays a zombie, and its number its own.
fn reap(state: &mut PoolState, now: Instant) -> bool {
    let whose = if state.is_thread_each { Whose::ThisThread } else { Whose::AnyThread };
    let desk = &mut state.desk;
    desk.strays.look_soon();
    loop {
        match sys::next_ended_child(whose) {
            Ok(Some(pid)) => {
                if !desk.tasks.is_task(pid) && !sys::is_child_of_this_thread(pid) {
                    // Or its exec failed, and the spawner reaps it.
                    return true;
                }
                if !desk.reap(pid, now) {
                    return false;
                }
            }
            Ok(None) | Err(_) => return false,
        }
    }
}

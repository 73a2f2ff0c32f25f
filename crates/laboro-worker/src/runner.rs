//! The runner: launches processes through a guardian and tells what becomes of them.
//!
//! It has no loop of its own. [`EventSource::wait`] is the loop, on the thread that wants the
//! events, so no event crosses threads; and a consumer that stops asking stops the reading of
//! pipes, which stops the tasks that write, and no memory grows. Limits of time are the guardian's
//! business and hold all the same.

mod events;
mod link;
mod orphans;
mod outgoing;
mod prepare;
mod shortage;
mod table;

use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::num::NonZeroUsize;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, SystemTime};

use rustix::event::{EventfdFlags, epoll, eventfd};
use rustix::time::{TimerfdClockId, TimerfdFlags, timerfd_create};

pub use events::EventSource;
pub use orphans::end_left_behind;
pub use shortage::no_room_words;

use crate::ending::{Ending, Reason, Usage};
use crate::launch::Launch;
use crate::sys::is_shortage;
use crate::wire::Request;
use prepare::Unsent;
use table::{RunnerState, Token};

/// How a runner is set up; the defaults suit a program that calls `guardian::main_if_asked`.
#[derive(Clone, Debug)]
pub struct Options {
    /// The program that becomes the guardian: this one, unless `main` is not ours to change.
    pub guardian: PathBuf,
    /// How long after a task's process has ended its output may still come, when a process that
    /// could not be found holds the pipe. Its group is killed, so this is hardly ever waited for.
    pub linger: Duration,
    pub orphans: Orphans,
    /// How many tasks run at once; further ones wait in the order of their launch. A program that
    /// launches a few ahead has the next begin the moment one ends, without being asked.
    pub at_once: Option<NonZeroUsize>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            guardian: "/proc/self/exe".into(),
            linger: Duration::from_millis(200),
            orphans: Orphans::Marked,
            at_once: None,
        }
    }
}

/// Which processes are killed when the guardian is killed and its children become ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Orphans {
    /// Those of the guardian's session or with our mark in their environment, and all below them.
    /// A task's process that has left the session and cleared its environment escapes.
    Marked,
    /// Every child of this process but other guardians. For a program that starts no processes
    /// other than through runners: nothing escapes.
    All,
}

#[derive(Debug, thiserror::Error)]
pub enum RunnerError {
    #[error("cannot start guardian {program}: {source}")]
    Guardian { program: PathBuf, source: io::Error },
    #[error(
        "the process that starts tasks ({0}) did not answer within 10 s: the machine may be overloaded; try again"
    )]
    Silent(PathBuf),
    #[error(
        "no room to start anything on this machine: {0}: raise `ulimit -u`, or end something, and try again"
    )]
    NoRoom(io::Error),
    #[error("cannot set up the runner: {0}")]
    System(#[from] io::Error),
}

impl RunnerError {
    /// The machine has no room now, which passes.
    fn is_shortage(&self) -> bool {
        match self {
            RunnerError::Guardian { source, .. } | RunnerError::System(source) => {
                is_shortage(source)
            }
            RunnerError::NoRoom(_) => true,
            RunnerError::Silent(_) => false,
        }
    }
}

/// What happens to a task, in this order: at most one `Started`, any number of `Output`, and
/// exactly one `Ended`, after which nothing more comes.
///
/// A machine that has no room to start a task now is not the task's fault: the launch waits here
/// and is tried again, which is told of the runner and not of the task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunnerEvent {
    Started {
        id: u64,
        pid: u32,
    },
    /// At most 64 KiB at a time; any bytes.
    Output {
        id: u64,
        stream: Stream,
        bytes: Vec<u8>,
    },
    Ended {
        id: u64,
        ending: Ending,
        usage: Usage,
        started: SystemTime,
    },
    /// From now on fewer run at once than may. Told again, at growing intervals, as long as
    /// nothing runs at all.
    NoRoom {
        why: String,
        running: usize,
        /// For how long nothing could be started, with nothing running.
        nothing_for: Option<Duration>,
    },
    /// As many as may run at once do again.
    Room,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    Stdout,
    Stderr,
}

/// Launches processes. Dropping it ends them all, and waits until they have; a program that calls
/// `std::process::exit` leaves that to the guardian.
#[derive(Debug)]
pub struct Runner {
    shared: Arc<SharedRunner>,
}

#[derive(Debug)]
struct SharedRunner {
    options: Options,
    /// Tells our tasks from those of any other runner.
    nonce: String,
    next_seq: AtomicU64,
    epoll: OwnedFd,
    /// Written when there is news that no other descriptor shows.
    wake: OwnedFd,
    timer: OwnedFd,
    state: Mutex<RunnerState>,
}

impl Runner {
    /// Starts a guardian and makes this process a child subreaper, so that it inherits the
    /// guardian's children should that be killed. It then also inherits what other children of
    /// it leave behind; a program that has such should reap them.
    pub fn start(options: Options) -> Result<(Runner, EventSource), RunnerError> {
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
            .map_err(io::Error::from)?;
        let nonce = format!("{:016x}", RandomState::new().build_hasher().finish());
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(io::Error::from)?;
        let wake =
            eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map_err(io::Error::from)?;
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags).map_err(io::Error::from)?;
        for (fd, token) in [(&wake, Token::Wake), (&timer, Token::Timer)] {
            epoll::add(&epoll, fd, token.data(), epoll::EventFlags::IN).map_err(io::Error::from)?;
        }
        let link = start_link(&options, &nonce, &wake)?;
        link.register(&epoll)?;
        // So many more than run that the guardian has the next at hand when one ends, and that
        // news of short tasks can come together.
        let ahead_max = |n: NonZeroUsize| n.get().saturating_add(n.get().max(AHEAD_MIN));
        let ahead_max = options.at_once.map_or(usize::MAX, ahead_max);
        let state = Mutex::new(RunnerState::new(link, ahead_max, nonce.clone()));
        let next_seq = AtomicU64::new(1);
        let shared = Arc::new(SharedRunner { options, nonce, next_seq, epoll, wake, timer, state });
        Ok((Runner { shared: Arc::clone(&shared) }, EventSource::new(shared)))
    }

    /// What the mark of every process of this runner begins with, for whoever comes after it and finds it dead: see
    /// [`end_left_behind`].
    pub fn nonce(&self) -> &str {
        &self.shared.nonce
    }

    pub(crate) fn options(&self) -> &Options {
        &self.shared.options
    }

    /// Never blocks on the guardian; opens the files the launch names. Whatever goes wrong comes
    /// as `RunnerEvent::Ended`.
    pub fn launch(&self, launch: Launch) {
        let id = launch.id;
        let seq = self.shared.next_seq.fetch_add(1, Ordering::Relaxed);
        // Outside the lock, because opening a file can take its time.
        let prepared = prepare::prepare(&launch, seq, &self.shared.nonce);
        let unsent = match prepared {
            Ok(prepared) => Ok(Unsent::Ready(Box::new(prepared))),
            // It is tried again when there is room.
            Err((Reason::Resources, _)) => Ok(Unsent::Bare(Box::new(launch), seq)),
            Err(refusal) => Err(refusal),
        };
        self.lock_and_wake(|state| match unsent {
            _ if state.is_closing() => {
                state.refuse(id, Reason::Invalid, "the runner has been shut down".into());
            }
            Ok(unsent) if state.claim(id, seq) => {
                state.unsent.push_back(unsent);
                state.send_waiting(&self.shared.epoll);
            }
            Ok(_) => state.refuse(id, Reason::Invalid, format!("task {id} is already running")),
            Err((reason, message)) => state.refuse(id, reason, message),
        });
    }

    /// SIGTERM to the task's group, SIGKILL after the grace. A second call kills at once.
    /// A task that has not begun never does.
    pub fn stop(&self, id: u64, grace: Duration) {
        self.lock_and_wake(|state| {
            state.stop_unsent(|unsent| unsent == id);
            state.stop_sent(id);
        });
        self.order(id, |seq| Request::Stop { seq, grace });
    }

    /// Launches that have not begun never do, and end as stopped. What runs goes on.
    pub fn recall(&self) {
        self.lock_and_wake(RunnerState::stop_unbegun);
        self.order_all(&Request::Recall);
    }

    pub fn stop_all(&self, grace: Duration) {
        self.lock_and_wake(RunnerState::stop_unbegun);
        self.order_all(&Request::StopAll { grace });
    }

    /// Sends a signal to the task's group. It is not taken as a request to stop: an ending that
    /// follows is the task's own.
    pub fn signal(&self, id: u64, signal: i32) {
        self.order(id, |seq| Request::Signal { seq, signal });
    }

    /// Kills whatever still runs and returns when nothing does. The event source then gives what
    /// is left and ends.
    pub fn shutdown(self) {
        drop(self);
    }

    fn lock_and_wake(&self, change: impl FnOnce(&mut RunnerState)) {
        let mut state = self.shared.lock();
        change(&mut state);
        if state.has_undelivered() {
            self.shared.wake();
        }
    }

    fn order(&self, id: u64, request: impl FnOnce(u64) -> Request<'static>) {
        let seq = self.shared.lock().by_id.get(&id).copied();
        if let Some(seq) = seq {
            self.order_all(&request(seq));
        }
    }

    fn order_all(&self, request: &Request) {
        let packet = crate::wire::control_packet(request);
        let mut state = self.shared.lock();
        state.orders.push_back(packet);
        state.send_waiting(&self.shared.epoll);
    }
}

impl Drop for Runner {
    /// Waits as `shutdown` does: a program that ended before its orphans did would leave them.
    fn drop(&mut self) {
        let watcher = {
            let mut state = self.shared.lock();
            state.close();
            state.link.take_watcher()
        };
        if let Some(watcher) = watcher {
            // It only panics if it was broken, and then there is nothing to wait for.
            let _ = watcher.join();
        }
    }
}

/// A machine without room for a guardian may have some in a moment.
fn start_link(
    options: &Options,
    nonce: &str,
    wake: &OwnedFd,
) -> Result<link::GuardianLink, RunnerError> {
    let mut pause = Duration::from_millis(50);
    loop {
        match link::GuardianLink::start(options, nonce, wake) {
            Err(error) if error.is_shortage() && pause < Duration::from_secs(5) => {
                std::thread::sleep(pause);
                pause *= 2;
            }
            started => return started,
        }
    }
}

/// How many launches the guardian may have beyond those that run, however few may run.
const AHEAD_MIN: usize = 8;

impl SharedRunner {
    fn lock(&self) -> MutexGuard<'_, RunnerState> {
        self.state.lock().expect("nothing panics while it holds the state")
    }

    fn wake(&self) {
        // Full means that it is awake.
        let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
    }
}

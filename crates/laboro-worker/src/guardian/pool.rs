//! The threads that start processes. posix_spawn holds its caller until the child has exec'd, and
//! meanwhile the guardian's loop has others to reap; so a few threads do it, in the order of the
//! launches. They know nothing of tasks: what came of a launch the loop is told, and only it reaps.
//!
//! They live as long as the guardian. A process that asks to be signalled when its parent ends
//! means the thread that spawned it.

use std::collections::VecDeque;
use std::io;
use std::num::NonZeroUsize;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use libc::pid_t;
use rustix::event::{EventfdFlags, eventfd};

use super::outbox::START_HELD;
use super::request::Waiting;
use super::spawn::Spawner;
use crate::ending::Reason;
use crate::wire::LaunchHead;

/// What came of a launch.
pub(super) struct Spawned {
    pub head: LaunchHead,
    /// Just before the spawn.
    pub began: Instant,
    pub began_at: SystemTime,
    /// A process stays unreaped until the loop has this.
    pub result: Result<pid_t, (Reason, String)>,
}

pub(super) struct Pool(Arc<Shared>);

struct Shared {
    spawner: Spawner,
    null: OwnedFd,
    /// Written when the loop should look in.
    wake: OwnedFd,
    queue: Mutex<Queue>,
    work: Condvar,
    quiet: Condvar,
}

#[derive(Default)]
struct Queue {
    todo: VecDeque<Waiting>,
    /// Taken, and not in `done` yet.
    begun: usize,
    done: Vec<Spawned>,
    /// Threads that wait for work.
    idle: usize,
    main: Main,
    is_closed: bool,
}

/// What the guardian's loop does.
#[derive(Clone, Copy, Default)]
pub(super) enum Main {
    #[default]
    Awake,
    /// It sleeps until then at most.
    LooksInAt(Instant),
    /// It sleeps until it is woken, or wants to know at once.
    Asleep,
}

/// More than there are cores spawn no faster, and they keep each other from the memory map.
const THREADS_MAX: usize = 4;

/// The child of a spawn has a stack of its own; this is for looking up programs and for messages.
const STACK_BYTES: usize = 128 * 1024;

impl Pool {
    /// At most as many threads as tasks may run at once. They inherit the caller's blocked signals.
    pub fn start(at_once: usize, null: OwnedFd) -> io::Result<Pool> {
        let shared = Arc::new(Shared {
            spawner: Spawner::new()?,
            null,
            wake: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
            queue: Mutex::default(),
            work: Condvar::new(),
            quiet: Condvar::new(),
        });
        let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
        for number in 0..cores.min(at_once).clamp(1, THREADS_MAX) {
            let shared = Arc::clone(&shared);
            let thread = thread::Builder::new().name("task-spawner".into());
            match thread.stack_size(STACK_BYTES).spawn(move || shared.work()) {
                // Where processes are scarce one will do.
                Err(_) if number > 0 => break,
                started => drop(started?),
            }
        }
        Ok(Pool(shared))
    }

    pub fn give(&self, launch: Waiting) {
        let mut queue = self.0.lock();
        queue.todo.push_back(launch);
        let is_wanted = queue.idle > 0;
        drop(queue);
        // A thread that is busy looks here next by itself.
        if is_wanted {
            self.0.work.notify_one();
        }
    }

    /// Takes back the launches no thread has begun.
    pub fn take_back(&self, which: impl Fn(&LaunchHead) -> bool) -> VecDeque<Waiting> {
        let mut queue = self.0.lock();
        let todo = std::mem::take(&mut queue.todo);
        let (back, todo) = todo.into_iter().partition(|launch| which(&launch.head));
        queue.todo = todo;
        back
    }

    pub fn take_done(&self) -> Vec<Spawned> {
        let mut queue = self.0.lock();
        queue.main = Main::Awake;
        std::mem::take(&mut queue.done)
    }

    /// How many launches no thread has begun.
    pub fn backlog(&self) -> usize {
        self.0.lock().todo.len()
    }

    /// To be called before the loop sleeps: [`Pool::waker`] then shows what is done, unless the
    /// loop comes soon by itself. False if something is done already.
    pub fn may_sleep(&self, main: Main) -> bool {
        let mut queue = self.0.lock();
        queue.main = main;
        queue.done.is_empty()
    }

    pub fn waker(&self) -> BorrowedFd<'_> {
        self.0.wake.as_fd()
    }

    pub fn clear_waker(&self) {
        let _ = rustix::io::read(&self.0.wake, &mut [0_u8; 8]);
    }

    /// Forgets the launches no thread has begun; none begins another.
    pub fn close(&self) {
        let mut queue = self.0.lock();
        queue.is_closed = true;
        queue.todo.clear();
    }

    /// Waits until nothing is being spawned, or for so long. Says whether nothing is.
    pub fn wait_quiet(&self, patience: Duration) -> bool {
        let queue = self.0.lock();
        let waited = self.0.quiet.wait_timeout_while(queue, patience, |queue| queue.begun > 0);
        waited.expect("a spawner that panics ends the guardian").0.begun == 0
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().expect("a spawner that panics ends the guardian")
    }

    fn work(&self) {
        let _guard = AbortOnPanic;
        let mut queue = self.lock();
        loop {
            if queue.is_closed {
                // Still here, since the end of this thread would hand its children on.
                queue = self.sleep(queue);
                continue;
            }
            let Some(launch) = queue.todo.pop_front() else {
                queue = self.sleep(queue);
                continue;
            };
            queue.begun += 1;
            // Under the lock, so that the times are in the order of the launches.
            let (began, began_at) = (Instant::now(), SystemTime::now());
            drop(queue);
            let result = launch.start(&self.spawner, self.null.as_fd());
            // Its ends of the pipes are closed before anybody hears of it.
            let head = launch.into_head();
            queue = self.lock();
            queue.begun -= 1;
            queue.done.push(Spawned { head, began, began_at, result });
            let is_late = match queue.main {
                Main::Awake => false,
                Main::LooksInAt(at) => at > began + START_HELD,
                Main::Asleep => true,
            };
            if is_late {
                queue.main = Main::Awake;
                // Full means that it is awake.
                let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
            }
            if queue.is_closed && queue.begun == 0 {
                self.quiet.notify_all();
            }
        }
    }

    fn sleep<'a>(&self, mut queue: MutexGuard<'a, Queue>) -> MutexGuard<'a, Queue> {
        queue.idle += 1;
        queue = self.work.wait(queue).expect("a spawner that panics ends the guardian");
        queue.idle -= 1;
        queue
    }
}

/// A guardian short of a thread would lose its launch; one that is gone is replaced.
struct AbortOnPanic;

impl Drop for AbortOnPanic {
    fn drop(&mut self) {
        if thread::panicking() {
            std::process::abort();
        }
    }
}

//! The threads that start processes. posix_spawn holds its caller until the child has exec'd, and
//! meanwhile the guardian's loop has others to see to.
//!
//! Where few tasks run at once there is a thread for each: it spawns, waits for the end, and goes
//! on with the next launch, which it takes from the runner itself if none lies here: between two
//! tasks of a slot nobody else has to wake up. Else a few threads only spawn, and the loop waits
//! for the ends.
//!
//! They live as long as the guardian. A process that asks to be signalled when its parent ends
//! means the thread that spawned it.

use std::io;
use std::num::NonZeroUsize;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use rustix::event::{EventfdFlags, eventfd};

use super::desk::{Desk, Spawned};
use super::ear::Ear;
use super::program::Finder;
use super::request;
use super::spawn::Spawner;
use crate::sys;
use crate::wire::{PACKET_BYTES_MAX, read_request};

pub(super) struct Pool(Arc<SharedPool>);

struct SharedPool {
    spawner: Spawner,
    null: OwnedFd,
    /// To the runner.
    socket: OwnedFd,
    /// Written when the loop should look in.
    wake: OwnedFd,
    /// That of the ear, for the loop to sleep on without the lock.
    ear: OwnedFd,
    state: Mutex<PoolState>,
    work: Condvar,
    quiet: Condvar,
}

/// The desk, and who is at it.
pub(super) struct PoolState {
    pub desk: Desk,
    pub ear: Ear,
    /// What the runner said to a thread.
    pub is_senseless: bool,
    /// There is a thread for each task that may run, which waits for its end and reaps it.
    pub is_thread_each: bool,
    /// Threads that wait for work.
    idle: usize,
    /// Threads that are to end before there is work.
    surplus: usize,
    main: Main,
}

/// What the guardian's loop does.
#[derive(Clone, Copy)]
pub(super) enum Main {
    Awake,
    /// It sleeps until then at most, if there is a then.
    Asleep(Option<Instant>),
    /// It sleeps and wants to know of the next start.
    Waiting,
}

/// Up to so many tasks at once have a thread each.
const THREAD_EACH_MAX: usize = 64;

/// More than there are cores spawn no faster, and they keep each other from the memory map.
const SPAWNERS_MAX: usize = 4;

/// The child of a spawn has a stack of its own; this is for looking up programs and for messages.
const STACK_BYTES: usize = 128 * 1024;

impl Pool {
    /// The threads inherit the caller's blocked signals.
    pub fn start(desk: Desk, socket: OwnedFd, null: OwnedFd) -> io::Result<Pool> {
        let at_once = desk.at_once;
        let ear = Ear::new(&socket)?;
        let ear_fd = ear.fd().try_clone_to_owned()?;
        let state = PoolState {
            desk,
            ear,
            is_senseless: false,
            is_thread_each: false,
            idle: 0,
            surplus: 0,
            main: Main::Awake,
        };
        let shared = Arc::new(SharedPool {
            spawner: Spawner::new()?,
            null,
            socket,
            ear: ear_fd,
            wake: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
            state: Mutex::new(state),
            work: Condvar::new(),
            quiet: Condvar::new(),
        });
        let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let wanted = match at_once {
            0..=THREAD_EACH_MAX => at_once.max(1),
            _ => cores.clamp(1, SPAWNERS_MAX),
        };
        let mut started = 0;
        while started < wanted {
            let its = Arc::clone(&shared);
            let thread = thread::Builder::new().name("task-spawner".into());
            match thread.stack_size(STACK_BYTES).spawn(move || its.work()) {
                // Where processes are scarce one will do, and leaves the room to tasks.
                Err(_) if started > 0 => {
                    shared.dismiss(started - 1);
                    started = 1;
                    break;
                }
                thread => drop(thread?),
            }
            started += 1;
        }
        // Nothing has been launched yet, so no thread has had to know.
        shared.lock().is_thread_each = started >= at_once;
        Ok(Pool(shared))
    }

    pub fn lock(&self) -> MutexGuard<'_, PoolState> {
        self.0.lock()
    }

    pub fn socket(&self) -> &OwnedFd {
        &self.0.socket
    }

    /// Readable when the loop has something to hear.
    pub fn ear(&self) -> BorrowedFd<'_> {
        self.0.ear.as_fd()
    }

    /// Wakes as many threads as there are launches to begin. One that is busy looks for more by
    /// itself.
    pub fn rouse(&self, state: &PoolState) {
        for _ in 0..state.desk.ready().min(state.idle) {
            self.0.work.notify_one();
        }
    }

    pub fn waker(&self) -> BorrowedFd<'_> {
        self.0.wake.as_fd()
    }

    pub fn clear_waker(&self) {
        let _ = rustix::io::read(&self.0.wake, &mut [0_u8; 8]);
    }

    /// Waits until nothing is being spawned, or for so long. Says whether nothing is.
    pub fn wait_quiet(&self, patience: Duration) -> bool {
        let state = self.lock();
        let busy = |state: &mut PoolState| !state.desk.is_quiet();
        let waited = self.0.quiet.wait_timeout_while(state, patience, busy);
        waited.expect("a spawner that panics ends the guardian").0.desk.is_quiet()
    }
}

impl PoolState {
    /// To be called before the loop sleeps: [`Pool::waker`] then shows what it has to do sooner.
    pub fn sleeps(&mut self, main: Main) {
        self.main = main;
    }

    pub fn wakes(&mut self) {
        self.main = Main::Awake;
    }

    /// Whoever listens hears nothing but requests.
    fn may_listen(&self) -> bool {
        self.is_thread_each && self.desk.is_empty() && !self.desk.is_closed
    }

    /// Whether the loop sleeps for too long.
    fn is_loop_late(&self) -> bool {
        match self.main {
            Main::Awake => false,
            Main::Waiting => true,
            Main::Asleep(until) => {
                let due = self.desk.due();
                due.is_some_and(|due| until.is_none_or(|until| due < until))
            }
        }
    }
}

impl SharedPool {
    fn lock(&self) -> MutexGuard<'_, PoolState> {
        self.state.lock().expect("a spawner that panics ends the guardian")
    }

    /// Waits until so many threads have ended.
    fn dismiss(&self, count: usize) {
        let mut state = self.lock();
        state.surplus = count;
        self.work.notify_all();
        let left = self.quiet.wait_while(state, |state| state.surplus > 0);
        drop(left.expect("a spawner that panics ends the guardian"));
    }

    fn work(&self) {
        let _guard = AbortOnPanic;
        let mut packet = Vec::new();
        let mut finder = Finder::default();
        let mut state = self.lock();
        loop {
            let Some(launch) = state.desk.begin() else {
                if state.may_listen() && state.ear.lend(&self.socket) {
                    state = self.listen(state, &mut packet);
                    continue;
                }
                if state.surplus > 0 {
                    state.surplus -= 1;
                    self.quiet.notify_all();
                    return;
                }
                // Also when all is over, since the end of this thread would hand its children on.
                state.idle += 1;
                state = self.work.wait(state).expect("a spawner that panics ends the guardian");
                state.idle -= 1;
                continue;
            };
            // Under the lock, so that the times are in the order of the launches.
            let (began, began_at) = (Instant::now(), SystemTime::now());
            drop(state);
            let result = launch.start(&self.spawner, &mut finder, self.null.as_fd());
            // Its ends of the pipes are closed before anybody hears of it.
            let head = launch.into_head();
            let pid = result.as_ref().ok().copied();
            state = self.lock();
            state.desk.spawned(Spawned { head, began, began_at, result }, Instant::now());
            self.tell(&mut state);
            if state.desk.is_closed && state.desk.is_quiet() {
                self.quiet.notify_all();
            }
            if let Some(pid) = pid
                && state.is_thread_each
            {
                drop(state);
                sys::wait_for_end(pid);
                state = self.lock();
                if !state.desk.is_closed {
                    state.desk.reap(pid, Instant::now());
                }
                // The news of the last come after the next is begun: they would have the runner
                // compete for the core.
                if state.desk.ready() == 0 {
                    self.tell(&mut state);
                }
            }
        }
    }

    /// Takes requests off the socket until there is something to begin, or that waits for room:
    /// when there is some, this thread is wanted.
    fn listen<'a>(
        &'a self,
        mut state: MutexGuard<'a, PoolState>,
        packet: &mut Vec<u8>,
    ) -> MutexGuard<'a, PoolState> {
        packet.resize(PACKET_BYTES_MAX, 0);
        while state.desk.is_empty() && !state.ear.is_over() {
            drop(state);
            Ear::listen(&self.socket);
            state = self.lock();
            match request::receive(&self.socket, packet) {
                Ok(Some((packet, fds))) => match read_request(packet) {
                    Some(request) => state.desk.answer(request, fds, Instant::now()),
                    None => state.is_senseless = true,
                },
                // Another thread has it.
                Ok(None) => {}
                // The runner is gone, which the loop sees too.
                Err(_) => state.ear.end(),
            }
            if state.is_senseless {
                state.ear.end();
            }
            // Told before it is begun: others may have been told to end.
            self.tell(&mut state);
        }
        state.ear.give_back(&self.socket);
        state
    }

    /// Sends what is due, and has the loop look in if it sleeps for too long.
    fn tell(&self, state: &mut PoolState) {
        let was_blocked = state.desk.outbox.is_blocked();
        // When the runner is gone the loop hears of it too.
        let _ = state.desk.flush(&self.socket, Instant::now());
        let is_blocked = state.desk.outbox.is_blocked() && !was_blocked;
        if is_blocked || state.is_senseless || state.is_loop_late() {
            state.main = Main::Awake;
            // Full means that it is awake.
            let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
        }
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

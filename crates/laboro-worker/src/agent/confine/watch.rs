//! The memory of tasks, where no cgroup limits it: a thread looks through the process table now and then, as long as
//! a task runs that asked for memory, and tells which take more. Ending them is not done here. What a process only
//! reserves does not count. What several share counts once, but that is looked at only where it matters: it takes long.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use libc::pid_t;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::Excess;
use crate::proc::{self, Process};
use crate::sys;

#[derive(Debug)]
pub(in crate::agent) struct Watch {
    shared: Arc<SharedWatch>,
    over: UnboundedReceiver<Over>,
    /// Started with the first task that asks for memory.
    has_thread: bool,
}

/// This task takes too much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::agent) struct Over {
    pub(in crate::agent) key: u64,
    bytes: u64,
    limit: u64,
}

impl Over {
    pub(in crate::agent) fn excess(self) -> Excess {
        Excess::new(self.bytes, self.limit)
    }
}

#[derive(Debug)]
struct SharedWatch {
    table: Mutex<Table>,
    changed: Condvar,
    over: UnboundedSender<Over>,
}

#[derive(Debug, Default)]
struct Table {
    watched: BTreeMap<u64, Watched>,
    is_closed: bool,
}

#[derive(Clone, Copy, Debug)]
struct Watched {
    /// Of its process and of its group, once there is one.
    pid: Option<pid_t>,
    limit: u64,
    /// It took too much, and that was told.
    over: Option<Over>,
}

/// A task that fills its memory as fast as it can is seen before it has filled the machine's.
const EVERY: Duration = Duration::from_millis(200);
const EVERY_MAX: Duration = Duration::from_secs(1);

/// Looking takes at most one part of so many of a processor, unless that would be too rarely.
const RARELY: u32 = 50;

impl Watch {
    pub(super) fn new() -> Watch {
        let (sender, over) = unbounded_channel();
        let shared = SharedWatch { table: Mutex::default(), changed: Condvar::new(), over: sender };
        Watch { shared: Arc::new(shared), over, has_thread: false }
    }

    /// A task that may take so much is about to start. 0 is no limit.
    pub(super) fn expect(&mut self, key: u64, limit: u64) {
        if limit > 0 {
            let watched = Watched { pid: None, limit, over: None };
            self.shared.lock().watched.insert(key, watched);
        }
    }

    pub(super) fn enter(&mut self, key: u64, pid: u32) {
        let mut table = self.shared.lock();
        let Some(watched) = table.watched.get_mut(&key) else { return };
        watched.pid = pid_t::try_from(pid).ok();
        drop(table);
        if !self.has_thread {
            let shared = Arc::clone(&self.shared);
            let thread = thread::Builder::new().name("memory-watch".into());
            // Without room for a thread now the next task tries again.
            self.has_thread = thread.spawn(move || shared.work()).is_ok();
        }
        self.shared.changed.notify_one();
    }

    pub(super) async fn over(&mut self) -> Over {
        match self.over.recv().await {
            Some(over) => over,
            None => std::future::pending().await,
        }
    }

    pub(super) fn leave(&mut self, key: u64) -> Option<Excess> {
        self.shared.lock().watched.remove(&key)?.over.map(Over::excess)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.shared.lock().is_closed = true;
        self.shared.changed.notify_one();
    }
}

impl SharedWatch {
    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self) {
        let mut pause = EVERY;
        loop {
            let table = self.lock();
            let is_idle = |table: &mut Table| {
                !table.is_closed && table.watched.values().all(|watched| watched.pid.is_none())
            };
            let table =
                self.changed.wait_while(table, is_idle).unwrap_or_else(PoisonError::into_inner);
            let is_open = |table: &mut Table| !table.is_closed;
            let waited = self.changed.wait_timeout_while(table, pause, is_open);
            let (table, _) = waited.unwrap_or_else(PoisonError::into_inner);
            if table.is_closed {
                return;
            }
            drop(table);
            let begun = Instant::now();
            self.look();
            pause = (begun.elapsed() * RARELY).clamp(EVERY, EVERY_MAX);
        }
    }

    fn look(&self) {
        let leaders: HashMap<pid_t, (u64, u64)> = (self.lock().watched.iter())
            .filter(|(_, watched)| watched.over.is_none())
            .filter_map(|(&key, watched)| Some((watched.pid?, (key, watched.limit))))
            .collect();
        if leaders.is_empty() {
            return;
        }
        let page = sys::page_bytes();
        for (leader, processes) in members(&proc::processes(), &leaders) {
            let (key, limit) = leaders[&leader];
            let resident = |process: &Process| process.resident_pages.saturating_mul(page);
            if processes.iter().map(resident).sum::<u64>() <= limit {
                continue;
            }
            let taken = |process: &Process| {
                proc::proportional_bytes(process.pid).unwrap_or_else(|| resident(process))
            };
            // What starts and waits for a task is ours: nobody asked for memory for that.
            let theirs = processes.iter().filter(|process| !proc::is_this_program(process.pid));
            let taken = theirs.map(taken).sum::<u64>();
            if taken > limit
                && let Some(watched) = self.lock().watched.get_mut(&key)
            {
                let over = Over { key, bytes: taken, limit };
                watched.over = Some(over);
                let _ = self.over.send(over);
            }
        }
    }
}

/// How many parents are asked for theirs.
const GENERATIONS_MAX: usize = 32;

/// The processes of each task: those of its group, and those that one of them has started.
fn members<T>(processes: &[Process], leaders: &HashMap<pid_t, T>) -> BTreeMap<pid_t, Vec<Process>> {
    let by_pid: HashMap<pid_t, &Process> =
        processes.iter().map(|process| (process.pid, process)).collect();
    let leader_of = |process: &Process| {
        let parent = |process: &&Process| by_pid.get(&process.parent).copied();
        let line = std::iter::successors(by_pid.get(&process.pid).copied(), parent);
        line.take(GENERATIONS_MAX).map(|one| one.group).find(|group| leaders.contains_key(group))
    };
    let mut members: BTreeMap<pid_t, Vec<Process>> = BTreeMap::new();
    for process in processes {
        if let Some(leader) = leader_of(process) {
            members.entry(leader).or_default().push(*process);
        }
    }
    members
}

#[cfg(test)]
mod tests;

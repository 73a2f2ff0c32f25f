//! Strays: processes that left their task's group (setsid) and became the guardian's children.
//! Each is killed once the task it belongs to has ended.
//!
//! Whose it is stands in its environment. A process that cleared it belongs to one of the tasks
//! that had started when it was first seen, and goes when the last of those has ended.
//! A process we may not signal (setuid) stays until it ends by itself.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use libc::pid_t;

use super::tasks::Tasks;
use crate::launch::TASK_ID_VAR;
use crate::proc::{self, Children, environment_mark};
use crate::sys::{self, Whose};

pub(super) struct Strays {
    /// What the mark of our tasks starts with: the variable and the runner's nonce.
    prefix: Vec<u8>,
    children: Children,
    pids: Vec<pid_t>,
    known: HashMap<pid_t, Known>,
    newest: u64,
    is_wanted: bool,
    not_before: Instant,
}

#[derive(Clone, Copy)]
struct Known {
    owner: Owner,
    seen: Instant,
}

#[derive(Clone, Copy)]
enum Owner {
    Task(u64),
    /// Any task up to this one.
    OneUpTo(u64),
}

impl Strays {
    pub fn new(nonce: &[u8]) -> Strays {
        Strays {
            prefix: [TASK_ID_VAR.as_bytes(), b"=", nonce, b"."].concat(),
            children: Children::of_main_thread(),
            pids: Vec::new(),
            known: HashMap::new(),
            newest: 0,
            is_wanted: false,
            not_before: Instant::now(),
        }
    }

    pub fn starting(&mut self, seq: u64) {
        self.newest = self.newest.max(seq);
    }

    /// Something ended, so there may be new strays or strays that have lost their task.
    pub fn look_soon(&mut self) {
        self.is_wanted = true;
    }

    pub fn forget(&mut self, pid: pid_t) {
        self.known.remove(&pid);
    }

    pub fn due(&self) -> Option<Instant> {
        self.is_wanted.then_some(self.not_before)
    }

    pub fn is_due(&self, now: Instant) -> bool {
        self.is_wanted && self.not_before <= now
    }

    /// Kills the strays whose task is over. Their own children become ours as they die, which is
    /// told like any end, and so leads here again.
    pub fn sweep(&mut self, tasks: &Tasks) {
        let begun = Instant::now();
        if sys::next_ended_child(Whose::ThisThread).is_err() {
            // The kernel says that there is none, as nearly always, and sooner than a list would.
            self.known.clear();
            self.is_wanted = false;
            self.not_before = begun + NONE_REST;
            return;
        }
        self.children.read(&mut self.pids);
        if !self.known.is_empty() {
            // The heirs of a stray just killed are not our children yet.
            self.known
                .retain(|pid, known| begun - known.seen < HEIRS_KEPT || self.pids.contains(pid));
        }
        let mut over = Vec::new();
        // The tasks' own processes are children of the threads that spawned them, and not here.
        for &pid in &self.pids {
            let known = self.known.entry(pid).or_insert_with(|| {
                let owner = owner(pid, &self.prefix);
                Known { owner: owner.map_or(Owner::OneUpTo(self.newest), Owner::Task), seen: begun }
            });
            let is_over = match known.owner {
                Owner::Task(seq) => !tasks.contains(seq),
                Owner::OneUpTo(seq) => tasks.oldest().is_none_or(|oldest| oldest > seq),
            };
            if is_over {
                // At once, so that one that forks as fast as it can is there when it is killed.
                sys::kill(pid, libc::SIGSTOP);
                over.push((pid, known.owner));
            }
        }
        if !over.is_empty() {
            self.kill(&over, begun);
        }
        // Reading takes time for each child, so with thousands it is done less often: a twentieth
        // of the guardian's time at most.
        let now = Instant::now();
        self.not_before = now + 20 * (now - begun);
        self.is_wanted = false;
        if tasks.oldest().is_none() && !self.pids.is_empty() {
            // The list may be short of one that came while it was read, and no task is left whose
            // end would bring us here again.
            self.is_wanted = true;
            self.not_before = now + Duration::from_secs(1);
        }
    }

    /// A descendant may carry no mark, or another laboro's; it has its ancestor's owner.
    fn kill(&mut self, over: &[(pid_t, Owner)], now: Instant) {
        let table = proc::processes();
        for &(stray, owner) in over {
            let mut family = vec![stray];
            while let Some(parent) = family.pop() {
                let heirs = table.iter().filter(|process| process.parent == parent);
                family.extend(heirs.map(|process| process.pid));
                self.known.insert(parent, Known { owner, seen: now });
            }
            sys::kill(stray, libc::SIGKILL);
        }
    }
}

/// How long nobody looks again after there was none.
const NONE_REST: Duration = Duration::from_millis(5);

/// How long the heirs of a killed stray may take to become our children.
const HEIRS_KEPT: Duration = Duration::from_secs(1);

fn owner(pid: pid_t, prefix: &[u8]) -> Option<u64> {
    std::str::from_utf8(&environment_mark(pid, prefix)?).ok()?.parse().ok()
}

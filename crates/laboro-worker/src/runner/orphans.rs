//! What is done when a guardian is killed: its children become ours, and are ended here. And what
//! is done about tasks that a dead program left, which are nobody's.
//! The first runs in the guardian's watcher thread; touches only what is known to be the guardian's, since
//! the program may have other children.

use std::collections::HashSet;
use std::io;
use std::os::fd::OwnedFd;
use std::process::{self, Child, Command};
use std::sync::Mutex;
use std::time::Duration;

use libc::pid_t;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::Orphans;
use crate::launch::TASK_ID_VAR;
use crate::proc::{Process, environment_mark, process as process_now, processes};
use crate::sys;

/// The guardians of this process that are alive.
static GUARDIANS: Mutex<Vec<pid_t>> = Mutex::new(Vec::new());

/// One of them, for as long as it is.
pub(super) struct Guardians(pid_t);

impl Guardians {
    /// Held from before the spawn, so that none is ever taken for an orphan.
    pub fn spawn(command: &mut Command) -> io::Result<(Child, Guardians)> {
        let mut all = GUARDIANS.lock().expect("no panic while held");
        let child = command.spawn()?;
        let pid = child.id().cast_signed();
        all.push(pid);
        Ok((child, Guardians(pid)))
    }
}

impl Drop for Guardians {
    fn drop(&mut self) {
        GUARDIANS.lock().expect("no panic while held").retain(|&pid| pid != self.0);
    }
}

/// Kills in rounds until a round finds nobody: the dying leave children that become ours.
pub(super) fn kill(guardian: pid_t, nonce: &str, which: Orphans) {
    let prefix = prefix(nonce);
    while kill_round(&prefix, |process, me| {
        // A zombie of somebody else's is his to reap; ours may be reaped.
        if process.is_zombie {
            process.parent == me && (which == Orphans::All || process.session == guardian)
        } else {
            process.session == guardian || (which == Orphans::All && process.parent == me)
        }
    }) > 0
    {}
}

/// Ends what is left of the tasks of another runner, which is known to be dead with its guardian and its keeper, and
/// says how many there were. They are known by the mark in their environment, which no other runner ever has, so that
/// the processes of a living one are safe; and what they have started goes with them. What runs as another user, or in
/// another container, cannot be seen or ended from here, and neither can one that has cleared its environment and lost
/// its parent.
pub fn end_left_behind(nonce: &str) -> usize {
    let prefix = prefix(nonce);
    let is_plain = nonce.len() >= NONCE_LEN && nonce.bytes().all(|byte| byte.is_ascii_hexdigit());
    // Whoever is started by such a task is part of it, and it is not left behind.
    if !is_plain || environment_mark(process::id().cast_signed(), &prefix).is_some() {
        return 0;
    }
    let mut ended = 0;
    for _ in 0..ROUNDS_MAX {
        match kill_round(&prefix, |_, _| false) {
            0 => break,
            count => ended += count,
        }
    }
    ended
}

/// Of what does not end however often it is killed, since it hangs in the kernel.
const ROUNDS_MAX: usize = 10;

/// Shorter ones could be another's.
const NONCE_LEN: usize = 16;

fn prefix(nonce: &str) -> Vec<u8> {
    format!("{TASK_ID_VAR}={nonce}.").into_bytes()
}

/// Kills the processes with the mark, those that are ours besides, and all below them. Says how many that were; none if
/// those that are left run as another user and are beyond us.
fn kill_round(prefix: &[u8], is_ours: impl Fn(&Process, pid_t) -> bool) -> usize {
    let table = processes();
    let ours = family(&table, prefix, is_ours);
    let dying: Vec<_> = ours.iter().filter_map(|ours| Some((ours.pid, end(ours)?))).collect();
    for (pid, fd) in &dying {
        await_end(fd);
        // Fails if it is another's child, who then reaps it.
        let _ = sys::reap(*pid);
    }
    dying.len()
}

fn family<'a>(
    table: &'a [Process],
    prefix: &[u8],
    is_ours: impl Fn(&Process, pid_t) -> bool,
) -> Vec<&'a Process> {
    let me = process::id().cast_signed();
    let guardians = GUARDIANS.lock().expect("no panic while held").clone();
    // A guardian is in the session of its keeper, which is the one we know.
    let is_another = |p: &Process| guardians.contains(&p.pid) || guardians.contains(&p.session);
    let mut ours: HashSet<pid_t> = HashSet::new();
    for process in table.iter().filter(|p| p.pid != me && !is_another(p)) {
        let is_marked = || !process.is_zombie && environment_mark(process.pid, prefix).is_some();
        if is_ours(process, me) || is_marked() {
            ours.insert(process.pid);
        }
    }
    loop {
        let before = ours.len();
        let heirs = table.iter().filter(|p| ours.contains(&p.parent) && !p.is_zombie);
        let heirs: Vec<_> = heirs.map(|p| p.pid).collect();
        ours.extend(heirs);
        if ours.len() == before {
            return table.iter().filter(|process| ours.contains(&process.pid)).collect();
        }
    }
}

/// `None` if we may not, or if the number is another's by now. One that is gone by itself counts as ended here: another
/// round follows.
fn end(known: &Process) -> Option<OwnedFd> {
    let fd = pidfd_open(Pid::from_raw(known.pid)?, PidfdFlags::empty()).ok()?;
    if process_now(known.pid).is_some_and(|now| now.born != known.born) {
        return None;
    }
    // By descriptor, which no other process can have come to mean.
    match pidfd_send_signal(&fd, Signal::KILL) {
        Err(Errno::PERM) => None,
        Ok(()) | Err(_) => Some(fd),
    }
}

/// Until it has ended, or for a while: then the next round looks again.
fn await_end(process: &OwnedFd) {
    let patience = Timespec::try_from(Duration::from_secs(1)).expect("a second fits");
    let _ = poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&patience));
}

//! What is done when a guardian is killed: its children become ours, and are ended here.
//! Runs in the guardian's watcher thread; touches only what is known to be the guardian's, since
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
use crate::proc::{Process, environment_mark, processes};
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
    let prefix = format!("{TASK_ID_VAR}={nonce}.").into_bytes();
    loop {
        let table = processes();
        let ours = family(&table, guardian, &prefix, which);
        if ours.is_empty() {
            return;
        }
        let dying: Vec<_> = ours.iter().filter_map(|&pid| Some((pid, end(pid)?))).collect();
        if dying.is_empty() {
            // They run as another user and are beyond us.
            return;
        }
        for (pid, fd) in dying {
            await_end(&fd);
            // Fails if it is another's child, who then reaps it.
            let _ = sys::reap(pid);
        }
    }
}

fn family(table: &[Process], guardian: pid_t, prefix: &[u8], which: Orphans) -> HashSet<pid_t> {
    let me = process::id().cast_signed();
    let guardians = GUARDIANS.lock().expect("no panic while held").clone();
    let mut ours: HashSet<pid_t> = HashSet::new();
    for process in table.iter().filter(|p| p.pid != me && !guardians.contains(&p.pid)) {
        // A zombie of somebody else's is his to reap; ours may be reaped.
        let is_ours = if process.is_zombie {
            process.parent == me && (which == Orphans::All || process.session == guardian)
        } else {
            process.session == guardian
                || (which == Orphans::All && process.parent == me)
                || environment_mark(process.pid, prefix).is_some()
        };
        if is_ours {
            ours.insert(process.pid);
        }
    }
    loop {
        let before = ours.len();
        let heirs = table.iter().filter(|p| ours.contains(&p.parent) && !p.is_zombie);
        let heirs: Vec<_> = heirs.map(|p| p.pid).collect();
        ours.extend(heirs);
        if ours.len() == before {
            return ours;
        }
    }
}

/// `None` if we may not. One that is gone by itself counts as ended here: another round follows.
fn end(pid: pid_t) -> Option<OwnedFd> {
    let fd = pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()?;
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

//! The keeper: the parent of the guardian, which does nothing but wait for its end. Should the guardian be killed, its
//! children become the keeper's, which ends them, also when the program was killed in the same moment. Should the keeper
//! be killed, the guardian still sees the end of the program, and the program that of the keeper.

use std::io;
use std::process::exit;

use libc::pid_t;
use rustix::fs::{Mode, OFlags, open};

use super::{end_children, ignore_requests_to_end};
use crate::proc::Children;
use crate::sys;

/// Returns in a new process, the guardian, in the session of the keeper that this one becomes. To be called before there
/// are threads. The process costs a fork of some 100 µs, once.
pub(super) fn stay_behind() -> io::Result<()> {
    // It fails only for the leader of a group, whose session is then its own anyway.
    let _ = rustix::process::setsid();
    ignore_requests_to_end();
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    match sys::fork()? {
        // A group of its own, so that a signal to one group is not a signal to both.
        None => Ok(rustix::process::setpgid(None, None)?),
        Some(guardian) => keep(guardian),
    }
}

fn keep(guardian: pid_t) -> ! {
    let _ = rustix::thread::set_name(c"task-keeper");
    // The end of the socket would not be seen while there is a copy here.
    if let Ok(null) = open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()) {
        let _ = rustix::stdio::dup2_stdin(&null);
        let _ = rustix::stdio::dup2_stdout(&null);
    }
    sys::wait_for_end(guardian);
    let status = sys::reap(guardian).ok().flatten().map_or(1, |reaped| reaped.status);
    end_children(&mut Children::of_all_threads());
    exit(if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) } else { 1 })
}
